//! How long a verdict takes: `cargo bench -p parallel-r1-verify`.
//!
//! `numeric` must stay under 20 microseconds in the median, `hostile` under 50 milliseconds each.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use parallel_r1_verify::{equal, verify};

const NUMERIC: [(&str, &str); 8] = [
    ("72", "So she sold 48 + 24 = 72 clips in both months together.\n#### 72"),
    ("1234", "After adding the three parts we see that the answer is $1{,}234$."),
    ("\\frac{1}{2}", "Thus half of them are red, that is, \\boxed{0.5}."),
    ("18", "**Final Answer:** $18.00 per day"),
    ("-10/9", "-\\frac{10}{9}"),
    ("3.5", "The mean of both is therefore $3\\frac{1}{2}$."),
    ("204", "The train needs 203 minutes, or rather 204. The answer is 204."),
    ("16", "\\boxed{17}"),
];

const ALGEBRA: [(&str, &str); 6] = [
    ("x^2-1", "\\boxed{(x-1)(x+1)}"),
    ("3\\sqrt{13}", "The distance is $\\boxed{\\sqrt{117}}$."),
    ("[-2,7]", "The answer is $-2 \\le x \\le 7$."),
    ("(3, \\frac{\\pi}{2})", "\\boxed{\\left(3, \\dfrac{\\pi}{2}\\right)}"),
    ("\\tan^2 y + 1", "$\\sec^2 y$"),
    ("\\begin{pmatrix} 1 & 2 \\\\ 3 & 4 \\end{pmatrix}", "\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}"),
];

/// Inputs made to be slow.
fn hostile() -> Vec<(&'static str, String)> {
    let repeat = |piece: &str| piece.repeat((1 << 20) / piece.len());
    vec![
        ("braces", repeat("{")),
        ("boxes", repeat("\\boxed{")),
        ("labels", repeat("answer is not ")),
        ("dollars", repeat("$")),
        ("digits", repeat("9")),
        ("tower", "9^{9^{9^9}}".to_owned()),
        ("power", "(x+y+z+w+1)^{99}".to_owned()),
        ("powers", "(a+b)^{60}(c+d)^{60}(e+f)^{60}".to_owned()),
        ("factorial", "(10^9)!".to_owned()),
        ("roots", format!("{}2{}", "\\sqrt{1+".repeat(60), "}".repeat(60))),
        ("fractions", format!("{}2{}", "\\frac{1}{x+".repeat(60), "}".repeat(60))),
        ("signs", (0..30).map(|i| format!("\\pm \\sqrt{{{i}}}")).collect()),
        ("sines", "\\sin(x+".repeat(60) + "1" + &")".repeat(60)),
        (
            "identity",
            "\\sin^2(x) + \\cos^2(x) + \\tan(y)^3 \\cdot e^{\\sqrt{x^2+1}} + \\log_3(z^2+7)".to_owned(),
        ),
        ("huge", "2^{199999} + 3".to_owned()),
        ("unions", (0..200).map(|i| format!("({i},{i}.5)")).collect::<Vec<_>>().join("\\cup ")),
        ("list", (0..900).map(|i| format!("{i},")).collect()),
    ]
}

fn benches(c: &mut Criterion) {
    for (name, pairs) in [("numeric", &NUMERIC[..]), ("algebra", &ALGEBRA[..])] {
        let mut group = c.benchmark_group(name);
        for (gold, response) in pairs {
            group.bench_function(*gold, |b| b.iter(|| verify(black_box(gold), black_box(response))));
        }
    }
    let mut group = c.benchmark_group("hostile");
    group.sample_size(10);
    for (name, text) in hostile() {
        group.bench_function(format!("{name} as response"), |b| b.iter(|| verify("5", black_box(&text))));
        group.bench_function(format!("{name} as both"), |b| {
            b.iter(|| equal(black_box(&text), black_box(&text)))
        });
    }
    group.finish();
    let long =
        format!("{}The answer is $42$.", "We add $x_1 + 2$ to both sides of it and get 17. ".repeat(200));
    c.bench_function("a response of 10,000 characters", |b| b.iter(|| verify("42", black_box(&long))));
}

criterion_group!(all, benches);
criterion_main!(all);
