//! Credit for single paths (`path_credit`) and for what follows them (`summary_credit`): what a part of a response has done
//! counts for its own tokens, besides what the whole has come to.
//!
//! A response is right or wrong as a whole, so all its paths rise and fall together, also the path that slipped beside
//! three that didn't. But a trace is a graph of segments, and where the gold answer can be read each path has a verdict of
//! its own. Its advantage is taken against all paths of the group, as that of a response is taken against all responses,
//! and added on the tokens of that path. A group whose responses are all right still teaches while some of its paths are
//! wrong.
//!
//! A summary can give no more than its paths have found. What it adds is measured against a path drawn by chance: right or
//! wrong (1 or 0), less the share of right paths. That share is settled before the first token of the summary, so taking it off
//! is a baseline and biases nothing (Sutton and Barto, 2nd edition, section 13.4). It is added on the tokens after the
//! paths. Neither is in the paper; docs/lab.md has what they do.

use super::advantage::{ScaleRewards, advantages, all_equal};
use super::batch::after_block;
use super::grpo::{Group, Response};
use super::recipe::GrpoConfig;
use crate::prompt::{Control, Controls, Tag};

/// What is added to the advantage of each token of each response of a group, prompt included.
pub(super) fn credits(group: &Group, config: &GrpoConfig, controls: &Controls) -> Vec<Vec<f32>> {
    let verdicts = verdicts(group);
    let flat: Vec<Option<f32>> = verdicts.concat();
    let advantages = advantages(&[flat], ScaleRewards::Group).concat();
    let mut advantages = advantages.into_iter();
    let of_response = |(response, verdicts): (&Response, &Vec<Option<f32>>)| {
        let of_paths: Vec<f32> =
            advantages.by_ref().take(verdicts.len()).map(|a| config.path_credit * a).collect();
        let trace = &response.rollout.trace;
        let of_summary = config.summary_credit * gain_of_summary(response.score.correct, verdicts);
        let paths = spread(trace.response(), &of_paths, controls).into_iter();
        let parts = paths.zip(after_block(trace.response(), controls));
        let mut credits = vec![0.0; trace.prompt_len];
        credits.extend(parts.map(|(path, late)| if late { path + of_summary } else { path }));
        credits
    };
    group.responses.iter().zip(&verdicts).map(of_response).collect()
}

/// Whether the answer is right, less the share of paths that are; 0 where that is not known.
fn gain_of_summary(correct: Option<bool>, of_paths: &[Option<f32>]) -> f32 {
    let share = of_paths.iter().flatten().sum::<f32>() / of_paths.len() as f32;
    match correct {
        Some(correct) if !of_paths.is_empty() => f32::from(u8::from(correct)) - share,
        _ => 0.0,
    }
}

/// Whether some paths of a group are right and others wrong.
pub(super) fn paths_differ(group: &Group) -> bool {
    !all_equal(&verdicts(group).concat())
}

/// 1 for a right path, 0 for a wrong one, by response.
fn verdicts(group: &Group) -> Vec<Vec<Option<f32>>> {
    let of_response = |response: &Response| -> Vec<Option<f32>> {
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
    use crate::data::{Split, countdown};
    use crate::engine::{EngineOptions, SamplingParams};
    use crate::eval::{Rollout, rollouts};
    use crate::layout::{Structure, parse};
    use crate::model::Pretrained;
    use crate::reward::Score;

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

    #[test]
    fn what_a_summary_adds_is_measured_against_a_path_drawn_by_chance() {
        let verdicts =
            |right: &[u8]| -> Vec<Option<f32>> { right.iter().map(|&r| Some(f32::from(r))).collect() };
        for (correct, right, gain) in [
            (Some(true), vec![1, 0, 0, 0], 0.75),
            (Some(false), vec![1, 0, 0, 0], -0.25),
            (Some(true), vec![1, 1], 0.0),
            (Some(false), vec![1, 1], -1.0),
            (Some(false), vec![0, 0, 0], 0.0),
            // Neither paths nor a gold answer that can be read: nothing is known.
            (Some(true), vec![], 0.0),
            (None, vec![1, 0], 0.0),
        ] {
            assert_eq!(gain_of_summary(correct, &verdicts(&right)), gain, "{correct:?} {right:?}");
        }
    }

    /// Two responses to one problem, each with two paths: what stands on the tokens of paths and summaries, by hand.
    #[test]
    fn credits_by_hand() {
        let model = Pretrained::embedded(&Device::Cpu).unwrap().with_tags(1).unwrap();
        let controls = model.controls().unwrap();
        let problem = countdown::problems(countdown::Tier::Three, Split::Train, 1, 1).unwrap();
        let sampling =
            SamplingParams { max_response_tokens: 8, structure: Structure::Causal, ..Default::default() };
        let (mut rolled, _) =
            rollouts(&model, &problem, 2, 0, &sampling, EngineOptions::default(), &mut ()).unwrap();
        let text = "<Parallel><Path>2</Path><Path>34</Path></Parallel>\n<Summary>5</Summary>";
        let written = model.tokenizer.encode_response(text).unwrap();
        let response = |(rollout, (right, correct)): (Rollout, ([bool; 2], bool))| {
            let mut trace = rollout.trace;
            let prompt = trace.tokens[..trace.prompt_len].to_vec();
            let parsed = parse(&prompt, &written, &controls, Structure::PathWindow).unwrap();
            (trace.tokens, trace.layout) = (parsed.tokens, parsed.layout);
            let score = Score {
                correct: Some(correct),
                reward: 0.0,
                parts: Default::default(),
                blocks: 1,
                well_formed: true,
            };
            Response { rollout: Rollout { trace, paths_right: right.to_vec(), ..rollout }, score }
        };
        let verdicts = [([true, false], true), ([false, false], false)];
        let responses = rolled.remove(0).into_iter().zip(verdicts).map(response).collect();
        let group = Group { problem: problem[0].clone(), tier: 0, responses };
        let config = |credit: &str| -> GrpoConfig {
            let rest = "steps = 1\nprompts = 1\nnum_generations = 2\nreward = 'accuracy'\n\
                        data = { countdown = { tiers = ['3'] } }";
            toml::from_str(&format!("{credit}\n{rest}")).unwrap()
        };
        let of = |credit: &str| -> Vec<Vec<f32>> {
            let credits = credits(&group, &config(credit), &controls);
            credits
                .into_iter()
                .zip(&group.responses)
                .map(|(c, r)| c[r.rollout.trace.prompt_len..].to_vec())
                .collect()
        };
        // One right path of four: mean 0.25, deviation 0.5.
        let near = |got: &[f32], want: &[f32]| got.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-4);
        let paths = of("path_credit = 2.0");
        assert!(
            near(&paths[0], &[0.0, 0.0, 3.0, 3.0, 0.0, -1.0, -1.0, -1.0, 0.0, 0.0, 0.0, 0.0, 0.0]),
            "{paths:?}"
        );
        assert!(near(&paths[1], &[0.0, 0.0, -1.0, -1.0, 0.0, -1.0, -1.0, -1.0, 0.0]), "{paths:?}");
        // Right with half of its paths right; wrong with none right, which is no fault of the summary.
        let summaries = of("summary_credit = 2.0");
        assert!(near(&summaries[0][..8], &[0.0; 8]) && near(&summaries[0][8..], &[1.0; 5]), "{summaries:?}");
        assert!(near(&summaries[1], &[0.0; 13]), "{summaries:?}");
    }
}
