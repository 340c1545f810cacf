//! Typed access to a GGUF file's metadata; every complaint names the key, what was expected and what is
//! there.

use std::collections::HashMap;

use candle_core::quantized::gguf_file::Value;

/// The key/value table at the head of a file.
pub(super) struct Metadata<'a>(pub(super) &'a HashMap<String, Value>);

impl<'a> Metadata<'a> {
    fn optional<T>(
        &self,
        key: &str,
        expected: &str,
        read: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, String> {
        let Some(value) = self.0.get(key) else { return Ok(None) };
        let got = || format!("{key}: expected {expected}, got a value of type {:?}", value.value_type());
        read(value).map(Some).ok_or_else(got)
    }

    /// A whole number that is not negative.
    pub(super) fn number(&self, key: &str) -> Result<Option<usize>, String> {
        self.optional(key, "a number", |value| match value {
            Value::Bool(_) => None,
            Value::I8(n) => (*n).try_into().ok(),
            Value::I16(n) => (*n).try_into().ok(),
            Value::I32(n) => (*n).try_into().ok(),
            Value::I64(n) => (*n).try_into().ok(),
            other => other.to_u64().ok()?.try_into().ok(),
        })
    }

    pub(super) fn required_number(&self, key: &str) -> Result<usize, String> {
        self.number(key)?.ok_or_else(|| format!("{key}: missing"))
    }

    /// The id of a token.
    pub(super) fn id(&self, key: &str) -> Result<Option<u32>, String> {
        let id = self.number(key)?;
        id.map(|id| id.try_into().map_err(|_| format!("{key}: expected a token id, got {id}"))).transpose()
    }

    /// A real number. It is stored in 32 bits; the decimal that was meant is the shortest that gives these
    /// bits.
    pub(super) fn float(&self, key: &str) -> Result<Option<f64>, String> {
        self.optional(key, "a positive real number", |value| match value {
            Value::F32(x) => x.to_string().parse().ok().filter(|x: &f64| x.is_finite() && *x > 0.0),
            Value::F64(x) => Some(*x).filter(|x| x.is_finite() && *x > 0.0),
            _ => None,
        })
    }

    pub(super) fn flag(&self, key: &str) -> Result<Option<bool>, String> {
        self.optional(key, "true or false", |value| value.to_bool().ok())
    }

    pub(super) fn text(&self, key: &str) -> Result<Option<&'a str>, String> {
        self.optional(key, "a string", |value| value.to_string().ok().map(String::as_str))
    }

    pub(super) fn texts(&self, key: &str) -> Result<Option<Vec<&'a str>>, String> {
        self.optional(key, "a list of strings", |value| {
            value.to_vec().ok()?.iter().map(|item| item.to_string().ok().map(String::as_str)).collect()
        })
    }

    pub(super) fn floats(&self, key: &str) -> Result<Option<Vec<f32>>, String> {
        self.optional(key, "a list of real numbers", |value| {
            value.to_vec().ok()?.iter().map(|item| item.to_f32().ok().filter(|x| x.is_finite())).collect()
        })
    }

    pub(super) fn integers(&self, key: &str) -> Result<Option<Vec<i32>>, String> {
        self.optional(key, "a list of whole numbers", |value| {
            value.to_vec().ok()?.iter().map(|item| item.to_i32().ok()).collect()
        })
    }
}
