//! Is the response in the problem's language? Teachers of several languages slip into another one.

use whatlang::{Lang, detect};

use super::{Answer, Fault, FaultKind};

/// Fewer letters say too little about a language.
const FEWEST_LETTERS: usize = 120;
/// As many letters are enough.
const MOST_LETTERS: usize = 1_200;
/// A foreign script is a slip from so many letters on; fewer may be a name or a symbol.
const FEWEST_FOREIGN: usize = 3;

pub(super) fn fault(answer: &Answer) -> Option<Fault> {
    let at = foreign_script(answer).or_else(|| {
        let (asked, told) = (language(&answer.problem.problem)?, language(answer.response)?);
        (asked != told).then_some(0)
    })?;
    Some(Fault::new(FaultKind::OtherLanguage, answer.response, at))
}

/// Where letters of a script begin that the problem doesn't have.
fn foreign_script(answer: &Answer) -> Option<usize> {
    let asked: Vec<Script> = answer.problem.problem.chars().filter_map(script).collect();
    let letters = answer.response.char_indices().filter_map(|(at, c)| Some((at, script(c)?)));
    let mut foreign = letters.filter(|(_, script)| !asked.contains(script)).map(|(at, _)| at);
    let first = foreign.next()?;
    foreign.nth(FEWEST_FOREIGN - 2).map(|_| first)
}

/// Scripts whose letters are no mathematical symbols.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Script {
    Cyrillic,
    Hebrew,
    Arabic,
    Indic,
    Thai,
    Kana,
    Han,
    Hangul,
}

fn script(c: char) -> Option<Script> {
    Some(match c {
        '\u{0400}'..='\u{052f}' => Script::Cyrillic,
        '\u{05d0}'..='\u{05ea}' => Script::Hebrew,
        '\u{0620}'..='\u{06ff}' => Script::Arabic,
        '\u{0900}'..='\u{0dff}' => Script::Indic,
        '\u{0e00}'..='\u{0e7f}' => Script::Thai,
        '\u{3041}'..='\u{30ff}' => Script::Kana,
        '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' => Script::Han,
        '\u{ac00}'..='\u{d7a3}' => Script::Hangul,
        _ => return None,
    })
}

/// The language of a text's prose, where that is sure.
fn language(text: &str) -> Option<Lang> {
    let prose = prose(text);
    (prose.chars().filter(|c| c.is_alphabetic()).count() >= FEWEST_LETTERS).then_some(())?;
    detect(&prose).filter(whatlang::Info::is_reliable).map(|info| info.lang())
}

/// Words of a text, without formulas, commands and tags.
fn prose(text: &str) -> String {
    let outside = text.split('$').step_by(2).flat_map(str::split_whitespace);
    let words = outside.filter(|word| {
        let word = word.trim_matches(|c: char| c.is_ascii_punctuation());
        !word.is_empty() && word.chars().all(|c| c.is_alphabetic() || c == '\'' || c == '’' || c == '-')
    });
    let mut prose = String::new();
    for word in words {
        if prose.len() > MOST_LETTERS {
            break;
        }
        prose.push_str(word);
        prose.push(' ');
    }
    prose
}

#[cfg(test)]
mod tests {
    use super::super::tests::problem;
    use super::*;

    const ENGLISH: &str = "Natalia sold clips to 48 of her friends in April, and then she sold half as many clips in \
        May. How many clips did Natalia sell altogether in April and May? Think about it carefully and explain.";
    const FRENCH: &str = "Natalia a vendu des pinces à 48 de ses amis en avril, puis elle en a vendu deux fois moins en \
        mai. Au total, elle a donc vendu 48 plus 24, ce qui fait 72 pinces pour les deux mois de cette année.";
    const LATEX: &str = r"Let $x$ be \[x^2 + \frac{1}{2} = 3\] so \boxed{\sqrt{\frac{5}{2}}} by $\alpha\beta\gamma$, Σ ≤ ∞, λ.";

    fn at(asked: &str, told: &str) -> Option<usize> {
        let problem = problem(asked, "72");
        fault(&Answer::new(&problem, told)).map(|fault| fault.at)
    }

    #[test]
    fn another_language_is_noticed() {
        assert_eq!(at(ENGLISH, FRENCH), Some(0));
        assert_eq!(at(ENGLISH, "First 48, 然后加上二十四, so 72."), Some(10));
        for (asked, told) in [
            (ENGLISH, ENGLISH),
            (FRENCH, FRENCH),
            (ENGLISH, LATEX),
            (ENGLISH, "Final Answer: 72"),
            ("Сколько яблок?", "Семьдесят два яблока."),
            (ENGLISH, "Her friend 李 sells, too."),
        ] {
            assert_eq!(at(asked, told), None, "{told}");
        }
    }
}
