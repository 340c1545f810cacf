//! The log-probability of sampled tokens straight from hidden states, without a logits tensor of the whole batch.

use std::sync::Arc;

use candle_core::{CpuStorage, CustomOp2, DType, Layout, Result, Shape, Tensor};
use rayon::prelude::*;

use super::gemm::Into;
use super::linear::{input_gradient, linear, product, weight_gradient};
use super::{contiguous, exp, vectorised, wide, with_data};
use crate::prompt::{AllowedSet, Controls};

/// Logits held at once, in elements; bounds the scratch memory.
const CHUNK_ELEMENTS: usize = 1 << 24;

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

struct LogProb {
    draws: Arc<Vec<Draw>>,
    controls: Arc<Controls>,
    /// Logits held at once.
    elements: usize,
}

impl LogProb {
    /// Calls `f(rows, log-probabilities [rows, vocab])` for chunk after chunk.
    fn chunks<F>(&self, hidden: &[f32], head: &[f32], d: usize, mut f: F) -> Result<()>
    where
        F: FnMut(std::ops::Range<usize>, &mut [f32]) -> Result<()>,
    {
        let vocab = head.len() / d;
        let step = (self.elements / vocab).max(1);
        let mut logits = vec![0f32; step.min(self.draws.len()) * vocab];
        for start in (0..self.draws.len()).step_by(step) {
            let rows = start..self.draws.len().min(start + step);
            let logits = &mut logits[..rows.len() * vocab];
            product(&hidden[rows.start * d..rows.end * d], head, d, Into::Set, logits);
            logits.par_chunks_mut(vocab).zip(&self.draws[rows.clone()]).for_each(|(row, draw)| {
                draw.allowed.mask(row, &self.controls);
                vectorised(
                    #[inline(always)]
                    || {
                        let inverse = 1.0 / draw.temperature;
                        row.iter_mut().for_each(|x| *x *= inverse);
                        let total = exp::log_sum_exp(row);
                        row.iter_mut().for_each(|x| *x -= total);
                    },
                )
            });
            f(rows, logits)?;
        }
        Ok(())
    }
}

/// `-sum(p log p)`; forbidden tokens have p = 0.
#[inline(always)]
fn entropy(log_p: &[f32]) -> f32 {
    let mut lanes = [0f32; 8];
    for chunk in log_p.chunks(8) {
        for (s, &l) in lanes.iter_mut().zip(chunk) {
            *s -= if l > -80.0 { exp::exp(l) * l } else { 0.0 };
        }
    }
    lanes.iter().sum()
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
        if d != dw || n != self.draws.len() {
            candle_core::bail!(
                "log_prob: hidden [{n}, {d}], head [{vocab}, {dw}], {} draws",
                self.draws.len()
            );
        }
        if let Some(draw) = self.draws.iter().find(|t| t.token as usize >= vocab) {
            candle_core::bail!("log_prob: token {} outside a vocabulary of {vocab}", draw.token);
        }
        let mut out = vec![0f32; n * 2];
        self.chunks(contiguous(h, lh)?, contiguous(w, lw)?, d, |rows, log_p| {
            let out = out[rows.start * 2..rows.end * 2].par_chunks_mut(2);
            out.zip(log_p.par_chunks(vocab)).zip(&self.draws[rows]).for_each(|((out, log_p), draw)| {
                out[0] = log_p[draw.token as usize];
                out[1] = vectorised(
                    #[inline(always)]
                    || entropy(log_p),
                );
            });
            Ok(())
        })?;
        Ok((CpuStorage::F32(out), (n, 2).into()))
    }

    fn bwd(
        &self,
        h: &Tensor,
        w: &Tensor,
        _: &Tensor,
        grad: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let ((_, d), vocab) = (h.dims2()?, w.dim(0)?);
        let (of_hidden, of_head) = (h.track_op(), w.track_op());
        // Detached, or the gradients would keep the whole graph that h and w stand in alive.
        let (h, w) = (&h.detach(), &w.detach());
        let grad = grad.flatten_all()?.to_vec1::<f32>()?;
        let (mut dh, mut dw) = (Vec::new(), None::<Tensor>);
        with_data(h, |hidden| {
            with_data(w, |head| {
                self.chunks(hidden, head, d, |rows, log_p| {
                    let grads = grad[rows.start * 2..rows.end * 2].par_chunks(2);
                    log_p.par_chunks_mut(vocab).zip(grads).zip(&self.draws[rows.clone()]).for_each(
                        |((row, grad), draw)| {
                            vectorised(
                                #[inline(always)]
                                || logit_gradient(row, draw, grad),
                            )
                        },
                    );
                    let dlogits = Tensor::from_slice(log_p, (rows.len(), vocab), h.device())?;
                    if of_hidden {
                        dh.push(input_gradient(&dlogits, w)?);
                    }
                    if !of_head {
                        return Ok(());
                    }
                    let share = weight_gradient(&dlogits, &h.narrow(0, rows.start, rows.len())?)?;
                    dw = Some(match dw.take() {
                        Some(sum) => (sum + share)?,
                        None => share,
                    });
                    Ok(())
                })
            })
        })?;
        Ok((of_hidden.then(|| Tensor::cat(&dh, 0)).transpose()?, dw))
    }
}

/// Turns a row of log-probabilities into the gradient of its logits:
/// `(g_logp (1[token] - p) - g_entropy p (log p + H)) / T`.
#[inline(always)]
fn logit_gradient(row: &mut [f32], draw: &Draw, grad: &[f32]) {
    let (of_log_p, of_entropy) = (grad[0], grad[1]);
    let h = if of_entropy == 0.0 { 0.0 } else { entropy(row) };
    let inverse = 1.0 / draw.temperature;
    for x in row.iter_mut() {
        let log_p = if *x > -80.0 { *x } else { 0.0 };
        let p = exp::exp(*x);
        *x = -p * (of_log_p + of_entropy * (log_p + h)) * inverse;
    }
    row[draw.token as usize] += of_log_p * inverse;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::tests::{check_gradients, random};
    use crate::prompt::{Control, Tag};

    #[test]
    fn fused_equals_composed_and_gradients_agree() -> Result<()> {
        let controls = Controls { tags: Some([1, 2, 3, 4, 5, 6]), end: vec![0], newline: vec![7] };
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
