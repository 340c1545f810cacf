//! The gradient of the forward pass, layer by layer from the end. The gradient of the residual stream lies in one
//! buffer to which each branch adds; those of the weights are added where a step sums them.

use candle_core::{Result, Tensor};

use super::project::input_gradient;
use super::{Activations, Memory, Pass, Work, dense, sized};
use crate::kernels::attention::tiled;
use crate::kernels::log_prob::HeadGradient;
use crate::kernels::{data, rms_norm, rope, swiglu};
use crate::model::gradients::Gradients;
use crate::model::network::Layer;
use crate::model::parameters::{EMBEDDING, HEAD, NORM, projection as module};

/// What is trained of a table, the embedding or the head.
enum Table<'a> {
    Whole,
    /// The rows of some tokens, which are a variable.
    Rows(String, &'a [u32]),
    Fixed,
}

impl Pass<'_> {
    /// Adds the gradients that belong to those of the pairs, `[draws, 2]`.
    pub(in crate::model) fn backward(mut self, of_pairs: &Tensor, gradients: &mut Gradients) -> Result<()> {
        let Some(mut memory) = self.memory.take() else { candle_core::bail!("the pass has lost its memory") };
        let of_pairs = of_pairs.contiguous()?;
        let done = self.unwind(&data(&of_pairs)?, &mut memory, gradients);
        self.memory = Some(memory);
        done
    }

    fn unwind(&self, of_pairs: &[f32], memory: &mut Memory, gradients: &mut Gradients) -> Result<()> {
        self.read_out_back(of_pairs, memory, gradients)?;
        for (i, layer) in self.network.layers.iter().enumerate().rev() {
            let held = &mut memory.layers[i % self.held()];
            if self.batch.recompute {
                self.attend(layer, &memory.stream[i], held, &mut memory.work)?;
                self.gates(layer, held, &mut memory.work)?;
            }
            self.feed_forward_back(layer, i, held, &mut memory.work, gradients)?;
            self.attend_back(layer, i, &memory.stream[i], held, &mut memory.work, gradients)?;
        }
        self.embed_back(&memory.work.slope, gradients)
    }

    fn read_out_back(&self, of_pairs: &[f32], memory: &mut Memory, gradients: &mut Gradients) -> Result<()> {
        let d = self.decoder.config().hidden_size;
        let (head, norm) = (dense(&self.network.head)?, &self.network.norm);
        let name = if self.decoder.config().tie_word_embeddings { EMBEDDING } else { HEAD };
        let slope = sized(&mut memory.work.normed_slope, memory.hidden.len());
        let kept = &mut memory.kept;
        let inputs = [&memory.hidden, &*data(head)?, of_pairs];
        let mut back =
            |dhead: Option<HeadGradient>| self.readout().backward(inputs, kept, Some(&mut *slope), dhead);
        match self.table(name) {
            Table::Whole => {
                gradients.write_with(name, head, |data, add| back(Some(HeadGradient::Whole(data, add))))?
            }
            Table::Rows(variable, ids) => {
                let like = &self.decoder.vars()[&variable];
                gradients.add_with(&variable, like, |data| back(Some(HeadGradient::Rows(ids, data))))?;
            }
            Table::Fixed => back(None),
        }
        // The rows that predict get their gradients, the others none; a row may predict several draws.
        let last = &memory.last;
        let mut of_last = vec![0f32; last.len()];
        let weight = data(norm)?;
        let inputs = [last, &*weight, &memory.last_inverses, slope];
        self.norm_gradients(NORM, norm, inputs, &mut of_last, gradients)?;
        let stream = sized(&mut memory.work.slope, self.batch.tokens.len() * d);
        stream.fill(0.0);
        for (from, &row) in of_last.chunks_exact(d).zip(self.batch.predictors) {
            stream[row as usize * d..][..d].iter_mut().zip(from).for_each(|(to, from)| *to += from);
        }
        Ok(())
    }

    fn feed_forward_back(
        &self,
        layer: &Layer,
        index: usize,
        held: &mut Activations,
        work: &mut Work,
        gradients: &mut Gradients,
    ) -> Result<()> {
        let Work { normed, inner, slope, normed_slope, .. } = work;
        let inner = sized(inner, held.gate.len());
        input_gradient(&layer.down, slope, inner, false)?;
        swiglu::backward(&mut held.gate, &mut held.up, inner);
        self.weight_gradients(&layer.down, &module(index, "down_proj"), slope, inner, gradients)?;
        let (weight, inverses) = (&layer.mlp_norm, &mut held.middle_inverses);
        let normed = sized(normed, held.middle.len());
        rms_norm::forward(&held.middle, &data(weight)?, self.eps(), normed, inverses);
        let normed_slope = sized(normed_slope, normed.len());
        for (i, (projection, dy)) in
            [(&layer.gate, &held.gate), (&layer.up, &held.up)].into_iter().enumerate()
        {
            let name = module(index, ["gate_proj", "up_proj"][i]);
            self.weight_gradients(projection, &name, dy, normed, gradients)?;
            input_gradient(projection, dy, normed_slope, i > 0)?;
        }
        let inputs = [&held.middle, &*data(weight)?, &*inverses, &*normed_slope];
        let name = format!("model.layers.{index}.post_attention_layernorm.weight");
        self.norm_gradients(&name, weight, inputs, slope, gradients)
    }

    fn attend_back(
        &self,
        layer: &Layer,
        index: usize,
        x: &[f32],
        held: &mut Activations,
        work: &mut Work,
        gradients: &mut Gradients,
    ) -> Result<()> {
        let (part, s) = (&layer.attention, self.sizes);
        let Work { normed, slope, normed_slope, read_slope, qkv_slopes, tiles, .. } = work;
        let read_slope = sized(read_slope, held.read.len());
        input_gradient(&part.o, slope, read_slope, false)?;
        self.weight_gradients(&part.o, &module(index, "o_proj"), slope, &held.read, gradients)?;
        let [dq, dk, dv] = qkv_slopes;
        let slopes = [sized(dq, held.q.len()), sized(dk, held.k.len()), sized(dv, held.v.len())];
        let inputs = [&*held.q, &held.k, &held.v, &held.read, read_slope];
        tiled::backward(inputs, &held.lse, self.batch.visibility, s, slopes, tiles);
        for (i, (slope, heads)) in [(&mut *dq, s.heads), (&mut *dk, s.kv_heads)].into_iter().enumerate() {
            rope::rotate(slope, heads, &self.rope, -1.0);
            let Some(norms) = &part.qk_norm else { continue };
            let weight = [&norms.0, &norms.1][i];
            let inputs = [&*held.raw[i], &*data(weight)?, &held.raw_inverses[i], &*slope];
            // Queries and keys are not needed any more.
            let raw_slope = [&mut held.q, &mut held.k][i].as_mut_slice();
            raw_slope.fill(0.0);
            let name = format!("model.layers.{index}.self_attn.{}.weight", ["q_norm", "k_norm"][i]);
            self.norm_gradients(&name, [&norms.0, &norms.1][i], inputs, raw_slope, gradients)?;
            slope.copy_from_slice(raw_slope);
        }
        let (weight, normed) = (&layer.attention_norm, sized(normed, x.len()));
        rms_norm::forward(x, &data(weight)?, self.eps(), normed, &mut held.inverses);
        let normed_slope = sized(normed_slope, x.len());
        let parts = [(&part.q, "q_proj", dq), (&part.k, "k_proj", dk), (&part.v, "v_proj", dv)];
        for (i, (projection, name, dy)) in parts.into_iter().enumerate() {
            self.weight_gradients(projection, &module(index, name), dy, normed, gradients)?;
            input_gradient(projection, dy, normed_slope, i > 0)?;
        }
        let inputs = [x, &*data(weight)?, &held.inverses, &*normed_slope];
        let name = format!("model.layers.{index}.input_layernorm.weight");
        self.norm_gradients(&name, weight, inputs, slope, gradients)
    }

    fn embed_back(&self, slope: &[f32], gradients: &mut Gradients) -> Result<()> {
        let d = self.decoder.config().hidden_size;
        let add = |table: &mut [f32], place: &dyn Fn(u32) -> Option<usize>| {
            for (from, &token) in slope.chunks_exact(d).zip(self.batch.tokens) {
                let Some(row) = place(token) else { continue };
                table[row * d..][..d].iter_mut().zip(from).for_each(|(to, from)| *to += from);
            }
        };
        match self.table(EMBEDDING) {
            Table::Whole => gradients.add_with(EMBEDDING, dense(&self.network.embedding)?, |table| {
                add(table, &|token| Some(token as usize));
            }),
            Table::Rows(variable, ids) => {
                let like = &self.decoder.vars()[&variable];
                let place = |token| ids.iter().position(|&id| id == token);
                gradients.add_with(&variable, like, |table| add(table, &place))
            }
            Table::Fixed => Ok(()),
        }
    }

    fn norm_gradients(
        &self,
        name: &str,
        weight: &Tensor,
        inputs: [&[f32]; 4],
        dx: &mut [f32],
        gradients: &mut Gradients,
    ) -> Result<()> {
        match self.trains(name) {
            true => gradients.add_with(name, weight, |dweight| rms_norm::backward(inputs, dx, dweight)),
            false => {
                rms_norm::backward(inputs, dx, &mut vec![0f32; weight.elem_count()]);
                Ok(())
            }
        }
    }

    fn table(&self, name: &str) -> Table<'_> {
        match self.decoder.adapter().and_then(|adapter| adapter.rows_of(name)) {
            Some((variable, ids)) => Table::Rows(variable, ids),
            None if self.trains(name) => Table::Whole,
            None => Table::Fixed,
        }
    }
}
