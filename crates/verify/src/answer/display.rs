//! The tree as text, for reports: plain, unambiguous, not LaTeX.

use std::fmt::{self, Display, Formatter};

use super::{Answer, Bracket, Constant, Expr, HalfDay, Quantity, Relation, Sign, Unit};

fn join<T: Display>(f: &mut Formatter<'_>, items: &[T], separator: &str) -> fmt::Result {
    for (i, item) in items.iter().enumerate() {
        write!(f, "{}{item}", if i == 0 { "" } else { separator })?;
    }
    Ok(())
}

fn wrap<T: Display>(
    f: &mut Formatter<'_>,
    open: &str,
    items: &[T],
    separator: &str,
    close: &str,
) -> fmt::Result {
    f.write_str(open)?;
    join(f, items, separator)?;
    f.write_str(close)
}

impl Display for Answer {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Answer::Value(quantity) => quantity.fmt(f),
            Answer::Text(text) => write!(f, "\"{text}\""),
            Answer::Choice(letter, content) => write!(f, "({letter}) {content}"),
            Answer::Tuple(open, items, close) => wrap(f, open.open(), items, ", ", close.close()),
            Answer::Set(items) => wrap(f, "{", items, ", ", "}"),
            Answer::Several(items) => join(f, items, "; "),
            Answer::Union(items) => join(f, items, " ∪ "),
            Answer::Intersection(items) => join(f, items, " ∩ "),
            Answer::Without(whole, part) => write!(f, "{whole} \\ {part}"),
            Answer::Relation(relation) => relation.fmt(f),
            Answer::Member(element, inside, set) => {
                write!(f, "{element} {} {set}", if *inside { '∈' } else { '∉' })
            }
            Answer::Time(seconds, half) => {
                write!(f, "{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)?;
                f.write_str(match half {
                    Some(HalfDay::Am) => " am",
                    Some(HalfDay::Pm) => " pm",
                    None => "",
                })
            }
            Answer::Ratio(parts) => join(f, parts, " : "),
            Answer::Either(readings) => join(f, readings, " | "),
        }
    }
}

impl Display for Quantity {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)?;
        match &self.unit {
            None => Ok(()),
            Some(Unit::Percent) => f.write_str("%"),
            Some(Unit::Degree) => f.write_str("°"),
            Some(Unit::Base(base)) => write!(f, " in base {base}"),
            Some(Unit::Words(words)) => write!(f, " {words}"),
            Some(Unit::Known { dimension, size }) => {
                write!(f, " × {size}")?;
                let powers = [(dimension.length, "m"), (dimension.mass, "kg"), (dimension.time, "s")];
                for (power, name) in powers.into_iter().filter(|(power, _)| *power != 0) {
                    write!(f, " {name}^{power}")?;
                }
                dimension.money.map_or(Ok(()), |sign| write!(f, " {sign}"))
            }
        }
    }
}

impl Bracket {
    fn open(self) -> &'static str {
        match self {
            Bracket::Round => "(",
            Bracket::Square => "[",
            Bracket::Angle => "⟨",
        }
    }

    fn close(self) -> &'static str {
        match self {
            Bracket::Round => ")",
            Bracket::Square => "]",
            Bracket::Angle => "⟩",
        }
    }
}

impl Display for Relation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (i, side) in self.sides.iter().enumerate() {
            if let Some(sign) = i.checked_sub(1).and_then(|i| self.signs.get(i)) {
                write!(f, " {sign} ")?;
            }
            side.fmt(f)?;
        }
        Ok(())
    }
}

impl Display for Sign {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Sign::Equal => "=",
            Sign::Near => "≈",
            Sign::NotEqual => "≠",
            Sign::Less => "<",
            Sign::LessEqual => "≤",
            Sign::Greater => ">",
            Sign::GreaterEqual => "≥",
        })
    }
}

impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Expr::Number(value) if value.is_int() && value.sign() == dashu_base::Sign::Positive => {
                value.fmt(f)
            }
            Expr::Number(value) => write!(f, "({value})"),
            Expr::Decimal(value, places) => write!(f, "{}", super::decimal(value, *places)),
            Expr::Symbol(name) => f.write_str(name),
            Expr::Constant(constant) => constant.fmt(f),
            Expr::Sum(terms) => wrap(f, "(", terms, " + ", ")"),
            Expr::Product(factors) => wrap(f, "(", factors, "·", ")"),
            Expr::Power(base, exponent) => write!(f, "{base}^{exponent}"),
            Expr::Function(function, arguments) => wrap(f, &format!("{function:?}("), arguments, ", ", ")"),
            Expr::Apply(name, arguments) => wrap(f, &format!("{name}("), arguments, ", ", ")"),
            Expr::Matrix(rows) => {
                f.write_str("[")?;
                for row in rows {
                    wrap(f, "[", row, ", ", "]")?;
                }
                f.write_str("]")
            }
        }
    }
}

impl Display for Constant {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Constant::Pi => "π",
            Constant::E => "e",
            Constant::I => "i",
            Constant::Infinity => "∞",
            Constant::Degree => "°",
        })
    }
}
