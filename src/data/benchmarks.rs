//! Benchmarks by name, and where their rows are published.

/// A published set of problems with answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Benchmark {
    /// Its name, in small letters and digits.
    pub name: &'static str,
    /// The data set on the Hugging Face Hub, as [`super::hub`] takes it.
    pub hub: &'static str,
}

/// All that have a name.
pub const BENCHMARKS: [Benchmark; 6] = [
    Benchmark { name: "gsm8k", hub: "openai/gsm8k/main/test-00000-of-00001.parquet" },
    Benchmark { name: "math500", hub: "HuggingFaceH4/MATH-500/test.jsonl" },
    Benchmark { name: "amc23", hub: "math-ai/amc23" },
    Benchmark { name: "aime24", hub: "HuggingFaceH4/aime_2024" },
    Benchmark { name: "aime25", hub: "math-ai/aime25/test.jsonl" },
    Benchmark { name: "mmlu", hub: "cais/mmlu/all/test-00000-of-00001.parquet" },
];

/// The benchmark of a name, however it is spelt: `AIME25`, `aime-25`, `AIME 2025`.
pub fn benchmark(name: &str) -> Option<Benchmark> {
    let plain: String = name.to_lowercase().chars().filter(|c| !matches!(c, '-' | '_' | ' ')).collect();
    let short = plain.replace("20", "");
    BENCHMARKS.into_iter().find(|known| known.name == plain || known.name == short)
}

#[cfg(test)]
mod tests {
    use super::super::hub::{Kind, is_name};
    use super::*;

    #[test]
    fn names_are_found_however_they_are_spelt() {
        for (text, name) in [
            ("MATH-500", "math500"),
            ("math500", "math500"),
            ("AMC23", "amc23"),
            ("AIME 2025", "aime25"),
            ("aime_2024", "aime24"),
            ("GSM8K", "gsm8k"),
            ("MMLU", "mmlu"),
        ] {
            assert_eq!(benchmark(text).map(|known| known.name), Some(name), "{text}");
        }
        for text in ["", "20", "aime", "math", "countdown:3", "gsm8k.jsonl"] {
            assert_eq!(benchmark(text), None, "{text}");
        }
    }

    #[test]
    fn every_place_is_a_name_on_the_hub() {
        assert!(BENCHMARKS.iter().all(|known| is_name(Kind::DataSet, known.hub)));
    }
}
