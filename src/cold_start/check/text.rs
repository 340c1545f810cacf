//! Faults of the whole text: repeated instructions, breaks, lengths, and the answer it ends with.

use parallel_r1_verify::extract;

use super::{Answer, CheckOptions, Fault, FaultKind};
use crate::prompt::tags::{Outline, Tag};

/// A shorter line is no sign of an echo.
const SHORTEST_ECHO: usize = 20;
/// More than an instruction has; keeps the work bounded.
const MOST_LINES: usize = 256;

pub(super) fn faults(answer: &Answer, outline: &Outline, options: &CheckOptions) -> Vec<Fault> {
    let response = answer.response;
    let chars = response.trim().chars().count();
    let short = (chars < options.min_chars).then_some((FaultKind::TooShort, 0));
    let long = (chars > options.max_chars).then_some((FaultKind::TooLong, 0));
    let cut = (answer.cut || breaks_off(response, outline)).then_some((FaultKind::Truncated, response.len()));
    let echo = echo(answer).map(|at| (FaultKind::EchoedPrompt, at));
    let found = [short, long, cut, echo].into_iter().flatten();
    found.map(|(kind, at)| Fault::new(kind, response, at)).collect()
}

/// The final answer, where it isn't right.
pub(super) fn wrong_answer(response: &str, correct: Option<bool>) -> Option<Fault> {
    if correct != Some(false) {
        return None;
    }
    let Some(stated) = extract(response) else {
        return Some(Fault::new(FaultKind::NoAnswer, response, response.len()));
    };
    let at = response.rfind(stated).unwrap_or(response.len());
    Some(Fault { kind: FaultKind::WrongAnswer, at, text: stated.chars().take(80).collect() })
}

/// Where a line of the prompt that has tags in it is repeated.
fn echo(answer: &Answer) -> Option<usize> {
    if !answer.response.contains('<') {
        return None;
    }
    let asked = answer.prompt.unwrap_or_default().lines().chain(answer.problem.problem.lines());
    let lines = asked.map(str::trim).take(MOST_LINES).filter(|line| line.len() >= SHORTEST_ECHO);
    let tagged = lines.filter(|line| Tag::ALL.iter().any(|tag| line.contains(tag.text())));
    tagged.filter_map(|line| answer.response.find(line)).min()
}

/// Whether a text that nobody knows to be cut stops in the middle: something is open and no answer follows, or its last
/// character asks for more.
fn breaks_off(response: &str, outline: &Outline) -> bool {
    let text = response.trim_end();
    let open = outline.faults.iter().any(|fault| fault.byte == response.len());
    let waiting = text.ends_with(['=', ',', '+', '*', '/', '(', '[', '{', '\\', '×', '÷', '<']);
    let unboxed = text.rfind("\\boxed{").is_some_and(|at| open_brace(&text[at..]));
    waiting || unboxed || (open && extract(response).is_none())
}

fn open_brace(text: &str) -> bool {
    let depth = text.chars().try_fold((0i32, false), |(depth, opened), c| match c {
        '{' => Some((depth + 1, true)),
        '}' if depth == 1 => None,
        '}' => Some((depth - 1, opened)),
        _ => Some((depth, opened)),
    });
    depth.is_some_and(|(depth, opened)| opened && depth > 0)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{kinds, problem, with_block};
    use super::super::{CheckOptions, inspect};
    use super::FaultKind::*;
    use super::*;

    #[test]
    fn answers_are_judged() {
        assert_eq!(kinds("It is 11.\nFinal Answer: 11"), [WrongAnswer]);
        assert_eq!(kinds("Nobody can know how many there are"), [NoAnswer]);
        let unknown = problem("How many?", "");
        let inspection = inspect(&Answer::new(&unknown, "Answer: 3"), &CheckOptions::default());
        assert_eq!((inspection.faults.len(), inspection.correct), (0, None));
        assert!(!inspection.accepted(), "nobody knows whether it is right");
    }

    #[test]
    fn breaks_are_noticed() {
        assert!(kinds("So we have 12. The sum is 5 + 7 =").contains(&Truncated));
        assert!(kinds("5 + 7 = 12, so \\boxed{12}. Thus \\boxed{12").contains(&Truncated));
        assert!(kinds(&with_block("<Path>a b")).contains(&UnclosedPath));
        let problem = problem("How many?", "12");
        let answer = Answer { cut: true, ..Answer::new(&problem, "It is 12.\nFinal Answer: 12") };
        assert!(inspect(&answer, &CheckOptions::default()).has(Truncated));
    }

    #[test]
    fn lengths_are_kept() {
        let problem = problem("How many?", "12");
        let options = CheckOptions { min_chars: 5, max_chars: 10, ..CheckOptions::default() };
        let has = |response, kind| inspect(&Answer::new(&problem, response), &options).has(kind);
        assert!(has("12", TooShort) && has("Final Answer: 12", TooLong) && !has("It is 12", TooShort));
    }

    #[test]
    fn an_echo_is_not_a_demonstration() {
        let problem = problem("How many?", "12");
        let prompt = "Think.\nWrite paths as <Path> and </Path> in a <Parallel> block.\nHow many?";
        let response = "Write paths as <Path> and </Path> in a <Parallel> block.\nFinal Answer: 12";
        let inspect =
            |prompt| inspect(&Answer { prompt, ..Answer::new(&problem, response) }, &CheckOptions::default());
        assert!(inspect(Some(prompt)).has(EchoedPrompt));
        assert!(!inspect(None).has(EchoedPrompt));
    }
}
