//! The gold answers of public data sets: each is itself, in a sentence too, and is not its neighbour.

use parallel_r1_verify::answer::Answer;
use parallel_r1_verify::{Verdict, parse, verify, verify_with};

use super::answers;

const SETS: [&str; 8] =
    ["gsm8k_train", "gsm8k_test", "math_train", "math500", "amc23", "aime24", "aime25", "dapo_2k"];

fn complain(wrong: &[String]) {
    let shown: Vec<&str> = wrong.iter().map(String::as_str).take(60).collect();
    assert!(wrong.is_empty(), "{} golds:\n{}", wrong.len(), shown.join("\n"));
}

#[test]
fn golds_equal_themselves() {
    let mut wrong = Vec::new();
    for set in SETS {
        for gold in answers(set) {
            let boxed =
                format!("Adding up, we see that the result is $\\boxed{{{gold}}}$, as was to be shown.");
            let stated = format!("We are done.\n\n**Final Answer:** ${gold}$\n");
            for response in [&gold, &boxed, &stated] {
                let report = verify_with(&gold, response, &Default::default());
                if report.verdict != Verdict::Correct {
                    wrong.push(format!("{set}: {gold}: {response}: {report}"));
                }
            }
        }
    }
    complain(&wrong);
}

/// Answers near a gold that are other answers.
fn neighbours(gold: &str) -> Vec<String> {
    let bare = gold.trim_matches('$');
    let Ok(answer) = parse::answer(gold) else { return Vec::new() };
    let mut near = Vec::new();
    let matrix = bare.contains("matrix");
    if matches!(answer, Answer::Value(_)) {
        if !matrix {
            near.push(format!("{bare} + 1"));
        }
        if bare.contains(|c: char| c.is_ascii_digit() && c != '0') || !bare.contains('0') {
            near.extend([format!("-({bare})"), format!("2 \\cdot ({bare})")]);
        }
    }
    if let Answer::Tuple(..) = answer {
        let inner = bare.trim_start_matches("\\left").trim_start_matches(['(', '[']);
        let inner = inner.trim_end_matches([')', ']']).trim_end_matches("\\right");
        if let [a, b] = inner.split(',').collect::<Vec<_>>()[..]
            && parse::answer(a) != parse::answer(b)
        {
            near.push(format!("({b},{a})"));
        }
    }
    near.extend(other_digit(bare));
    near
}

/// The text with its last digit raised by one, unless that may be the same: a base, a rounded value.
fn other_digit(text: &str) -> Option<String> {
    if text.contains('_') || text.contains("\\approx") {
        return None;
    }
    let at = text.rfind(|c: char| c.is_ascii_digit())?;
    let digit = text[at..].chars().next()?.to_digit(10)?;
    Some(format!("{}{}{}", &text[..at], (digit + 1) % 10, &text[at + 1..]))
}

#[test]
fn golds_differ_from_neighbours() {
    let (mut wrong, mut pairs) = (Vec::new(), 0);
    for set in SETS {
        for gold in answers(set) {
            for near in neighbours(&gold) {
                pairs += 1;
                if verify(&gold, &format!("The answer is $\\boxed{{{near}}}$.")) != Verdict::Incorrect {
                    wrong.push(format!("{set}: {gold} / {near}"));
                }
            }
        }
    }
    eprintln!("{pairs} pairs of a gold and a neighbour");
    complain(&wrong);
}

#[test]
fn mathematical_golds_are_more_than_text() {
    let (mut text, mut all) = (Vec::new(), 0);
    for set in SETS {
        for gold in answers(set) {
            let words = gold.starts_with("\\text{")
                && gold.ends_with('}')
                && !gold.contains(|c: char| c.is_numeric());
            if words {
                continue;
            }
            all += 1;
            if matches!(parse::answer(&gold), Err(_) | Ok(Answer::Text(_))) {
                text.push(format!("{set}: {gold}: {:?}", parse::answer(&gold)));
            }
        }
    }
    eprintln!("{} of {all} golds are read as text:\n{}", text.len(), text.join("\n"));
    assert!(text.len() * 200 <= all, "{} of {all} golds are read as text:\n{}", text.len(), text.join("\n"));
}
