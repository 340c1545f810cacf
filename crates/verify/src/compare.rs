//! Are two answers equal?
//!
//! Dispatch by what the two are; each kind has its module, whose head says what is accepted and why.
//! Exact values come first, then normal forms, then values in high precision with their error bounds.
//! Order counts in tuples, points and intervals, not in lists, sets and unions. A list without brackets
//! stands for a tuple if the order is the same.
//!
//! Equality is symmetric but for what problems and golds leave unsaid:
//! - A gold equation asks for the equation; a prediction may state a value as one (`relation.rs`).
//! - An inequality as prediction may be refused for an interval by [`Options::relation_for_set`]; a gold
//!   inequality always allows the interval.
//!
//! It is not transitive, so votes compare with the first of a class: `50\%` is 50 and 1/2, and `1,22`
//! is a list and a decimal.

mod complex;
mod decimal;
mod evaluate;
mod exact;
mod fuel;
mod identity;
mod list;
mod matrix;
mod polynomial;
mod quantity;
mod real;
mod relation;
mod set;
mod text;

use crate::answer::{Answer, Bracket, Expr, HalfDay, Quantity};
use fuel::{Fuel, Judged, Why, different, either, holds};

/// What may differ between judges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How many significant digits a decimal needs to stand for a value that it only rounds.
    pub precision: u32,
    /// Names of variables count: `f(x)` is not `f(y)`.
    pub strict: bool,
    /// An inequality as prediction may stand for the interval that the gold is. The other direction is
    /// always allowed.
    pub relation_for_set: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { precision: 6, strict: true, relation_for_set: true }
    }
}

/// What comparing says, with the reason in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The same answer.
    Equal,
    /// Not the same.
    Different(&'static str),
    /// Nothing can be said within the bounds.
    Undecided(&'static str),
}

/// Compares a gold answer with a prediction.
pub fn equal(gold: &Answer, prediction: &Answer, options: &Options) -> Outcome {
    let mut judge = Judge { options, fuel: Fuel::new() };
    match judge.same(gold, prediction) {
        Ok(()) => Outcome::Equal,
        Err(Why::Different(reason)) => Outcome::Different(reason),
        Err(Why::Undecided(reason)) => Outcome::Undecided(reason),
    }
}

/// One comparison with its budget.
struct Judge<'o> {
    options: &'o Options,
    fuel: Fuel,
}

impl Judge<'_> {
    fn same(&mut self, gold: &Answer, answer: &Answer) -> Judged {
        use Answer::*;
        self.fuel.burn(1)?;
        match (gold, answer) {
            (Value(a), Value(b)) => self.values(a, b),
            (Text(a), Text(b)) => text::same(a, b),
            (Either(a), Either(b)) => self.readings(a, b),
            (Either(readings), other) => self.any_of(readings, |judge, reading| judge.same(reading, other)),
            (other, Either(readings)) => self.any_of(readings, |judge, reading| judge.same(other, reading)),
            (Choice(a, x), Choice(b, y)) => {
                if a == b {
                    Ok(())
                } else {
                    self.same(x, y).and(different("the letters differ"))
                }
            }
            // C is no content of (D).
            (Choice(letter, _), other) if is_letter(other) => self.same(&symbol(*letter), other),
            (other, Choice(letter, _)) if is_letter(other) => self.same(other, &symbol(*letter)),
            (Choice(letter, content), other) => {
                let by_letter = self.same(&symbol(*letter), other);
                either(by_letter, || self.same(content, other))
            }
            (other, Choice(letter, content)) => {
                let by_letter = self.same(other, &symbol(*letter));
                either(by_letter, || self.same(other, content))
            }
            (Relation(a), Relation(b)) => self.relations(a, b),
            (Time(a, p), Time(b, q)) => times(*a, *p, *b, *q),
            (Ratio(a), Ratio(b)) => self.ratios(a, b),
            (Ratio(parts), Value(Quantity { value, .. })) | (Value(Quantity { value, .. }), Ratio(parts)) => {
                self.ratio_as_quotient(parts, value)
            }
            (Tuple(open, a, close), Tuple(left, b, right)) => {
                self.tuples((*open, a, *close), (*left, b, *right))
            }
            (Tuple(_, items, _), Value(Quantity { value, .. }))
            | (Value(Quantity { value, .. }), Tuple(_, items, _))
                if identity::has(value, &|e| matches!(e, Expr::Matrix(_))) =>
            {
                self.vector(items, value)
            }
            (Several(a), Several(b)) => self.lists(a, b, true),
            (Set(a), Set(b) | Several(b)) | (Several(a), Set(b)) => self.lists(a, b, false),
            (Several(list), Tuple(open, items, close)) | (Tuple(open, items, close), Several(list)) => {
                if items.len() == 2 && (*open == Bracket::Square || *close == Bracket::Square) {
                    return different("one is an interval");
                }
                self.in_order(list, items)
            }
            (Relation(a), other) => self.gold_relation(a, other),
            (other, Relation(b)) => self.answer_relation(other, b),
            (Set(items), Value(_)) if items.len() == 1 => self.same(&items[0], answer),
            (Value(_), Set(items)) if items.len() == 1 => self.same(gold, &items[0]),
            (Text(words), other) | (other, Text(words)) => self.words(words, other),
            _ => self.as_sets(gold, answer, "they are of different kinds"),
        }
    }

    fn values(&mut self, gold: &Quantity, answer: &Quantity) -> Judged {
        let judged = quantity::same(gold, answer, self.options, &mut self.fuel);
        if self.options.strict || judged.is_ok() {
            return judged;
        }
        // Without strictness a variable may have another name.
        let (a, b) = (identity::variables(&[&gold.value]), identity::variables(&[&answer.value]));
        let ([from], [to]) = (&b[..], &a[..]) else { return judged };
        let value = relation::replaced(&answer.value, from, &Expr::Symbol(to.clone()));
        quantity::same(gold, &Quantity { value, unit: answer.unit.clone() }, self.options, &mut self.fuel)
    }

    /// Two ambiguous answers: if their likeliest readings are of one kind, these decide.
    fn readings(&mut self, a: &[Answer], b: &[Answer]) -> Judged {
        if let ([first, ..], [other, ..]) = (a, b)
            && std::mem::discriminant(first) == std::mem::discriminant(other)
            && !matches!(first, Answer::Several(_))
        {
            return self.same(first, other);
        }
        self.any_of(a, |judge, x| judge.any_of(b, |judge, y| judge.same(x, y)))
    }

    fn any_of(&mut self, readings: &[Answer], mut judge: impl FnMut(&mut Self, &Answer) -> Judged) -> Judged {
        let mut result = different("there is no reading");
        for (i, reading) in readings.iter().enumerate() {
            match judge(self, reading) {
                Ok(()) => return Ok(()),
                // The likeliest reading gives the reason.
                Err(why) if i == 0 => result = Err(why),
                Err(_) => {}
            }
        }
        result
    }

    fn ratios(&mut self, a: &[Expr], b: &[Expr]) -> Judged {
        if a.len() != b.len() {
            return different("the ratios have other lengths");
        }
        for i in 1..a.len() {
            let (left, right) = (a[0].clone().times(b[i].clone()), a[i].clone().times(b[0].clone()));
            identity::same(&left, &right, &mut self.fuel)?;
        }
        Ok(())
    }

    fn ratio_as_quotient(&mut self, parts: &[Expr], value: &Expr) -> Judged {
        let [top, bottom] = parts else { return different("one is a ratio of several parts") };
        let Some(quotient) = top.clone().over(bottom.clone()) else { return different("a ratio to zero") };
        identity::same(&quotient, value, &mut self.fuel)
    }

    fn tuples(
        &mut self,
        gold: (Bracket, &[Answer], Bracket),
        answer: (Bracket, &[Answer], Bracket),
    ) -> Judged {
        if gold.1.len() != answer.1.len() {
            return different("the numbers of parts differ");
        }
        let brackets = ((gold.0, gold.2), (answer.0, answer.2));
        let angle = (Bracket::Angle, Bracket::Angle);
        let round = (Bracket::Round, Bracket::Round);
        let interval = gold.1.len() == 2 && brackets.0 != brackets.1;
        // Round and angle brackets are vectors alike; of two numbers square ones are an interval.
        let vectors = [brackets.0, brackets.1].iter().all(|pair| *pair == angle || *pair == round);
        if interval && !vectors {
            return self.as_sets(
                &Answer::Tuple(gold.0, gold.1.to_vec(), gold.2),
                &Answer::Tuple(answer.0, answer.1.to_vec(), answer.2),
                "the brackets differ",
            );
        }
        self.in_order(gold.1, answer.1)
    }

    fn in_order(&mut self, gold: &[Answer], answer: &[Answer]) -> Judged {
        if gold.len() != answer.len() {
            return different("the numbers of parts differ");
        }
        gold.iter().zip(answer).try_for_each(|(a, b)| self.same(a, b))
    }

    fn vector(&mut self, items: &[Answer], matrix: &Expr) -> Judged {
        let Some(entries) = matrix::vector(matrix, &mut self.fuel) else {
            return different("one is a matrix");
        };
        let entries: Vec<Answer> = entries.into_iter().map(Answer::value).collect();
        self.in_order(items, &entries)
    }

    fn words(&mut self, words: &str, other: &Answer) -> Judged {
        if let Some(number) = text::number(words) {
            return self.same(&Answer::value(Expr::integer(number)), other);
        }
        if let Answer::Value(Quantity { value: Expr::Symbol(name), unit: None }) = other
            && name.to_lowercase() == words
        {
            return Ok(());
        }
        self.as_sets(&Answer::Text(words.to_owned()), other, "one is text")
    }

    /// Compares what can be seen as sets of real numbers.
    fn as_sets(&mut self, gold: &Answer, answer: &Answer, otherwise: &'static str) -> Judged {
        if !set::is_set(gold) && !set::is_set(answer) {
            return different(otherwise);
        }
        let is_point = |a: &Answer| matches!(a, Answer::Value(_)) && !set::is_set(a);
        if is_point(gold) && matches!(answer, Answer::Tuple(..))
            || is_point(answer) && matches!(gold, Answer::Tuple(..))
        {
            return different(otherwise);
        }
        if let (Some(x), Some(y)) = (set::variable(gold), set::variable(answer))
            && x != y
            && self.options.strict
        {
            return different("the variables differ");
        }
        if let (Answer::Member(_, p, a), Answer::Member(_, q, b)) = (gold, answer) {
            if p != q {
                return different("one is in, the other is not");
            }
            return self.same(a, b);
        }
        if let Answer::Member(_, true, set) = gold {
            return self.same(set, answer);
        }
        if let Answer::Member(_, true, set) = answer {
            return self.same(gold, set);
        }
        let (Some(a), Some(b)) =
            (set::real_set(gold, &mut self.fuel)?, set::real_set(answer, &mut self.fuel)?)
        else {
            return self.pieces(gold, answer, otherwise);
        };
        if set::same(&a, &b, &mut self.fuel)? {
            return Ok(());
        }
        // Ends may be decimals that round.
        self.pieces(gold, answer, "the sets differ")
    }

    /// Sets with ends that are no numbers: piece by piece, in any order.
    fn pieces(&mut self, gold: &Answer, answer: &Answer, otherwise: &'static str) -> Judged {
        use Answer::{Intersection, Tuple, Union, Without};
        match (gold, answer) {
            (Union(a), Union(b)) | (Intersection(a), Intersection(b)) => self.lists(a, b, true),
            (Without(a, x), Without(b, y)) => {
                self.same(a, b)?;
                self.same(x, y)
            }
            (Tuple(p, a, q), Tuple(r, b, s)) if p == r && q == s => self.in_order(a, b),
            _ => different(otherwise),
        }
    }

    fn is_same(&mut self, gold: &Answer, answer: &Answer) -> Judged<bool> {
        holds(self.same(gold, answer))
    }
}

fn symbol(letter: char) -> Answer {
    Answer::value(Expr::Symbol(letter.to_string()))
}

fn is_letter(answer: &Answer) -> bool {
    matches!(answer, Answer::Value(Quantity { value: Expr::Symbol(name), unit: None }) if matches!(name.as_bytes(), [b'A'..=b'J']))
}

/// Times on one clock; what is not said about the half of the day may be either.
fn times(a: u32, p: Option<HalfDay>, b: u32, q: Option<HalfDay>) -> Judged {
    const HALF: u32 = 12 * 3600;
    let full = |time: u32, half: Option<HalfDay>| match half {
        Some(HalfDay::Am) => time % HALF,
        Some(HalfDay::Pm) => time % HALF + HALF,
        None => time,
    };
    let (x, y) = (full(a, p), full(b, q));
    let half_unsaid = p.is_some() != q.is_some() && a < HALF + 3600 && b < HALF + 3600;
    if x == y || half_unsaid && x % HALF == y % HALF { Ok(()) } else { different("the times differ") }
}
