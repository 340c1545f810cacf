//! Shared cases: every one agrees, or stands here with the reason.

use parallel_r1_verify::cases::Case;

use super::lines;

/// Rows (counted from 1) where the judge and the expectation differ, and why the judge is right.
const REVIEWED: &[(&str, usize, &str)] = &[(
    "mathverify_cases",
    126,
    "1 - 1/e = 0.632... is not 1 + 1/e = 1.367...; the same pair stands among the bug reports as unequal",
)];

#[test]
fn shared_cases_agree() {
    let mut wrong = Vec::new();
    for file in ["mathverify_cases", "bug_reports"] {
        for (i, line) in lines(&format!("verify/{file}.jsonl")).iter().enumerate() {
            let case = Case::parse(line).unwrap();
            let report = case.judge();
            let reviewed = REVIEWED.iter().any(|&(name, row, _)| name == file && row == i + 1);
            if case.agrees(report.verdict) == Some(reviewed) {
                let (gold, pred) = (&case.gold, &case.pred);
                wrong.push(format!("{file}:{}: {gold:?} / {pred:?}: {report}\n    {report:?}", i + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "{} rows:\n{}", wrong.len(), wrong.join("\n"));
}
