//! Comparison: the first line is the gold answer, the rest a response; each also against itself.

#![no_main]

use libfuzzer_sys::fuzz_target;
use parallel_r1_verify::{Verdict, equal, group, verify};

fuzz_target!(|text: &str| {
    let (gold, response) = text.split_once('\n').unwrap_or((text, text));
    verify(gold, response);
    equal(gold, response);
    group(&[gold, response, gold]);
    assert_ne!(equal(response, response), Verdict::Incorrect, "not itself");
});
