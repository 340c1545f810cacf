//! What the samples of all cells say.
//!
//! Every arm answers within the same most tokens B. An answer counts at a smaller budget if it was right and complete by
//! then, and at a latency if no more tokens than that had to follow one another; the same rule for all, so one set of
//! answers gives the whole curves.

use serde::{Deserialize, Serialize};

use super::bootstrap::{Estimate, Grid, accuracy, gain};
use super::config::{Study, StudyArm};
use super::samples::ProblemSamples;
use super::training::{CurvePoint, StageTaken, Training, curve};
use crate::eval::majority::expected_maj_at;
use crate::eval::stats::{mean, pass_at_k};

/// What one arm with one seed has come to.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The arm.
    pub arm: String,
    /// The seed.
    pub seed: u64,
    /// How it was trained.
    pub training: Training,
    /// Its answers, by number of paths, in the order of [`Study::paths`].
    pub answers: Vec<(usize, Vec<ProblemSamples>)>,
}

/// All that a study says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Results {
    /// How much better the best parallel setting is than the baseline, in accuracy averaged over all tiers, within B tokens.
    pub relative_gain_mean_equal_tokens: Option<Headline>,
    /// The same on the hardest tiers, within B tokens of which at most L follow one another.
    pub relative_gain_hardest_equal_latency: Option<Headline>,
    /// The hardest tiers.
    pub hardest: Vec<String>,
    /// B.
    pub max_tokens: usize,
    /// L.
    pub critical_tokens: usize,
    /// Answers to each problem.
    pub samples: usize,
    /// The seeds of the baseline.
    pub seeds: Vec<u64>,
    /// The baseline.
    pub baseline: String,
    /// The arms.
    pub arms: Vec<ArmResults>,
}

/// A gain and whose it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Headline {
    /// `arm / baseline - 1`, with its interval.
    #[serde(flatten)]
    pub gain: Estimate,
    /// The arm.
    pub recipe: String,
    /// Its paths at inference.
    pub paths: usize,
}

/// One arm.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ArmResults {
    /// Its name.
    pub name: String,
    /// Whether it thinks in parallel.
    pub parallel: bool,
    /// The seeds that it shares with the baseline; what is said of it is of these.
    pub seeds: Vec<u64>,
    /// What each stage took, by seed.
    pub training: Vec<Vec<StageTaken>>,
    /// Its reinforcement learning, averaged over seeds.
    pub curve: Vec<CurvePoint>,
    /// Its results by number of paths.
    pub settings: Vec<Setting>,
}

/// An arm that answers with some number of paths.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Setting {
    /// Paths of a block.
    pub paths: usize,
    /// Accuracy within B, averaged over tiers.
    pub accuracy: Estimate,
    /// Accuracy on the hardest tiers within B and L.
    pub hardest_at_latency: Estimate,
    /// Against the baseline; `None` for the baseline itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against_baseline: Option<Gains>,
    /// Against votes of the baseline's answers that cost as much.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against_votes: Option<VoteGains>,
    /// Each tier.
    pub tiers: Vec<TierResults>,
    /// Accuracy averaged over tiers, by budget of tokens.
    pub by_budget: Vec<(usize, f64)>,
    /// Accuracy averaged over tiers, by budget of tokens that follow one another.
    pub by_latency: Vec<(usize, f64)>,
    /// The same on the hardest tiers.
    pub hardest_by_latency: Vec<(usize, f64)>,
}

/// How much better a setting is than something else; `None` where that is (nearly) always wrong.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gains {
    /// Over all tiers, within B.
    pub mean_equal_tokens: Option<Estimate>,
    /// On the hardest tiers, within B and L.
    pub hardest_equal_latency: Option<Estimate>,
}

/// Gains over votes of the baseline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VoteGains {
    /// The gains.
    #[serde(flatten)]
    pub gains: Gains,
    /// What the votes reach over all tiers.
    pub accuracy: Estimate,
    /// Votes on each tier: as many as cost no more than an answer of this setting.
    pub votes: Vec<usize>,
}

/// One tier. Shares are from 0 to 1; tokens are means over answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TierResults {
    /// Its name.
    pub name: String,
    /// Accuracy within B: mean@k.
    pub accuracy: Estimate,
    /// The same by seed.
    pub by_seed: Vec<f64>,
    /// Accuracy within B and L.
    pub at_latency: Estimate,
    /// Share of problems with at least one right answer among all samples.
    pub pass_at_k: f64,
    /// Share of problems whose most frequent answer is right.
    pub maj_at_k: f64,
    /// Tokens of an answer.
    pub tokens: f64,
    /// Tokens of it that follow one another.
    pub critical_path_tokens: f64,
    /// Share of answers with a block.
    pub parallel_ratio: f64,
    /// Where blocks start, from 0 to 1.
    pub block_position: Option<f64>,
    /// Share of answers that the budget cut.
    pub truncated: f64,
    /// Of the answers with a block: share in which some path is right.
    pub some_path_right: Option<f64>,
    /// Of those: share that is right.
    pub answer_right_given_path: Option<f64>,
}

/// Points of a curve.
const POINTS: usize = 32;

/// What is allowed to an answer.
#[derive(Clone, Copy)]
struct Limits {
    total: usize,
    critical: usize,
}

impl Limits {
    fn allows(self, problem: &ProblemSamples, i: usize) -> bool {
        problem.total_tokens[i] <= self.total && problem.critical_path_tokens[i] <= self.critical
    }

    /// The part of a problem's samples that is right.
    fn right(self, problem: &ProblemSamples) -> f64 {
        let count =
            (0..problem.correct.len()).filter(|&i| problem.correct[i] && self.allows(problem, i)).count();
        count as f64 / problem.correct.len().max(1) as f64
    }

    /// How often the most frequent answer of `votes` samples is right; what is not allowed has no vote.
    fn voted(self, problem: &ProblemSamples, votes: usize) -> f64 {
        let allowed = |i: usize| self.allows(problem, i);
        let keys: Vec<Option<String>> = problem
            .answers
            .iter()
            .enumerate()
            .map(|(i, answer)| answer.filter(|_| allowed(i))?.to_string().into())
            .collect();
        let correct: Vec<bool> =
            problem.correct.iter().enumerate().map(|(i, right)| *right && allowed(i)).collect();
        expected_maj_at(&keys, &correct, votes, 0).unwrap_or(0.0)
    }
}

/// The answers of one arm with some number of paths, over the seeds.
struct Answers<'a> {
    tiers: Vec<&'a str>,
    /// By seed.
    problems: Vec<&'a [ProblemSamples]>,
}

impl<'a> Answers<'a> {
    fn tier(&self, name: &str) -> impl Iterator<Item = &'a ProblemSamples> {
        let name = name.to_owned();
        self.problems.iter().copied().flatten().filter(move |problem| problem.tier == name)
    }

    fn grid(&self, tiers: &[&str], value: impl Fn(usize, &ProblemSamples) -> f64) -> Grid {
        let of_seed = |t: usize, problems: &[ProblemSamples]| -> Vec<f64> {
            problems
                .iter()
                .filter(|problem| problem.tier == tiers[t])
                .map(|problem| value(t, problem))
                .collect()
        };
        (0..tiers.len())
            .map(|t| self.problems.iter().map(|problems| of_seed(t, problems)).collect())
            .collect()
    }

    fn right(&self, tiers: &[&str], limits: Limits) -> Grid {
        self.grid(tiers, |_, problem| limits.right(problem))
    }

    fn tokens(&self, tier: &str) -> f64 {
        mean_over(self.tier(tier), |problem, i| Some(problem.total_tokens[i] as f64)).unwrap_or(0.0)
    }
}

/// The mean over all samples of which something is known.
fn mean_over<'a>(
    problems: impl Iterator<Item = &'a ProblemSamples>,
    value: impl Fn(&ProblemSamples, usize) -> Option<f64>,
) -> Option<f64> {
    let values: Vec<f64> = problems
        .flat_map(|problem| (0..problem.correct.len()).filter_map(|i| value(problem, i)).collect::<Vec<_>>())
        .collect();
    mean(&values)
}

/// Puts together what the cells say. Each arm is compared with the baseline over the seeds that both have; an arm without
/// any is left out.
pub fn results(study: &Study, cells: &[Cell]) -> Results {
    let of = |arm: &StudyArm, seed: u64| cells.iter().find(|cell| cell.arm == arm.name && cell.seed == seed);
    let shared = |arm: &StudyArm| -> Vec<(&Cell, &Cell)> {
        study.seeds.iter().filter_map(|&seed| of(arm, seed).zip(of(study.baseline(), seed))).collect()
    };
    let arm = |arm: &StudyArm| {
        let (cells, baseline): (Vec<&Cell>, Vec<&Cell>) = shared(arm).into_iter().unzip();
        (!cells.is_empty()).then(|| arm_results(study, arm, &cells, &answers(&baseline, 0)))
    };
    let arms: Vec<ArmResults> = study.arms.iter().filter_map(arm).collect();
    Results {
        relative_gain_mean_equal_tokens: best(&arms, |gains| gains.mean_equal_tokens),
        relative_gain_hardest_equal_latency: best(&arms, |gains| gains.hardest_equal_latency),
        hardest: study.hardest.clone(),
        max_tokens: study.max_tokens,
        critical_tokens: study.critical_tokens,
        samples: study.evaluation.samples,
        seeds: shared(study.baseline()).iter().map(|(cell, _)| cell.seed).collect(),
        baseline: study.baseline.clone(),
        arms,
    }
}

/// The largest gain of a parallel arm, each with the most paths that it was tried with: the number of paths is not chosen by
/// what came out. The arm is, among those with the most seeds: a single lucky run says little.
fn best(arms: &[ArmResults], gain: fn(&Gains) -> Option<Estimate>) -> Option<Headline> {
    let headline = |arm: &ArmResults| {
        let widest = arm.settings.iter().max_by_key(|setting| setting.paths)?;
        let gain = gain(widest.against_baseline.as_ref()?)?;
        Some(Headline { gain, recipe: arm.name.clone(), paths: widest.paths })
    };
    let most = arms.iter().filter(|arm| arm.parallel).map(|arm| arm.seeds.len()).max();
    let parallel = arms.iter().filter(|arm| arm.parallel && Some(arm.seeds.len()) == most);
    parallel.filter_map(headline).max_by(|a, b| a.gain.value.total_cmp(&b.gain.value))
}

fn answers<'a>(cells: &[&'a Cell], setting: usize) -> Answers<'a> {
    let problems: Vec<&[ProblemSamples]> =
        cells.iter().filter_map(|cell| Some(cell.answers.get(setting)?.1.as_slice())).collect();
    let mut tiers: Vec<&str> = Vec::new();
    for problem in problems.first().copied().unwrap_or_default() {
        if !tiers.contains(&problem.tier.as_str()) {
            tiers.push(&problem.tier);
        }
    }
    Answers { tiers, problems }
}

fn arm_results(study: &Study, arm: &StudyArm, cells: &[&Cell], baseline: &Answers) -> ArmResults {
    let trainings: Vec<&Training> = cells.iter().map(|cell| &cell.training).collect();
    let setting = |(i, paths): (usize, usize)| {
        let compared = (arm.name != study.baseline).then_some(baseline);
        setting(study, paths, &answers(cells, i), compared)
    };
    ArmResults {
        name: arm.name.clone(),
        parallel: arm.is_parallel(),
        seeds: cells.iter().map(|cell| cell.seed).collect(),
        training: trainings.iter().map(|training| training.stages.clone()).collect(),
        curve: curve(&trainings),
        settings: study.paths(arm).into_iter().enumerate().map(setting).collect(),
    }
}

fn setting(study: &Study, paths: usize, answers: &Answers, baseline: Option<&Answers>) -> Setting {
    let tiers = answers.tiers.as_slice();
    let hardest: Vec<&str> = study.hardest.iter().map(String::as_str).collect();
    let within_b = Limits { total: study.max_tokens, critical: usize::MAX };
    let within_both = Limits { critical: study.critical_tokens, ..within_b };
    let (all, late) = (answers.right(tiers, within_b), answers.right(&hardest, within_both));
    let curve = |tiers: &[&str], limits: fn(usize, usize) -> Limits| -> Vec<(usize, f64)> {
        let at = |i: usize| study.max_tokens * i / POINTS;
        let value = |budget: usize| point(&answers.right(tiers, limits(budget, study.max_tokens)));
        (1..=POINTS).map(|i| (at(i), value(at(i)))).collect()
    };
    let of_total = |total, _| Limits { total, critical: usize::MAX };
    let of_critical = |critical, total| Limits { total, critical };
    Setting {
        paths,
        accuracy: accuracy(&all),
        hardest_at_latency: accuracy(&late),
        against_baseline: baseline.map(|baseline| Gains {
            mean_equal_tokens: gain(&all, &baseline.right(tiers, within_b)),
            hardest_equal_latency: gain(&late, &baseline.right(&hardest, within_both)),
        }),
        against_votes: baseline.map(|baseline| {
            let most = study.evaluation.samples;
            let affordable = |tier: &str| (answers.tokens(tier) / baseline.tokens(tier).max(1.0)) as usize;
            let votes: Vec<usize> = tiers.iter().map(|tier| affordable(tier).clamp(1, most)).collect();
            let voted = baseline.grid(tiers, |t, problem| within_b.voted(problem, votes[t]));
            let of_hardest: Vec<usize> = hardest.iter().map(|tier| affordable(tier).clamp(1, most)).collect();
            let voted_late = baseline.grid(&hardest, |t, problem| within_both.voted(problem, of_hardest[t]));
            let gains = Gains {
                mean_equal_tokens: gain(&all, &voted),
                hardest_equal_latency: gain(&late, &voted_late),
            };
            VoteGains { gains, accuracy: accuracy(&voted), votes }
        }),
        tiers: tiers.iter().map(|tier| tier_results(answers, tier, within_b, within_both)).collect(),
        by_budget: curve(tiers, of_total),
        by_latency: curve(tiers, of_critical),
        hardest_by_latency: curve(&hardest, of_critical),
    }
}

/// The mean of a grid whose tiers count alike, without an interval.
fn point(grid: &Grid) -> f64 {
    let tier = |tier: &Vec<Vec<f64>>| mean(&tier.concat()).unwrap_or(0.0);
    mean(&grid.iter().map(tier).collect::<Vec<_>>()).unwrap_or(0.0)
}

fn tier_results(answers: &Answers, tier: &str, within_b: Limits, within_both: Limits) -> TierResults {
    let over = |value: fn(&ProblemSamples, usize) -> Option<f64>| mean_over(answers.tier(tier), value);
    let each = |value: fn(&ProblemSamples) -> f64| {
        mean(&answers.tier(tier).map(value).collect::<Vec<_>>()).unwrap_or(0.0)
    };
    let share = |value: fn(&ProblemSamples, usize) -> bool| {
        mean_over(answers.tier(tier), |problem, i| Some(f64::from(value(problem, i)))).unwrap_or(0.0)
    };
    let right = answers.right(&[tier], within_b);
    TierResults {
        name: tier.into(),
        accuracy: accuracy(&right),
        by_seed: right[0].iter().map(|seed| mean(seed).unwrap_or(0.0)).collect(),
        at_latency: accuracy(&answers.right(&[tier], within_both)),
        pass_at_k: each(|problem| {
            let (n, right) = (problem.correct.len(), problem.correct.iter().filter(|right| **right).count());
            pass_at_k(n, right, n).unwrap_or(0.0)
        }),
        maj_at_k: each(|problem| {
            Limits { total: usize::MAX, critical: usize::MAX }.voted(problem, problem.correct.len())
        }),
        tokens: answers.tokens(tier),
        critical_path_tokens: over(|problem, i| Some(problem.critical_path_tokens[i] as f64)).unwrap_or(0.0),
        parallel_ratio: share(|problem, i| problem.parallel[i]),
        block_position: over(|problem, i| problem.block_position[i]),
        truncated: share(|problem, i| problem.truncated[i]),
        some_path_right: over(|problem, i| Some(f64::from(problem.path_right[i]?))),
        answer_right_given_path: over(|problem, i| {
            (problem.path_right[i]?).then(|| f64::from(problem.correct[i]))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::config::tests::{parse, text};
    use super::*;

    /// One problem of a tier with two samples: right or not, total tokens and critical path of each.
    fn problem(tier: &str, samples: [(bool, usize, usize); 2]) -> ProblemSamples {
        ProblemSamples {
            tier: tier.into(),
            id: tier.into(),
            correct: samples.iter().map(|s| s.0).collect(),
            total_tokens: samples.iter().map(|s| s.1).collect(),
            critical_path_tokens: samples.iter().map(|s| s.2).collect(),
            answers: samples.iter().enumerate().map(|(i, s)| Some(if s.0 { 9 } else { i })).collect(),
            parallel: vec![true, false],
            block_position: vec![Some(0.5), None],
            truncated: vec![false, true],
            path_right: vec![Some(true), None],
        }
    }

    fn cell(arm: &str, seed: u64, answers: Vec<(usize, Vec<ProblemSamples>)>) -> Cell {
        Cell { arm: arm.into(), seed, training: Training::default(), answers }
    }

    /// B is 100, L is 50; the tiers are 3 and 4, of which 4 is the hardest.
    fn cells() -> Vec<Cell> {
        let sequential = |right| {
            vec![
                problem("3", [(true, 40, 40), (false, 90, 90)]),
                problem("4", [(right, 60, 60), (true, 30, 30)]),
            ]
        };
        let parallel = vec![
            problem("3", [(true, 80, 40), (true, 95, 45)]),
            problem("4", [(true, 90, 40), (true, 100, 60)]),
        ];
        vec![
            cell("sequential", 1, vec![(4, sequential(true))]),
            cell("sequential", 2, vec![(4, sequential(false))]),
            cell("parallel", 1, vec![(4, parallel.clone()), (6, parallel.clone())]),
            cell("parallel", 2, vec![(4, parallel.clone()), (6, parallel)]),
        ]
    }

    #[test]
    fn gains_by_hand() {
        let results = results(&parse(&text()).unwrap(), &cells());
        assert_eq!((&results.seeds[..], results.arms.len()), (&[1, 2][..], 2));
        let (sequential, parallel) = (&results.arms[0].settings[0], &results.arms[1].settings[0]);
        // Tier 3: a half; tier 4: all of seed 1, a half of seed 2.
        assert_eq!(sequential.accuracy.value, (0.5 + 0.75) / 2.0);
        assert_eq!(parallel.accuracy.value, 1.0);
        let gains = parallel.against_baseline.unwrap();
        assert_eq!(gains.mean_equal_tokens.unwrap().value, 1.0 / 0.625 - 1.0);
        // At most 50 tokens one after the other: the baseline's second sample, the arm's first.
        assert_eq!((sequential.hardest_at_latency.value, parallel.hardest_at_latency.value), (0.5, 0.5));
        assert_eq!(gains.hardest_equal_latency.unwrap().value, 0.0);
        assert_eq!(sequential.tiers[1].by_seed, [1.0, 0.5]);
        assert!(sequential.against_baseline.is_none());
        let headline = results.relative_gain_mean_equal_tokens.unwrap();
        assert_eq!(
            (headline.gain.value, headline.recipe.as_str(), headline.paths),
            (0.6000000000000001, "parallel", 6)
        );
        let json = serde_json::to_value(&headline).unwrap();
        assert!(
            json["value"].is_f64()
                && json["low"].is_f64()
                && json["high"].is_f64()
                && json["recipe"].is_string()
        );
    }

    #[test]
    fn curves_count_what_was_complete_by_then() {
        let results = results(&parse(&text()).unwrap(), &cells());
        let sequential = &results.arms[0].settings[0];
        let at = |curve: &[(usize, f64)], budget: usize| curve.iter().rfind(|(b, _)| *b <= budget).unwrap().1;
        // By 31 tokens only the second sample of tier 4 is there: a quarter over both tiers.
        assert_eq!(at(&sequential.by_budget, 31), 0.25);
        assert_eq!(at(&sequential.by_budget, 100), 0.625);
        assert_eq!(at(&sequential.hardest_by_latency, 31), 0.5);
        assert_eq!(at(&results.arms[1].settings[0].by_budget, 79), 0.0);
        assert_eq!(at(&results.arms[1].settings[0].by_latency, 40), 0.5);
    }

    #[test]
    fn votes_cost_no_more_than_what_they_are_compared_with() {
        let results = results(&parse(&text()).unwrap(), &cells());
        let votes = results.arms[1].settings[0].against_votes.clone().unwrap();
        // Tier 3: 87.5 against 65 tokens, one vote; tier 4: 95 against 45, two, of two samples.
        assert_eq!(votes.votes, [1, 2]);
        // One vote of tier 3 is right half of the time. Two of tier 4 agree for seed 1; for seed 2 they are a draw.
        assert_eq!(votes.accuracy.value, (0.5 + (1.0 + 0.5) / 2.0) / 2.0);
    }

    #[test]
    fn arms_are_compared_over_the_seeds_that_they_share_with_the_baseline() {
        let mut some = cells();
        some.pop();
        let study = parse(&text()).unwrap();
        let part = results(&study, &some);
        assert_eq!(
            (&part.seeds[..], &part.arms[0].seeds[..], &part.arms[1].seeds[..]),
            (&[1, 2][..], &[1, 2][..], &[1][..])
        );
        // Against the baseline of seed 1 alone: a half on tier 3, all on tier 4.
        let gain = part.arms[1].settings[0].against_baseline.unwrap().mean_equal_tokens.unwrap();
        assert_eq!(gain.value, 1.0 / 0.75 - 1.0);
        let alone = results(&study, &some[..2]);
        assert!(alone.arms.len() == 1 && alone.relative_gain_mean_equal_tokens.is_none());
        assert!(results(&study, &some[2..]).arms.is_empty());
    }

    #[test]
    fn what_fails_is_told_apart() {
        let results = results(&parse(&text()).unwrap(), &cells());
        let tier = &results.arms[0].settings[0].tiers[1];
        assert_eq!((tier.parallel_ratio, tier.truncated, tier.block_position), (0.5, 0.5, Some(0.5)));
        assert_eq!((tier.some_path_right, tier.answer_right_given_path), (Some(1.0), Some(0.5)));
        assert_eq!((tier.pass_at_k, tier.tokens, tier.critical_path_tokens), (1.0, 45.0, 45.0));
    }
}
