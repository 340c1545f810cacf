//! Names and shapes of a decoder's parameters, as Hugging Face stores them.

use super::Config;

/// Name of the embedding table.
pub(super) const EMBEDDING: &str = "model.embed_tokens.weight";
/// Name of an untied output head.
pub(super) const HEAD: &str = "lm_head.weight";
/// Name of the last norm.
pub(super) const NORM: &str = "model.norm.weight";

/// The projections of a layer, by the name that adapters know them by.
pub const PROJECTIONS: [&str; 7] =
    ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"];

/// The module of a projection: `model.layers.3.self_attn.q_proj`.
pub(super) fn projection(layer: usize, name: &str) -> String {
    let part = if matches!(name, "gate_proj" | "up_proj" | "down_proj") { "mlp" } else { "self_attn" };
    format!("model.layers.{layer}.{part}.{name}")
}

/// Rows and columns of a projection's weight, and whether it has a bias.
pub(super) fn projection_shape(config: &Config, name: &str) -> ([usize; 2], bool) {
    let (d, inner) = (config.hidden_size, config.intermediate_size);
    let (q, kv) = (config.num_attention_heads * config.head_dim(), config.kv_heads() * config.head_dim());
    match name {
        "q_proj" => ([q, d], config.qkv_bias()),
        "k_proj" | "v_proj" => ([kv, d], config.qkv_bias()),
        "o_proj" => ([d, q], config.o_bias()),
        "down_proj" => ([d, inner], config.mlp_bias),
        _ => ([inner, d], config.mlp_bias),
    }
}

/// Name and shape of every parameter that a configuration asks for.
pub fn parameter_shapes(config: &Config) -> Vec<(String, Vec<usize>)> {
    let d = config.hidden_size;
    let mut shapes = vec![(EMBEDDING.to_owned(), vec![config.vocab_size, d])];
    for i in 0..config.num_hidden_layers {
        for name in PROJECTIONS {
            let (module, ([rows, columns], bias)) = (projection(i, name), projection_shape(config, name));
            shapes.push((format!("{module}.weight"), vec![rows, columns]));
            if bias {
                shapes.push((format!("{module}.bias"), vec![rows]));
            }
        }
        let mut norm =
            |name: &str, width| shapes.push((format!("model.layers.{i}.{name}.weight"), vec![width]));
        norm("input_layernorm", d);
        norm("post_attention_layernorm", d);
        if config.qk_norm() {
            norm("self_attn.q_norm", config.head_dim());
            norm("self_attn.k_norm", config.head_dim());
        }
    }
    shapes.push((NORM.into(), vec![d]));
    if !config.tie_word_embeddings {
        shapes.push((HEAD.into(), vec![config.vocab_size, d]));
    }
    shapes
}
