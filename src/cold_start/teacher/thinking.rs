//! What a teacher thought before it answered is no part of the answer.

/// How models mark it.
const MARKS: [(&str, &str); 7] = [
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
    ("<|channel|>analysis<|message|>", "<|end|>"),
];

/// What stands before an answer where thinking has a channel of its own.
const ANSWER_MARKS: [&str; 2] = ["<|start|>assistant", "<|channel|>final<|message|>"];

/// An answer without its thinking parts and the white space around it. Some chat templates open the first part in the
/// prompt, so that the answer begins inside it; one that never ends takes the rest along.
pub fn without_thinking(text: &str) -> String {
    let mut text = text.to_owned();
    for (open, close) in MARKS {
        text = without(&text, open, close);
    }
    for mark in ANSWER_MARKS {
        text = text.replace(mark, "");
    }
    text.trim().to_owned()
}

fn without(text: &str, open: &str, close: &str) -> String {
    let mut rest = match (text.find(open), text.find(close)) {
        (None, Some(end)) => &text[end + close.len()..],
        (Some(start), Some(end)) if end < start => &text[end + close.len()..],
        _ => text,
    };
    let mut kept = String::new();
    while let Some((before, inside)) = rest.split_once(open) {
        kept += before;
        rest = inside.split_once(close).map_or("", |(_, after)| after);
    }
    kept + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinking_is_cut_out_however_it_is_marked() {
        for (text, answer) in [
            ("<think>\n2 + 2?\n</think>\n\nIt is 4.", "It is 4."),
            ("2 + 2? </think> It is 4.", "It is 4."),
            ("<think>2 + 2, so", ""),
            ("It <think>a</think>is <think>b</think>4.", "It is 4."),
            ("a</think>It <think>b</think>is 4.", "It is 4."),
            ("[THINK]<Parallel>[/THINK]It is 4.", "It is 4."),
            (
                "<|channel|>analysis<|message|>Hm<|end|><|start|>assistant<|channel|>final<|message|>It is 4.",
                "It is 4.",
            ),
            (" I think <Path> it is 4.\n", "I think <Path> it is 4."),
            ("", ""),
        ] {
            assert_eq!(without_thinking(text), answer, "{text}");
        }
    }
}
