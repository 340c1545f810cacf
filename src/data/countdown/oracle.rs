//! For the tests: reads Countdown texts back and does the sums itself, sharing no code with what
//! wrote them.

use super::Task;

/// What a line of steps amounts to: its last result. Every number must be at hand when it is used,
/// and every step true.
pub(super) fn evaluate(steps: &str, task: &Task) -> i64 {
    let mut hand: Vec<i64> = task.numbers().iter().map(|n| i64::from(*n)).collect();
    let mut last = None;
    for step in steps.split(',') {
        let (term, result) = step.split_once('=').expect("a step has a result");
        let at = term.find(['+', '-', '*', '/']).expect("a step has an operator");
        let (a, b): (i64, i64) = (term[..at].parse().unwrap(), term[at + 1..].parse().unwrap());
        let result: i64 = result.parse().unwrap();
        assert!(a >= b, "{step}: the larger operand stands first");
        assert!((1..=999).contains(&result), "{step}");
        for operand in [a, b] {
            let at = hand.iter().position(|n| *n == operand);
            hand.swap_remove(at.unwrap_or_else(|| panic!("{step} in {steps} of {task}")));
        }
        match &term[at..=at] {
            "+" => assert_eq!(a + b, result, "{step}"),
            "-" => assert_eq!(a - b, result, "{step}"),
            "*" => assert_eq!(a * b, result, "{step}"),
            _ => assert!(b > 1 && b * result == a, "{step}"),
        }
        hand.push(result);
        last = Some(result);
    }
    last.expect("there is a step")
}

/// Checks a marked line and says whether it is right.
pub(super) fn judge(line: &str, task: &Task) -> bool {
    let (steps, mark) = line.split_once(' ').expect("a line ends in a mark");
    let right = evaluate(steps, task) == i64::from(task.target());
    assert_eq!(mark, if right { "ok" } else { "no" }, "{line} of {task}");
    right
}
