//! How much of a response runs at the same time.

/// `efficiency`: e = 1 - critical path / tokens, from 0 (one stream) towards 1 (all paths at once).
///
/// arXiv 2509.07980 (rewards of its code); the same number is the acceleration ratio of ThreadWeaver (arXiv
/// 2512.07843), whose bonus is capped: `acceleration` is min(e, 0.2).
pub fn efficiency(total_tokens: usize, critical_path_tokens: usize) -> f32 {
    if total_tokens == 0 {
        return 0.0;
    }
    (1.0 - critical_path_tokens as f32 / total_tokens as f32).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        for (total, critical, expected) in [(0, 0, 0.0), (80, 80, 0.0), (100, 75, 0.25), (200, 50, 0.75)] {
            assert_eq!(efficiency(total, critical), expected, "{critical} of {total}");
        }
    }
}
