//! One row of logits -> one token, its log-probability and the entropy of its distribution.
//!
//! What is recorded is log-softmax(logits / T with the forbidden control tokens removed), before
//! top-k and top-p: that is the number the trainer computes again. A draw costs two passes over the
//! row and no sort, unless top-k or top-p ask for one; then only as much as they need is sorted.
//!
//! Each segment has a random stream of its own, keyed by where it stands (seed, request, sample,
//! chain of path indices), so a result depends neither on batch-mates nor on the order of work.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::kernels::{exp, max, vectorised};

/// Elements whose weights are summed together; a draw first finds its block, then its element.
const BLOCK: usize = 256;

/// The place of a segment in the tree of random streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stream(u64);

impl Stream {
    /// The stream of a sample's first segment.
    pub(super) fn of_sample(seed: u64, request: u64, sample: usize) -> Self {
        Self(mix(mix(mix(seed) ^ request) ^ sample as u64))
    }

    /// The stream of path `index` of the block that this segment opens.
    pub(super) fn path(self, index: usize) -> Self {
        Self(mix(self.0 ^ (index as u64 + 1)))
    }

    /// The stream of what follows the block that this segment opens.
    pub(super) fn join(self) -> Self {
        Self(mix(self.0 ^ u64::MAX))
    }

    /// The random numbers of the stream.
    pub(super) fn rng(self) -> ChaCha8Rng {
        let mut key = [0; 32];
        let mut state = self.0;
        for word in key.chunks_exact_mut(8) {
            state = mix(state);
            word.copy_from_slice(&state.to_le_bytes());
        }
        ChaCha8Rng::from_seed(key)
    }
}

/// splitmix64: a fixed bijection that spreads every input bit over the output.
fn mix(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// How tokens are drawn from a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Draws {
    /// 0 takes the likeliest token (the first of equals) and records at temperature 1.
    pub(super) temperature: f32,
    /// Only the k likeliest tokens may be drawn; 0 sets no limit.
    pub(super) top_k: usize,
    /// Only the likeliest tokens that together reach this probability may be drawn.
    pub(super) top_p: f32,
}

impl Draws {
    /// The temperature at which log-probabilities are recorded.
    pub(super) fn recorded_temperature(&self) -> f32 {
        if self.temperature == 0.0 { 1.0 } else { self.temperature }
    }
}

/// A drawn token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Draw {
    /// Its id.
    pub(super) token: u32,
    /// Its log-probability before top-k and top-p.
    pub(super) logprob: f32,
    /// The entropy, in nats, of the distribution that `logprob` is from.
    pub(super) entropy: f32,
}

/// Draws from a row whose forbidden entries are -inf. `None` if the row has no finite maximum
/// (the model has diverged).
pub(super) fn draw(row: &[f32], how: Draws, rng: &mut ChaCha8Rng) -> Option<Draw> {
    let (best, top) = argmax(row);
    if !top.is_finite() {
        return None;
    }
    let weights = Weights::new(row, top, how.recorded_temperature());
    let token = if how.temperature == 0.0 {
        best
    } else if how.top_k == 0 && how.top_p >= 1.0 {
        weights.pick(uniform(rng) * weights.total)
    } else {
        weights.pick_kept(how, uniform(rng))
    };
    let draw = Draw {
        token: token as u32,
        logprob: (f64::from(weights.scaled(token)) - weights.total.ln()) as f32,
        entropy: (weights.total.ln() - weights.expectation / weights.total) as f32,
    };
    draw.entropy.is_finite().then_some(draw)
}

/// Uniform in [0, 1), from the upper 53 bits.
fn uniform(rng: &mut ChaCha8Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// The largest element and where it stands first.
fn argmax(row: &[f32]) -> (usize, f32) {
    let top = vectorised(
        #[inline(always)]
        || max(row),
    );
    (row.iter().position(|&x| x == top).unwrap_or(0), top)
}

/// The unnormalised probabilities `exp((logit - max) / T)` of a row. Only their sums are kept;
/// single ones are computed again, which is cheaper than to write them out.
struct Weights<'a> {
    row: &'a [f32],
    top: f32,
    inverse_temperature: f32,
    blocks: Vec<f64>,
    total: f64,
    /// The sum of weight x log(weight).
    expectation: f64,
}

impl<'a> Weights<'a> {
    fn new(row: &'a [f32], top: f32, temperature: f32) -> Self {
        let blocks = Vec::with_capacity(row.len().div_ceil(BLOCK));
        let inverse_temperature = 1.0 / temperature;
        let mut all = Self { row, top, inverse_temperature, blocks, total: 0.0, expectation: 0.0 };
        vectorised(
            #[inline(always)]
            || {
                for block in row.chunks(BLOCK) {
                    let (sum, expectation) = sums(block, top, inverse_temperature);
                    all.blocks.push(sum);
                    all.total += sum;
                    all.expectation += expectation;
                }
            },
        );
        all
    }

    fn scaled(&self, index: usize) -> f32 {
        (self.row[index] - self.top) * self.inverse_temperature
    }

    fn weight(&self, index: usize) -> f64 {
        let scaled = self.scaled(index);
        vectorised(
            #[inline(always)]
            || f64::from(exp(scaled)),
        )
    }

    /// The weights of the block whose first element is `first`.
    fn block(&self, first: usize) -> [f32; BLOCK] {
        let mut weights = [0.0; BLOCK];
        let row = &self.row[first..self.row.len().min(first + BLOCK)];
        vectorised(
            #[inline(always)]
            || {
                for (weight, &x) in weights.iter_mut().zip(row) {
                    *weight = exp((x - self.top) * self.inverse_temperature);
                }
            },
        );
        weights
    }

    /// The element that contains the point `at` of the row of weights laid end to end.
    fn pick(&self, mut at: f64) -> usize {
        // Rounding may carry the point past the end of a block, or of all: the last possible token is meant.
        let mut place = (0, 0.0);
        for (i, &sum) in self.blocks.iter().enumerate().filter(|(_, sum)| **sum > 0.0) {
            place = (i * BLOCK, at);
            if at < sum {
                break;
            }
            at -= sum;
        }
        let (first, mut at) = place;
        let mut last = first;
        for (i, weight) in self.block(first).into_iter().enumerate().filter(|(_, weight)| *weight > 0.0) {
            last = first + i;
            if at < f64::from(weight) {
                break;
            }
            at -= f64::from(weight);
        }
        last
    }

    /// As `pick`, among the tokens that top-k and then top-p keep.
    fn pick_kept(&self, how: Draws, uniform: f64) -> usize {
        let kept = self.kept(how);
        let total: f64 = kept.iter().map(|&index| self.weight(index)).sum();
        let mut at = uniform * total;
        for &index in &kept {
            let weight = self.weight(index);
            if at < weight {
                return index;
            }
            at -= weight;
        }
        kept[kept.len() - 1]
    }

    /// The kept tokens, likeliest first, equals by id; at least one.
    fn kept(&self, how: Draws) -> Vec<usize> {
        let mut order: Vec<usize> =
            (0..self.row.len()).filter(|&i| self.row[i] > f32::NEG_INFINITY).collect();
        let descending = |a: &usize, b: &usize| self.row[*b].total_cmp(&self.row[*a]).then(a.cmp(b));
        let mut sorted = if how.top_k == 0 { 64 } else { how.top_k }.min(order.len());
        loop {
            if sorted < order.len() {
                order.select_nth_unstable_by(sorted - 1, descending);
            }
            order[..sorted].sort_unstable_by(descending);
            let limited = how.top_k > 0 || sorted == order.len();
            let mass: f64 = match how.top_k {
                0 => self.total,
                _ => order[..sorted].iter().map(|&i| self.weight(i)).sum(),
            };
            if let Some(count) = self.reaching(&order[..sorted], f64::from(how.top_p) * mass) {
                order.truncate(count);
                return order;
            }
            if limited {
                order.truncate(sorted);
                return order;
            }
            sorted = (sorted * 4).min(order.len());
        }
    }

    /// How many of the leading tokens it takes to reach a mass, if they do.
    fn reaching(&self, order: &[usize], mass: f64) -> Option<usize> {
        let mut sum = 0.0;
        order
            .iter()
            .position(|&index| {
                sum += self.weight(index);
                sum >= mass
            })
            .map(|last| last + 1)
    }
}

/// Sum of the weights and of weight x log(weight), in eight fixed lanes.
#[inline(always)]
fn sums(block: &[f32], top: f32, inverse_temperature: f32) -> (f64, f64) {
    let (mut sum, mut expectation) = ([0f32; 8], [0f32; 8]);
    let mut chunks = block.chunks_exact(8);
    for chunk in &mut chunks {
        for lane in 0..8 {
            let scaled = (chunk[lane] - top) * inverse_temperature;
            let weight = exp(scaled);
            sum[lane] += weight;
            // A weight of zero stands for itself: 0 x log 0 is 0, not NaN.
            expectation[lane] += weight * scaled.max(-100.0);
        }
    }
    for (lane, &logit) in chunks.remainder().iter().enumerate() {
        let scaled = (logit - top) * inverse_temperature;
        let weight = exp(scaled);
        sum[lane] += weight;
        expectation[lane] += weight * scaled.max(-100.0);
    }
    (sum.iter().map(|&x| f64::from(x)).sum(), expectation.iter().map(|&x| f64::from(x)).sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PLAIN: Draws = Draws { temperature: 1.0, top_k: 0, top_p: 1.0 };

    fn softmax(row: &[f32], temperature: f32) -> Vec<f64> {
        let scaled: Vec<f64> = row.iter().map(|&x| f64::from(x) / f64::from(temperature)).collect();
        let top = scaled.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = scaled.iter().map(|x| (x - top).exp()).sum();
        scaled.iter().map(|x| (x - top).exp() / total).collect()
    }

    fn rng(seed: u64) -> ChaCha8Rng {
        Stream::of_sample(seed, 0, 0).rng()
    }

    #[test]
    fn greedy_takes_the_first_of_equals_and_records_at_one() {
        let row = [0.0, 2.0, f32::NEG_INFINITY, 2.0];
        let drawn = draw(&row, Draws { temperature: 0.0, ..PLAIN }, &mut rng(1)).unwrap();
        assert_eq!(drawn.token, 1);
        assert!((f64::from(drawn.logprob) - softmax(&row, 1.0)[1].ln()).abs() < 1e-6);
    }

    #[test]
    fn rows_without_a_finite_maximum_give_nothing() {
        for row in [[f32::NEG_INFINITY; 4], [f32::NAN; 4], [f32::INFINITY; 4]] {
            assert_eq!(draw(&row, PLAIN, &mut rng(1)), None);
        }
        assert_eq!(draw(&[0.0, f32::NAN], PLAIN, &mut rng(1)), None);
    }

    #[test]
    fn draws_follow_the_distribution() {
        let row: Vec<f32> = (0..600).map(|i| ((i * 7 % 50) as f32).sin() * 4.0).collect();
        let how = Draws { temperature: 0.7, ..PLAIN };
        let expected = softmax(&row, 0.7);
        let (mut counts, mut random) = (vec![0u32; row.len()], rng(3));
        for _ in 0..40_000 {
            counts[draw(&row, how, &mut random).unwrap().token as usize] += 1;
        }
        let distance: f64 =
            counts.iter().zip(&expected).map(|(&c, p)| (f64::from(c) / 40_000.0 - p).abs()).sum();
        assert!(distance < 0.12, "total variation {distance}");
    }

    #[test]
    fn streams_differ_by_place_and_repeat() {
        let root = Stream::of_sample(7, 3, 1);
        let all = [
            root,
            root.path(0),
            root.path(1),
            root.join(),
            root.path(0).path(1),
            Stream::of_sample(7, 3, 2),
            Stream::of_sample(7, 4, 1),
            Stream::of_sample(8, 3, 1),
        ];
        let mut first: Vec<u64> = all.iter().map(|s| s.rng().next_u64()).collect();
        assert_eq!(first[0], Stream::of_sample(7, 3, 1).rng().next_u64());
        first.sort_unstable();
        first.dedup();
        assert_eq!(first.len(), all.len());
    }

    proptest! {
        #[test]
        fn records_what_a_plain_softmax_gives(
            row in prop::collection::vec(prop_oneof![9 => -12f32..12.0, 1 => Just(f32::NEG_INFINITY)], 2..700),
            temperature in 0.3f32..2.0, seed: u64, top_k in 0usize..20, top_p in 0.05f32..=1.0,
        ) {
            prop_assume!(row.iter().any(|x| x.is_finite()));
            let drawn = draw(&row, Draws { temperature, top_k, top_p }, &mut rng(seed)).unwrap();
            let p = softmax(&row, temperature);
            let token = drawn.token as usize;
            prop_assert!(p[token] > 0.0);
            prop_assert!((f64::from(drawn.logprob) - p[token].ln()).abs() < 1e-4);
            let entropy: f64 = p.iter().filter(|&&x| x > 0.0).map(|x| -x * x.ln()).sum();
            prop_assert!((f64::from(drawn.entropy) - entropy).abs() < 1e-3);
            // Obvious top-k, then top-p over what is left.
            let mut order: Vec<usize> = (0..row.len()).collect();
            order.sort_by(|&a, &b| row[b].total_cmp(&row[a]));
            if top_k > 0 { order.truncate(top_k); }
            let rank = order.iter().position(|&i| row[i] == row[token]);
            prop_assert!(rank.is_some());
            let mass: f64 = order.iter().map(|&i| p[i]).sum();
            let before: f64 = order[..rank.unwrap()].iter().map(|&i| p[i]).sum();
            prop_assert!(before <= f64::from(top_p) * mass + 1e-4);
        }
    }
}
