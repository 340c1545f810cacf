//! How stages end, tiers follow one another, responses are judged and forks are learned, in whole runs.

use std::path::Path;

use candle_core::Device;
use parallel_r1::train::checkpoint::RunFolder;
use parallel_r1::train::curriculum::train;
use parallel_r1::train::recipe::Recipe;

use super::digits::{Records, recipe, run};

const SHORT: [&str; 2] = ["arms.0.stages.0.sft.steps=12", "arms.0.stages.1.grpo.steps=9"];

/// Any gain is too small after two windows of three steps; any rate is enough after two steps.
const STOPS: [&str; 2] = [
    "arms.0.stages.0.stop={plateau=100.0, window=3, min_steps=7}",
    "arms.0.stages.1.stop={solve_rate=0.0, window=2}",
];

fn steps(records: &Records) -> Vec<(String, usize)> {
    records.steps.iter().map(|step| (step.stage.clone(), step.step)).collect()
}

#[test]
fn stages_end_by_their_rules_and_the_next_goes_on_from_there() {
    let folder = tempfile::tempdir().unwrap();
    let recipe = recipe(folder.path(), &[SHORT, STOPS].concat());
    let (mut whole, place) = (Records::default(), folder.path().join("whole"));
    let summary = run(&recipe, &place, &mut whole).unwrap();
    let expected: Vec<(String, usize)> = (1..=7)
        .map(|s| ("imitate".to_owned(), s))
        .chain((1..=2).map(|s| ("explore".to_owned(), s)))
        .collect();
    assert_eq!(steps(&whole), expected);
    let said = whole.said.join("\n");
    assert!(said.contains("stage imitate ends after step 7: plateau"), "{said}");
    assert!(said.contains("stage explore ends after step 2: solve rate"), "{said}");
    for checkpoint in ["step-7", "step-9"] {
        assert!(place.join("checkpoints/parallel").join(checkpoint).is_dir(), "{checkpoint}");
    }

    // Stopped in each stage and gone on, it ends in the same place.
    let parts_run = folder.path().join("parts");
    let mut parts = Vec::new();
    for stop_after in [Some(5), Some(3), None] {
        let mut part = Records { stop_after, ..Records::default() };
        let done = run(&recipe, &parts_run, &mut part);
        parts.extend(steps(&part));
        if let Some(done) = done {
            assert_eq!(done.tiers[0].accuracy, summary.tiers[0].accuracy);
        }
    }
    assert_eq!(parts, expected);
}

/// What has been spent before a stop counts after it.
#[test]
fn a_budget_of_tokens_is_one_budget_over_all_resumes() {
    let folder = tempfile::tempdir().unwrap();
    let mut probe = Records::default();
    let plain = recipe(folder.path(), &SHORT);
    run(&plain, &folder.path().join("plain"), &mut probe);
    let first_four = |stage: &str, name: &str| probe.of(stage, name)[..4].iter().sum::<f64>();
    let tokens = [first_four("imitate", "tokens"), first_four("explore", "sampled_tokens")];
    let stops: Vec<String> =
        (0..2).map(|stage| format!("arms.0.stages.{stage}.stop={{tokens={}}}", tokens[stage])).collect();
    let stops: Vec<&str> = stops.iter().map(String::as_str).collect();
    let recipe = recipe(folder.path(), &[&SHORT[..], &stops].concat());
    let mut parts = Vec::new();
    for stop_after in [Some(2), Some(4), None] {
        let mut part = Records { stop_after, ..Records::default() };
        run(&recipe, &folder.path().join("parts"), &mut part);
        parts.extend(steps(&part));
    }
    let imitated = parts.iter().filter(|(stage, _)| stage == "imitate").count();
    let explored = parts.len() - imitated;
    assert_eq!(imitated, 4, "{parts:?}");
    // It explores from another start than the probe, so how far the tokens go is not known beforehand.
    let mut whole = Records::default();
    run(&recipe, &folder.path().join("whole"), &mut whole);
    assert_eq!(parts, steps(&whole));
    assert!((1..9).contains(&explored), "{explored}");
}

#[test]
fn tiers_follow_one_another_also_after_a_stop() {
    let folder = tempfile::tempdir().unwrap();
    let tiers = "arms.0.stages.1.grpo.data={tiers=[{file=\"asked.jsonl\"}, {file=\"asked.jsonl\"}, \
        {file=\"asked.jsonl\"}], progression={solve_rate=0.0, window=2, keep=0.4}}";
    let recipe = recipe(folder.path(), &[&SHORT[..], &[tiers]].concat());
    let mut whole = Records::default();
    run(&recipe, &folder.path().join("whole"), &mut whole);
    assert_eq!(whole.of("explore", "tier"), [0.0, 0.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0, 2.0]);
    assert!(whole.said.iter().any(|said| said == "tier 2 begins after step 2"), "{:?}", whole.said);
    // With one tier its solve rate is that of all responses.
    assert_eq!(whole.of("explore", "solve_rate")[..2], whole.of("explore", "accuracy")[..2]);
    let mut parts = Vec::new();
    for stop_after in [Some(15), None] {
        let mut part = Records { stop_after, ..Records::default() };
        run(&recipe, &folder.path().join("parts"), &mut part);
        parts.extend(part.of("explore", "tier"));
    }
    assert_eq!(parts, whole.of("explore", "tier"));
}

#[test]
fn a_tier_may_have_less_room_for_its_responses_than_the_stage() {
    let folder = tempfile::tempdir().unwrap();
    let lengths = |name: &str, tiers: &str| {
        let data = format!("arms.0.stages.1.grpo.data={{tiers=[{tiers}]}}");
        let mut records = Records::default();
        let recipe = recipe(folder.path(), &[SHORT[0], SHORT[1], &data]);
        run(&recipe, &folder.path().join(name), &mut records);
        records.of("explore", "total_tokens")
    };
    let (roomy, tight) = ("{file=\"asked.jsonl\"}", "{file=\"asked.jsonl\", max_response_tokens=3}");
    let (long, short) = (lengths("roomy", roomy), lengths("tight", tight));
    let mixed = lengths("mixed", &format!("{tight}, {roomy}"));
    assert!(long[0] > 6.0 && short.iter().all(|&tokens| tokens <= 3.0), "{long:?} {short:?}");
    assert!(mixed[0] > 3.0 && mixed[0] < long[0], "{mixed:?} {long:?}");
}

/// With a single path nothing runs beside anything else.
#[test]
fn stages_and_evaluation_have_their_own_number_of_paths() {
    let folder = tempfile::tempdir().unwrap();
    let single = ["arms.0.stages.1.grpo.num_paths=1", "evaluation.num_paths=1"];
    let steps = ["arms.0.stages.0.sft.steps=60", "arms.0.stages.1.grpo.steps=1"];
    for (overrides, concurrent) in [(vec![], true), (single.to_vec(), false)] {
        let recipe = recipe(folder.path(), &[&steps[..], &overrides].concat());
        let (mut records, place) = (Records::default(), folder.path().join(format!("run-{concurrent}")));
        run(&recipe, &place, &mut records).unwrap();
        let critical = records.of("explore", "critical_path_tokens")[0];
        assert_eq!(critical < records.of("explore", "total_tokens")[0], concurrent);
        let text = std::fs::read_to_string(place.join("evaluations/sft.json")).unwrap();
        let tier = &serde_json::from_str::<serde_json::Value>(&text).unwrap()["asked"];
        let tokens = |name: &str| tier[name].as_f64().unwrap();
        assert_eq!(tokens("critical_path_tokens") < tokens("total_tokens"), concurrent, "{tier}");
    }
}

#[test]
fn epochs_are_steps_over_the_rows() {
    let folder = tempfile::tempdir().unwrap();
    let mut recipe = recipe(folder.path(), &SHORT);
    // 40 demonstrations, 3 problems.
    let stages = &mut recipe.arms[0].stages;
    let sft = stages[0].sft.as_mut().unwrap();
    (sft.steps, sft.epochs) = (None, Some(1.5));
    let grpo = stages[1].grpo.as_mut().unwrap();
    (grpo.steps, grpo.epochs, grpo.prompts) = (None, Some(2.0), 2);
    let counted = recipe.counted().unwrap();
    let steps: Vec<usize> = counted.arms[0].stages.iter().map(|stage| stage.steps()).collect();
    assert_eq!(steps, [4, 3]); // 60 rows by 16, 6 by 2
}

#[cfg(unix)]
#[test]
fn a_command_judges_in_training_and_evaluation() {
    let folder = tempfile::tempdir().unwrap();
    // Long responses are right, whatever they say.
    let script = "while read -r line; do if [ ${#line} -gt 150 ]; then echo '{\"score\": 2}'; \
                  else echo '{\"score\": -1}'; fi; done";
    std::fs::write(folder.path().join("judge.sh"), script).unwrap();
    let judge = "external={command=[\"sh\", \"judge.sh\"], workers=2}";
    let reward = "arms.0.stages.1.grpo.reward=external";
    let steps = ["arms.0.stages.0.sft.steps=60", "arms.0.stages.1.grpo.steps=3"];
    let recipe = recipe(folder.path(), &[&steps[..], &[judge, reward]].concat());
    let mut records = Records::default();
    let summary = run(&recipe, &folder.path().join("run"), &mut records).unwrap();
    let (right, reward) = (records.of("explore", "accuracy"), records.of("explore", "reward"));
    assert!(right.iter().zip(&reward).all(|(right, reward)| (reward - (3.0 * right - 1.0)).abs() < 1e-5));
    // Most responses have a block, and few of them say 7.
    assert!(right[0] > 0.3, "{right:?}");
    assert!(summary.tiers[0].accuracy["sft"] > 0.3, "{:?}", summary.tiers[0].accuracy);
}

#[test]
fn a_fork_is_learned_as_one_stream_with_weights() {
    let folder = tempfile::tempdir().unwrap();
    let overrides = [
        "arms.0.structure=causal",
        "arms.0.stages.1.grpo.fork=true",
        "arms.0.stages.1.grpo.num_iterations=2",
        "arms.0.stages.1.grpo.steps=25",
    ];
    let mut records = Records::default();
    run(&recipe(folder.path(), &overrides), &folder.path().join("run"), &mut records).unwrap();
    let weights = records.of("explore", "importance_weight");
    assert!(weights.iter().all(|weight| (0.3..=2.0).contains(weight)), "{weights:?}");
    assert!(records.of("explore", "fork_gap")[0] > 1e-3, "sampler and policy are the same");
    // The old log-probabilities are those of the policy, as it reads the stream.
    assert!(records.of("explore", "log_prob_gap_max").iter().all(|&gap| gap < 1e-4));
    let reward = records.of("explore", "reward");
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    assert!(mean(&reward[20..]) > mean(&reward[..5]) + 0.5, "{reward:?}");
}

/// Each of the paper's recipes runs on the embedded model, for a few steps.
#[test]
fn the_small_recipes_of_the_paper_run() {
    let recipes = Path::new(env!("CARGO_MANIFEST_DIR")).join("recipes/countdown");
    for name in ["seen", "unseen-s1", "unseen-s2", "scaffold", "sequential"] {
        let text = std::fs::read_to_string(recipes.join(name).with_extension("toml")).unwrap();
        let mut recipe = Recipe::parse(name, &text, &[], &recipes).unwrap();
        assert_eq!(recipe.warnings(), [], "{name}");
        for stage in recipe.arms.iter_mut().flat_map(|arm| &mut arm.stages) {
            if let Some(sft) = &mut stage.sft {
                (sft.steps, sft.batch_size) = (Some(1), 2);
            }
            if let Some(grpo) = &mut stage.grpo {
                (grpo.steps, grpo.prompts, grpo.num_generations) = (Some(1), 2, 4);
            }
        }
        let evaluation = recipe.evaluation.as_mut().unwrap();
        (evaluation.problems, evaluation.samples) = (1, 1);
        recipe.sampling.max_response_tokens = 200;
        recipe.sampling.max_path_tokens = Some(32);
        let folder = tempfile::tempdir().unwrap();
        let run = RunFolder::open(folder.path(), &recipe, false).unwrap();
        let summary = train(&recipe, &run, &mut Records::default(), &Device::Cpu).unwrap();
        assert_eq!(summary.columns.last().unwrap(), &format!("{}_rl", recipe.arms[0].name));
    }
}
