//! What the kernels' own tests share: random tensors, and the check of a fused operation against its composition.

use candle_core::{Device, Result, Tensor, Var};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Uniform in -1..1.
pub(crate) fn random(shape: &[usize], seed: u64) -> Tensor {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let data: Vec<f32> = (0..shape.iter().product()).map(|_| rng.random_range(-1.0..1.0)).collect();
    Tensor::from_vec(data, shape, &Device::Cpu).expect("the shape holds its elements")
}

/// The fused result equals the composed one, and its gradients equal the composition's (by candle's autograd) and
/// finite differences of the composition, for a loss that weighs every output differently.
pub(crate) fn check_gradients(
    inputs: &[Tensor],
    fused: impl Fn(&[Tensor]) -> Result<Tensor>,
    composed: impl Fn(&[Tensor]) -> Result<Tensor>,
) -> Result<()> {
    let vars: Vec<Var> = inputs.iter().map(Var::from_tensor).collect::<Result<_>>()?;
    let tensors: Vec<Tensor> = vars.iter().map(|v| v.as_tensor().clone()).collect();
    let (ours, oracle) = (fused(&tensors)?, composed(&tensors)?);
    assert_eq!(ours.dims(), oracle.dims());
    let weights = random(oracle.dims(), 99);
    let loss = |t: Tensor| (t * &weights)?.sum_all();
    close(&ours, &oracle, 1e-5, "output")?;
    let (ours, oracle) = (loss(ours)?.backward()?, loss(oracle)?.backward()?);
    for (i, var) in vars.iter().enumerate() {
        let ours = ours.get(var).unwrap_or_else(|| panic!("input {i} gets a gradient"));
        assert!(!ours.track_op(), "gradient {i} keeps the graph alive");
        let oracle = oracle.get(var).expect("the composition is differentiable");
        close(ours, oracle, 1e-4, &format!("gradient {i}"))?;
        let direction = random(var.dims(), 7 + i as u64);
        let along = |h: f64| -> Result<f32> {
            let mut moved = tensors.clone();
            moved[i] = (var.as_tensor() + (&direction * h)?)?.detach();
            loss(fused(&moved)?)?.to_scalar()
        };
        let h = 1e-2;
        let numeric = (along(h)? - along(-h)?) / (2.0 * h as f32);
        let analytic = (ours * &direction)?.sum_all()?.to_scalar::<f32>()?;
        assert!(
            (numeric - analytic).abs() < 2e-2 * (1.0 + analytic.abs()),
            "{i}: {numeric} against {analytic}"
        );
    }
    Ok(())
}

fn close(a: &Tensor, b: &Tensor, tolerance: f32, what: &str) -> Result<()> {
    let gap = (a - b)?.abs()?.max_all()?.to_scalar::<f32>()?;
    assert!(gap < tolerance, "{what}: gap {gap}");
    Ok(())
}
