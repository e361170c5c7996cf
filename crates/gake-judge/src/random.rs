//! Random variates and quantiles, for resampling.

use gake_core::random::SplitMix64;

/// A standard normal variate, by Box and Muller.
pub(crate) fn normal(random: &mut SplitMix64) -> f64 {
    let mut unit = || ((random.next_u64() >> 11) as f64 + 0.5) * (1.0 / (1u64 << 53) as f64);
    (-2.0 * unit().ln()).sqrt() * (std::f64::consts::TAU * unit()).cos()
}

/// The value below which `share` of the sorted `values` lie; NaN without values.
pub(crate) fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    sorted[((last as f64 * share).round() as usize).min(last)]
}
