//! Percentiles as Vegeta estimates them: a merging t-digest with compression 100.
//!
//! The method is Dunning's (T. Dunning and O. Ertl, "Computing extremely accurate quantiles using
//! t-digests", 2019): values are kept as centroids, a mean with a weight, and neighbours merge as
//! long as the scale function k(q) = δ (asin(2q − 1) + π/2) / π grows by no more than 1 over them.
//! The buffer's size and the interpolation are the same as in Vegeta's digest, so that the same
//! results yield the same digits.

use std::f64::consts::{FRAC_PI_2, PI};

/// δ.
const COMPRESSION: f64 = 100.0;

/// The number of values before a merge.
const BUFFER: usize = 800;

#[derive(Debug, Clone, Copy)]
struct Centroid {
    mean: f64,
    weight: f64,
}

/// An estimate of any quantile in constant memory.
#[derive(Debug)]
pub(super) struct TDigest {
    /// The centroids, sorted by mean.
    centroids: Vec<Centroid>,
    /// Values that are not merged yet.
    buffer: Vec<Centroid>,
    weight: f64,
    min: f64,
    max: f64,
}

impl Default for TDigest {
    fn default() -> Self {
        Self {
            centroids: Vec::new(),
            buffer: Vec::new(),
            weight: 0.0,
            min: f64::MAX,
            max: f64::MIN,
        }
    }
}

impl TDigest {
    pub(super) fn add(&mut self, value: f64) {
        self.buffer.push(Centroid { mean: value, weight: 1.0 });
        if self.buffer.len() > BUFFER {
            self.merge();
        }
    }

    /// Merges the buffer into the centroids.
    fn merge(&mut self) {
        if self.buffer.is_empty() {
            return;
        }
        self.weight += self.buffer.len() as f64;
        self.buffer.append(&mut self.centroids);
        self.buffer.sort_by(|a, b| a.mean.total_cmp(&b.mean));
        let mut weight_so_far = 0.0;
        let mut limit = self.weight * quantile_at(1.0);
        for next in self.buffer.drain(..) {
            let projected = weight_so_far + next.weight;
            match self.centroids.last_mut() {
                Some(last) if projected <= limit => {
                    last.weight += next.weight;
                    last.mean += next.weight * (next.mean - last.mean) / last.weight;
                }
                Some(_) => {
                    limit = self.weight * quantile_at(scale(weight_so_far / self.weight) + 1.0);
                    self.centroids.push(next);
                }
                None => self.centroids.push(next),
            }
            weight_so_far = projected;
        }
        self.min = self.centroids.first().map_or(self.min, |first| first.mean.min(self.min));
        self.max = self.centroids.last().map_or(self.max, |last| last.mean.max(self.max));
    }

    /// The value at `quantile`, from 0 to 1; `None` without samples.
    pub(super) fn quantile(&mut self, quantile: f64) -> Option<f64> {
        self.merge();
        let (first, last) = (*self.centroids.first()?, *self.centroids.last()?);
        if self.centroids.len() == 1 {
            return Some(first.mean);
        }
        let index = quantile * self.weight;
        if index <= first.weight / 2.0 {
            return Some(self.min + 2.0 * index / first.weight * (first.mean - self.min));
        }
        // The middle of each centroid is at half its weight.
        let mut middle = first.weight / 2.0;
        for pair in self.centroids.windows(2) {
            let next = middle + (pair[0].weight + pair[1].weight) / 2.0;
            if next >= index {
                return Some(between(pair[0].mean, next - index, pair[1].mean, index - middle));
            }
            middle = next;
        }
        // Past the middle of the last one. The weights are the ones of Vegeta's digest. The first
        // one is negative; the result is still limited by the two values.
        let over = index - self.weight - last.weight / 2.0;
        Some(between(last.mean, over, self.max, last.weight / 2.0 - over))
    }
}

/// The weighted mean of two values, limited by both.
fn between(a: f64, weight_a: f64, b: f64, weight_b: f64) -> f64 {
    let mean = (a * weight_a + b * weight_b) / (weight_a + weight_b);
    mean.min(a.max(b)).max(a.min(b))
}

/// k(q).
fn scale(quantile: f64) -> f64 {
    COMPRESSION * ((2.0 * quantile - 1.0).asin() + FRAC_PI_2) / PI
}

/// The inverse of k.
fn quantile_at(k: f64) -> f64 {
    ((k.min(COMPRESSION) * PI / COMPRESSION - FRAC_PI_2).sin() + 1.0) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_near_the_rank_that_it_names() {
        let mut digest = TDigest::default();
        // Every value of 0..100,000 once, unsorted.
        for i in 0..100_000_u64 {
            digest.add((i * 7_919 % 100_000) as f64);
        }
        for (quantile, error) in [(0.5, 500.0), (0.9, 300.0), (0.99, 60.0), (0.999, 10.0)] {
            let value = digest.quantile(quantile).unwrap();
            assert!((value - quantile * 100_000.0).abs() < error, "{quantile}: {value}");
        }
        assert!(digest.centroids.len() <= 200, "{}", digest.centroids.len());
    }

    #[test]
    fn few_values_are_exact() {
        let mut digest = TDigest::default();
        assert_eq!(digest.quantile(0.5), None);
        digest.add(7.0);
        assert_eq!(digest.quantile(0.99), Some(7.0));
        digest.add(9.0);
        assert_eq!(digest.quantile(0.5), Some(8.0));
        assert_eq!(digest.quantile(1.0), Some(9.0));
    }
}
