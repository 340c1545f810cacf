//! Equations, inequalities and assignments.
//!
//! What a prediction may do against a gold, and why:
//! - `x = 5` and `5` are equal in both directions, as the problem says what is asked for. A name is a
//!   variable, a function applied, a segment `AB`, words.
//! - A gold that is an equation (`2x + z = 1`, `7 = 11a + c`) asks for the equation; its right side is no
//!   answer. A prediction `m + n = 17` for the gold `17` states the value and is accepted.
//! - `x = 5` is not `y = 5`; `f(x) = x + 1` is `f(t) = t + 1`, and `y = x + 1` for the same function.
//! - Equations are equal up to a non-zero constant factor and the order of the sides.
//! - A chain of values, `20 + 22 = 42`, must be true and is then its last value; with `\approx` either
//!   side will do.

use super::fuel::{Judged, different, either, holds};
use super::polynomial::{self, Forms};
use super::{Judge, Options, identity, set};
use crate::answer::{Answer, Bracket, Expr, Function, Quantity, Relation, Sign};

fn expr(answer: &Answer) -> Option<&Expr> {
    match answer {
        Answer::Value(Quantity { value, .. }) => Some(value),
        _ => None,
    }
}

fn is_equation(relation: &Relation) -> bool {
    relation.signs.iter().all(|sign| matches!(sign, Sign::Equal | Sign::Near))
}

/// Does this stand for what it is equal to?
fn is_name(answer: &Answer) -> bool {
    match answer {
        Answer::Text(_) => true,
        Answer::Tuple(Bracket::Round, items, Bracket::Round) => items.iter().all(is_name),
        Answer::Value(Quantity { value, .. }) => is_name_expr(value),
        Answer::Either(readings) => readings.iter().any(is_name),
        _ => false,
    }
}

fn is_name_expr(value: &Expr) -> bool {
    match value {
        Expr::Symbol(_) | Expr::Apply(..) => true,
        Expr::Product(letters) => letters.iter().all(
            |letter| matches!(letter, Expr::Symbol(name) if name.chars().next().is_some_and(char::is_uppercase) || name.starts_with("angle") || name.starts_with("triangle")),
        ),
        Expr::Function(Function::Abs, inner) => inner.iter().all(is_name_expr),
        // E is a name here: the expected value.
        _ => false,
    }
}

/// Name and values of an assignment. Several values only with `\approx`, the first preferred.
fn assignment(relation: &Relation) -> Option<(&Answer, Vec<&Answer>)> {
    let (name, rest) = relation.sides.split_first()?;
    if !is_equation(relation) || !is_name(name) {
        return None;
    }
    let last = rest.last()?;
    if let (Some(Expr::Symbol(name)), Some(value)) = (expr(name), expr(last))
        && identity::variables(&[value]).contains(name)
    {
        return None;
    }
    let values = if relation.signs.contains(&Sign::Near) { rest.iter().collect() } else { vec![last] };
    Some((name, values))
}

/// No variables in any side.
fn is_constant(answer: &Answer) -> bool {
    expr(answer).is_some_and(|value| {
        identity::variables(&[value]).is_empty() && !identity::has(value, &|e| matches!(e, Expr::Apply(..)))
    })
}

impl Judge<'_> {
    /// A gold relation against an answer that is none.
    pub(super) fn gold_relation(&mut self, gold: &Relation, answer: &Answer) -> Judged {
        if let Some((_, values)) = assignment(gold) {
            return self.any(&values, |judge, value| judge.same(value, answer));
        }
        if gold.sides.iter().all(is_constant) && is_equation(gold) {
            let sides: Vec<&Answer> = gold.sides.iter().collect();
            return self.any(&sides, |judge, side| judge.same(side, answer));
        }
        self.as_sets(&Answer::Relation(gold.clone()), answer, "the gold is a relation, the answer is none")
    }

    /// A relation as answer to a gold that is none.
    pub(super) fn answer_relation(&mut self, gold: &Answer, answer: &Relation) -> Judged {
        if !is_equation(answer) {
            if !self.options.relation_for_set {
                return different("the answer is an inequality, the gold is a set");
            }
            return self.as_sets(
                gold,
                &Answer::Relation(answer.clone()),
                "the answer is a relation, the gold is none",
            );
        }
        if let Some((_, values)) = assignment(answer) {
            return self.any(&values, |judge, value| judge.same(gold, value));
        }
        let Some(last) = answer.sides.last() else { return different("the answer is a relation") };
        if answer.sides.iter().all(is_constant) {
            return self.true_chain(gold, answer);
        }
        // m + n = 17
        if answer.sides.len() == 2 && is_constant(last) {
            return self.same(gold, last);
        }
        different("the answer is an equation, the gold is none")
    }

    /// `20 + 22 = 42`, `2/3 \approx 0.667`.
    fn true_chain(&mut self, gold: &Answer, answer: &Relation) -> Judged {
        for (pair, sign) in answer.sides.windows(2).zip(&answer.signs) {
            if *sign == Sign::Equal && !holds(self.same(&pair[0], &pair[1]))? {
                return different("the answer states something false");
            }
            if *sign == Sign::Near && !self.near(&pair[0], &pair[1])? {
                return different("the answer states something false");
            }
        }
        let near = answer.signs.contains(&Sign::Near);
        let sides: Vec<&Answer> =
            if near { answer.sides.iter().collect() } else { answer.sides.iter().rev().take(1).collect() };
        self.any(&sides, |judge, side| judge.same(gold, side))
    }

    /// A decimal must be the value rounded or cut at its last digit; others may differ by a twentieth.
    fn near(&mut self, a: &Answer, b: &Answer) -> Judged<bool> {
        let (Some(a), Some(b)) = (expr(a), expr(b)) else { return Ok(true) };
        if matches!(a, Expr::Decimal(..)) || matches!(b, Expr::Decimal(..)) {
            let any_digits = Options { precision: 1, ..self.options.clone() };
            return holds(super::quantity::number(a, b, &any_digits, &mut self.fuel));
        }
        let both = identity::values(&[a, b], &Vec::new(), super::evaluate::Log::Natural, 128, &mut self.fuel);
        let middle = |value: &super::complex::Complex| value.re.middle().map(|m| m.to_f64_fast());
        Ok(match both.ok().map(|v| (middle(&v[0]), middle(&v[1]))) {
            Some((Some(a), Some(b))) => (a - b).abs() <= 0.05 * a.abs().max(b.abs()),
            _ => true,
        })
    }

    fn any(&mut self, parts: &[&Answer], mut judge: impl FnMut(&mut Self, &Answer) -> Judged) -> Judged {
        let mut result = different("there is no value");
        for part in parts {
            let next = judge(self, part);
            if next.is_ok() {
                return next;
            }
            result = next;
        }
        result
    }

    /// Two relations.
    pub(super) fn relations(&mut self, gold: &Relation, answer: &Relation) -> Judged {
        if gold == answer {
            return Ok(());
        }
        if let (Some((name, values)), Some((other, others))) = (assignment(gold), assignment(answer)) {
            return match self.renamed(name, other)? {
                Some(rename) => self.any(&values, |judge, value| {
                    judge.any(&others, |judge, other| match &rename {
                        Some((from, to)) => judge.same(value, &renamed(other, from, to)),
                        None => judge.same(value, other),
                    })
                }),
                None => either(different("the names differ"), || self.equations(gold, answer)),
            };
        }
        if is_equation(gold) != is_equation(answer) {
            return different("one is an equation, the other an inequality");
        }
        if is_equation(gold) && gold.sides.iter().all(is_constant) {
            let sides: Vec<&Answer> = gold.sides.iter().collect();
            return self.any(&sides, |judge, side| judge.answer_relation(side, answer));
        }
        if is_equation(gold) {
            return self.equations(gold, answer);
        }
        self.inequalities(gold, answer)
    }

    /// Are two names one? `Some` with the renaming of a function's argument that makes them so.
    fn renamed(&mut self, name: &Answer, other: &Answer) -> Judged<Option<Option<(String, String)>>> {
        if name == other {
            return Ok(Some(None));
        }
        if let (Some(Expr::Apply(f, a)), Some(Expr::Apply(g, b))) = (expr(name), expr(other)) {
            return Ok(match (&a[..], &b[..]) {
                ([Expr::Symbol(a)], [Expr::Symbol(b)]) if f == g => Some(Some((b.clone(), a.clone()))),
                _ if f == g && a.len() == b.len() => {
                    let mut same = true;
                    for (a, b) in a.iter().zip(b) {
                        same &= holds(identity::same(a, b, &mut self.fuel))?;
                    }
                    same.then_some(None)
                }
                _ => None,
            });
        }
        // y = ... and f(x) = ... are one function.
        let is_graph = |a: Option<&Expr>, b: Option<&Expr>| matches!((a, b), (Some(Expr::Symbol(y)), Some(Expr::Apply(_, args))) if y == "y" && args.len() == 1 && matches!(&args[0], Expr::Symbol(x) if x == "x"));
        if is_graph(expr(name), expr(other)) || is_graph(expr(other), expr(name)) {
            return Ok(Some(None));
        }
        if matches!((name, other), (Answer::Text(_), _) | (_, Answer::Text(_))) {
            return Ok(Some(None)); // words name things in many ways
        }
        // x_1 and x_{1}, AB and BA
        if let (Some(a), Some(b)) = (expr(name), expr(other))
            && holds(identity::same(a, b, &mut self.fuel))?
        {
            return Ok(Some(None));
        }
        Ok((!self.options.strict).then_some(None))
    }

    /// Equal up to a constant factor.
    fn equations(&mut self, gold: &Relation, answer: &Relation) -> Judged {
        const DIFFER: &str = "the equations differ";
        if gold.sides.len() != answer.sides.len() {
            return different(DIFFER);
        }
        if gold.sides.len() > 2 {
            return gold.sides.iter().zip(&answer.sides).try_for_each(|(a, b)| self.same(a, b));
        }
        let (Some(a), Some(b)) = (difference(gold), difference(answer)) else {
            return gold.sides.iter().zip(&answer.sides).try_for_each(|(a, b)| self.same(a, b));
        };
        if identity::variables(&[&a]).is_empty() || identity::variables(&[&b]).is_empty() {
            return different(DIFFER);
        }
        let by_form = self.fuel.share(polynomial::SHARE, |fuel| Forms::new(fuel).proportional(&a, &b));
        match by_form {
            Some(true) => Ok(()),
            Some(false) => different(DIFFER),
            None => self.proportional(&a, &b).map_err(|why| match why {
                super::fuel::Why::Different(_) => super::fuel::Why::Different(DIFFER),
                why => why,
            }),
        }
    }

    /// a is a constant times b: a(p) b(q) = a(q) b(p), with p fixed.
    fn proportional(&mut self, a: &Expr, b: &Expr) -> Judged {
        let names = identity::variables(&[a, b]);
        for (first, second) in [(0, 1), (5, 6), (2, 3)] {
            let at = |expr: &Expr, index: usize| {
                let point = identity::point(&names, &[], index);
                point.iter().fold(expr.clone(), |expr, (name, value)| {
                    replaced(&expr, name, &Expr::Number(value.clone()))
                })
            };
            let (left, right) = (at(a, first).times(at(b, second)), at(a, second).times(at(b, first)));
            identity::same(&left, &right, &mut self.fuel)?;
        }
        Ok(())
    }

    fn inequalities(&mut self, gold: &Relation, answer: &Relation) -> Judged {
        const DIFFER: &str = "the inequalities differ";
        let (a, b) = (Answer::Relation(gold.clone()), Answer::Relation(answer.clone()));
        let names = (set::variable(&a), set::variable(&b));
        if let (Some(x), Some(y)) = &names {
            if x != y && self.options.strict {
                return different("the variables differ");
            }
            if let (Some(a), Some(b)) =
                (set::real_set(&a, &mut self.fuel)?, set::real_set(&b, &mut self.fuel)?)
            {
                return if set::same(&a, &b, &mut self.fuel)? { Ok(()) } else { different(DIFFER) };
            }
        }
        if gold.signs.len() == 1 && answer.signs.len() == 1 {
            return self.one_inequality(gold, answer);
        }
        let reversed = Relation {
            sides: answer.sides.iter().rev().cloned().collect(),
            signs: answer.signs.iter().rev().map(|sign| set::flipped(*sign)).collect(),
        };
        let sides = |judge: &mut Self, answer: &Relation| {
            if gold.signs != answer.signs || gold.sides.len() != answer.sides.len() {
                return different(DIFFER);
            }
            gold.sides.iter().zip(&answer.sides).try_for_each(|(a, b)| judge.same(a, b))
        };
        let forward = sides(self, answer);
        either(forward, || sides(self, &reversed))
    }

    /// left - right against zero, up to a positive factor.
    fn one_inequality(&mut self, gold: &Relation, answer: &Relation) -> Judged {
        const DIFFER: &str = "the inequalities differ";
        let (Some(a), Some(b)) = (difference(gold), difference(answer)) else {
            return if gold.signs == answer.signs {
                gold.sides.iter().zip(&answer.sides).try_for_each(|(a, b)| self.same(a, b))
            } else {
                different(DIFFER)
            };
        };
        // Both as "less than zero".
        let normal = |expr: Expr, sign: Sign| match sign {
            Sign::Greater | Sign::GreaterEqual => {
                (Expr::Product(vec![Expr::integer(-1), expr]), set::flipped(sign))
            }
            sign => (expr, sign),
        };
        let (a, b) = (normal(a, gold.signs[0]), normal(b, answer.signs[0]));
        if a.1 != b.1 {
            return different(DIFFER);
        }
        let (a, b, sign) = (a.0, b.0, a.1);
        let by_form = self.fuel.share(polynomial::SHARE, |fuel| Forms::new(fuel).proportional(&a, &b));
        if by_form == Some(false) {
            return different(DIFFER);
        }
        if by_form.is_none() {
            self.proportional(&a, &b)?;
        }
        // The factor must be positive: both have one sign at some point.
        let names = identity::variables(&[&a, &b]);
        for index in 0..4 {
            let point = identity::point(&names, &[], index);
            let Ok(values) =
                identity::values(&[&a, &b], &point, super::evaluate::Log::Natural, 192, &mut self.fuel)
            else {
                continue;
            };
            if let (Some(x), Some(y)) = (values[0].re.sign(), values[1].re.sign()) {
                return if x == y || sign == Sign::NotEqual { Ok(()) } else { different(DIFFER) };
            }
        }
        different(DIFFER)
    }
}

/// left - right.
fn difference(relation: &Relation) -> Option<Expr> {
    let [left, right] = &relation.sides[..] else { return None };
    let (left, right) = (expr(left)?, expr(right)?);
    Some(Expr::Sum(vec![left.clone(), Expr::Product(vec![Expr::integer(-1), right.clone()])]))
}

fn renamed(answer: &Answer, from: &str, to: &str) -> Answer {
    match answer {
        Answer::Value(Quantity { value, unit }) => {
            let value = replaced(value, from, &Expr::Symbol(to.to_owned()));
            Answer::Value(Quantity { value, unit: unit.clone() })
        }
        other => other.clone(),
    }
}

/// The expression with a variable replaced.
pub(super) fn replaced(expr: &Expr, name: &str, by: &Expr) -> Expr {
    let all = |parts: &[Expr]| parts.iter().map(|part| replaced(part, name, by)).collect();
    match expr {
        Expr::Symbol(symbol) if symbol == name => by.clone(),
        Expr::Sum(terms) => Expr::Sum(all(terms)),
        Expr::Product(factors) => Expr::Product(all(factors)),
        Expr::Power(base, exponent) => replaced(base, name, by).power(replaced(exponent, name, by)),
        Expr::Function(function, arguments) => Expr::Function(*function, all(arguments)),
        Expr::Apply(head, arguments) => Expr::Apply(head.clone(), all(arguments)),
        Expr::Matrix(rows) => Expr::Matrix(rows.iter().map(|row| all(row)).collect()),
        other => other.clone(),
    }
}

/// The name in `name = value`, to match the items of lists.
pub(super) fn named(answer: &Answer) -> Option<(&Answer, &Answer)> {
    match answer {
        Answer::Relation(relation) => assignment(relation).map(|(name, values)| (name, values[0])),
        _ => None,
    }
}
