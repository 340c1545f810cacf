//! Tables of responses and what they state.

use proptest::prelude::*;

use super::*;

fn text(response: &str) -> Option<String> {
    extract_with(response, Kinds::default()).into_iter().next().map(|found| found.text.into_owned())
}

#[test]
fn statements() {
    for (response, expected) in [
        ("so \\boxed{\\frac{1}{2}} and done", "\\frac{1}{2}"),
        ("\\boxed{1} but no, \\boxed{2}. That was it: 3 tries.", "2"),
        ("Put it in \\boxed{}. Well: \\boxed{9}. Use \\boxed{answer}.", "9"),
        ("5*5=25\n#### 25", "25"),
        ("#### 25 apples in each box", "25 apples in each box"),
        ("#### Step 2\nThe answer is 3", "3"),
        ("Final Answer: 42", "42"),
        ("**Final Answer:** 42", "42"),
        ("**Final Answer**\n\n42\n", "42"),
        ("## Answer\n\n**42**", "42"),
        ("Final Answer\n---\n42", "42"),
        ("✅ Final Answer: **73**", "73"),
        ("**Answer:** 10 - 2√5", "10 - 2√5"),
        ("ANSWER: -7", "-7"),
        ("Ans: 12", "12"),
        ("Answer = 12", "12"),
        ("<answer> 17 </answer>", "17"),
        ("The answer is 5. It took 3 steps.", "5"),
        ("The answer is 5, because 2+3=5.", "5"),
        ("Thus the answer is: $x = 4$.", "x = 4"),
        ("the answer to the second question is 8.", "8"),
        ("The answer, in dollars, is $8.50.", "$8.50"),
        ("The answer should be 14, not 15.", "14"),
        ("The final answer turns out to be 3/4.", "3/4"),
        ("The answer is approximately 3.14.", "3.14"),
        ("The answer is approx. 3.14 metres.", "3.14"),
        ("The answer is option B.", "B"),
        ("The correct answer is (C).", "(C)"),
        ("Answer: `$13$`", "13"),
        ("Answer: $18", "$18"),
        ("Answer: She makes $18 every day.", "$18"),
        ("The answer is\n\\[ 9 \\]\nas wanted", "9"),
        ("The answer is\n$$\nx = 9\n$$\nas wanted", "x = 9"),
        ("The answer is 3. Wait, that is wrong. The answer is 4.", "4"),
        ("The answer is not 3. Answer: 4. The answer is not 5.", "4"),
        ("The answer is not 3 but 4.", "4"),
        ("The answer isn't 3. Answer: 4", "4"),
        ("Final Answer: the answer is $\\boxed{6}$", "6"),
        ("Final Answer: The largest value that $f(x)$ takes is 19. <|im_start|>user", "19"),
        ("Final Answer: Tom began 3 hours ago. I hope it is correct.", "3"),
        ("The final answer is $(0, 1)$. I hope it is correct.", "(0, 1)"),
        ("\\boxed{14400}. I hope this answer is correct.", "14400"),
        ("\\boxed{8}. The answer is thus what we wanted.", "8"),
        ("The answer is $3$ or $5$.", "3 or 5"),
        ("The answers are 3, 5, and 8.", "3, 5, and 8"),
        ("The answer is the numbers 3, 5, and 8.", "3, 5, and 8"),
        ("The answer is $3$, as $x > 2$.", "3"),
        ("The answer is **$28$ percent**.", "28 percent"),
        ("The answer is $2.5$ million people a year.", "2.5 million people a year"),
        ("The answer is Evelyn.", "Evelyn"),
        ("The answer is 5 after 3 steps of 2 each.", "5"),
        ("<Summary>The answer is 6</Summary>", "6"),
        ("\\boxed{8.25}. The answer is rounded to 2 places.", "8.25"),
        ("\\boxed{8}. The answer is required to have 3 digits.", "8"),
        ("The answer is found to be $8$.", "8"),
        ("The answer is clear: we get 5 apples.", "5"),
        ("{\"steps\": 3, \"answer\": \"5\"}", "5"),
        ("\\textbf{Answer: } $5$", "5"),
        ("Answer: 5 (in metres)", "5"),
        ("Answer: B. 12", "B. 12"),
        ("So the correct option is **(B)**.", "(B)"),
        ("So the correct choice is B.", "B"),
        ("Final Answer: the one that fits is **C**", "C"),
        ("Final Answer: the one that fits best is C.", "C"),
        ("**The answer is: 5**", "5"),
        ("Answer:\n\n$$\\frac{3}{4}$$\n\nThis is 0.75.", "\\frac{3}{4}"),
        ("It is \\boxed{7}.\n\nWe can check our answer: if $n=7$, then $7*13=91$.", "7"),
        ("It is \\boxed{7}. Is it by chance that the answer is 8?", "7"),
        ("so our answer is then \\[ 81 - 17 = 64, \\]as before.", "81 - 17 = 64"),
        ("the final answer is \\[ \\boxed{300,\\!000}, \\] where it is 1 followed by zeros.", "300,\\!000"),
        ("<think>The answer is 3?</think>It is 4.", "4"),
        ("Answer: 12+3=15,15*3=45", "12+3=15,15*3=45"),
        ("x ok\nAnswer: (12+3)*3<|endoftext|>", "(12+3)*3"),
        ("Answer: none", "none"),
    ] {
        assert_eq!(text(response).as_deref(), Some(expected), "{response}");
    }
}

#[test]
fn without_a_statement_the_last_value_counts() {
    for (response, expected) in [
        ("-10/9", "-10/9"),
        ("\\frac{10}{9}", "\\frac{10}{9}"),
        ("Evelyn", "Evelyn"),
        ("(3,2)", "(3,2)"),
        ("$1$ and $2$ and $3$", "1 and 2 and 3"),
        ("$28$ %", "28 %"),
        ("$$\n 9 \n$$", "9"),
        ("We get $a=1$ and then $b = 2$.", "b = 2"),
        ("So it is $a=1$, $b = 2$.", "a=1, b = 2"),
        ("We use $n$. In total there are 42 apples.", "42"),
        ("There are 42 apples, where $n$ is free.", "42"),
        ("It costs $5 and the other one $7.", "$7"),
        ("That makes **18** in all, which is it.", "18"),
        ("the number is not 10 which is 1,000.99€", "1,000.99€"),
        ("Hence the value is \\frac{3}{4}.", "\\frac{3}{4}"),
        ("It is minus three, or -3.", "-3"),
        ("Answer \\[ 9 \\]", "9"),
        ("Hence they are 12 in all. I hope it is correct. <|im_start|>user", "12"),
        ("\\begin{align*} x &= 2 + 3 \\\\ &= 5. \\end{align*}", "5"),
    ] {
        assert_eq!(text(response).as_deref(), Some(expected), "{response}");
    }
    for response in
        ["", "  \n", "I do not know the answer to this.", "Write it in \\boxed{}.", "It is $\\boxed{}$."]
    {
        assert_eq!(text(response), None, "{response}");
    }
}

#[test]
fn kinds_restrict_what_is_read() {
    let latex = Kinds { latex: true, plain: false, words: false };
    let plain = Kinds { latex: false, plain: true, words: false };
    let first =
        |response, kinds| extract_with(response, kinds).into_iter().next().map(|f| f.text.into_owned());
    assert_eq!(first("The answer is $9$", latex).as_deref(), Some("9"));
    assert_eq!(first("The answer is 9", latex), None);
    assert_eq!(first("The answer is 9", plain).as_deref(), Some("9"));
    assert_eq!(first("\\boxed{\\frac12}", plain), None);
}

#[test]
fn golds_may_be_worked_solutions() {
    for (text, expected) in [
        ("42", "42"),
        ("$D = (0, 1)$", "D = (0, 1)"),
        ("$1$ and $2$", "1 and 2"),
        ("\\(\\boxed{1}\\) and \\(\\boxed{-2}\\).", "1, -2"),
        ("We have $20+22=42$. It is $\\boxed{42}$.", "42"),
        ("So \\boxed{x = 1 \\text{ and } y = 2", "x = 1 \\text{ and } y = 2"),
        ("5*5=25\n#### 25", "25"),
        ("a red ball", "a red ball"),
    ] {
        assert_eq!(gold(text), expected, "{text}");
    }
}

#[test]
fn long_hostile_input_is_bounded() {
    for piece in [
        "{",
        "}",
        "\\boxed{",
        "\\boxed ",
        "$",
        "\\(",
        "answer is ",
        "answer is not ",
        "answer to ",
        "**",
        "1,",
        "\\frac{",
        "\\begin{align}",
        "answer: is 1. ",
        "<answer>",
    ] {
        extract(&piece.repeat((1 << 20) / piece.len()));
    }
}

proptest! {
    #[test]
    fn never_panics(text in "(\\PC|[{}$\\\\*#:.,é−]|answer|answer is|\\\\boxed|\\\\frac|\\\\\\(|[0-9]|\n){0,40}") {
        if let Some(answer) = extract(&text) {
            prop_assert!(text.contains(answer));
        }
        gold(&text);
    }
}
