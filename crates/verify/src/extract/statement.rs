//! The value within a statement: `$x$` of "the length is $x$ in all".

use std::borrow::Cow;

use super::joined::{Joint, joint, list};
use super::math::{Formula, formulas};
use super::plain::values;
use super::{Candidate, Kind, has_digit, is_prose, reads_as_value, words_only};

/// A line is read up to this length.
const MAX_LINE: usize = 2048;

/// The line up to its end, or to a tag or special token that the text may carry. A formula that is
/// displayed may have several lines.
pub(super) fn first_line(text: &str) -> &str {
    let text = text.trim_start();
    let text = match text.split_once('\n') {
        Some((line, rest)) if is_rule(line.trim()) => rest.trim_start(),
        _ => text,
    };
    let near = &text[..text.floor_char_boundary(MAX_LINE)];
    let shown = if near.starts_with(['$', '\\']) { formulas(near) } else { Vec::new() };
    let formula = shown.first().filter(|first| first.outer.start == 0).map_or(0, |first| first.outer.end);
    let rest = &near[formula..];
    let tags = ["\n", "\r", "</", "<|", "<Parallel>", "<Path>", "<Summary>"];
    let end = tags.iter().filter_map(|tag| rest.find(tag)).min().unwrap_or(rest.len());
    &near[..formula + end]
}

/// A line of dashes below a heading.
fn is_rule(line: &str) -> bool {
    line.len() > 1 && line.chars().all(|c| "-*_=".contains(c))
}

/// Drops a second sentence and reasons given for the answer.
pub(super) fn first_clause(line: &str) -> &str {
    const ENDS: [&str; 14] = [
        ". ",
        "! ",
        "? ",
        ".\"",
        ".)",
        " because ",
        ", because",
        " since ",
        ", since",
        ", as ",
        ", which",
        ", so ",
        ", not ",
        ", where ",
    ];
    let formulas = formulas(line);
    let inside = |at: usize| formulas.iter().any(|formula| formula.outer.contains(&at));
    // "approx. 5" and "B. 5" go on.
    let abbreviated = |at: usize| {
        let choice = at == 1 && line.starts_with(|c: char| c.is_ascii_uppercase());
        choice
            || ["approx", "i.e", "e.g", "No", "ca"].iter().any(|word| {
                let before = line[..at].strip_suffix(word);
                before.is_some_and(|before| !before.ends_with(char::is_alphanumeric))
            })
    };
    let end = ENDS.iter().filter_map(|mark| {
        line.match_indices(mark)
            .map(|(at, _)| at)
            .find(|&at| !(inside(at) || mark.starts_with('.') && abbreviated(at)))
    });
    &line[..end.min().unwrap_or(line.len())]
}

/// Drops Markdown's marks, quotes and the punctuation at the end.
pub(super) fn trim(text: &str) -> &str {
    // The end of an object or a command that the label stands in: {"answer": 5}, \textbf{Answer: 5}.
    let text = if text.contains('{') { text } else { text.trim_end().trim_end_matches('}') };
    let text = text.trim_matches(|c: char| c.is_whitespace() || "*_`\"".contains(c));
    text.trim_end_matches(['.', ',', ';', '。']).trim_end_matches(['*', '`']).trim_end()
}

/// The text with the delimiters of its formulas taken away.
pub(super) fn unmark(text: &str) -> Cow<'_, str> {
    match &formulas(text)[..] {
        [] => Cow::Borrowed(text),
        [one] if one.outer == (0..text.len()) => Cow::Borrowed(content(one)),
        found => {
            let mut out = String::with_capacity(text.len());
            let mut at = 0;
            for formula in found {
                push_apart(&mut out, &text[at..formula.outer.start]);
                push_apart(&mut out, content(formula));
                at = formula.outer.end;
            }
            push_apart(&mut out, &text[at..]);
            Cow::Owned(out)
        }
    }
}

/// Appends, with a space where two words would become one.
fn push_apart(out: &mut String, part: &str) {
    if out.ends_with(char::is_alphanumeric) && part.starts_with(char::is_alphanumeric) {
        out.push(' ');
    }
    out.push_str(part);
}

/// A formula without the punctuation of the sentence that it stands in.
fn content<'a>(formula: &Formula<'a>) -> &'a str {
    formula.inner.trim().trim_end_matches(['.', ',', ';']).trim_end()
}

/// What stands between the formulas.
fn outside(text: &str, formulas: &[Formula]) -> String {
    let ends = formulas.iter().map(|formula| formula.outer.end);
    let starts = formulas.iter().map(|formula| formula.outer.start).chain([text.len()]);
    std::iter::once(0).chain(ends).zip(starts).map(|(end, start)| &text[end..start]).collect()
}

/// The value of a statement; the statement itself if it is one, or if there is none in it.
pub(super) fn value(statement: &str) -> Candidate<'_> {
    let statement = without_remark(without_hedges(statement));
    let whole = || Candidate { kind: Kind::Whole, span: statement, text: unmark(statement) };
    if is_bare(statement) && !statement.contains("**") || reads_as_value(&whole().text) {
        return whole();
    }
    let bold = |valued| move || bold(statement, valued).next().map(value);
    let said = || {
        let said = after_copula(statement);
        leading(said).or_else(|| last_value(said))
    };
    leading(statement)
        .or_else(bold(true))
        .or_else(said)
        .or_else(|| last_value(statement))
        .or_else(bold(false))
        .or_else(|| letter(statement))
        .unwrap_or_else(whole)
}

/// "The correct option is B."
fn letter(statement: &str) -> Option<Candidate<'_>> {
    let word = trim(statement.rsplit_once(' ')?.1);
    let bare = word.trim_matches(['(', ')']);
    let letter = bare.len() == 1 && bare.starts_with(|c: char| c.is_ascii_uppercase() && c != 'I');
    letter.then(|| Candidate { kind: Kind::Plain, span: word, text: word.into() })
}

/// Drops "(in metres)" behind a value: a remark in words.
fn without_remark(statement: &str) -> &str {
    let Some((value, remark)) = statement.rsplit_once(" (") else { return statement };
    let words = remark.strip_suffix(')').is_some_and(|words| words.contains(|c: char| c.is_alphabetic()));
    let plain = words && !has_digit(remark) && !remark.contains(['\\', '$', '=', '^', '+']);
    if plain && remark.len() > 2 && has_digit(value) { value.trim_end() } else { statement }
}

/// Whether there are no words around the values of a text.
pub(super) fn is_bare(text: &str) -> bool {
    let formulas = formulas(text);
    match formulas[..] {
        [] => !is_prose(&words_only(text)),
        _ => !outside(text, &formulas).split(|c: char| !c.is_alphabetic()).any(is_noun),
    }
}

/// A word that neither joins values nor scales them.
fn is_noun(word: &str) -> bool {
    word.chars().count() > 1 && !["and", "or", "percent"].contains(&word)
}

/// Words that qualify an answer without changing it.
pub(super) fn without_hedges(statement: &str) -> &str {
    const HEDGES: [&str; 24] = [
        "approximately ",
        "about ",
        "roughly ",
        "exactly ",
        "simply ",
        "just ",
        "therefore ",
        "therefore, ",
        "thus ",
        "then ",
        "equal to ",
        "given by ",
        "option ",
        "choice ",
        "found to be ",
        "indeed ",
        "also ",
        "still ",
        "now ",
        "clearly ",
        "obviously ",
        "as follows: ",
        "hence ",
        "only ",
    ];
    let hedge = |text: &str| {
        HEDGES
            .iter()
            .find(|hedge| text.get(..hedge.len()).is_some_and(|start| start.eq_ignore_ascii_case(hedge)))
            .map(|h| h.len())
    };
    let mut rest = statement;
    while let Some(length) = hedge(rest) {
        rest = rest[length..].trim_start();
    }
    rest
}

/// What stands behind the last verb of a sentence, if a value does.
fn after_copula(statement: &str) -> &str {
    let found = [" is ", " are ", " equals "]
        .iter()
        .filter_map(|verb| Some((statement.rfind(verb)?, verb.len())))
        .max();
    match found {
        Some((at, length)) if last_value(&statement[at + length..]).is_some() => &statement[at + length..],
        _ => statement,
    }
}

/// The formulas or values with which a statement begins.
fn leading(statement: &str) -> Option<Candidate<'_>> {
    let formulas = formulas(statement);
    if formulas.first().is_some_and(|first| first.outer.start == 0) {
        let end = (1..formulas.len()).find(|&i| !said_together(statement, &formulas[i - 1], &formulas[i]));
        return Some(run(statement, &formulas[..end.unwrap_or(formulas.len())]));
    }
    let values = values(statement);
    let first = values.first().filter(|first| first.start == 0)?;
    let joins = |i: &usize| joint(&statement[values[*i].end()..values[i + 1].start]) == Some(Joint::Said);
    let last = (0..values.len() - 1).take_while(joins).last().map_or(0, |i| i + 1);
    let span = &statement[..values[last].end()];
    // "3 apples and 4 pears" are no single value.
    let rest = statement[first.end()..].trim_start();
    let several = last == 0 && values.len() > 1 && rest.contains(" and ");
    (!several).then(|| Candidate { kind: Kind::Plain, span, text: span.into() })
}

fn last_value(text: &str) -> Option<Candidate<'_>> {
    [last_values(text), last_formulas(text)].into_iter().flatten().max_by_key(end)
}

/// Where a candidate ends in its text; comparable between candidates of one text.
pub(super) fn end(found: &Candidate) -> usize {
    found.span.as_ptr() as usize + found.span.len()
}

/// The last plain value, with those that it is listed with.
fn last_values(text: &str) -> Option<Candidate<'_>> {
    let values = values(text);
    let last = values.last()?;
    let joins = |i: &usize| joint(&text[values[*i].end()..values[i + 1].start]) == Some(Joint::Said);
    let first = (0..values.len() - 1).rev().take_while(joins).last().unwrap_or(values.len() - 1);
    let span = &text[values[first].start..last.end()];
    Some(Candidate { kind: Kind::Plain, span, text: span.into() })
}

/// The last formula that says something, with those that it is listed with.
pub(super) fn last_formulas(text: &str) -> Option<Candidate<'_>> {
    let formulas = formulas(text);
    let says = |formula: &Formula| formula.inner.trim().len() > 1 || has_digit(formula.inner);
    let names = |formula: &Formula| !formula.inner.contains("\\boxed{}");
    let last = formulas.iter().rposition(|f| says(f) && names(f)).or(formulas.iter().rposition(names))?;
    let joins = |i: &usize| said_together(text, &formulas[*i], &formulas[i + 1]);
    let first = (0..last).rev().take_while(joins).last().unwrap_or(last);
    Some(run(text, &formulas[first..=last]))
}

fn said_together(text: &str, a: &Formula, b: &Formula) -> bool {
    joint(&text[a.outer.end..b.outer.start]) == Some(Joint::Said)
}

/// Formulas as one answer, with the percent sign or the order of magnitude behind the last.
fn run<'a>(text: &'a str, run: &[Formula<'a>]) -> Candidate<'a> {
    const SCALES: [&str; 8] = ["%", "\\%", "°", "percent", "thousand", "million", "billion", "trillion"];
    let (first, last) = (&run[0], &run[run.len() - 1]);
    let after = &text[last.outer.end..];
    let scale = SCALES.iter().find(|scale| after.trim_start().starts_with(**scale));
    let length = scale.map_or(0, |scale| after.len() - after.trim_start().len() + scale.len());
    let span = &text[first.outer.start..last.outer.end + length];
    let contents: Vec<&str> = run.iter().map(content).collect();
    let values = list(&contents);
    let text = match scale {
        Some(_) => unmark(span),
        None => values,
    };
    Candidate { kind: Kind::Formula, span, text }
}

/// The parts between `**` and `**`; only those with a value, if asked for.
fn bold(text: &str, valued: bool) -> impl DoubleEndedIterator<Item = &str> {
    let parts: Vec<&str> = text.split("**").collect();
    // An unpaired mark at the end opens nothing.
    let pairs = parts.len().saturating_sub(1) / 2 * 2;
    let heading = |part: &str| part.trim_end().ends_with(':') || part.trim_start().starts_with("Step");
    let inside = parts.into_iter().take(pairs + 1).skip(1).step_by(2).collect::<Vec<_>>();
    inside.into_iter().filter(move |part| (has_digit(part) || !valued) && !heading(part)).map(trim)
}

/// The last bold part with a value.
pub(super) fn last_bold(text: &str) -> Option<Candidate<'_>> {
    let part = bold(text, true).next_back()?;
    let found = value(part);
    Some(Candidate { kind: Kind::Plain, ..found })
}
