//! When a stage ends before its steps are done, and when a curriculum moves on to its next tier. What both look at is
//! part of a checkpoint, so that a resumed run decides as if it had never stopped.

use serde::{Deserialize, Serialize};

use super::recipe::{Progression, StopRule};

/// A rate that is less than a limit by no more than this has reached it: means are sums of rounded numbers.
const ROUNDING: f64 = 1e-9;

impl StopRule {
    /// Why the stage is over after these steps, if it is. `values` has one number a step, which should rise; `tokens` are
    /// those of all of them.
    pub fn verdict(&self, values: &[f64], tokens: u64) -> Option<String> {
        if values.len() < self.min_steps.max(1) {
            return None;
        }
        if self.tokens.is_some_and(|enough| tokens >= enough) {
            return Some(format!("{tokens} tokens"));
        }
        let latest = mean_of_last(values, self.window);
        if let (Some(enough), Some(latest)) = (self.solve_rate, latest)
            && latest >= enough - ROUNDING
        {
            return Some(format!("solve rate {latest:.3} over {} steps", self.window));
        }
        let before =
            values.len().checked_sub(self.window).and_then(|n| mean_of_last(&values[..n], self.window));
        let gain = latest? - before?;
        self.plateau.filter(|least| gain < *least).map(|_| {
            format!("plateau: a gain of {gain:.4} from one window of {} steps to the next", self.window)
        })
    }
}

fn mean_of_last(values: &[f64], n: usize) -> Option<f64> {
    let first = values.len().checked_sub(n.max(1))?;
    Some(values[first..].iter().sum::<f64>() / n.max(1) as f64)
}

/// Where a progression stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Climb {
    /// The present tier, counted from 0.
    pub tier: usize,
    /// Its solve rate in each step since it began.
    rates: Vec<f64>,
}

impl Climb {
    /// Takes in the solve rate of the present tier's problems in one step; says whether the next tier begins.
    pub fn step(&mut self, progression: &Progression, tiers: usize, rate: f64) -> bool {
        self.rates.push(rate);
        let reached = mean_of_last(&self.rates, progression.window)
            .is_some_and(|r| r >= progression.solve_rate - ROUNDING);
        let moves = reached && self.tier + 1 < tiers;
        if moves {
            self.tier += 1;
            self.rates.clear();
        }
        moves
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: StopRule =
        StopRule { solve_rate: None, plateau: None, tokens: None, window: 2, min_steps: 0 };

    /// The first number of steps after which the rule ends the stage.
    fn ends(rule: &StopRule, values: &[f64]) -> Option<usize> {
        (1..=values.len()).find(|&n| rule.verdict(&values[..n], 0).is_some())
    }

    #[test]
    fn a_stage_ends_at_its_solve_rate() {
        let rule = StopRule { solve_rate: Some(0.75), ..RULE };
        assert_eq!(ends(&rule, &[0.5, 0.9, 0.5, 0.75, 0.75]), Some(5));
        assert_eq!(ends(&rule, &[1.0]), None, "one step is no window");
        assert_eq!(ends(&rule, &[1.0, 0.5]), Some(2));
        let late = StopRule { min_steps: 4, ..rule };
        assert_eq!(ends(&late, &[1.0, 1.0, 1.0, 1.0]), Some(4));
        assert!(late.verdict(&[1.0; 4], 0).unwrap().contains("solve rate 1.000 over 2 steps"));
    }

    #[test]
    fn a_stage_ends_on_a_plateau() {
        let rule = StopRule { plateau: Some(0.1), ..RULE };
        // Means of two: 0.1, 0.3 (a gain of 0.2), then 0.35 (a gain of 0.15 on the two before), 0.35 (0.05).
        assert_eq!(ends(&rule, &[0.0, 0.2, 0.2, 0.4, 0.3, 0.4]), Some(6));
        assert_eq!(ends(&rule, &[0.5, 0.5, 0.5]), None, "two whole windows are compared");
        assert_eq!(ends(&rule, &[0.5, 0.5, 0.5, 0.5]), Some(4));
        // A fall is no gain.
        assert_eq!(ends(&rule, &[-1.0, -1.0, -2.0, -2.0]), Some(4));
        assert_eq!(ends(&RULE, &[0.5; 9]), None, "no rule, no end");
    }

    #[test]
    fn a_stage_ends_at_its_tokens() {
        let rule = StopRule { tokens: Some(1000), min_steps: 2, ..RULE };
        assert_eq!(rule.verdict(&[0.0; 3], 999), None);
        assert_eq!(rule.verdict(&[0.0; 3], 1000).as_deref(), Some("1000 tokens"));
        assert_eq!(rule.verdict(&[0.0], 1000), None);
    }

    #[test]
    fn a_climb_moves_on_by_the_rate_of_its_present_tier() {
        let progression = Progression { solve_rate: 0.6, window: 2, keep: 0.2 };
        let mut climb = Climb::default();
        let tiers: Vec<usize> = [0.9, 0.2, 0.9, 0.9, 0.5, 0.9, 0.9, 0.9]
            .iter()
            .map(|&rate| {
                climb.step(&progression, 3, rate);
                climb.tier
            })
            .collect();
        // Means of two on tier 0: 0.55, 0.55, 0.9; on tier 1: 0.7; tier 2 is the last.
        assert_eq!(tiers, [0, 0, 0, 1, 1, 2, 2, 2]);
    }
}
