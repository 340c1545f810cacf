//! Some rows on their way through the layers, with the buffers of one thread or of all.

use std::ops::Range;

use candle_core::Result;
use rayon::prelude::*;

use super::projections::Projections;
use super::{Angles, Layer, Pass, Sizes, Take};
use crate::kernels::{Input, KeysValues, Pages, Scratch, Threads, norm_rows, rotate_row, swiglu_rows};
use crate::model::Weight;

/// Elements that are worth a thread of their own in operations between products.
const TASK: usize = 1 << 14;

/// Rows and their buffers, each `[rows, ...]`.
#[derive(Default)]
pub(super) struct Group {
    rows: Range<usize>,
    /// Which of these are wanted, counted within the group.
    wanted: Vec<usize>,
    /// How many wanted rows are in groups before this one.
    wanted_before: usize,
    threads: Option<Threads>,
    /// The residual stream.
    x: Vec<f32>,
    normed: Vec<f32>,
    qkv: Vec<f32>,
    attended: Vec<f32>,
    /// Gate and up; after the activation its result is in the gate's place.
    gate_up: Vec<f32>,
    logits: Vec<f32>,
    scratch: Scratch,
}

impl Group {
    /// Takes rows on; `wanted` are those of the whole pass.
    pub(super) fn take_rows(&mut self, rows: Range<usize>, wanted: &[u32], threads: Threads) {
        let first = |row: usize| wanted.partition_point(|&wanted| (wanted as usize) < row);
        self.wanted_before = first(rows.start);
        self.wanted.clear();
        let mine = &wanted[self.wanted_before..first(rows.end)];
        self.wanted.extend(mine.iter().map(|&row| row as usize - rows.start));
        self.rows = rows;
        self.threads = Some(threads);
    }

    fn threads(&self) -> Threads {
        self.threads.unwrap_or(Threads::All)
    }

    fn input<'a>(&self, data: &'a [f32], stride: usize) -> Input<'a> {
        Input { data, stride, rows: self.rows.len() }
    }

    /// The embedded tokens.
    pub(super) fn embed(&mut self, embedding: &Weight, sizes: Sizes, tokens: &[u32]) -> Result<()> {
        self.x = super::numbers(&embedding.rows(&tokens[self.rows.clone()])?)?;
        let rows = self.rows.len();
        self.normed.resize(rows * sizes.d, 0.0);
        self.qkv.resize(rows * sizes.qkv(), 0.0);
        self.attended.resize(rows * sizes.q(), 0.0);
        self.gate_up.resize(rows * 2 * sizes.inner, 0.0);
        Ok(())
    }

    /// Queries, keys and values of a layer.
    pub(super) fn begin(&mut self, layer: &Layer, sizes: Sizes, angles: &Angles, pass: &Pass) -> Result<()> {
        self.norm(&layer.attention_norm, sizes);
        let normed = self.input(&self.normed, sizes.d);
        let threads = self.threads();
        layer.qkv.apply(normed, &mut self.qkv, false, threads)?;
        let positions = &pass.inputs.positions[self.rows.clone()];
        let turn = |(row, &position): (&mut [f32], &u32)| {
            let (heads, _) = row.split_at_mut(sizes.q() + sizes.kv());
            if let Some((q_norm, k_norm)) = &layer.qk_norm {
                let (q, k) = heads.split_at_mut(sizes.q());
                norm_in_place(q, q_norm, sizes.eps);
                norm_in_place(k, k_norm, sizes.eps);
            }
            let (cos, sin) = angles.of(position);
            rotate_row(heads, cos, sin);
        };
        let width = sizes.qkv();
        match threads {
            Threads::One => self.qkv.chunks_exact_mut(width).zip(positions).for_each(turn),
            Threads::All => {
                let rows = self.qkv.par_chunks_exact_mut(width).zip(positions);
                rows.with_min_len(TASK.div_ceil(width)).for_each(turn);
            }
        }
        Ok(())
    }

    /// Keys and values of a layer.
    pub(super) fn keys_values(&self, sizes: Sizes) -> KeysValues<'_> {
        let keys = &self.qkv[sizes.q()..];
        KeysValues { rows: &self.rows, keys, values: &keys[sizes.kv()..], stride: sizes.qkv() }
    }

    /// The rest of a layer: attention and MLP.
    pub(super) fn finish(&mut self, layer: &Layer, sizes: Sizes, pages: &Pages, pass: &Pass) -> Result<()> {
        let threads = self.threads();
        self.attend(sizes, pages, pass);
        layer.o.apply(self.input(&self.attended, sizes.q()), &mut self.x, true, threads)?;
        self.norm(&layer.mlp_norm, sizes);
        layer.gate_up.apply(self.input(&self.normed, sizes.d), &mut self.gate_up, false, threads)?;
        let width = 2 * sizes.inner;
        match threads {
            Threads::One => swiglu_rows(&mut self.gate_up, sizes.inner),
            Threads::All => {
                let rows = TASK.div_ceil(width);
                self.gate_up.par_chunks_mut(rows * width).for_each(|rows| swiglu_rows(rows, sizes.inner));
            }
        }
        layer.down.apply(self.input(&self.gate_up, width), &mut self.x, true, threads)
    }

    fn attend(&mut self, sizes: Sizes, pages: &Pages, pass: &Pass) {
        let width = sizes.q() / sizes.kv_heads;
        let (qkv, rows, threads) = (&self.qkv, &self.rows, self.threads());
        let place = |task: usize| (task % sizes.kv_heads, pass.sight(rows.start + task / sizes.kv_heads));
        let attend = |scratch: &mut Scratch, task: usize, out: &mut [f32]| {
            let (row, head) = (task / sizes.kv_heads, task % sizes.kv_heads);
            let q = &qkv[row * sizes.qkv() + head * width..][..width];
            let next = (task + 1 < rows.len() * sizes.kv_heads).then(|| place(task + 1));
            pages.attend(place(task), next, q, out, scratch);
        };
        match threads {
            Threads::One => {
                let tasks = self.attended.chunks_exact_mut(width).enumerate();
                tasks.for_each(|(task, out)| attend(&mut self.scratch, task, out));
            }
            Threads::All => {
                let tasks = self.attended.par_chunks_exact_mut(width).enumerate();
                tasks.for_each_init(Scratch::default, |scratch, (task, out)| attend(scratch, task, out));
            }
        }
    }

    fn norm(&mut self, weight: &[f32], sizes: Sizes) {
        match self.threads() {
            Threads::One => norm_rows(&self.x, weight, sizes.eps, &mut self.normed),
            Threads::All => {
                let task = TASK.div_ceil(sizes.d) * sizes.d;
                let rows = self.x.par_chunks(task).zip(self.normed.par_chunks_mut(task));
                rows.for_each(|(x, out)| norm_rows(x, weight, sizes.eps, out));
            }
        }
    }

    /// The logits of the wanted rows.
    pub(super) fn hand_out(
        &mut self,
        norm: &[f32],
        head: &Projections,
        sizes: Sizes,
        take: Take,
    ) -> Result<()> {
        let (rows, d, vocab) = (self.wanted.len(), sizes.d, head.columns);
        if rows == 0 {
            return Ok(());
        }
        for (&row, out) in self.wanted.iter().zip(self.normed.chunks_exact_mut(d)) {
            norm_rows(&self.x[row * d..(row + 1) * d], norm, sizes.eps, out);
        }
        self.logits.resize(rows * vocab, 0.0);
        let input = Input { data: &self.normed, stride: d, rows };
        let (before, threads) = (self.wanted_before, self.threads());
        head.apply(input, &mut self.logits, false, threads)?;
        match threads {
            Threads::One => {
                let rows = self.logits.chunks_exact_mut(vocab).enumerate();
                rows.for_each(|(i, row)| take(before + i, row));
            }
            Threads::All => {
                let rows = self.logits.par_chunks_exact_mut(vocab).enumerate();
                rows.for_each(|(i, row)| take(before + i, row));
            }
        }
        Ok(())
    }
}

fn norm_in_place(heads: &mut [f32], weight: &[f32], eps: f32) {
    let before = heads.to_vec();
    norm_rows(&before, weight, eps, heads);
}
