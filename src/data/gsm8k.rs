//! GSM8K as published: `{question, answer}`, the answer being a worked solution that ends in
//! `#### n`.

/// The mark before the final answer.
const MARK: &str = "####";

/// The final answer of a worked solution, without thousands separators; none without the mark.
pub(super) fn final_answer(solution: &str) -> Option<String> {
    let (_, answer) = solution.rsplit_once(MARK)?;
    let answer = answer.trim();
    (!answer.is_empty()).then(|| answer.replace(',', ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_final_answer_follows_the_last_mark() {
        let answer = |text| final_answer(text);
        assert_eq!(answer("2 + 2 = <<2+2=4>>4\n#### 4").as_deref(), Some("4"));
        assert_eq!(answer("#### 1\n####  -1,234,567.5 \n").as_deref(), Some("-1234567.5"));
        assert_eq!(answer("no mark"), None);
        assert_eq!(answer("cut off ####"), None);
    }
}
