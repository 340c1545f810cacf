//! Credit for single paths (`path_credit`): what a path has found counts for its own tokens, besides what the whole
//! response has come to.
//!
//! A response is right or wrong as a whole, so all its paths rise and fall together, also the path that slipped beside
//! three that didn't. But a trace is a graph of segments, and where the gold answer can be read each path has a verdict of
//! its own. Its advantage is taken against all paths of the group, as that of a response is taken against all responses,
//! and added on the tokens of that path. A group whose responses are all right still teaches while some of its paths are
//! wrong. Not in the paper; docs/lab.md has what it does.

use super::advantage::{ScaleRewards, advantages, all_equal};
use super::grpo::Group;
use crate::prompt::{Control, Controls, Tag};

/// What is added to the advantage of each token of each response of a group, prompt included; 0 outside of paths.
pub(super) fn path_credits(group: &Group, controls: &Controls, weight: f32) -> Vec<Vec<f32>> {
    let verdicts = verdicts(group);
    let flat: Vec<Option<f32>> = verdicts.concat();
    let advantages = advantages(&[flat], ScaleRewards::Group).concat();
    let mut advantages = advantages.into_iter();
    let of_response = |(response, verdicts): (&super::grpo::Response, &Vec<Option<f32>>)| {
        let of_paths: Vec<f32> = advantages.by_ref().take(verdicts.len()).map(|a| weight * a).collect();
        let trace = &response.rollout.trace;
        let mut credits = vec![0.0; trace.prompt_len];
        credits.extend(spread(trace.response(), &of_paths, controls));
        credits
    };
    group.responses.iter().zip(&verdicts).map(of_response).collect()
}

/// Whether some paths of a group are right and others wrong.
pub(super) fn paths_differ(group: &Group) -> bool {
    !all_equal(&verdicts(group).concat())
}

/// 1 for a right path, 0 for a wrong one, by response.
fn verdicts(group: &Group) -> Vec<Vec<Option<f32>>> {
    let of_response = |response: &super::grpo::Response| -> Vec<Option<f32>> {
        response.rollout.paths_right.iter().map(|&right| Some(f32::from(u8::from(right)))).collect()
    };
    group.responses.iter().map(of_response).collect()
}

/// The value of its path on each token between `<Path>` and the next `</Path>`, which belongs to it; paths in text order.
fn spread(response: &[u32], of_paths: &[f32], controls: &Controls) -> Vec<f32> {
    let (mut opened, mut present) = (0, 0.0);
    let value = |&token: &u32| match controls.which(token) {
        Some(Control::Tag(Tag::Path)) => {
            present = of_paths.get(opened).copied().unwrap_or(0.0);
            opened += 1;
            0.0
        }
        Some(Control::Tag(Tag::EndPath)) => std::mem::take(&mut present),
        _ => present,
    };
    response.iter().map(value).collect()
}

#[cfg(test)]
mod tests {
    use candle_core::Device;

    use super::*;
    use crate::model::Pretrained;

    #[test]
    fn a_value_stands_on_the_tokens_of_its_path() {
        let model = Pretrained::embedded(&Device::Cpu).unwrap().with_tags(1).unwrap();
        let controls = model.controls().unwrap();
        let text = "1<Parallel><Path>2</Path><Path>34</Path></Parallel>\n<Summary>5</Summary>";
        let tokens = model.tokenizer.encode_response(text).unwrap();
        let values = spread(&tokens, &[0.5, -1.0], &controls);
        //           1    <P>  <Pa> 2    </P> <Pa> 3     4     </P>  the rest
        let start = [0.0, 0.0, 0.0, 0.5, 0.5, 0.0, -1.0, -1.0, -1.0];
        assert_eq!(values[..9], start);
        assert!(values[9..].iter().all(|value| *value == 0.0));
        assert_eq!(values.len(), tokens.len());
        // A path without a verdict has no credit.
        assert_eq!(spread(&tokens, &[0.5], &controls)[6], 0.0);
    }
}
