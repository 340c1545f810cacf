//! What holds for all answers: reflexive, symmetric, blind to spacing and to sizes of brackets.

use parallel_r1_verify::answer::Answer;
use parallel_r1_verify::{Verdict, equal, group, parse};
use proptest::prelude::*;

/// Numbers and expressions of all kinds.
fn expression() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        (-99i32..99).prop_map(|n| n.to_string()),
        (0u32..999, 0u32..99).prop_map(|(a, b)| format!("{a}.{b:02}")),
        (1i32..99, 1i32..99).prop_map(|(a, b)| format!("\\frac{{{a}}}{{{b}}}")),
        "[a-dk-z]",
        (2u32..60).prop_map(|n| format!("\\sqrt{{{n}}}")),
        Just("\\pi".to_owned()),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a} + {b}")),
            (inner.clone(), inner.clone())
                .prop_map(|(a, b)| format!("\\left({a}\\right) \\cdot \\left({b}\\right)")),
            (inner.clone(), 1u32..5).prop_map(|(a, n)| format!("\\left({a}\\right)^{{{n}}}")),
            (inner.clone(), 2u32..30).prop_map(|(a, b)| format!("\\frac{{{a}}}{{{b}}}")),
            inner.prop_map(|a| format!("\\sin\\left({a}\\right)")),
        ]
    })
}

fn answer() -> impl Strategy<Value = String> {
    let item = || prop::collection::vec(expression(), 2..4).prop_map(|items| items.join(", "));
    prop_oneof![
        4 => expression(),
        1 => item(),
        1 => item().prop_map(|items| format!("\\left({items}\\right)")),
        1 => item().prop_map(|items| format!("\\{{{items}\\}}")),
        1 => (-50i32..0, 1i32..50).prop_map(|(a, b)| format!("\\left[{a}, {b}\\right)")),
        1 => (expression(), expression()).prop_map(|(a, b)| format!("{a} = {b}")),
        1 => (-50i32..50).prop_map(|a| format!("x < {a}")),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn an_answer_equals_itself(text in answer()) {
        prop_assert_eq!(equal(&text, &text), Verdict::Correct);
    }

    #[test]
    fn spacing_and_sizes_of_brackets_do_not_matter(text in answer()) {
        let plain = text.replace("\\left", "").replace("\\right", "");
        prop_assert_eq!(equal(&text, &plain), Verdict::Correct);
        let wide = text.replace(" + ", "  \\,+\\; ").replace(", ", " ,\\quad ").replace("{", "{ ");
        prop_assert_eq!(equal(&text, &wide), Verdict::Correct, "{}", wide);
        let tight = text.replace(" + ", "+").replace(" \\cdot ", "\\cdot");
        prop_assert_eq!(equal(&text, &tight), Verdict::Correct);
    }

    #[test]
    fn values_are_compared_alike_in_both_directions(a in expression(), b in expression()) {
        prop_assert_eq!(equal(&a, &b), equal(&b, &a));
    }

    #[test]
    fn one_more_is_another_number(text in expression()) {
        prop_assert_eq!(equal(&text, &format!("{text} + 1")), Verdict::Incorrect);
    }

    #[test]
    fn sums_commute_and_products_distribute(a in expression(), b in expression(), c in expression()) {
        prop_assert_eq!(equal(&format!("{a} + {b}"), &format!("({b}) + ({a})")), Verdict::Correct);
        let (left, right) = (format!("({a})(({b}) + ({c}))"), format!("({a})({b}) + ({a})({c})"));
        prop_assert_ne!(equal(&left, &right), Verdict::Incorrect);
    }

    #[test]
    fn votes_group_what_is_equal(a in expression(), b in expression()) {
        let classes = group(&[&a, &b, &a]);
        prop_assert_eq!(classes[0], classes[2]);
        prop_assert_eq!(classes[1] == classes[0], equal(&a, &b) == Verdict::Correct);
    }

    #[test]
    fn reading_never_panics(text in TEXT) {
        if let Ok(answer) = parse::answer(&text) {
            let shown = answer.to_string();
            prop_assert!(!shown.is_empty() || matches!(answer, Answer::Several(_)));
        }
    }

    #[test]
    fn comparing_never_panics(a in TEXT, b in TEXT) {
        equal(&a, &b);
        equal(&a, &a);
    }
}

const TEXT: &str = "(\\PC|\\\\(frac|sqrt|sin|log|left|right|text|binom|begin|end|pm|cup|in|le|ne|circ|infty|overline|pi|boxed|pmod|operatorname|mathrm|,|!|\\{|\\}|\\\\)|[-+*/^_=<>!|:;,.(){}\\[\\]0-9xyzei %$&]|and|or|pmatrix|cm|12){0,30}";
