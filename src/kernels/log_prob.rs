//! The log-probability of sampled tokens straight from hidden states, without a logits tensor of the whole batch.

use std::ops::Range;
use std::sync::Arc;

use candle_core::{CpuStorage, CustomOp2, DType, Layout, Result, Shape, Tensor};
use rayon::prelude::*;

use super::gemm::{Into, Matrix, gemm};
use super::linear::linear;
use super::{contiguous, data, exp, vectorised, wide};
use crate::prompt::{AllowedSet, Controls};

/// Logits held at once, in elements: about what the last cache holds.
const CHUNK_ELEMENTS: usize = 1 << 23;
/// Weights kept for the gradient, in elements (128 MiB); beyond, they are computed again.
const KEPT_ELEMENTS: usize = 1 << 25;
const LANES: usize = 16;

/// One sampled token: what was drawn, from which set, at which temperature.
#[derive(Clone, Copy, Debug)]
pub struct Draw {
    /// The token.
    pub token: u32,
    /// The control tokens that could have been drawn.
    pub allowed: AllowedSet,
    /// The temperature, above 0.
    pub temperature: f32,
}

/// For each row of `hidden [n, d]` and its draw: the log-probability of the token and the entropy of its
/// distribution, `[n, 2]`, in nats. `head [vocab, d]`.
///
/// The distribution is softmax(logits / temperature) with the forbidden tokens removed, as the engine's sampler has
/// it before top-p and top-k. Differentiable in `hidden` and `head`; logits are computed again for the gradient.
pub fn log_prob(
    hidden: &Tensor,
    head: &Tensor,
    draws: &Arc<Vec<Draw>>,
    controls: &Arc<Controls>,
) -> Result<Tensor> {
    if hidden.device().is_cpu() {
        let op = LogProb { draws: draws.clone(), controls: controls.clone(), elements: CHUNK_ELEMENTS };
        wide(hidden)?.apply_op2(&wide(head)?, op)
    } else {
        composed(hidden, head, draws, controls)
    }
}

/// `hidden [n, d]`, `head [vocab, d]` -> logits `[n, vocab]` in f32, those that [`log_prob`] sees.
pub fn logits(hidden: &Tensor, head: &Tensor) -> Result<Tensor> {
    if hidden.device().is_cpu() {
        linear(&wide(hidden)?, head)
    } else {
        hidden.matmul(&head.t()?)?.to_dtype(DType::F32)
    }
}

fn composed(hidden: &Tensor, head: &Tensor, draws: &[Draw], controls: &Controls) -> Result<Tensor> {
    let (device, vocab) = (hidden.device(), head.dim(0)?);
    let inverse: Vec<f32> = draws.iter().map(|d| 1.0 / d.temperature).collect();
    let inverse = Tensor::from_vec(inverse, (draws.len(), 1), device)?;
    let mut masks = vec![0f32; draws.len() * vocab];
    for (row, draw) in masks.chunks_exact_mut(vocab).zip(draws) {
        draw.allowed.mask(row, controls);
        row.iter_mut().for_each(|x| *x = x.max(-1e30));
    }
    let masks = Tensor::from_vec(masks, (draws.len(), vocab), device)?;
    let logits = hidden.matmul(&head.t()?)?.to_dtype(DType::F32)?;
    let logits = (logits.broadcast_mul(&inverse)? + masks)?;
    let shifted = logits.broadcast_sub(&logits.max_keepdim(1)?.detach())?;
    let log_p = shifted.broadcast_sub(&shifted.exp()?.sum_keepdim(1)?.log()?)?;
    let ids = Tensor::from_vec(draws.iter().map(|d| d.token).collect(), (draws.len(), 1), device)?;
    let entropy = (log_p.exp()? * &log_p)?.sum_keepdim(1)?.neg()?;
    Tensor::cat(&[log_p.gather(&ids, 1)?, entropy], 1)
}

/// What the gradient needs of each row of a forward pass: the factor on its weights, and its entropy.
type Row = (f32, f32);

/// The weights `e^(logit - top)` of a forward pass, as many as fit the budget, and what else its gradient needs.
#[derive(Default)]
pub(crate) struct Kept {
    weights: Vec<f32>,
    rows: Vec<Row>,
    /// Rows whose weights are kept.
    count: usize,
}

/// Where the gradient of the head goes.
pub(crate) enum HeadGradient<'a> {
    /// Over all of it, `[vocab, d]`, or added to it where that is asked for.
    Whole(&'a mut [f32], bool),
    /// Added to that of some tokens' rows, `[tokens, d]`.
    Rows(&'a [u32], &'a mut [f32]),
}

impl HeadGradient<'_> {
    /// Adds `slopes^T hidden`.
    fn add(&mut self, slopes: &[f32], vocab: usize, hidden: Matrix) {
        let n = slopes.len() / vocab;
        match self {
            Self::Whole(dhead, accumulate) => {
                let into = if *accumulate { Into::Add } else { Into::Set };
                gemm(Matrix::new(slopes, n, vocab).t(), hidden, into, dhead);
                *accumulate = true;
            }
            Self::Rows(ids, rows) => {
                let of = |row| ids.iter().map(move |&id| row_of(slopes, vocab, row)[id as usize]);
                let chosen: Vec<f32> = (0..n).flat_map(of).collect();
                gemm(Matrix::new(&chosen, n, ids.len()).t(), hidden, Into::Add, rows);
            }
        }
    }
}

fn row_of(data: &[f32], width: usize, row: usize) -> &[f32] {
    &data[row * width..][..width]
}

/// Draws to be scored, on slices.
#[derive(Clone, Copy)]
pub(crate) struct Readout<'a> {
    pub(crate) draws: &'a [Draw],
    pub(crate) controls: &'a Controls,
    /// Width of a hidden state.
    pub(crate) d: usize,
    /// Logits held at once that are not kept.
    elements: usize,
    /// Weights that are kept, at most.
    room: usize,
}

impl<'a> Readout<'a> {
    pub(crate) fn new(draws: &'a [Draw], controls: &'a Controls, d: usize) -> Self {
        Self { draws, controls, d, elements: CHUNK_ELEMENTS, room: KEPT_ELEMENTS }
    }

    /// An error unless `hidden` has a row for each draw and `head` one for each token.
    pub(crate) fn check(&self, hidden: &[f32], head: &[f32]) -> Result<()> {
        let (rows, vocab) = (hidden.len() / self.d, head.len() / self.d);
        if rows != self.draws.len() {
            candle_core::bail!("log_prob: {rows} rows, {} draws", self.draws.len());
        }
        match self.draws.iter().find(|draw| draw.token as usize >= vocab) {
            Some(draw) => {
                candle_core::bail!("log_prob: token {} outside a vocabulary of {vocab}", draw.token)
            }
            None => Ok(()),
        }
    }

    /// The first `kept` rows, then the others in chunks; each with the place of its weights in the memory.
    fn chunks(
        &self,
        vocab: usize,
        kept: usize,
    ) -> impl Iterator<Item = (Range<usize>, Range<usize>)> + use<> {
        let (n, step) = (self.draws.len(), (self.elements / vocab).max(1));
        let others = (kept..n).step_by(step).map(move |start| start..n.min(start + step));
        let first = std::iter::once(0..kept).filter(|rows| !rows.is_empty());
        first.map(move |rows| (rows, 0)).chain(others.map(move |rows| (rows, kept * vocab))).map(
            move |(rows, at)| {
                let place = at..at + rows.len() * vocab;
                (rows, place)
            },
        )
    }

    /// Log-probability and entropy of each draw, `out [draws, 2]`; fills `kept` as far as there is room.
    pub(crate) fn forward(&self, hidden: &[f32], head: &[f32], out: &mut [f32], kept: Option<&mut Kept>) {
        let vocab = head.len() / self.d;
        let (room, mut alone) = (if kept.is_some() { self.room } else { 0 }, Kept::default());
        let kept = kept.unwrap_or(&mut alone);
        kept.count = self.draws.len().min(room / vocab);
        kept.rows.clear();
        for (rows, place) in self.chunks(vocab, kept.count) {
            let out = &mut out[2 * rows.start..2 * rows.end];
            kept.rows.extend(self.weigh(rows, hidden, head, grown(&mut kept.weights, place), out));
        }
    }

    /// Turns the logits of some rows into weights.
    fn weigh(
        &self,
        rows: Range<usize>,
        hidden: &[f32],
        head: &[f32],
        weights: &mut [f32],
        out: &mut [f32],
    ) -> Vec<Row> {
        let (d, vocab) = (self.d, head.len() / self.d);
        let hidden = Matrix::new(&hidden[rows.start * d..rows.end * d], rows.len(), d);
        gemm(hidden, Matrix::new(head, vocab, d).t(), Into::Set, weights);
        let places = weights.par_chunks_mut(vocab).zip(out.par_chunks_mut(2)).zip(&self.draws[rows]);
        let row = |((row, out), draw): ((&mut [f32], &mut [f32]), &Draw)| {
            draw.allowed.mask(row, self.controls);
            vectorised(
                #[inline(always)]
                || softmax_weights(row, draw, out),
            )
        };
        places.map(row).collect()
    }

    /// The gradient of [`Readout::forward`] for `grad [draws, 2]`; `dhidden` is overwritten. Weights that were not kept
    /// are computed again.
    pub(crate) fn backward(
        &self,
        [hidden, head, grad]: [&[f32]; 3],
        kept: &mut Kept,
        mut dhidden: Option<&mut [f32]>,
        mut dhead: Option<HeadGradient>,
    ) {
        let (d, vocab) = (self.d, head.len() / self.d);
        for (rows, place) in self.chunks(vocab, kept.count) {
            let weights = grown(&mut kept.weights, place);
            if rows.start >= kept.count {
                let mut out = vec![0f32; 2 * rows.len()];
                let again = self.weigh(rows.clone(), hidden, head, weights, &mut out);
                kept.rows[rows.clone()].copy_from_slice(&again);
            }
            let places = weights.par_chunks_mut(vocab).zip(grad[2 * rows.start..].par_chunks(2));
            let known = self.draws[rows.clone()].par_iter().zip(&kept.rows[rows.clone()]);
            places.zip(known).for_each(|((row, grad), (draw, known))| {
                vectorised(
                    #[inline(always)]
                    || logit_gradient(row, draw, grad, *known),
                )
            });
            if let Some(dhidden) = &mut dhidden {
                let (slopes, head) = (Matrix::new(weights, rows.len(), vocab), Matrix::new(head, vocab, d));
                gemm(slopes, head, Into::Set, &mut dhidden[rows.start * d..rows.end * d]);
            }
            if let Some(dhead) = &mut dhead {
                let hidden = Matrix::new(&hidden[rows.start * d..rows.end * d], rows.len(), d);
                dhead.add(weights, vocab, hidden);
            }
        }
        kept.count = 0;
    }
}

fn grown(buffer: &mut Vec<f32>, place: Range<usize>) -> &mut [f32] {
    if buffer.len() < place.end {
        buffer.resize(place.end, 0.0);
    }
    &mut buffer[place]
}

/// Turns a row of logits into `e^(logit / T - top)`, with one exponential an element; forbidden tokens have none.
#[inline(always)]
fn softmax_weights(row: &mut [f32], draw: &Draw, out: &mut [f32]) -> Row {
    let inverse = 1.0 / draw.temperature;
    let top = exp::max(row) * inverse;
    let token = row[draw.token as usize] * inverse - top;
    let (mut totals, mut sums) = ([0f32; LANES], [0f32; LANES]);
    // Whole chunks apart, or nothing is vectorised.
    let mut chunks = row.chunks_exact_mut(LANES);
    for chunk in &mut chunks {
        weigh(chunk, inverse, top, &mut totals, &mut sums);
    }
    weigh(chunks.into_remainder(), inverse, top, &mut totals, &mut sums);
    let (total, sum) = (exp::fold(totals, |a, b| a + b), exp::fold(sums, |a, b| a + b));
    let entropy = total.ln() - sum / total;
    (out[0], out[1]) = (token - total.ln(), entropy);
    (1.0 / total, entropy)
}

#[inline(always)]
fn weigh(logits: &mut [f32], inverse: f32, top: f32, totals: &mut [f32; LANES], sums: &mut [f32; LANES]) {
    for ((x, total), sum) in logits.iter_mut().zip(totals).zip(sums) {
        let z = *x * inverse - top;
        let z = if z > -100.0 { z } else { -100.0 };
        *x = exp::exp(z);
        *total += *x;
        *sum += *x * z;
    }
}

/// Turns a row of weights into the gradient of its logits:
/// `(g_logp (1[token] - p) - g_entropy p (log p + H)) / T`.
#[inline(always)]
fn logit_gradient(row: &mut [f32], draw: &Draw, grad: &[f32], (scale, entropy): Row) {
    let (of_log_p, of_entropy) = (grad[0], grad[1]);
    let inverse = 1.0 / draw.temperature;
    if of_entropy == 0.0 {
        let factor = -scale * of_log_p * inverse;
        row.iter_mut().for_each(|x| *x *= factor);
    } else {
        for x in row.iter_mut() {
            let p = *x * scale;
            *x = -p * (of_log_p + of_entropy * (p.max(f32::MIN_POSITIVE).ln() + entropy)) * inverse;
        }
    }
    row[draw.token as usize] += of_log_p * inverse;
}

struct LogProb {
    draws: Arc<Vec<Draw>>,
    controls: Arc<Controls>,
    /// Logits held at once.
    elements: usize,
}

impl LogProb {
    fn readout(&self, d: usize) -> Readout<'_> {
        Readout { elements: self.elements, ..Readout::new(&self.draws, &self.controls, d) }
    }
}

impl CustomOp2 for LogProb {
    fn name(&self) -> &'static str {
        "log_prob"
    }

    fn cpu_fwd(
        &self,
        h: &CpuStorage,
        lh: &Layout,
        w: &CpuStorage,
        lw: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let ((n, d), (vocab, dw)) = (lh.shape().dims2()?, lw.shape().dims2()?);
        if d != dw {
            candle_core::bail!("log_prob: hidden [{n}, {d}], head [{vocab}, {dw}]");
        }
        let (hidden, head, readout) = (contiguous(h, lh)?, contiguous(w, lw)?, self.readout(d));
        readout.check(hidden, head)?;
        let mut out = vec![0f32; n * 2];
        readout.forward(hidden, head, &mut out, None);
        Ok((CpuStorage::F32(out), (n, 2).into()))
    }

    fn bwd(
        &self,
        h: &Tensor,
        w: &Tensor,
        _: &Tensor,
        grad: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let mut dh = h.track_op().then(|| vec![0f32; h.elem_count()]);
        let mut dw = w.track_op().then(|| vec![0f32; w.elem_count()]);
        let grad = grad.contiguous()?;
        let inputs = [data(h)?, data(w)?, data(&grad)?];
        let mut kept = Kept { rows: vec![(0.0, 0.0); self.draws.len()], ..Kept::default() };
        self.readout(h.dim(1)?).backward(
            inputs.each_ref().map(|data| &**data),
            &mut kept,
            dh.as_deref_mut(),
            dw.as_deref_mut().map(|dw| HeadGradient::Whole(dw, false)),
        );
        let tensor = |data: Option<Vec<f32>>, like: &Tensor| {
            data.map(|data| Tensor::from_vec(data, like.shape(), like.device())).transpose()
        };
        Ok((tensor(dh, h)?, tensor(dw, w)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::tests::{check_gradients, random};
    use crate::prompt::{Control, Tag};

    #[test]
    fn fused_equals_composed_and_gradients_agree() -> Result<()> {
        let controls =
            Controls { tags: Some([1, 2, 3, 4, 5, 6]), end: vec![0], newline: vec![7], path_rewind: 0 };
        let sets = [
            AllowedSet::ALL,
            AllowedSet::ALL.without(Control::End),
            AllowedSet::ALL.without(Control::Tag(Tag::Path)),
        ];
        let draws = (0..9).map(|i| Draw {
            token: 7 + i,
            allowed: sets[i as usize % 3],
            temperature: [1.0, 0.7][i as usize % 2],
        });
        let (draws, controls) = (Arc::new(draws.collect::<Vec<_>>()), Arc::new(controls));
        // What is kept is what is computed again: of no row, of some, of all.
        let (hidden, head) = (random(&[9, 12], 1), random(&[30, 12], 2));
        let (hidden, head) = (data(&hidden)?, data(&head)?);
        let grad: Vec<f32> = (0..18).map(|i| (i as f32).sin()).collect();
        let gradients = |room| {
            let plain = Readout::new(&draws, &controls, 12);
            let readout = Readout { elements: 4 * 30, room, ..plain };
            let (mut out, mut dh, mut dw) = (vec![0f32; 18], vec![0f32; 9 * 12], vec![0f32; 30 * 12]);
            let (mut kept, mut rows) = (Kept::default(), vec![0f32; 2 * 12]);
            readout.forward(&hidden, &head, &mut out, Some(&mut kept));
            let dhead = HeadGradient::Whole(&mut dw, false);
            readout.backward([&hidden, &head, &grad], &mut kept, Some(&mut dh), Some(dhead));
            readout.forward(&hidden, &head, &mut out, Some(&mut kept));
            let some = HeadGradient::Rows(&[7, 2], &mut rows);
            readout.backward([&hidden, &head, &grad], &mut kept, None, Some(some));
            let gap = |row: usize, id: usize| {
                let pairs = rows[row * 12..][..12].iter().zip(&dw[id * 12..][..12]);
                pairs.fold(0f32, |gap, (a, b)| gap.max((a - b).abs()))
            };
            assert!(gap(0, 7) < 1e-5 && gap(1, 2) < 1e-5, "rows of the head");
            (out, dh, dw)
        };
        let all = gradients(9 * 30);
        for room in [0, 5 * 30] {
            let (out, dh, dw) = gradients(room);
            assert_eq!((&out, &dh), (&all.0, &all.1));
            let gap = dw.iter().zip(&all.2).fold(0f32, |gap, (a, b)| gap.max((a - b).abs()));
            assert!(gap < 1e-5, "room for {room}: {gap}");
        }
        // In one chunk, and in chunks of four rows.
        for elements in [CHUNK_ELEMENTS, 4 * 30] {
            let op = || LogProb { draws: draws.clone(), controls: controls.clone(), elements };
            check_gradients(
                &[random(&[9, 12], 1), random(&[30, 12], 2)],
                |t| t[0].apply_op2(&t[1], op()),
                |t| composed(&t[0], &t[1], &draws, &controls),
            )?;
        }
        Ok(())
    }
}
