//! Units behind a value: which tokens are a unit, and what it measures.

use dashu_int::{IBig, UBig};

use super::token::{Kind, Token};
use crate::answer::{Dimension, Rational, Unit};

/// Splits the unit off the end of a value's tokens.
pub(super) fn peel<'t, 'a>(tokens: &'t [Token<'a>], source: &str) -> (&'t [Token<'a>], Option<Unit>) {
    if let Some(found) = percent(tokens) {
        return (found, Some(Unit::Percent));
    }
    let start = start_of_unit(tokens);
    if start == tokens.len() || start == 0 {
        return (tokens, None);
    }
    let phrase = &source[tokens[start].start..tokens[tokens.len() - 1].end];
    (&tokens[..start], Some(read(phrase)))
}

fn percent<'t, 'a>(tokens: &'t [Token<'a>]) -> Option<&'t [Token<'a>]> {
    let (last, head) = tokens.split_last()?;
    let is_percent = match last.kind {
        Kind::Mark('%') => true,
        Kind::Word(word) | Kind::Text(word) => {
            matches!(word.to_lowercase().as_str(), "percent" | "pct" | "percentage" | "per cent" | "percents")
        }
        _ => false,
    };
    (is_percent && !head.is_empty()).then_some(head)
}

/// Where the words that end the tokens begin. A power or a quotient of units belongs to them.
fn start_of_unit(tokens: &[Token<'_>]) -> usize {
    let mut start = tokens.len();
    let mut at = tokens.len();
    let mut words = 0;
    while at > 0 {
        let token = &tokens[at - 1];
        let previous = at.checked_sub(2).map(|i| tokens[i].kind);
        match token.kind {
            Kind::Text(text) if !is_value(text) => {
                words += 1;
                start = at - 1;
            }
            Kind::Word(word) if is_unit_word(word, token, previous) => {
                words += 1;
                start = at - 1;
            }
            // cm^2, cm^{3}, km/h, and layout between them
            Kind::Digits(power) if power.len() == 1 && previous == Some(Kind::Mark('^')) => {}
            Kind::Mark('^' | '{' | '}' | '/' | '.' | '*' | ')' | '(') => {}
            Kind::Digits(power) if power.len() == 1 && at > 1 && previous == Some(Kind::Mark('{')) => {}
            _ => break,
        }
        at -= 1;
    }
    // What was passed before the first word is no unit.
    if words == 0 || words > 8 { tokens.len() } else { start }
}

/// `\text{5}` and the like are values.
fn is_value(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_digit() || c == '.' || c == ',')
}

fn is_unit_word(word: &str, token: &Token<'_>, previous: Option<Kind<'_>>) -> bool {
    let after_value = matches!(
        previous,
        Some(
            Kind::Digits(_)
                | Kind::Grouped(_)
                | Kind::Mark('}' | ')' | '/' | '°' | '^')
                | Kind::Vulgar(..)
                | Kind::Word(_)
                | Kind::Text(_)
                | Kind::Command("pi")
        )
    );
    if !after_value || super::names::function(word).is_some() || super::names::constant(word).is_some() {
        return false;
    }
    if matches!(
        word,
        "choose"
            | "mod"
            | "or"
            | "and"
            | "is"
            | "if"
            | "to"
            | "sqrt"
            | "remainder"
            | "plus"
            | "minus"
            | "times"
            | "not"
            | "factorial"
            | "over"
    ) {
        return false;
    }
    let known = find(word).is_some() && word.chars().count() > 1;
    let long = word.chars().count() >= 3 && token.spaced && !is_variables(word);
    // "miles in a day"; "2 a" is a product.
    let between =
        matches!(previous, Some(Kind::Word(_) | Kind::Text(_))) && matches!(word, "in" | "a" | "an" | "the");
    let link = (matches!(word, "per" | "of") || between) && token.spaced;
    known || long || link || word.chars().count() >= 5
}

/// Short runs of typical variables are a product: `2 xyz`.
fn is_variables(word: &str) -> bool {
    word.chars().count() <= 4
        && word.chars().all(|c| "abcdnmkpqrstuvwxyz".contains(c))
        && !word.contains("ar")
        && find(word).is_none()
        && !word.chars().any(|c| "aeiou".contains(c) && word.len() > 3)
}

/// Is this one letter a unit when it stands in `\text{}` or `\mathrm{}` behind a number?
pub(super) fn is_single(word: &str) -> bool {
    matches!(word, "m" | "s" | "g" | "h" | "L" | "l" | "N" | "J" | "W" | "V" | "K" | "C" | "F" | "A")
}

/// Has the unit a known size?
pub(super) fn is_known(phrase: &str) -> bool {
    matches!(read(phrase), Unit::Known { .. })
}

/// What a unit phrase measures.
pub(super) fn read(phrase: &str) -> Unit {
    let words = clean(phrase);
    match words.as_str() {
        "degree" | "degrees" | "deg" | "degs" => return Unit::Degree,
        _ => {}
    }
    match known(&words) {
        Some((dimension, size)) => Unit::Known { dimension, size },
        None => Unit::Words(words),
    }
}

/// Lower-case letters are kept as they are; layout and commands go.
fn clean(phrase: &str) -> String {
    let mut text = String::with_capacity(phrase.len());
    let mut rest = phrase;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '\\' => {
                let letters = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
                let skip = if letters == 0 { rest.chars().next().map_or(0, char::len_utf8) } else { letters };
                rest = &rest[skip..];
                text.push(' ');
            }
            '{' | '}' | '~' | '$' | '(' | ')' => text.push(' '),
            '²' => text.push_str("^2"),
            '³' => text.push_str("^3"),
            c => text.push(c),
        }
    }
    let tight = text.replace(" ^", "^").replace("^ ", "^").replace(" / ", "/");
    let words: Vec<&str> = tight.split_whitespace().collect();
    words.join(" ").trim_end_matches(['.', ',', ';']).to_owned()
}

/// Dimension and size of `cm^2`, `square feet`, `km/h`, `miles per hour`, `dollars per day`.
fn known(words: &str) -> Option<(Dimension, Rational)> {
    if let Some((top, bottom)) = words.split_once(" per ").or_else(|| words.split_once('/')) {
        let (top, bottom) = (known(top.trim())?, known(bottom.trim())?);
        return Some((divide(top.0, bottom.0), top.1 / bottom.1));
    }
    for (prefix, power) in [("square ", 2), ("sq ", 2), ("sq. ", 2), ("cubic ", 3), ("cu ", 3), ("cu. ", 3)] {
        if let Some(unit) = words.strip_prefix(prefix) {
            return known(unit).map(|unit| raise(unit, power));
        }
    }
    if let Some((unit, power)) = words.split_once('^') {
        return Some(raise(known(unit)?, power.parse().ok().filter(|p| (1..=4).contains(p))?));
    }
    find(words)
}

fn divide(a: Dimension, b: Dimension) -> Dimension {
    let money = a.money.or(b.money);
    Dimension { length: a.length - b.length, mass: a.mass - b.mass, time: a.time - b.time, money }
}

fn raise((dimension, size): (Dimension, Rational), power: u8) -> (Dimension, Rational) {
    let n = power as i8;
    let Dimension { length, mass, time, money } = dimension;
    let times = |x: i8| x.saturating_mul(n);
    (Dimension { length: times(length), mass: times(mass), time: times(time), money }, size.pow(power.into()))
}

/// One unit by its name.
fn find(word: &str) -> Option<(Dimension, Rational)> {
    const LENGTH: Dimension = Dimension { length: 1, mass: 0, time: 0, money: None };
    const VOLUME: Dimension = Dimension { length: 3, mass: 0, time: 0, money: None };
    const MASS: Dimension = Dimension { length: 0, mass: 1, time: 0, money: None };
    const TIME: Dimension = Dimension { length: 0, mass: 0, time: 1, money: None };
    const SPEED: Dimension = Dimension { length: 1, mass: 0, time: -1, money: None };
    let money = |sign| Dimension { money: Some(sign), ..Dimension::default() };
    let word = word.trim_end_matches('.');
    let (dimension, top, bottom) = match word {
        "mm" | "millimeter" | "millimeters" | "millimetres" => (LENGTH, 1, 1000),
        "cm" | "cms" | "centimeter" | "centimeters" | "centimetre" | "centimetres" => (LENGTH, 1, 100),
        "dm" | "decimeters" => (LENGTH, 1, 10),
        "m" | "meter" | "meters" | "metre" | "metres" => (LENGTH, 1, 1),
        "km" | "kilometer" | "kilometers" | "kilometre" | "kilometres" | "kms" => (LENGTH, 1000, 1),
        "inch" | "inches" | "in" => (LENGTH, 254, 10000),
        "foot" | "feet" | "ft" => (LENGTH, 3048, 10000),
        "yard" | "yards" | "yd" | "yds" => (LENGTH, 9144, 10000),
        "mile" | "miles" | "mi" => (LENGTH, 1_609_344, 1000),
        "L" | "l" | "liter" | "liters" | "litre" | "litres" => (VOLUME, 1, 1000),
        "mL" | "ml" | "milliliters" | "millilitres" | "cc" => (VOLUME, 1, 1_000_000),
        "mg" | "milligrams" => (MASS, 1, 1_000_000),
        "g" | "gram" | "grams" | "gm" => (MASS, 1, 1000),
        "kg" | "kgs" | "kilogram" | "kilograms" | "kilos" => (MASS, 1, 1),
        "lb" | "lbs" | "pound" | "pounds" => (MASS, 45_359_237, 100_000_000),
        "oz" | "ounce" | "ounces" => (MASS, 45_359_237, 1_600_000_000),
        "ton" | "tons" | "tonnes" => return None, // several sizes
        "s" | "sec" | "secs" | "second" | "seconds" => (TIME, 1, 1),
        "min" | "mins" | "minute" | "minutes" => (TIME, 60, 1),
        "h" | "hr" | "hrs" | "hour" | "hours" => (TIME, 3600, 1),
        "day" | "days" => (TIME, 86400, 1),
        "week" | "weeks" => (TIME, 604_800, 1),
        "mph" => (SPEED, 1_609_344, 3_600_000),
        "kph" | "kmh" => (SPEED, 1000, 3600),
        "$" | "dollar" | "dollars" | "USD" | "usd" => (money('$'), 1, 1),
        "cent" | "cents" | "¢" => (money('$'), 1, 100),
        "€" | "euro" | "euros" | "EUR" => (money('€'), 1, 1),
        "£" | "GBP" => (money('£'), 1, 1),
        "¥" | "yen" | "yuan" | "JPY" | "CNY" => (money('¥'), 1, 1),
        "₹" | "rupees" | "rupee" | "Rs" | "INR" => (money('₹'), 1, 1),
        _ => return None,
    };
    Some((dimension, Rational::from_parts(IBig::from(top), UBig::from(bottom as u32))))
}

/// The unit of a currency sign.
pub(super) fn currency(sign: char) -> Option<Unit> {
    if !matches!(sign, '$' | '€' | '£' | '¥' | '₹') {
        return None;
    }
    let (dimension, size) = find(sign.encode_utf8(&mut [0; 4]))?;
    Some(Unit::Known { dimension, size })
}
