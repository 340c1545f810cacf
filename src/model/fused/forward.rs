//! The forward pass.

use candle_core::Result;

use super::project::project;
use super::{Activations, Memory, Pass, Work, dense, sized};
use crate::kernels::attention::tiled;
use crate::kernels::{self, data, rms_norm, rope, swiglu};
use crate::model::network::Layer;

impl Pass<'_> {
    /// Log-probability and entropy of every draw.
    pub(in crate::model) fn forward(&mut self) -> Result<Vec<f32>> {
        let Some(mut memory) = self.memory.take() else { candle_core::bail!("the pass has lost its memory") };
        let pairs = self.run(&mut memory);
        self.memory = Some(memory);
        pairs
    }

    fn run(&self, memory: &mut Memory) -> Result<Vec<f32>> {
        let (layers, d) = (&self.network.layers, self.decoder.config().hidden_size);
        memory.stream.resize_with(layers.len() + 1, Vec::new);
        memory.layers.resize_with(layers.len().max(memory.layers.len()), Activations::default);
        self.embed(sized(&mut memory.stream[0], self.batch.tokens.len() * d))?;
        for (i, layer) in layers.iter().enumerate() {
            let (from, to) = (self.place(i), self.place(i + 1));
            let mut out = std::mem::take(&mut memory.stream[to]);
            let held = &mut memory.layers[i % self.held()];
            self.attend(layer, &memory.stream[from], held, &mut memory.work)?;
            self.feed_forward(layer, held, &mut out, &mut memory.work)?;
            memory.stream[to] = out;
        }
        self.read_out(memory)
    }

    fn embed(&self, out: &mut [f32]) -> Result<()> {
        let table = data(dense(&self.network.embedding)?)?;
        let d = self.decoder.config().hidden_size;
        for (out, &token) in out.chunks_exact_mut(d).zip(self.batch.tokens) {
            out.copy_from_slice(&table[token as usize * d..][..d]);
        }
        Ok(())
    }

    /// `x` through the attention, from the layer's input to `middle`.
    pub(super) fn attend(
        &self,
        layer: &Layer,
        x: &[f32],
        held: &mut Activations,
        work: &mut Work,
    ) -> Result<()> {
        let (part, rows, s) = (&layer.attention, self.batch.tokens.len(), self.sizes);
        let normed = sized(&mut work.normed, x.len());
        rms_norm::forward(
            x,
            &data(&layer.attention_norm)?,
            self.eps(),
            normed,
            sized(&mut held.inverses, rows),
        );
        let (wide, narrow) = (rows * s.heads * s.width, rows * s.kv_heads * s.width);
        project(&part.v, normed, sized(&mut held.v, narrow), false)?;
        let both = [(&part.q, &mut held.q, s.heads, wide), (&part.k, &mut held.k, s.kv_heads, narrow)];
        for (i, (projection, out, heads, len)) in both.into_iter().enumerate() {
            match &part.qk_norm {
                None => project(projection, normed, sized(out, len), false)?,
                Some(norms) => {
                    let weight = data([&norms.0, &norms.1][i])?;
                    let raw = sized(&mut held.raw[i], len);
                    project(projection, normed, raw, false)?;
                    let inverses = sized(&mut held.raw_inverses[i], rows * heads);
                    rms_norm::forward(raw, &weight, self.eps(), sized(out, len), inverses);
                }
            }
            rope::rotate(out, heads, &self.rope, 1.0);
        }
        let (read, lse) = (sized(&mut held.read, wide), sized(&mut held.lse, rows * s.heads));
        tiled::forward([&held.q, &held.k, &held.v], self.batch.visibility, s, read, lse, &mut work.tiles);
        let middle = sized(&mut held.middle, x.len());
        kernels::copy(x, middle);
        project(&part.o, read, middle, true)
    }

    /// `middle` through the MLP, to the layer's output.
    pub(super) fn feed_forward(
        &self,
        layer: &Layer,
        held: &mut Activations,
        out: &mut Vec<f32>,
        work: &mut Work,
    ) -> Result<()> {
        let rows = self.batch.tokens.len();
        self.gates(layer, held, work)?;
        let inner = sized(&mut work.inner, rows * self.decoder.config().intermediate_size);
        swiglu::forward(&held.gate, &held.up, inner);
        let out = sized(out, held.middle.len());
        kernels::copy(&held.middle, out);
        project(&layer.down, inner, out, true)
    }

    /// `middle` to the two factors of the MLP.
    pub(super) fn gates(&self, layer: &Layer, held: &mut Activations, work: &mut Work) -> Result<()> {
        let rows = self.batch.tokens.len();
        let normed = sized(&mut work.normed, held.middle.len());
        let inverses = sized(&mut held.middle_inverses, rows);
        rms_norm::forward(&held.middle, &data(&layer.mlp_norm)?, self.eps(), normed, inverses);
        let len = rows * self.decoder.config().intermediate_size;
        project(&layer.gate, normed, sized(&mut held.gate, len), false)?;
        project(&layer.up, normed, sized(&mut held.up, len), false)
    }

    fn read_out(&self, memory: &mut Memory) -> Result<Vec<f32>> {
        let (d, n) = (self.decoder.config().hidden_size, self.batch.draws.len());
        let stream = &memory.stream[self.place(self.network.layers.len())];
        let last = sized(&mut memory.last, n * d);
        for (to, &row) in last.chunks_exact_mut(d).zip(self.batch.predictors) {
            to.copy_from_slice(&stream[row as usize * d..][..d]);
        }
        let (hidden, inverses) = (sized(&mut memory.hidden, n * d), sized(&mut memory.last_inverses, n));
        rms_norm::forward(last, &data(&self.network.norm)?, self.eps(), hidden, inverses);
        let head = kernels::data(dense(&self.network.head)?)?;
        let readout = self.readout();
        readout.check(hidden, &head)?;
        let mut pairs = vec![0f32; 2 * n];
        readout.forward(hidden, &head, &mut pairs, self.keep.then_some(&mut memory.kept));
        Ok(pairs)
    }
}
