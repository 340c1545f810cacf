//! A number over the steps of a run, thinned while it is read: a run of 10^5 steps draws as fast as one of 10^3.

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

/// More points than a chart has pixels say nothing.
const MOST: usize = 400;

/// Values in buckets of equally many steps. The buckets double whenever there are too many, so that memory stays bounded
/// and what is shown does not depend on when it is looked at.
#[derive(Clone, Debug, Default)]
pub(super) struct Series {
    /// Values of a bucket, as a power of two.
    doubled: u32,
    buckets: Vec<Bucket>,
}

/// Neighbouring values.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    count: usize,
    steps: f64,
    sum: f64,
    low: f64,
    high: f64,
}

impl Bucket {
    fn of(step: f64, value: f64) -> Self {
        Self { count: 1, steps: step, sum: value, low: value, high: value }
    }

    fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.steps += other.steps;
        self.sum += other.sum;
        self.low = self.low.min(other.low);
        self.high = self.high.max(other.high);
    }

    fn step(&self) -> f64 {
        self.steps / self.count as f64
    }

    fn mean(&self) -> f64 {
        self.sum / self.count as f64
    }
}

impl Series {
    /// Adds the value of a later step. What is no finite number is left out.
    pub(super) fn push(&mut self, step: usize, value: f64) {
        if !value.is_finite() {
            return;
        }
        let bucket = Bucket::of(step as f64, value);
        match self.buckets.last_mut() {
            Some(last) if last.count < 1 << self.doubled => last.merge(&bucket),
            _ => self.buckets.push(bucket),
        }
        if self.buckets.len() > MOST {
            self.buckets = self.buckets.chunks(2).map(merged).collect();
            self.doubled += 1;
        }
    }

    /// The largest value.
    pub(super) fn max(&self) -> Option<f64> {
        self.buckets.iter().map(|bucket| bucket.high).reduce(f64::max)
    }

    /// The means of the first and of the last tenth.
    pub(super) fn ends(&self) -> Option<(f64, f64)> {
        let n = self.buckets.len().div_ceil(10);
        let first = self.buckets.get(..n).filter(|part| !part.is_empty()).map(merged)?;
        let last = self.buckets.get(self.buckets.len() - n..).map(merged)?;
        Some((first.mean(), last.mean()))
    }
}

fn merged(part: &[Bucket]) -> Bucket {
    let mut all = part[0];
    part[1..].iter().for_each(|bucket| all.merge(bucket));
    all
}

/// Steps `x`, means `y` and, where several steps share a bucket, the ends `low` and `high` of their values.
impl Serialize for Series {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let column =
            |value: fn(&Bucket) -> f64| self.buckets.iter().map(value).map(rounded).collect::<Vec<_>>();
        let thinned = self.doubled > 0;
        let mut object = serializer.serialize_struct("Series", if thinned { 4 } else { 2 })?;
        object.serialize_field("x", &column(Bucket::step))?;
        object.serialize_field("y", &column(Bucket::mean))?;
        if thinned {
            object.serialize_field("low", &column(|bucket| bucket.low))?;
            object.serialize_field("high", &column(|bucket| bucket.high))?;
        }
        object.end()
    }
}

/// Five digits: more can't be seen.
fn rounded(value: f64) -> f64 {
    format!("{value:.4e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_values_are_kept_as_they_are() {
        let mut series = Series::default();
        [(1, 0.5), (2, f64::NAN), (3, 0.123456789)]
            .into_iter()
            .for_each(|(step, value)| series.push(step, value));
        assert_eq!(serde_json::to_string(&series).unwrap(), r#"{"x":[1.0,3.0],"y":[0.5,0.12346]}"#);
        assert_eq!((series.max(), series.ends()), (Some(0.5), Some((0.5, 0.123456789))));
        assert_eq!((Series::default().max(), Series::default().ends()), (None, None));
    }

    #[test]
    fn many_values_are_thinned_without_losing_a_spike() {
        let mut series = Series::default();
        for step in 1..=100_000 {
            series.push(step, if step == 54_321 { 9.0 } else { step as f64 / 1e5 });
        }
        let shown = serde_json::to_value(&series).unwrap();
        let column = |name: &str| -> Vec<f64> {
            shown[name].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
        };
        let (x, y) = (column("x"), column("y"));
        assert!((MOST / 2..=MOST).contains(&x.len()), "{}", x.len());
        assert!(x.is_sorted() && x[0] < 300.0 && x[x.len() - 1] > 99_700.0);
        assert!(column("low").iter().zip(&y).all(|(low, mean)| *low <= mean + 1e-4));
        assert_eq!((column("high").into_iter().fold(0.0, f64::max), series.max()), (9.0, Some(9.0)));
        let (first, last) = series.ends().unwrap();
        assert!((first - 0.05).abs() < 0.01 && (last - 0.95).abs() < 0.01, "{first} {last}");
    }
}
