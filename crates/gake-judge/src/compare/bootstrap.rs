//! The standard error of a ratio of sums over seconds that depend on each other.

use gake_core::random::SplitMix64;

/// Resamples. They estimate a standard error to 1/√(2·400), 3.5 %.
const RESAMPLES: usize = 400;

/// Any seed will do; the same one makes a comparison repeatable.
const SEED: u64 = 0x6b61_6b65_5f67_616b;

/// Fewest pieces from which a spread can be told.
pub(super) const PIECES_MIN: usize = 5;

/// How a ratio of sums spreads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Spread {
    /// The standard error, relative to the ratio.
    pub(super) error: f64,
    /// Degrees of freedom of that error.
    pub(super) freedom: f64,
}

/// The relative standard error of Σa/Σb over pieces in order of time.
///
/// It is that of the moving-blocks bootstrap (Künsch, Annals of Statistics 17, 1989), with blocks
/// as long as the correlation of the pieces asks for, or that of a first-order autoregression with
/// the same correlation, whichever is larger: blocks of a short series see too little of it.
/// `None` with too few pieces or nothing in them.
pub(super) fn spread(pieces: &[(f64, f64)]) -> Option<Spread> {
    let n = pieces.len();
    let (top, bottom) = sums(pieces.iter());
    if n < PIECES_MIN || top <= 0.0 || bottom <= 0.0 {
        return None;
    }
    let ratio = top / bottom;
    let residuals: Vec<f64> =
        pieces.iter().map(|(a, b)| (a - ratio * b) / (top / n as f64)).collect();
    let variance = residuals.iter().map(|e| e * e).sum::<f64>() / (n - 1) as f64;
    if variance == 0.0 {
        return Some(Spread { error: 0.0, freedom: (n - 1) as f64 });
    }
    let correlation = correlation(&residuals);
    let block = block_length(correlation, n);
    let regressed = variance / n as f64 * (1.0 + correlation) / (1.0 - correlation);
    let resampled = resampled(pieces, ratio, block) * n as f64 / (n - block) as f64;
    // Overlapping blocks know half as much again as blocks side by side.
    let overlap = if block == 1 { 1.0 } else { 1.5 };
    let freedom = (overlap * n as f64 / block as f64 - 1.0).max(3.0);
    Some(Spread { error: regressed.max(resampled).sqrt(), freedom })
}

fn sums<'a>(pieces: impl Iterator<Item = &'a (f64, f64)>) -> (f64, f64) {
    pieces.fold((0.0, 0.0), |(top, bottom), (a, b)| (top + a, bottom + b))
}

/// The correlation of neighbours, 0 to 0.9, less the bias of a short series (Marriott and Pope,
/// Biometrika 41, 1954).
fn correlation(residuals: &[f64]) -> f64 {
    let n = residuals.len() as f64;
    let own: f64 = residuals.iter().map(|e| e * e).sum();
    let next: f64 = residuals.windows(2).map(|pair| pair[0] * pair[1]).sum();
    let seen = next / own;
    (seen + (1.0 + 3.0 * seen) / n).clamp(0.0, 0.9)
}

/// The block length that is best for the variance of a mean under a first-order autoregression
/// (Andrews, Econometrica 59, 1991, for the Bartlett kernel, whose estimate that of blocks is).
fn block_length(correlation: f64, n: usize) -> usize {
    let strength = 4.0 * correlation.powi(2) / (1.0 - correlation.powi(2)).powi(2);
    let length = (1.1447 * (strength * n as f64).cbrt()).ceil();
    (length as usize).clamp(1, n / 3)
}

/// The variance of the ratio over resamples, relative to its square.
fn resampled(pieces: &[(f64, f64)], ratio: f64, block: usize) -> f64 {
    let n = pieces.len();
    // Sums up to each piece make a block's sum one subtraction.
    let mut upto = vec![(0.0, 0.0)];
    for (a, b) in pieces {
        let (top, bottom) = upto.last().copied().unwrap_or_default();
        upto.push((top + a, bottom + b));
    }
    let mut random = SplitMix64::new(SEED ^ n as u64);
    let mut squares = 0.0;
    for _ in 0..RESAMPLES {
        let (mut top, mut bottom, mut left) = (0.0, 0.0, n);
        while left > 0 {
            let length = block.min(left);
            let from = random.below(n - block + 1);
            let (low, high) = (upto[from], upto[from + length]);
            top += high.0 - low.0;
            bottom += high.1 - low.1;
            left -= length;
        }
        let one = if bottom > 0.0 { top / bottom } else { ratio };
        squares += (one / ratio - 1.0).powi(2);
    }
    squares / RESAMPLES as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::normal::normal_quantile;

    #[test]
    fn the_error_of_a_mean_is_known() {
        // An autoregression of correlation ρ and deviation 1 has a mean of variance
        // (1+ρ)/(1−ρ)/n; over many series the square root of the mean estimate is near that.
        for (rho, n) in [(0.0_f64, 60), (0.5, 120)] {
            let (mut sum, series) = (0.0, 200);
            for seed in 0..series {
                let mut random = SplitMix64::new(seed);
                let mut level = 0.0;
                let pieces: Vec<_> = (0..n)
                    .map(|_| {
                        let p = random.unit();
                        let shock = normal_quantile(p.clamp(1e-9, 1.0 - 1e-9));
                        level = rho * level + (1.0 - rho * rho).sqrt() * shock;
                        (100.0 + level, 1.0)
                    })
                    .collect();
                sum += (spread(&pieces).unwrap().error * 100.0).powi(2);
            }
            let seen = (sum / series as f64).sqrt();
            let known = ((1.0 + rho) / (1.0 - rho) / n as f64).sqrt();
            assert!((0.95..1.35).contains(&(seen / known)), "ρ {rho}: {seen} of {known}");
        }
    }

    #[test]
    fn too_little_is_no_spread() {
        assert_eq!(spread(&[(1.0, 1.0); 4]), None);
        assert_eq!(spread(&[(0.0, 1.0); 9]), None);
        assert_eq!(spread(&[(2.0, 1.0); 9]).unwrap().error, 0.0);
    }
}
