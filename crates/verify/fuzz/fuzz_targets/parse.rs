//! Parsing: any text is read or refused, and what was read can be shown.

#![no_main]

use libfuzzer_sys::fuzz_target;
use parallel_r1_verify::parse;

fuzz_target!(|text: &str| {
    if let Ok(answer) = parse::answer(text) {
        answer.to_string();
    }
});
