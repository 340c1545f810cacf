//! Every trainable variable gets the gradient of the loss, through packing, fork and join. (candle has operations
//! that silently return none.)

use candle_core::{Tensor, Var};
use parallel_r1::layout::Structure;
use parallel_r1::model::{Decoder, Gradients, Precision, Scored};
use parallel_r1::train::batch::{MicroBatch, Sequence, columns};
use parallel_r1::train::loss::{ActionData, Clip, policy_loss};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::toys::{FORK_JOIN, adapted, configs, controls, decoder, demonstration, flat, prompt};

/// How much of the entropy is in the loss, so that its gradient is tested too.
const ENTROPY: f64 = 0.1;

/// Wide, so that no ratio comes near the kink.
const CLIP: Clip = Clip { epsilon_low: 0.5, epsilon_high: 0.5, dual: None, beta: 0.2 };

/// A group with one prompt (one response forks, one nests, one is a chain) and a response to another prompt.
fn sequences() -> Vec<Sequence> {
    let (ours, other) = (prompt(1, 7), prompt(2, 3));
    vec![
        demonstration(&ours, FORK_JOIN, Structure::PathWindow),
        demonstration(&ours, &[8, 0, 2, 9, 3, 2, 10, 3, 2, 11, 3, 1, 7, 4, 5, 12, 6], Structure::PathWindow),
        demonstration(&ours, &[13, 14, 15, 6], Structure::Causal),
        demonstration(&other, FORK_JOIN, Structure::Causal),
    ]
}

fn data(micro: &MicroBatch, model: &Decoder) -> ActionData {
    let (now, _) = micro.log_probs_frozen(model, &controls()).unwrap();
    let shifted = |by: f32| now.iter().enumerate().map(|(i, x)| x + by * [1.0, -0.5, 0.3][i % 3]).collect();
    let advantages = micro.actions().iter().map(|a| [1.0, -1.5, 0.5, -0.7][a.sequence]).collect();
    let weights = (0..now.len()).map(|i| (1 + i % 2) as f32 / now.len() as f32).collect();
    ActionData { advantages, old: shifted(0.1), reference: Some(shifted(0.5)), weights }
}

fn loss(scored: &Scored, data: &ActionData) -> Tensor {
    let column = |i| scored.pairs().narrow(1, i, 1).unwrap().squeeze(1).unwrap();
    let entropy = (column(1).mean_all().unwrap() * ENTROPY).unwrap();
    (policy_loss(&column(0), data, CLIP).unwrap() - entropy).unwrap()
}

/// The loss of a model, and its gradients.
fn learned(micro: &MicroBatch, model: &Decoder, data: &ActionData) -> (f32, Gradients) {
    let (controls, mut gradients) = (controls(), Gradients::default());
    let scored = micro.score(model, &controls).unwrap();
    let loss = loss(&scored, data);
    let value = loss.to_scalar().unwrap();
    scored.backward(&loss, &mut gradients).unwrap();
    (value, gradients)
}

/// The same loss, written out in f64: its f32 rounding would drown small differences.
fn loss_f64(micro: &MicroBatch, model: &Decoder, data: &ActionData) -> f64 {
    let controls = controls();
    let scored = micro.score(model, &controls).unwrap();
    let (log_probs, entropies) = columns(scored.pairs()).unwrap();
    let reference = data.reference.as_deref().unwrap();
    let term = |i: usize| {
        let (now, old, reference) =
            (f64::from(log_probs[i]), f64::from(data.old[i]), f64::from(reference[i]));
        let (ratio, gap) = ((now - old).exp(), reference - now);
        assert!((0.55..1.45).contains(&ratio), "the ratio {ratio} is near the kink");
        let kl = gap.exp() - gap - 1.0;
        f64::from(data.weights[i]) * (f64::from(CLIP.beta) * kl - ratio * f64::from(data.advantages[i]))
    };
    let policy: f64 = (0..log_probs.len()).map(term).sum();
    policy - ENTROPY * entropies.iter().map(|&h| f64::from(h)).sum::<f64>() / entropies.len() as f64
}

/// The derivative of `f` along `direction` at a variable, by central differences of two widths, extrapolated.
fn derivative(var: &Var, direction: &[f32], step: f64, f: &dyn Fn() -> f64) -> f64 {
    let (at, device) = (flat(var), var.device());
    let moved = |by: f64| {
        let values: Vec<f32> = at.iter().zip(direction).map(|(x, d)| x + by as f32 * d).collect();
        var.set(&Tensor::from_vec(values, var.shape(), device).unwrap()).unwrap();
        f()
    };
    let central = |h: f64| (moved(h) - moved(-h)) / (2.0 * h);
    let (wide, narrow) = (central(step), central(step / 2.0));
    moved(0.0);
    (4.0 * narrow - wide) / 3.0
}

fn check(model: &Decoder, seed: u64) {
    let micro = MicroBatch::new(&sequences(), 0..4).unwrap();
    let data = data(&micro, model);
    let (whole, grads) = learned(&micro, model, &data);
    let written_out = loss_f64(&micro, model, &data);
    assert!((f64::from(whole) - written_out).abs() < 1e-5);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    for (name, var) in model.vars() {
        let grad = flat(grads.get(name).unwrap_or_else(|| panic!("{name} has no gradient")));
        let norm = grad.iter().map(|g| g * g).sum::<f32>().sqrt();
        assert!(norm > 1e-4, "{name}: the gradient's norm is {norm:e}, so nothing is tested");
        // Along the gradient, where the slope is steepest; and along random halves of it, so that an error at right
        // angles to it shows as well.
        for half in [false, true, true, true] {
            let direction: Vec<f32> =
                grad.iter().map(|g| if half && rng.random() { 0.0 } else { g / norm }).collect();
            let expected: f64 = grad.iter().zip(&direction).map(|(g, d)| f64::from(*g) * f64::from(*d)).sum();
            let size = flat(var).iter().map(|x| x * x).sum::<f32>().sqrt();
            let step = (0.02 * f64::from(size)).min(0.02 / f64::from(norm));
            let got = derivative(var, &direction, step, &|| loss_f64(&micro, model, &data));
            // The second term is what f32 leaves of small differences.
            let allowed = 1e-3 * f64::from(norm) + 3e-5;
            assert!(
                (got - expected).abs() < allowed,
                "{name}: {got:e} by differences, {expected:e} by the gradient"
            );
        }
    }
}

#[test]
fn every_variable_has_a_gradient_that_agrees_with_finite_differences() {
    for (seed, config) in configs().iter().enumerate() {
        check(&decoder(config, seed as u64, 8.0), seed as u64);
    }
}

#[test]
fn so_has_every_variable_of_an_adapter() {
    for (seed, config) in configs().iter().enumerate().filter(|(seed, _)| seed % 3 < 2) {
        check(&adapted(decoder(config, seed as u64, 8.0), seed as u64), seed as u64);
    }
}

#[test]
fn bfloat16_gradients_are_those_of_f32_up_to_rounding() {
    let model = decoder(&configs()[5], 5, 4.0);
    let micro = MicroBatch::new(&sequences(), 0..4).unwrap();
    let data = data(&micro, &model);
    let rounded = model.copy().unwrap().with_precision(Precision::Bf16).unwrap();
    let [exact, rough] = [&model, &rounded].map(|model| learned(&micro, model, &data).1);
    for name in model.vars().keys() {
        let (exact, rough) = (flat(exact.get(name).unwrap()), flat(rough.get(name).unwrap()));
        let norm = |x: &[f32]| x.iter().map(|x| x * x).sum::<f32>().sqrt();
        let gap: Vec<f32> = exact.iter().zip(&rough).map(|(a, b)| a - b).collect();
        assert!(norm(&gap) < 0.1 * norm(&exact), "{name}: {} of {}", norm(&gap), norm(&exact));
        assert!(norm(&gap) > 0.0, "{name}: nothing was rounded");
    }
}
