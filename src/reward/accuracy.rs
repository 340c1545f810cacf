//! Is the answer right? The base of every reward.

use parallel_r1_verify::countdown::{self, Task};
use parallel_r1_verify::{Kinds, Verdict, extract, extract_with, group, verify};

use crate::data::Problem;
use crate::data::countdown::SOURCE as COUNTDOWN;
use crate::prompt::tags::{Tag, check_text};

/// All that rewards look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judged {
    /// Whether the answer is right; `None` if the gold answer can't be read, so the row is skipped.
    pub correct: Option<bool>,
    /// How many parallel blocks the response opened, ill-formed ones too.
    pub blocks: usize,
    /// Whether its tags follow the grammar. A response without tags does.
    pub well_formed: bool,
}

/// Judges the text of a response, tags included.
pub fn judge(problem: &Problem, response: &str) -> Judged {
    let shape = check_text(response);
    Judged {
        correct: correct(problem, response),
        // A faulty text has no shape; it still tried as often as it opened a block.
        blocks: match &shape {
            Ok(shape) => shape.blocks,
            Err(_) => response.matches(Tag::Parallel.text()).count(),
        },
        well_formed: shape.is_ok(),
    }
}

fn correct(problem: &Problem, response: &str) -> Option<bool> {
    if problem.source == COUNTDOWN {
        let task = Task::parse(&problem.problem)?;
        return Some(extract(response).is_some_and(|answer| countdown::check(&task, answer)));
    }
    match verify(&problem.answer, response) {
        Verdict::Correct => Some(true),
        // Too large to compare counts as wrong, or it would be a way out of a wrong answer.
        Verdict::Incorrect | Verdict::Undecided => Some(false),
        Verdict::UnreadableGold => None,
    }
}

/// What each response votes for: responses with equal answers have equal keys. `None` if one states no
/// answer.
///
/// The key is the answer as the first of its voters wrote it. All right Countdown answers have the same
/// value, so there the key is the normal form of the solution.
pub fn answer_keys(problem: &Problem, responses: &[&str]) -> Vec<Option<String>> {
    if problem.source == COUNTDOWN {
        return responses.iter().map(|response| countdown::canonical(extract(response)?)).collect();
    }
    let answers: Vec<Option<String>> = responses.iter().map(|response| stated_answer(response)).collect();
    let stated: Vec<&str> = answers.iter().flatten().map(String::as_str).collect();
    let mut classes = group(&stated).into_iter();
    let key = |answer: &Option<String>| {
        let class = answer.as_ref().and_then(|_| classes.next())?;
        Some(stated[class].to_owned())
    };
    answers.iter().map(key).collect()
}

/// The answer that a response states last; of several boxes that form one answer, the list.
fn stated_answer(response: &str) -> Option<String> {
    extract_with(response, Kinds::default()).into_iter().next().map(|found| found.text.into_owned())
}

/// `accuracy`: +1 if the answer is right, else -1.
///
/// arXiv 2509.07980, the outcome reward of the sequential baseline and of S1.
pub fn accuracy(correct: bool) -> f32 {
    if correct { 1.0 } else { -1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(source: &str, text: &str, answer: &str) -> Problem {
        Problem {
            id: "test-0".to_owned(),
            problem: text.to_owned(),
            answer: answer.to_owned(),
            source: source.to_owned(),
            level: None,
        }
    }

    fn judged(correct: Option<bool>, blocks: usize, well_formed: bool) -> Judged {
        Judged { correct, blocks, well_formed }
    }

    const BLOCK: &str = "<Parallel><Path>2*2</Path><Path>2+2</Path></Parallel>\n<Summary>4</Summary>\n";

    #[test]
    fn answers_and_shapes() {
        let sum = problem("gsm8k", "What is 2 + 2?", "4");
        for (response, expected) in [
            ("Answer: 4".to_owned(), judged(Some(true), 0, true)),
            ("Answer: 5".to_owned(), judged(Some(false), 0, true)),
            (String::new(), judged(Some(false), 0, true)),
            (format!("{BLOCK}Answer: 4"), judged(Some(true), 1, true)),
            (format!("{BLOCK}{BLOCK}Answer: $4$"), judged(Some(true), 2, true)),
            (format!("{BLOCK}<Parallel>Answer: 4"), judged(Some(true), 2, false)),
            ("Answer: 4</Path>".to_owned(), judged(Some(true), 0, false)),
        ] {
            assert_eq!(judge(&sum, &response), expected, "{response}");
        }
    }

    #[test]
    fn countdown_takes_any_solution() {
        let task = problem("countdown", "3 5 12 = 45", "45");
        for (response, correct) in [
            ("12+5=17 no\n12+3=15,15*3=45 ok\nAnswer: 5*12=60,60/3=20", false),
            ("Answer: 12-3=9,9*5=45", true),
            ("Answer: 5*(12-3)", true),
            ("Answer: none", false),
            ("Answer: 45", false),
            ("12-3=9,9*5=45 ok", false),
            ("", false),
        ] {
            assert_eq!(judge(&task, response).correct, Some(correct), "{response}");
        }
    }

    #[test]
    fn an_unreadable_gold_judges_nothing() {
        assert_eq!(judge(&problem("gsm8k", "?", ""), "Answer: 4").correct, None);
        assert_eq!(judge(&problem("countdown", "3 5 12", "45"), "Answer: 45").correct, None);
    }

    #[test]
    fn equal_answers_vote_together() {
        let keys = |problem: &Problem, responses: &[&str]| answer_keys(problem, responses);
        let four = Some("4.0".to_owned());
        let sum = problem("gsm8k", "What is 2 + 2?", "4");
        let responses = ["Answer: 4.0", "", "so \\boxed{4}", "Answer: \\frac{1}{2}", "It is $0.5$."];
        let half = Some("\\frac{1}{2}".to_owned());
        assert_eq!(keys(&sum, &responses), [four.clone(), None, four, half.clone(), half]);
        let task = problem("countdown", "3 5 12 = 45", "45");
        let votes = keys(&task, &["Answer: 12-3=9,9*5=45", "Answer: 5*(12-3)", "Answer: none"]);
        assert!(votes[0].is_some());
        assert_eq!(votes[0], votes[1]);
        assert_eq!(votes[2], None);
    }
}
