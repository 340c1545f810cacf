//! Sets of real numbers as sorted pieces: intervals, points, their unions, and what inequalities in one
//! variable allow.

use std::cmp::Ordering;

use super::evaluate::{Log, Point};
use super::fuel::{Fuel, Judged, Why};
use super::real::{Calculator, Fail, Real};
use super::{exact, identity};
use crate::answer::{Answer, Bracket, Expr, Function, Quantity, Rational, Relation, Sign};

const DIGITS: usize = 256;
/// Unions of more pieces are not compared as sets.
const MAX_PIECES: usize = 400;
const TOO_MANY: Why = Why::Undecided("too large: pieces of a set");

/// The end of a piece.
#[derive(Clone, Debug)]
enum End {
    Below,
    At(Real),
    Above,
}

/// An end with whether it belongs to the piece. As a cut: just before or just behind a number.
#[derive(Clone, Debug)]
struct Cut {
    end: End,
    /// Behind the number rather than before it.
    behind: bool,
}

/// From one cut to another.
#[derive(Clone, Debug)]
struct Piece {
    low: Cut,
    high: Cut,
}

/// Sorted pieces that don't touch.
#[derive(Clone, Debug)]
pub(super) struct RealSet(Vec<Piece>);

/// The set of real numbers that an answer is; `None` if it is none.
pub(super) fn real_set(answer: &Answer, fuel: &mut Fuel) -> Judged<Option<RealSet>> {
    fuel.burn(2)?;
    match answer {
        Answer::Value(Quantity { value: Expr::Symbol(name), .. }) if name == "\\reals" => {
            Ok(Some(everything()))
        }
        Answer::Value(Quantity { value, .. }) => {
            points(std::slice::from_ref(&Answer::value(value.clone())), fuel)
        }
        Answer::Set(items) | Answer::Several(items) => points(items, fuel),
        Answer::Tuple(open, items, close) => interval(*open, items, *close, fuel),
        Answer::Text(text) => Ok(named(text)),
        Answer::Union(parts) => combine(parts, fuel, union),
        Answer::Intersection(parts) => combine(parts, fuel, |a, b, fuel| {
            let outside = union(complement(a), complement(b), fuel)?;
            Ok(complement(outside))
        }),
        Answer::Without(whole, part) => {
            let (Some(whole), Some(part)) = (real_set(whole, fuel)?, real_set(part, fuel)?) else {
                return Ok(None);
            };
            let outside = union(complement(whole), part, fuel)?;
            Ok(Some(complement(outside)))
        }
        Answer::Member(_, inside, set) => {
            let set = real_set(set, fuel)?;
            Ok(if *inside { set } else { set.map(complement) })
        }
        Answer::Relation(relation) => solve(relation, fuel),
        _ => Ok(None),
    }
}

/// Words for all numbers and for none.
fn named(text: &str) -> Option<RealSet> {
    match text {
        "all real numbers"
        | "all reals"
        | "real numbers"
        | "reals"
        | "all real"
        | "set of all real numbers"
        | "set of real numbers" => Some(everything()),
        "empty set" | "no solution" | "no solutions" | "no real solution" | "no real solutions" | "empty"
        | "no solution exists" | "no real roots" => Some(RealSet(Vec::new())),
        _ => None,
    }
}

fn everything() -> RealSet {
    let (low, high) = (Cut { end: End::Below, behind: true }, Cut { end: End::Above, behind: false });
    RealSet(vec![Piece { low, high }])
}

fn combine(
    parts: &[Answer],
    fuel: &mut Fuel,
    join: impl Fn(RealSet, RealSet, &mut Fuel) -> Judged<RealSet>,
) -> Judged<Option<RealSet>> {
    let mut total: Option<RealSet> = None;
    for part in parts {
        let Some(part) = real_set(part, fuel)? else { return Ok(None) };
        total = Some(match total {
            Some(total) => join(total, part, fuel)?,
            None => part,
        });
    }
    Ok(total)
}

fn points(items: &[Answer], fuel: &mut Fuel) -> Judged<Option<RealSet>> {
    let mut pieces = Vec::with_capacity(items.len());
    for item in items {
        let Answer::Value(Quantity { value, .. }) = item else { return Ok(None) };
        let Some(end @ End::At(_)) = end(value, fuel)? else { return Ok(None) };
        pieces.push(Piece { low: Cut { end: end.clone(), behind: false }, high: Cut { end, behind: true } });
    }
    Ok(Some(tidy(pieces, fuel)?))
}

fn interval(open: Bracket, items: &[Answer], close: Bracket, fuel: &mut Fuel) -> Judged<Option<RealSet>> {
    let [Answer::Value(low), Answer::Value(high)] = items else { return Ok(None) };
    if open == Bracket::Angle || close == Bracket::Angle {
        return Ok(None);
    }
    let (Some(low), Some(high)) = (end(&low.value, fuel)?, end(&high.value, fuel)?) else { return Ok(None) };
    let low = Cut { behind: open == Bracket::Round || matches!(low, End::Below), end: low };
    let high = Cut { behind: close == Bracket::Square && !matches!(high, End::Above), end: high };
    if compare(&low, &high, fuel)? != Ordering::Less {
        return Ok(None); // (5, 1) is a point
    }
    Ok(Some(RealSet(vec![Piece { low, high }])))
}

/// A real constant, or an infinity.
fn end(value: &Expr, fuel: &mut Fuel) -> Judged<Option<End>> {
    match identity::infinity_sign(value) {
        Some(true) => return Ok(Some(End::Above)),
        Some(false) => return Ok(Some(End::Below)),
        None => {}
    }
    Ok(real(value, &Vec::new(), fuel)?.map(End::At))
}

fn real(value: &Expr, point: &Point, fuel: &mut Fuel) -> Judged<Option<Real>> {
    match identity::values(&[value], point, Log::Natural, DIGITS, fuel) {
        Ok(values) if values[0].may_be_real() => Ok(Some(values[0].re.clone())),
        Ok(_) | Err(Fail::Undefined | Fail::Imprecise) => Ok(None),
        Err(Fail::Stop(why)) => Err(why),
    }
}

fn compare(a: &Cut, b: &Cut, fuel: &mut Fuel) -> Judged<Ordering> {
    let by_end = match (&a.end, &b.end) {
        (End::Below, End::Below) | (End::Above, End::Above) => Ordering::Equal,
        (End::Below, _) | (_, End::Above) => Ordering::Less,
        (End::Above, _) | (_, End::Below) => Ordering::Greater,
        (End::At(a), End::At(b)) => {
            let difference = Calculator::new(DIGITS, fuel).sub(a, b);
            match difference {
                Ok(difference) if difference.is_positive() => Ordering::Greater,
                Ok(difference) if difference.is_negative() => Ordering::Less,
                Ok(_) => Ordering::Equal, // within 2^-200 of their size
                Err(Fail::Stop(why)) => return Err(why),
                Err(_) => Ordering::Equal,
            }
        }
    };
    Ok(by_end.then(a.behind.cmp(&b.behind)))
}

/// Sorted and joined where they touch or overlap.
fn tidy(pieces: Vec<Piece>, fuel: &mut Fuel) -> Judged<RealSet> {
    if pieces.len() > MAX_PIECES {
        return Err(TOO_MANY);
    }
    let mut sorted: Vec<Piece> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let mut at = sorted.len();
        while at > 0 && compare(&piece.low, &sorted[at - 1].low, fuel)? == Ordering::Less {
            at -= 1;
        }
        sorted.insert(at, piece);
    }
    let mut out: Vec<Piece> = Vec::with_capacity(sorted.len());
    for piece in sorted {
        match out.last_mut() {
            Some(last) if compare(&piece.low, &last.high, fuel)? != Ordering::Greater => {
                if compare(&piece.high, &last.high, fuel)? == Ordering::Greater {
                    last.high = piece.high;
                }
            }
            _ => out.push(piece),
        }
    }
    Ok(RealSet(out))
}

fn union(a: RealSet, b: RealSet, fuel: &mut Fuel) -> Judged<RealSet> {
    tidy(a.0.into_iter().chain(b.0).collect(), fuel)
}

fn complement(set: RealSet) -> RealSet {
    let mut low = Cut { end: End::Below, behind: true };
    let mut out = Vec::with_capacity(set.0.len() + 1);
    for piece in set.0 {
        if !matches!(piece.low.end, End::Below) {
            out.push(Piece { low, high: piece.low });
        }
        low = piece.high;
    }
    if !matches!(low.end, End::Above) {
        out.push(Piece { low, high: Cut { end: End::Above, behind: false } });
    }
    RealSet(out)
}

/// Says whether two sets have the same pieces.
pub(super) fn same(a: &RealSet, b: &RealSet, fuel: &mut Fuel) -> Judged<bool> {
    if a.0.len() != b.0.len() {
        return Ok(false);
    }
    for (a, b) in a.0.iter().zip(&b.0) {
        if compare(&a.low, &b.low, fuel)? != Ordering::Equal
            || compare(&a.high, &b.high, fuel)? != Ordering::Equal
        {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The one variable of a relation or membership, or of conditions that share it.
pub(super) fn variable(answer: &Answer) -> Option<String> {
    let mut names = match answer {
        Answer::Relation(relation) => {
            let sides: Vec<&Expr> = relation.sides.iter().filter_map(plain).collect();
            identity::variables(&sides)
        }
        Answer::Member(element, ..) => identity::variables(&[element]),
        Answer::Union(parts) | Answer::Intersection(parts) => parts.iter().filter_map(variable).collect(),
        _ => return None,
    };
    names.sort();
    names.dedup();
    if names.len() == 1 { names.pop() } else { None }
}

fn plain(answer: &Answer) -> Option<&Expr> {
    match answer {
        Answer::Value(Quantity { value, .. }) => Some(value),
        _ => None,
    }
}

/// The solutions of a chain of inequalities in one variable, each side of which is linear in it.
fn solve(relation: &Relation, fuel: &mut Fuel) -> Judged<Option<RealSet>> {
    let sides: Option<Vec<&Expr>> = relation.sides.iter().map(plain).collect();
    let Some(sides) = sides else { return Ok(None) };
    let [name] = &identity::variables(&sides)[..] else { return Ok(None) };
    let mut total = everything();
    for (i, sign) in relation.signs.iter().enumerate() {
        let Some(part) = solve_one(sides[i], *sign, sides[i + 1], name, fuel)? else { return Ok(None) };
        let outside = union(complement(total), complement(part), fuel)?;
        total = complement(outside);
    }
    Ok(Some(total))
}

fn solve_one(left: &Expr, sign: Sign, right: &Expr, name: &str, fuel: &mut Fuel) -> Judged<Option<RealSet>> {
    if let Some((sign, infinity)) = unbounded(left, sign, right) {
        // x < infinity says nothing.
        let trivial = infinity == matches!(sign, Sign::Less | Sign::LessEqual);
        return Ok(trivial.then(everything));
    }
    if let Some((inner, bound, sign)) = absolute(left, sign, right) {
        return solve_absolute(inner, bound, sign, name, fuel);
    }
    let difference = Expr::Sum(vec![left.clone(), right.clone().negated()]);
    let Some((slope, root)) = linear(&difference, name, fuel)? else { return Ok(None) };
    // slope * (x - root) <sign> 0
    let sign = if slope == Ordering::Less { flipped(sign) } else { sign };
    let cut = |behind| Cut { end: End::At(root.clone()), behind };
    let (below, above) = (Cut { end: End::Below, behind: true }, Cut { end: End::Above, behind: false });
    Ok(Some(RealSet(match sign {
        Sign::Less => vec![Piece { low: below, high: cut(false) }],
        Sign::LessEqual => vec![Piece { low: below, high: cut(true) }],
        Sign::Greater => vec![Piece { low: cut(true), high: above }],
        Sign::GreaterEqual => vec![Piece { low: cut(false), high: above }],
        Sign::Equal | Sign::Near => vec![Piece { low: cut(false), high: cut(true) }],
        Sign::NotEqual => vec![Piece { low: below, high: cut(false) }, Piece { low: cut(true), high: above }],
    })))
}

/// `|x - 2| < 3`, from either side.
fn absolute<'e>(left: &'e Expr, sign: Sign, right: &'e Expr) -> Option<(&'e Expr, &'e Expr, Sign)> {
    let inside = |side: &'e Expr| match side {
        Expr::Function(Function::Abs, inner) => inner.first(),
        _ => None,
    };
    let constant = |side: &Expr| identity::variables(&[side]).is_empty();
    match (inside(left), inside(right)) {
        (Some(inner), _) if constant(right) => Some((inner, right, sign)),
        (_, Some(inner)) if constant(left) => Some((inner, left, flipped(sign))),
        _ => None,
    }
}

/// |a| < b is -b < a < b, and |a| > b is a > b or a < -b.
fn solve_absolute(
    inner: &Expr,
    bound: &Expr,
    sign: Sign,
    name: &str,
    fuel: &mut Fuel,
) -> Judged<Option<RealSet>> {
    let low = bound.clone().negated();
    let upper = solve_one(inner, sign, bound, name, fuel)?;
    let lower = solve_one(inner, flipped(sign), &low, name, fuel)?;
    let (Some(upper), Some(lower)) = (upper, lower) else { return Ok(None) };
    if matches!(sign, Sign::Less | Sign::LessEqual | Sign::NotEqual) {
        let outside = union(complement(upper), complement(lower), fuel)?;
        return Ok(Some(complement(outside)));
    }
    union(upper, lower, fuel).map(Some)
}

/// With an infinity on one side: the sign seen from the other side, and which infinity.
fn unbounded(left: &Expr, sign: Sign, right: &Expr) -> Option<(Sign, bool)> {
    let infinity = identity::infinity_sign(right).map(|up| (sign, up));
    infinity.or_else(|| identity::infinity_sign(left).map(|up| (flipped(sign), up)))
}

pub(super) fn flipped(sign: Sign) -> Sign {
    match sign {
        Sign::Less => Sign::Greater,
        Sign::LessEqual => Sign::GreaterEqual,
        Sign::Greater => Sign::Less,
        Sign::GreaterEqual => Sign::LessEqual,
        other => other,
    }
}

/// The sign of the slope and the root of an expression that is linear in a variable, found from its
/// values and checked at two more points.
fn linear(expr: &Expr, name: &str, fuel: &mut Fuel) -> Judged<Option<(Ordering, Real)>> {
    let mut at = |x: i32| real(expr, &vec![(name.to_owned(), Rational::from(x))], fuel);
    let (Some(zero), Some(one)) = (at(0)?, at(1)?) else { return Ok(None) };
    let (Some(far), Some(near)) = (at(-1001)?, at(37)?) else { return Ok(None) };
    let mut calculator = Calculator::new(DIGITS, fuel);
    let find = || {
        let slope = calculator.sub(&one, &zero)?;
        for (x, value) in [(-1001, far), (37, near)] {
            let step = calculator.mul(&slope, &Real::integer(x))?;
            let expected = calculator.add(&zero, &step)?;
            if !calculator.sub(&expected, &value)?.may_be_zero() {
                return Err(Fail::Undefined);
            }
        }
        let root = calculator.div(&zero.neg(), &slope)?;
        Ok((slope.sign(), root))
    };
    match find() {
        Ok((Some(slope), root)) if slope != Ordering::Equal => Ok(Some((slope, root))),
        Ok(_) | Err(Fail::Undefined | Fail::Imprecise) => Ok(None),
        Err(Fail::Stop(why)) => Err(why),
    }
}

/// Is the answer a set by its form, not only by what it is compared with?
pub(super) fn is_set(answer: &Answer) -> bool {
    match answer {
        Answer::Union(_)
        | Answer::Intersection(_)
        | Answer::Without(..)
        | Answer::Member(..)
        | Answer::Set(_) => true,
        Answer::Tuple(open, items, close) => {
            items.len() == 2 && (*open, *close) != (Bracket::Angle, Bracket::Angle)
        }
        Answer::Relation(relation) => {
            relation.signs.iter().all(|sign| !matches!(sign, Sign::Equal | Sign::Near))
        }
        Answer::Value(Quantity { value: Expr::Symbol(name), .. }) => name == "\\reals",
        Answer::Text(text) => named(text).is_some(),
        _ => false,
    }
}

/// Is it an exact integer or fraction? Such items of lists can be sorted.
pub(super) fn key(answer: &Answer, fuel: &mut Fuel) -> Judged<Option<Rational>> {
    match answer {
        Answer::Value(Quantity { value, unit: None }) => exact::rational(value, fuel),
        _ => Ok(None),
    }
}
