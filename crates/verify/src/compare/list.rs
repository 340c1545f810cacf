//! Lists and sets: equal if their items match one to one, whatever their order.

use super::fuel::{Judged, Why, different};
use super::{Judge, relation, set};
use crate::answer::{Answer, Bracket, Relation, Sign};

const DIFFER: &str = "the items differ";

impl Judge<'_> {
    /// Matches items. If repetition counts, one to one; else each has a partner.
    pub(super) fn lists(&mut self, gold: &[Answer], answer: &[Answer], repeats: bool) -> Judged {
        let (gold, answer) = (spread(gold), spread(answer));
        if repeats && gold.len() != answer.len() {
            return different("the numbers of items differ");
        }
        if one_side_named(&gold, &answer) {
            // a = 1, b = 2 against 1, 2: the order says which is which.
            return self.in_order(&gold, &answer);
        }
        if let Some(judged) = self.sorted(&gold, &answer, repeats)? {
            return if judged { Ok(()) } else { different(DIFFER) };
        }
        if repeats {
            self.one_to_one(&gold, &answer)
        } else {
            self.each_in(&gold, &answer)?;
            self.each_in(&answer, &gold)
        }
    }

    /// Rational items are compared in order of size; `None` if there are others.
    fn sorted(&mut self, gold: &[Answer], answer: &[Answer], repeats: bool) -> Judged<Option<bool>> {
        let mut sides = Vec::with_capacity(2);
        for items in [gold, answer] {
            let mut keys = Vec::with_capacity(items.len());
            for item in items {
                match set::key(item, &mut self.fuel)? {
                    Some(key) => keys.push(key),
                    None => return Ok(None),
                }
            }
            keys.sort();
            if !repeats {
                keys.dedup();
            }
            sides.push(keys);
        }
        // Unequal ones may still be decimals that round.
        Ok((sides[0] == sides[1]).then_some(true))
    }

    fn one_to_one(&mut self, gold: &[Answer], answer: &[Answer]) -> Judged {
        let mut free: Vec<usize> = (0..answer.len()).collect();
        let mut undecided = None;
        for (i, item) in gold.iter().enumerate() {
            // The same place first: lists are often in one order.
            let place = free.binary_search(&i).unwrap_or(0);
            let mut found = None;
            for at in std::iter::once(place).chain(0..free.len()) {
                match self.is_same(item, &answer[free[at]]) {
                    Ok(true) => {
                        found = Some(at);
                        break;
                    }
                    Ok(false) => {}
                    Err(Why::Undecided(reason)) => undecided = Some(reason),
                    Err(why) => return Err(why),
                }
            }
            match (found, undecided) {
                (Some(at), _) => {
                    free.remove(at);
                }
                (None, Some(reason)) => return Err(Why::Undecided(reason)),
                (None, None) => return different(DIFFER),
            }
        }
        Ok(())
    }

    fn each_in(&mut self, items: &[Answer], others: &[Answer]) -> Judged {
        for item in items {
            let mut found = false;
            for other in others {
                if self.is_same(item, other)? {
                    found = true;
                    break;
                }
            }
            if !found {
                return different(DIFFER);
            }
        }
        Ok(())
    }
}

/// `(x, y) = (1, 2)` is `x = 1, y = 2`.
fn spread(items: &[Answer]) -> Vec<Answer> {
    let [Answer::Relation(Relation { sides, signs })] = items else { return items.to_vec() };
    match (&sides[..], &signs[..]) {
        (
            [Answer::Tuple(Bracket::Round, names, _), Answer::Tuple(Bracket::Round, values, _)],
            [Sign::Equal],
        ) if names.len() == values.len() => names
            .iter()
            .zip(values)
            .map(|(name, value)| {
                Answer::Relation(Relation {
                    sides: vec![name.clone(), value.clone()],
                    signs: vec![Sign::Equal],
                })
            })
            .collect(),
        _ => items.to_vec(),
    }
}

/// One side names its items with different names, the other names none.
fn one_side_named(a: &[Answer], b: &[Answer]) -> bool {
    let names = |items: &[Answer]| {
        let names: Option<Vec<String>> =
            items.iter().map(|item| relation::named(item).map(|(name, _)| name.to_string())).collect();
        names.is_some_and(|mut names| {
            names.sort();
            names.dedup();
            names.len() == items.len() && names.len() > 1
        })
    };
    let unnamed = |items: &[Answer]| items.iter().all(|item| relation::named(item).is_none());
    names(a) && unnamed(b) || names(b) && unnamed(a)
}
