//! Whole responses against golds.

use proptest::prelude::*;

use super::*;

#[test]
fn accepts_what_is_equal() {
    for (gold, response) in [
        ("72", "So she sold 48 + 24 = 72 clips.\n#### 72"),
        ("1234", "The answer is $1{,}234$."),
        ("\\frac{1}{2}", "Thus we get \\boxed{0.5}."),
        ("\\frac12", "\\boxed{\\dfrac{2}{4}}"),
        ("18", "**Final Answer:** $18.00 per day"),
        ("3.5", "Hence the value is $3\\frac{1}{2}$."),
        ("-10/9", "-\\frac{10}{9}"),
        ("28\\%", "About 28 percent"),
        ("90^\\circ", "the angle is $\\boxed{90}$ degrees"),
        ("\\left( 3, \\frac{\\pi}{2} \\right)", "we find $\\boxed{(3,\\frac{\\pi}{2})}$"),
        ("(0.5,1]", "\\boxed{\\left(\\tfrac12, 1\\right]}"),
        ("\\text{Evelyn}", "The fastest one is \\boxed{\\text{evelyn}}."),
        ("(C)", "The answer is C."),
        ("k = 7", "Answer: 7"),
        ("We add: $20+22=42$. The answer is $\\boxed{42}$.", "42"),
        ("\\{2,1\\}", "\\boxed{\\{1, 2\\}}"),
        ("1, -2", "\\boxed{-2} and \\boxed{1}"),
        ("12", "**Answer:** B) 12"),
    ] {
        let report = verify_with(gold, response, &Options::default());
        assert_eq!(report.verdict, Verdict::Correct, "{gold} / {response}: {report:?}");
    }
}

#[test]
fn refuses_what_differs() {
    for (gold, response) in [
        ("72", "The answer is 71, not 72 as some say."),
        ("2", "AZYUK2A"),
        ("12:00", "\\boxed{1:00}"),
        ("(0,1)", "\\boxed{(1,0)}"),
        ("(0,1)", "\\boxed{[0,1]}"),
        ("2", "\\boxed{2x}"),
        ("2", "\\boxed{2\\pi}"),
        ("0.333", "\\frac{1}{3}"),
        ("5", "Put the answer in \\boxed{}."),
        ("5", "The answer is 3 or 5."),
        ("5", "\\boxed{3} or \\boxed{5}"),
        ("2", "The result is 2√5."),
        ("5", ""),
    ] {
        let report = verify_with(gold, response, &Options::default());
        assert_eq!(report.verdict, Verdict::Incorrect, "{gold} / {response}: {report:?}");
    }
}

#[test]
fn an_answer_equals_itself_however_it_is_marked() {
    for answer in
        ["$28$ %", "$1$ and $2$", "\\text{√\u{1}?C", "\\boxed{3} or \\boxed{4}", "The answer is $5$."]
    {
        assert_eq!(equal(answer, answer), Verdict::Correct, "{answer}");
        assert_eq!(group(&[answer, "?", answer])[2], 0, "{answer}");
    }
}

#[test]
fn an_unreadable_gold_is_never_correct() {
    for gold in ["", "  ", "$$", "{}"] {
        assert_eq!(verify(gold, gold), Verdict::UnreadableGold, "{gold}");
        assert_eq!(verify(gold, "5"), Verdict::UnreadableGold, "{gold}");
    }
}

#[test]
fn what_is_too_large_is_undecided() {
    let (braces, nines) = ("{".repeat(1 << 20), "9".repeat(1 << 20));
    for large in [braces.as_str(), &nines, "9^{9^{9^9}}", "10^{10^9}", "10^{10^{10}}!"] {
        for (gold, response) in [(large, "5"), ("5", large), (large, large)] {
            let report = verify_with(gold, response, &Options::default());
            let start = |text: &str| text.chars().take(20).collect::<String>();
            assert_ne!(report.verdict, Verdict::UnreadableGold, "{} / {}", start(gold), start(response));
            if large.len() > 100 {
                assert_eq!(report.verdict, Verdict::Undecided, "{} / {}", start(gold), start(response));
                assert!(report.to_string().starts_with("undecided: too large"), "{report}");
            }
        }
    }
}

#[test]
fn reports_say_why() {
    let report = verify_with("5", "The answer is 6.", &Options::default());
    assert!(report.to_string().starts_with("incorrect: "), "{report}");
    assert_eq!(report.extracted.as_deref(), Some("6"));
    assert!(report.gold.is_some() && report.answer.is_some());
    assert_eq!(verify_with("5", "no idea", &Options::default()).to_string(), "incorrect: no answer found");
    assert_eq!(verify_with("5", "5", &Options::default()).to_string(), "correct");
}

const ANSWER: &str =
    "-?[0-9]{1,4}(\\.[0-9]{1,2})?|\\\\frac\\{[1-9]\\}\\{[1-9]\\}|[1-9]/[1-9]|[a-e]\\^2|\\([0-9],[0-9]\\)";

proptest! {
    #[test]
    fn never_panics(gold in ".{0,60}", response in "(\\PC|\\$|\\\\boxed\\{|\\\\frac|[{}0-9,. ]|answer is|\\*\\*|\n){0,60}") {
        verify(&gold, &response);
        verify(&response, &response);
    }

    #[test]
    fn equal_keys_are_equal_answers(a in ANSWER, b in ANSWER) {
        if key(&a) == key(&b) {
            prop_assert_eq!(equal(&a, &b), Verdict::Correct);
        }
    }

    #[test]
    fn an_answer_equals_itself_in_a_box(a in ANSWER) {
        let boxed = format!("Therefore we get $\\boxed{{{a}}}$, as promised.");
        prop_assert_eq!(verify(&a, &boxed), Verdict::Correct);
    }

    #[test]
    fn spacing_and_sizes_of_brackets_do_not_matter(a in -99i32..99, b in 1i32..99) {
        let tight = format!("(\\frac{{{a}}}{{{b}}},{b})");
        let wide = format!("$\\left( \\dfrac {{ {a} }} {{{b}}} , \\, {b} \\right)$");
        prop_assert_eq!(equal(&tight, &wide), Verdict::Correct);
    }
}
