//! Worked solutions of public data sets state the answers that they should.

use parallel_r1_verify::{Kinds, Verdict, extract_with, verify};
use serde_json::Value;

use super::lines;

#[test]
fn solutions_state_their_answers() {
    let (mut wrong, mut all) = (Vec::new(), 0);
    for set in ["gsm8k_train", "gsm8k_test", "math_train", "math500", "aime24", "parallel_gsm8k_sft"] {
        for (i, line) in lines(&format!("data/{set}.jsonl")).iter().enumerate() {
            let row: Value = serde_json::from_str(line).unwrap();
            let (Some(gold), Some(solution)) = (row["answer"].as_str(), row["solution"].as_str()) else {
                continue;
            };
            all += 1;
            let found = extract_with(solution, Kinds::default()).into_iter().next();
            let same = found.as_ref().is_some_and(|found| found.text.trim() == gold.trim());
            if !same && verify(gold, solution) != Verdict::Correct {
                wrong.push(format!(
                    "{set}:{}: {gold}: {:?}",
                    i + 1,
                    found.map(|found| found.text.into_owned())
                ));
            }
        }
    }
    eprintln!("{} of {all} solutions state something else:\n{}", wrong.len(), wrong.join("\n"));
    assert!(wrong.len() * 1000 <= all, "{} of {all}", wrong.len());
}
