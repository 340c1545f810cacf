//! Whether difficulty rises too fast from stage to stage.

use super::super::Stage;
use super::Found;
use crate::data::arithmetic::Arithmetic;
use crate::data::countdown::Countdown;
use crate::data::family::{Family, Source};

const JUMP: &str = "a jump of more than one tier of difficulty: where nearly all responses are wrong, groups teach \
    nothing; put the tier between in";

/// The hardest tier that an arm has met so far.
#[derive(Default)]
pub(super) struct Reached {
    countdown: Option<usize>,
    arithmetic: Option<usize>,
    level: Option<usize>,
}

impl Reached {
    /// Takes in the tiers of a stage. Demonstrations teach a tier however hard it is, so only GRPO is warned about.
    pub(super) fn step(&mut self, stage: &Stage, found: &mut Found) {
        let climbs = stage.grpo.as_ref().is_some_and(|grpo| grpo.data.progression.is_some());
        let parts = || stage.sft.iter().flat_map(|sft| sft.data.parts());
        let problems = || stage.grpo.iter().map(|grpo| &grpo.data);
        let countdown = parts().filter_map(|part| part.countdown.as_ref());
        let countdown = countdown.chain(problems().flat_map(|data| data.countdown()));
        let mut jumped = jumps(&mut self.countdown, ranks::<Countdown>(countdown), climbs);
        let arithmetic = parts().filter_map(|part| part.arithmetic.as_ref());
        let arithmetic = arithmetic.chain(problems().flat_map(|data| data.arithmetic()));
        jumped |= jumps(&mut self.arithmetic, ranks::<Arithmetic>(arithmetic), climbs);
        // Levels are compared where they are numbers, as in MATH.
        let shown = parts().flat_map(|part| &part.levels);
        let asked = stage.grpo.iter().flat_map(|grpo| {
            grpo.data.levels.iter().chain(grpo.data.tiers.iter().flat_map(|tier| &tier.levels))
        });
        let levels = shown.chain(asked).filter_map(|level| level.parse().ok()).collect();
        jumped |= jumps(&mut self.level, levels, climbs);
        // Both families at once are one warning: it is about the stage.
        if jumped && stage.grpo.is_some() {
            found.add("data", JUMP);
        }
    }
}

/// The places of tiers in their family, from easy to hard.
fn ranks<'a, F: Family + 'a>(sources: impl Iterator<Item = &'a Source<F>>) -> Vec<usize> {
    let tiers = sources.flat_map(|source| &source.tiers);
    tiers.filter_map(|tier| F::TIERS.iter().position(|other| other == tier)).collect()
}

/// Whether a stage's tiers lie more than one above what was reached; those of a progression come one by one.
fn jumps(reached: &mut Option<usize>, mut ranks: Vec<usize>, climbs: bool) -> bool {
    ranks.sort_unstable();
    let steps = if climbs { ranks } else { ranks.pop().into_iter().collect() };
    let mut jumped = false;
    for rank in steps {
        jumped |= reached.is_some_and(|before| rank > before + 1);
        *reached = Some(reached.map_or(rank, |before| before.max(rank)));
    }
    jumped
}
