//! The kernels by themselves, in the shapes of SmolLM2-135M and of the embedded model.
//!
//!     cargo bench --workspace --bench kernels [-- NAME]
//!
//! Throughput is in multiply-adds for products and attention (twice as many floating-point operations), in elements
//! elsewhere. A name that ends in `backward` is forward and backward.

use std::hint::black_box;
use std::sync::Arc;

use candle_core::{DType, Device, Result, Tensor, Var};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use parallel_r1::kernels::{self, AdamWStep, Draw};
use parallel_r1::layout::{Layout, QueryBlock, Role, Visibility};
use parallel_r1::prompt::{AllowedSet, Controls};

/// The allocator of the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn random<S: Into<candle_core::Shape>>(shape: S) -> Tensor {
    Tensor::randn(0f32, 1.0, shape, &Device::Cpu).expect("a CPU tensor")
}

fn variable<S: Into<candle_core::Shape>>(shape: S) -> Var {
    Var::from_tensor(&random(shape)).expect("a CPU tensor")
}

/// Times `work`, which handles `count` elements.
fn time(c: &mut Criterion, name: &str, count: usize, mut work: impl FnMut() -> Result<Tensor>) {
    let mut group = c.benchmark_group("kernels");
    group.sample_size(10).throughput(Throughput::Elements(count as u64));
    group.bench_function(name, |b| b.iter(|| black_box(work().expect("shapes that fit"))));
    group.finish();
}

/// Forward and backward of an operation of two variables.
fn gradients(output: Result<Tensor>, of: &Var) -> Result<Tensor> {
    let grads = output?.sum_all()?.backward()?;
    grads.get(of).cloned().ok_or_else(|| candle_core::Error::Msg("no gradient".into()))
}

fn products(c: &mut Criterion) {
    let shapes = [("embedded", 128, 320), ("135m", 576, 1536)];
    for (model, k, n) in shapes {
        for rows in [1, 8, 32, 128, 512, 2048] {
            let (x, w) = (variable((rows, k)), variable((n, k)));
            time(c, &format!("linear/{model}/{rows}"), rows * k * n, || kernels::linear(&x, &w));
            if rows >= 512 {
                let name = format!("linear/{model}/{rows}/backward");
                time(c, &name, 3 * rows * k * n, || gradients(kernels::linear(&x, &w), &w));
            }
        }
    }
}

/// A prompt and its responses.
fn group(prompt: usize, responses: usize, length: usize) -> Layout {
    let mut layout = Layout::default();
    let root = layout.push(Role::Prompt, &[], prompt);
    (0..responses).for_each(|_| _ = layout.push(Role::Trunk, &[root], length));
    layout
}

fn pairs(visibility: &Visibility) -> usize {
    let seen = |block: &QueryBlock| {
        let (rows, context) =
            (block.queries.len(), block.context.iter().map(|keys| keys.len()).sum::<usize>());
        rows * context + rows * (rows + 1) / 2
    };
    visibility.blocks.iter().map(seen).sum()
}

fn attention(c: &mut Criterion) {
    let (heads, kv_heads, width) = (9, 3, 64);
    for (name, layout) in [("causal", group(512, 0, 0)), ("group", group(128, 8, 128))] {
        let visibility = Arc::new(layout.visibility());
        let rows = layout.len();
        let (q, k) = (variable((rows, heads, width)), variable((rows, kv_heads, width)));
        let work = 2 * pairs(&visibility) * heads * width;
        time(c, &format!("attention/{name}"), work, || kernels::attention(&q, &k, &k, &visibility));
        time(c, &format!("attention/{name}/backward"), 3 * work, || {
            gradients(kernels::attention(&q, &k, &k, &visibility), &q)
        });
    }
    for branches in [1, 8, 32] {
        let prompt = 512;
        let newest = |block: QueryBlock| QueryBlock {
            queries: block.queries.start - prompt..block.queries.end - prompt,
            ..block
        };
        let blocks = group(prompt, branches, 1).visibility().blocks.into_iter().skip(1).map(newest).collect();
        let visibility = Arc::new(Visibility { blocks });
        let (q, k) = (random((branches, heads, width)), random((prompt + branches, kv_heads, width)));
        let work = 2 * pairs(&visibility) * heads * width;
        time(c, &format!("attention/decode/{branches}"), work, || {
            kernels::attention(&q, &k, &k, &visibility)
        });
    }
}

fn log_prob(c: &mut Criterion) {
    for (model, d, vocab) in [("embedded", 128, 103), ("135m", 576, 49_152)] {
        let rows = 256;
        let draw = |i: usize| Draw { token: (i % vocab) as u32, allowed: AllowedSet::ALL, temperature: 1.0 };
        let (draws, controls) =
            (Arc::new((0..rows).map(draw).collect::<Vec<_>>()), Arc::new(Controls::default()));
        let (hidden, head) = (variable((rows, d)), variable((vocab, d)));
        let score = || kernels::log_prob(&hidden, &head, &draws, &controls);
        time(c, &format!("log_prob/{model}"), rows * d * vocab, score);
        time(c, &format!("log_prob/{model}/backward"), 4 * rows * d * vocab, || gradients(score(), &head));
    }
}

fn elementwise(c: &mut Criterion) {
    let (rows, d, inner) = (512, 576, 1536);
    let (x, weight) = (variable((rows, d)), variable(d));
    time(c, "rms_norm", rows * d, || kernels::rms_norm(&x, &weight, 1e-5));
    time(c, "rms_norm/backward", rows * d, || gradients(kernels::rms_norm(&x, &weight, 1e-5), &x));
    let (gate, up) = (variable((rows, inner)), variable((rows, inner)));
    time(c, "swiglu", rows * inner, || kernels::swiglu(&gate, &up));
    time(c, "swiglu/backward", rows * inner, || gradients(kernels::swiglu(&gate, &up), &gate));
    let (param, grad) = (variable((inner, d)), random((inner, d)));
    let moments = Var::zeros((2, inner * d), DType::F32, &Device::Cpu).expect("a CPU tensor");
    let step = AdamWStep {
        lr: 1e-5,
        beta1: 0.9,
        beta2: 0.95,
        eps: 1e-8,
        weight_decay: 0.01,
        step: 1,
        grad_scale: 1.0,
    };
    time(c, "adamw", inner * d, || {
        kernels::adamw(&param, &grad, &moments, &step)?;
        Ok(grad.clone())
    });
}

criterion_group!(benches, products, attention, log_prob, elementwise);
criterion_main!(benches);
