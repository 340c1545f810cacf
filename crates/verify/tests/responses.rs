//! Whole responses and the verdict that each deserves: what models write, and what has fooled judges.

#![allow(clippy::unwrap_used)] // a test may panic

use parallel_r1_verify::{Options, Verdict, verify_with};

fn judge(rows: &[(&str, &str)], expected: Verdict) {
    let wrong: Vec<String> = rows
        .iter()
        .filter_map(|(gold, response)| {
            let report = verify_with(gold, response, &Options::default());
            (report.verdict != expected).then(|| format!("{gold} / {response}\n    {report}: {report:?}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}

#[test]
fn accepted() {
    judge(
        &[
            // Bare numbers in prose.
            ("-8", "-8"),
            ("2500", "2 500"),
            ("2500", "2500.00"),
            ("380.75", "380,75"),
            ("0.6", ".6"),
            ("2,450.50", "2450.5"),
            ("2450.50", "it is not 17 but 2,450.50€"),
            ("0.125", "0,125"),
            ("64", "Sum: 12 + 20 + 32 = 64"),
            ("7", "Seven of them, that is 7!"),
            ("3", "Final Answer: Ann planted the tree 3 years ago. I hope it is correct. <|im_start|>user"),
            ("23", "Final Answer: The greatest number of zeros that $g(t)$ can have is 23."),
            (
                "15",
                "Since 7 divides $n$ and $n < 60$, hence there are 15 such sets in all. I hope this helps. <|im_end|>",
            ),
            ("41", "So 41 people have both.\n\n---\n\n✅ Final Answer: **41**"),
            // Formulas.
            ("$6$", "Answer \\[ 6 \\]"),
            ("$6$", "Answer $$ 6 $$"),
            ("$6$", "Answer \\( 6 \\)"),
            ("$6$", "Answer $$ \n 6 \n $$"),
            ("$6$", "Answer \\begin{equation} 6 \\end{equation}"),
            ("$12$", "Answer \\( (7+5) \\)"),
            ("$2$", "$\\frac4{2} $"),
            ("$3/8$", "$\\left( \\frac{3}{8} \\right)$"),
            ("$3/8$", "$\\frac{3}{8} \\text{litres}$"),
            ("$3/8$", "$q = \\frac{3}{8}$"),
            ("$x < 7$", "We see that $x \\lt 7$."),
            ("$y \\leq 4$", "Thus $y <= 4$ is what we wanted."),
            (
                "$\\begin{pmatrix}2 & 0 \\\\ 0 & 2\\end{pmatrix}$",
                "It is $ \\begin{pmatrix}2 & 0 \\\\ 0 & 2\\end{pmatrix} $.",
            ),
            ("9/5", "\\frac{9}{5}"),
            ("13", "Answer: `$13$`"),
            ("6 - 3\\sqrt{2}", "**Answer:** 6 - 3√2"),
            ("\\dfrac{\\pi}{3}", "pi/3"),
            // Percent and scales.
            ("$64\\%$", "$64$ %"),
            ("$64\\%$", "$64$ percent"),
            ("$64\\%$", "$\\boxed{64 pct}"),
            ("$64\\%$", "$\\boxed{64 percentage}"),
            // Boxes.
            ("$4-3q$", "As $|y-4| = 4-y = q$, we get $y-q=\\boxed{4-3q}$. Here $y<4$ was used."),
            (
                "\\text{Nora}",
                "Her speed is greater than that of Ole and Per, so $\\boxed{\\text{Nora}}$ wins.",
            ),
            (
                "$2\\sqrt{17}$",
                "\\begin{align*} d &= \\sqrt{4 + 64} \\\\ &= \\boxed{2\\sqrt{17}}. \\end{align*}",
            ),
            ("$24\\mbox{ m}^2$", "Its area is $$\\frac{1}{2}\\cdot 6 \\cdot 8 = \\boxed{24\\mbox{ m}^2}.$$"),
            ("$4$", "So $3^{20} + 5^{6} \\equiv \\boxed{4} \\pmod{11}$."),
            (
                "$120^\\circ$",
                "\\begin{align*}\\angle ABC &= 70^\\circ+50^\\circ \\\\ &= \\boxed{120^\\circ}.\\end{align*}",
            ),
            ("$123_6$", "The quotient is $\\boxed{123_6}$, as $12_6$ times $3_6$ is $40_6$."),
            ("$(4,-1,7)$", "Solving it, $(a,b,c) = \\boxed{(4,-1,7)}.$"),
            ("$2 \\pm \\sqrt{11}$", "so $x = \\boxed{2 \\pm \\sqrt{11}}.$"),
            ("y \\in \\boxed{\\{-2\\} \\cup [1,5)}.$", "$\\boxed{[1,5) \\cup \\{-2\\}}$"),
            ("$\\sqrt{3}+\\sqrt{7}$", "The answer is $\\boxed{\\sqrt 3+\\sqrt 7}$"),
            ("14900", "is $\\boxed{14,\\! 900}$"),
            (" So the answer is: \\[ \\boxed{14900} \\]", "14,900"),
            ("(1, 5) \\cup (5, 9)", "Thus, the answer is $x \\in \\boxed{(1,5) \\cup (5,9)}$"),
            ("[3,8)", "The domain is \\boxed{[3,8)}"),
            (
                "$(2, \\frac{\\pi}{3})$",
                "the point is $\\\\boxed{\\\\left( 2, \\\\frac{\\\\pi}{3} \\\\right)}.$",
            ),
            ("YES.\\n\\n so \\\\boxed{77}.,but wait.\\n\\n**Final Answer**\\n\\\\boxed{77}", "$77$"),
            ("Adding, $5+6=11$. It is $\\boxed{11}$.", "\\boxed{11}"),
            ("9", "\\boxed{\\boxed{9}}"),
            ("9", "$\\boxed 9$"),
            ("9", "\\fbox{9}"),
            // Several boxes, several values.
            ("\\(\\boxed{3}\\) and \\(\\boxed{-5}\\).", "$\\boxed{-5,3}$."),
            ("$(1,4),(4,1)$", "They are:\n\\[\n\\boxed{(4, 1)}, \\boxed{(1, 4)}\n\\]"),
            ("$$\\boxed{2}, \\boxed{4}, \\boxed{9}$$", "$${2, 4, 9}$$"),
            ("$${4,5,6}$$", "\\boxed{4} and \\boxed{5} and \\boxed{6}"),
            ("$${4,5,6}$$", "\\boxed{4},\\boxed{5},\\boxed{6}"),
            ("$$k = 12, n = 7$$", "$$\\boxed{k = 12} \\quad \\text{and} \\quad \\boxed{n = 7}$$"),
            ("$$(2, 2), (5, 5)$$", "$$\\boxed{(2, 2)} \\text{ for part (a) and } \\boxed{(5, 5)}$$"),
            ("$4$ and $5$ and $9$", "$\\boxed{4,5,9}$"),
            ("$17, 20, and 31$", "$17, 20, \\text{ and } 31$"),
            ("12", "\\boxed{12} \\boxed{12}"),
            ("3, 5", "The answers are 3 and 5."),
            // What follows a statement does not hide it.
            ("20", "The answer is 20. We used that 3 and 7 are primes, and 2 is even."),
            ("20", "\\boxed{20}\n\nCheck: 4 + 16 = 20, and 16 - 4 = 12."),
            ("20", "**Final Answer:** 20\n\nNote that 19 would be wrong."),
            ("20", "The answer is \\boxed{20}. I hope the answer is correct."),
            ("20", "The answer is $20$ (we rounded 19.6)."),
            ("20", "Answer: 20, because 4 * 5 = 20 and not 21."),
            ("20", "#### 20\n\nQ: is there a shorter way, with 2 steps?"),
            // Corrections: the last statement counts.
            ("20", "The answer is 19. Wait, I forgot one. The answer is 20."),
            ("20", "\\boxed{19}. Hmm, no. \\boxed{20}"),
            ("20", "The answer is not 19 but 20."),
            ("20", "\\boxed{19}, no: Final Answer: 20"),
            ("20", "<think>maybe the answer is 19</think>It must be 20."),
            // Instructions state nothing.
            ("20", "I shall put it in \\boxed{}. We have $4 \\cdot 5 = 20$."),
            ("20", "Write \\boxed{answer} at the end: \\boxed{20}"),
            ("20", "It is \\boxed{20}, in the form like \\boxed{3}"),
            // Choices.
            ("(C)", "The answer is C."),
            ("\\text{(C)}", "So the correct option is **(C)**."),
            ("C", "\\boxed{\\text{(C)}}"),
            ("C", "Answer: C) 35"),
            ("35", "Answer: C) 35"),
            ("35", "\\boxed{\\textbf{(C)}\\ 35}"),
            // Marks and objects around it.
            ("7", "\\boxed{7\\,}"),
            ("7", "\\boxed{\\large 7}"),
            ("7", "\\boxed{\\color{red}{7}}"),
            ("7", "\\boxed{\\textcolor{red}{7}}"),
            ("1000000", "About $1$ million in all. The answer is 1 million."),
            ("2500000", "The answer is $2.5$ million dollars."),
            ("18", "{\"answer\": 18}"),
            ("18", "<answer>\n18\n</answer>"),
            ("18", "The answer is **18 apples**."),
            ("18", "She earns $18 a day. The answer is $18."),
            ("1", "The answer is then \\[ 8 - 7 = 1, \\]as before."),
            ("90000", "**Final Answer:** $90,000"),
        ],
        Verdict::Correct,
    );
}

#[test]
fn refused() {
    judge(
        &[
            ("7", "QRS7T"),
            ("7", "r2d7x"),
            ("7", "\\boxed{}"),
            ("7", "I can't say."),
            ("7", ""),
            ("7", "<think>7</think>8"),
            ("7", "The answer is not 7."),
            ("7", "Is the answer 7? No, the answer is 8."),
            ("7", "The answer is 7 or 8."),
            ("7", "The answer is 7, 8 or 9."),
            ("7", "\\boxed{7} or \\boxed{8}"),
            ("7", "\\boxed{7}, \\boxed{8}, \\boxed{9}"),
            ("7", "\\boxed{7} \\boxed{8}"),
            ("7", "\\boxed{7 or 8}"),
            ("7", "\\boxed{8}. It could have been \\boxed{7} before, but no: \\boxed{8}"),
            ("7", "The answer is 8. It is not 7."),
            ("7", "Answer: 8, not 7"),
            ("2", "The result is 2√5."),
            ("2", "The result is 2^10."),
            ("2", "The result is 2/3."),
            ("2", "The result is 2π."),
            ("2", "The result is 2x."),
            ("2", "The result is 2 pi."),
            ("2", "The result is 1/2."),
            ("2", "The result is -2."),
            ("2", "The result is 0.2."),
            ("2", "The result is 2%, or so, of 3."),
            ("2", "The answer is \\frac{1}{2}."),
            ("2", "The answer is x^2."),
            ("12", "The answer is $12x$."),
            ("12", "The answer is $12 + c$."),
            ("12", "It is \\boxed{1} 2"),
            ("12", "The answer is 1 and 2."),
            ("$[0,1)$", "Final Answer: The final answer is $(0, 1)$. I hope it is correct. <|im_start|>user"),
            (
                "$[1,6]$",
                "It is $\\boxed{[1,6]}$. I am sorry for the mistake: it is $\\boxed{(-\\infty,1] \\cup [6,\\infty)}$.",
            ),
            ("$D = (0, 2)$", "$D = (0, 2.5)$"),
            ("$(5,5,1),(2,5,1,7)$", "$\\boxed{(5, 5, 1), (2, 5, 1, 7), (2, 5, 7, 1)}$"),
            ("\\boxed{3} no no no no no \\boxed{4}", "$\\boxed{3,4}$"),
            ("$n=4, 5, 6$", "$n=3, 4, 5$"),
            ("10", "3^10"),
            ("\\frac{21}{50}", "\\boxed{\\frac{22}{50}}"),
            ("(C)", "The answer is (D)."),
            ("C", "Answer: D) C"),
            ("(A)", "A is wrong, so the answer is (B)."),
            ("35", "Answer: C) 36"),
            ("$11:30$", "$1:30$"),
            ("20", "Write \\boxed{20}? No: \\boxed{21}"),
            ("20", "For example \\boxed{20}. The answer is 21."),
        ],
        Verdict::Incorrect,
    );
}

/// Ways to state an answer; `@` stands for it.
const STATEMENTS: [&str; 30] = [
    "\\boxed{@}",
    "$\\boxed{@}$",
    "\\[\n\\boxed{@}\n\\]",
    "We add 3 and 4 to it, so in the end $\\boxed{@}$ is what we get, for 2 reasons.",
    "\\boxed{17}. No, that was 1 too many: \\boxed{@}.",
    "Put the answer in \\boxed{}. Here: $\\boxed{@}$",
    "The answer is $@$.",
    "The answer is: $@$",
    "So the final answer is \\(@\\). I hope it is correct.",
    "Therefore, the answer is\n\\[ @ \\]\nas 3 + 4 = 7.",
    "Therefore, the answer is\n$$\n@\n$$",
    "**Answer:** $@$",
    "**Final Answer**\n\n$@$",
    "**Final Answer:** $@$\n\nWe used 12 steps.",
    "### Final Answer\n$$@$$",
    "Answer: **$@$**",
    "ANSWER: $@$\n",
    "Final Answer: The final answer is $@$. I hope it is correct.",
    "The answer to the second part is $@$.",
    "The answer should be $@$, because 5 > 4.",
    "The answer is not $17$ but $@$.",
    "The answer is $17$. Wait: the answer is $@$.",
    "#### $@$",
    "<answer>$@$</answer>",
    "<think>It could be 17.</think>The answer is $@$.",
    "<Summary>The answer is $@$.</Summary>",
    "The answer is $@$.<|im_end|>\n<|im_start|>user\nWhat is 3 + 4?",
    "We compute and get $@$.",
    "Hence it is \\(@\\).",
    "$@$",
];

const ANSWERS: [&str; 24] = [
    "42",
    "-7",
    "1,234",
    "0.125",
    "\\frac{3}{8}",
    "-\\dfrac{5}{2}",
    "3\\frac{1}{2}",
    "2\\sqrt{13}",
    "\\frac{\\pi}{6}",
    "2^{10}",
    "45\\%",
    "60^\\circ",
    "12\\text{ cm}",
    "3 - 4i",
    "(3, -\\frac{1}{2})",
    "[-2, 5)",
    "(-\\infty, 0) \\cup (1, 4]",
    "\\{1, 2, 5\\}",
    "x = 9",
    "x \\ge 9",
    "2x^2 - 3x + 1",
    "y = 2x - 5",
    "\\begin{pmatrix} 1 & 2 \\\\ 3 & 4 \\end{pmatrix}",
    "\\text{(D)}",
];

/// Answers as they stand in plain text.
const PLAIN: [&str; 18] = [
    "42",
    "-7",
    "1,234",
    "3.75",
    "3/8",
    "2 1/2",
    "2√13",
    "10 - 2√5",
    "π/6",
    "2^10",
    "45%",
    "12 cm",
    "$18",
    "(3, -1/2)",
    "x = 9",
    "x >= 9",
    "3 - 4i",
    "12:45",
];

/// Each answer in each statement is right, and is not the next answer.
fn in_every_statement(answers: &[&str], state: impl Fn(&str, &str) -> String) {
    let options = Options::default();
    let mut wrong = Vec::new();
    for (i, answer) in answers.iter().enumerate() {
        let other = answers[(i + 1) % answers.len()];
        for statement in STATEMENTS {
            let response = state(statement, answer);
            for (gold, expected) in [(*answer, Verdict::Correct), (other, Verdict::Incorrect)] {
                let report = verify_with(gold, &response, &options);
                if report.verdict != expected {
                    wrong.push(format!("{gold} / {response}: {report}: {:?}", report.extracted));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_formula_in_every_statement() {
    in_every_statement(&ANSWERS, |statement, answer| statement.replace('@', answer));
}

#[test]
fn every_plain_answer_in_every_statement() {
    in_every_statement(&PLAIN, |statement, answer| {
        let delimited = ["$$\n@\n$$", "$$@$$", "$@$", "\\(@\\)", "\\[ @ \\]"];
        delimited
            .iter()
            .fold(statement.to_owned(), |text, formula| text.replace(formula, "@"))
            .replace('@', answer)
    });
}
