//! Extraction: what is found is part of the response, whichever kinds of text are asked for.

#![no_main]

use libfuzzer_sys::fuzz_target;
use parallel_r1_verify::{Kinds, extract, extract_with};

fuzz_target!(|response: &str| {
    if let Some(answer) = extract(response) {
        assert!(response.contains(answer));
    }
    for kinds in 0..8 {
        let kinds = Kinds { latex: kinds & 1 > 0, plain: kinds & 2 > 0, words: kinds & 4 > 0 };
        for candidate in extract_with(response, kinds) {
            assert!(response.contains(candidate.span));
        }
    }
});
