//! Exponentials that the compiler can vectorise: no branch, no table, no call into libm.

/// `e^x` within 2 ulp of f32; 0 below -87.3 (also for -inf), finite above 88.
#[inline(always)]
#[allow(clippy::excessive_precision)]
pub(crate) fn exp(x: f32) -> f32 {
    let clamped = x.clamp(-87.3, 88.0);
    // e^x = 2^n e^r with |r| <= ln(2)/2; ln 2 is split in two so that n * ln2_hi is exact.
    // Beside 1.5 * 2^23 a float has no fraction, so adding it rounds, and leaves n in the last bits: a cast to an integer,
    // which saturates, would not be vectorised.
    const ROUND: f32 = 12_582_912.0;
    let rounded = clamped * std::f32::consts::LOG2_E + ROUND;
    let n = rounded - ROUND;
    let r = (-n).mul_add(0.693_359_375, clamped);
    let r = (-n).mul_add(-2.121_944_4e-4, r);
    let mut p = 1.987_569_15e-4f32;
    for c in [1.398_199_95e-3, 8.333_451_9e-3, 4.166_579_6e-2, 1.666_666_55e-1, 5.000_000_1e-1] {
        p = p.mul_add(r, c);
    }
    let e = (p * r).mul_add(r, r) + 1.0;
    let scale = f32::from_bits((rounded.to_bits() << 23).wrapping_add(1.0f32.to_bits()));
    if x < -87.3 { 0.0 } else { e * scale }
}

/// The largest element, or -inf of an empty slice.
#[inline(always)]
pub(crate) fn max(row: &[f32]) -> f32 {
    let larger = |a: f32, b: f32| if b > a { b } else { a };
    let mut lanes = [f32::NEG_INFINITY; 16];
    let chunks = row.chunks_exact(16);
    let tail = chunks.remainder();
    for chunk in chunks {
        for (m, &x) in lanes.iter_mut().zip(chunk) {
            *m = larger(*m, x);
        }
    }
    tail.iter().fold(fold(lanes, larger), |a, &b| larger(a, b))
}

/// The sum in eight fixed lanes, so that its order depends on the length alone.
#[inline(always)]
pub(crate) fn sum(row: &[f32]) -> f32 {
    let mut lanes = [0f32; 8];
    let chunks = row.chunks_exact(8);
    let tail = chunks.remainder();
    for chunk in chunks {
        for (s, &x) in lanes.iter_mut().zip(chunk) {
            *s += x;
        }
    }
    lanes.iter().chain(tail).fold(0.0, |a, &b| a + b)
}

/// Folds sixteen lanes into one by halves.
#[inline(always)]
pub(crate) fn fold(mut lanes: [f32; 16], f: impl Fn(f32, f32) -> f32) -> f32 {
    for half in [8, 4, 2, 1] {
        let (low, high) = lanes.split_at_mut(half);
        low.iter_mut().zip(high).for_each(|(low, high)| *low = f(*low, *high));
    }
    lanes[0]
}

/// The dot product in sixteen fixed lanes.
#[inline(always)]
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0f32; 16];
    let (xs, ys) = (a.chunks_exact(16), b.chunks_exact(16));
    let tail: f32 = xs.remainder().iter().zip(ys.remainder()).map(|(x, y)| x * y).sum();
    for (x, y) in xs.zip(ys) {
        for ((lane, x), y) in lanes.iter_mut().zip(x).zip(y) {
            *lane = x.mul_add(*y, *lane);
        }
    }
    fold(lanes, |a, b| a + b) + tail
}

/// Turns scores into `softmax(scores)` in place and returns `log(sum(e^scores))`.
#[inline(always)]
pub(crate) fn softmax(row: &mut [f32]) -> f32 {
    let top = max(row);
    for x in row.iter_mut() {
        *x = exp(*x - top);
    }
    let total = sum(row);
    let scale = 1.0 / total;
    for x in row.iter_mut() {
        *x *= scale;
    }
    top + total.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_close_to_libm_and_zero_far_below() {
        for i in -8700..=8800 {
            let x = i as f32 / 100.0;
            let (got, want) = (exp(x), x.exp());
            assert!((got - want).abs() <= want * 3e-7, "exp({x}): {got} against {want}");
        }
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp(0.0), 1.0);
    }

    #[test]
    fn softmax_of_masked_rows_sums_to_one() {
        let mut row: Vec<f32> = (0..37).map(|i| (i as f32 * 0.7).sin() * 3.0).collect();
        row[5] = f32::NEG_INFINITY;
        let lse = row.iter().map(|x| x.exp()).sum::<f32>().ln();
        let same = softmax(&mut row);
        assert!((lse - same).abs() < 1e-6);
        assert_eq!(row[5], 0.0);
        assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-6);
    }
}
