//! `compare`: two results on the same problems.

use std::collections::BTreeMap;
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};

use anyhow::Context;
use parallel_r1::eval::{CompareError, Comparison, Difference, Evaluation, compare};
use serde::Serialize;
use serde_json::Value;

use super::generate::print_json;
use crate::failure::Failure;
use crate::table::aligned;

/// More than a benchmark's results take.
const LARGEST: u64 = 256 << 20;

/// Compare two results on the same problems
///
/// Each problem is compared with itself: the intervals are a paired bootstrap over problems, the p-values a two-sided
/// sign-flip permutation test. A file is what `eval --json` has printed, or an evaluation of a run
/// (RUN/evaluations/NAME.json), whose tiers are compared one by one.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    parallel-r1 compare sequential.json parallel.json\n  \
    parallel-r1 compare RUN/evaluations/sequential_rl.json RUN/evaluations/parallel_rl.json --json")]
pub(crate) struct Args {
    /// The results to compare with
    a: PathBuf,
    /// The results to compare
    b: PathBuf,
    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
    /// Where the random draws of the tests start
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
}

/// A results file: of one benchmark, or of the tiers of a run.
enum Results {
    One(Box<Evaluation>),
    Tiers(BTreeMap<String, Evaluation>),
}

/// A comparison, of one tier if there are several.
#[derive(Serialize)]
struct Compared {
    #[serde(skip_serializing_if = "Option::is_none")]
    tier: Option<String>,
    #[serde(flatten)]
    comparison: Comparison,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let comparisons = match (read(&self.a)?, read(&self.b)?) {
            (Results::One(a), Results::One(b)) => vec![self.compare(None, &a, &b)?],
            (Results::Tiers(a), Results::Tiers(b)) => {
                let both = a.iter().filter_map(|(tier, a)| Some((tier, a, b.get(tier)?)));
                both.map(|(tier, a, b)| self.compare(Some(tier), a, b)).collect::<anyhow::Result<_>>()?
            }
            _ => vec![],
        };
        if comparisons.is_empty() {
            let message = format!("{} and {} have no tier in common", self.a.display(), self.b.display());
            return Err(Failure::error(message, "compare results of the same benchmark"));
        }
        if self.json {
            return print_json(&comparisons);
        }
        let tables: Vec<String> = comparisons.iter().map(table).collect();
        let names = format!("A  {}\nB  {}\n\n", self.a.display(), self.b.display());
        Ok(stdout().write_all((names + &tables.join("\n")).as_bytes())?)
    }

    fn compare(&self, tier: Option<&String>, a: &Evaluation, b: &Evaluation) -> anyhow::Result<Compared> {
        let comparison = compare(a, b, self.seed).map_err(|error| {
            let file = match error {
                CompareError::NoRows { which: "the first" } => format!("{}: ", self.a.display()),
                CompareError::NoRows { .. } => format!("{}: ", self.b.display()),
                _ => String::new(),
            };
            Failure::error(
                format!("{file}{error}"),
                "compare results of the same problems, made by this version",
            )
        })?;
        Ok(Compared { tier: tier.cloned(), comparison })
    }
}

fn read(path: &Path) -> anyhow::Result<Results> {
    let name = path.display();
    let size = path.metadata().with_context(|| format!("{name}: cannot be read"))?.len();
    if size > LARGEST {
        let message = format!("{name}: expected at most {LARGEST} bytes, got {size}");
        return Err(Failure::error(message, A_FILE));
    }
    let text = std::fs::read_to_string(path).with_context(|| format!("{name}: cannot be read"))?;
    Results::parse(&text).map_err(|error| {
        Failure::error(format!("{name}: not the results of an evaluation ({error})"), A_FILE)
    })
}

impl Results {
    fn parse(text: &str) -> serde_json::Result<Self> {
        let value: Value = serde_json::from_str(text)?;
        match value.get("mean_at_k") {
            Some(_) => serde_json::from_value(value).map(Self::One),
            None => serde_json::from_value(value).map(Self::Tiers),
        }
    }
}

const A_FILE: &str = "`parallel-r1 eval --json > FILE` writes one";

fn table(compared: &Compared) -> String {
    let Comparison { problems, only_a, only_b, k, differences } = &compared.comparison;
    let head =
        ["", "A", "B", "B - A", "95 % interval", "p", "B higher", "B lower"].map(str::to_owned).to_vec();
    let rows: Vec<Vec<String>> =
        std::iter::once(head).chain(differences.iter().map(|difference| row(difference, *k))).collect();
    let tier = compared.tier.as_ref().map(|tier| format!("tier {tier}, ")).unwrap_or_default();
    let left_out = match only_a + only_b {
        0 => String::new(),
        _ => format!(" ({only_a} only in A, {only_b} only in B)"),
    };
    format!("{tier}{problems} problems in both{left_out}\n{}", aligned(&rows))
}

fn row(difference: &Difference, k: usize) -> Vec<String> {
    let (name, percents) = match difference.figure.as_str() {
        "mean_at_k" => ("mean@k, %".to_owned(), true),
        "pass_at_k" => (format!("pass@{k}, %"), true),
        "maj_at_k" => ("maj@k, %".to_owned(), true),
        other => (other.replace('_', " "), false),
    };
    let shown = |value: f64| format!("{:.1}", if percents { 100.0 * value } else { value });
    let signed = |value: f64| format!("{}{}", if value > 0.0 { "+" } else { "" }, shown(value));
    let interval = difference.interval;
    vec![
        name,
        shown(difference.a),
        shown(difference.b),
        signed(difference.difference),
        interval.map(|i| format!("{} to {}", signed(i.low), signed(i.high))).unwrap_or_default(),
        p_value(difference.p_value),
        difference.higher.to_string(),
        difference.lower.to_string(),
    ]
}

/// A p-value to three places; what is smaller is said to be.
fn p_value(p: f64) -> String {
    if p < 0.001 { "< 0.001".into() } else { format!("{p:.3}") }
}
