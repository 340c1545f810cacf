//! MATH as published: `{problem, solution, level, type}`, the answer standing in the solution's
//! last `\boxed{}`.
//!
//! Braces nest and may be escaped, which is why this isn't a regular expression: one has damaged
//! 103 of the 7,500 answers of a published copy.

/// What stands in the last `\boxed{…}` (or `\fbox{…}`) of a solution. Two published solutions box
/// nothing; their empty answer is no readable gold, so they are skipped when answers are judged
/// instead of keeping the other 7,498 from being read.
pub(super) fn boxed(solution: &str) -> Option<&str> {
    let after = |command: &str| solution.rfind(command).map(|at| at + command.len());
    let at = after(r"\boxed").max(after(r"\fbox"))?;
    let rest = solution[at..].trim_start();
    match rest.strip_prefix('{') {
        Some(inside) => braced(inside),
        // TeX allows `\boxed 9$`: the argument is then the next character; authors mean the rest
        // of the formula.
        None => rest.split('$').next().map(str::trim).filter(|answer| !answer.is_empty()),
    }
}

/// The text up to the brace that closes one opened before it.
fn braced(text: &str) -> Option<&str> {
    let mut depth = 1;
    let mut escaped = false;
    for (at, character) in text.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(text[..at].trim());
        }
    }
    None
}

/// A level without its word, so that `Level 5` (MATH) and `5` (MATH-500) are one level.
pub(super) fn level(level: &str) -> String {
    level.strip_prefix("Level ").unwrap_or(level).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_box_counts_with_the_braces_in_it() {
        for (solution, answer) in [
            (r"so $\boxed{1}$, no, $\boxed{\frac{1}{\sqrt{2}}}$.", Some(r"\frac{1}{\sqrt{2}}")),
            (r"$\boxed{\left\{ x : x > 0 \right.}$ {", Some(r"\left\{ x : x > 0 \right.")),
            (
                r"$\boxed{ \begin{array}{c} a \\{b} \end{array} }$",
                Some(r"\begin{array}{c} a \\{b} \end{array}"),
            ),
            (r"$\boxed {5}$ and then $\fbox{6}$", Some("6")),
            (r"there are $\boxed{}$ primes", Some("")),
            (r"$\boxed 9$. Done $x$", Some("9")),
            (r"$\boxed{never closed$", None),
            ("no box", None),
        ] {
            assert_eq!(boxed(solution), answer, "{solution}");
        }
    }

    #[test]
    fn levels_of_both_copies_agree() {
        assert_eq!(["Level 5", "5", "Level ?"].map(level), ["5", "5", "?"]);
    }
}
