//! Confidence intervals of a figure and of the difference of two.

use gake_core::record::Histogram;

use super::bootstrap::ErrorEstimate;
use super::normal::critical;

/// The estimate of a figure in one run, on a logarithmic scale for rates and times, plain for
/// shares.
#[derive(Debug, Clone)]
pub(super) enum FigureEstimate {
    /// A value with a standard error.
    Value { value: f64, spread: ErrorEstimate },
    /// A quantile, between two order statistics.
    Ranked { quantile: f64, ranks: Ranks, spread: ErrorEstimate },
    /// A share of `effective` independent samples.
    Share { share: f64, effective: f64, freedom: f64 },
}

impl FigureEstimate {
    fn estimate(&self) -> f64 {
        match self {
            Self::Value { value, .. } => *value,
            Self::Ranked { quantile, ranks, .. } => ranks.value(*quantile),
            Self::Share { share, .. } => *share,
        }
    }

    fn freedom(&self) -> f64 {
        match self {
            Self::Value { spread, .. } | Self::Ranked { spread, .. } => spread.freedom,
            Self::Share { freedom, .. } => *freedom,
        }
    }

    /// The interval that misses the true value with probability `alpha`.
    fn interval(&self, alpha: f64) -> (f64, f64) {
        let t = critical(alpha, self.freedom());
        match self {
            Self::Value { value, spread } => (value - t * spread.error, value + t * spread.error),
            Self::Ranked { quantile, ranks, spread } => {
                // `spread` is that of the share of values beyond the quantile.
                let arm = t * spread.error;
                (ranks.low(quantile - arm), ranks.high(quantile + arm))
            }
            // Wilson's score interval (Journal of the American Statistical Association 22, 1927).
            Self::Share { share, effective, .. } => {
                let n = *effective;
                let middle = (share + t * t / (2.0 * n)) / (1.0 + t * t / n);
                let arm = t / (1.0 + t * t / n)
                    * (share * (1.0 - share) / n + t * t / (4.0 * n * n)).sqrt();
                // Rounding must not exclude 0 or 1.
                ((middle - arm).min(*share), (middle + arm).max(*share))
            }
        }
    }
}

/// The logarithms of a histogram's values by rank.
#[derive(Debug, Clone)]
pub(super) struct Ranks {
    /// The lowest and highest value of each bucket, and the share of values up to it.
    buckets: Vec<(f64, f64, f64)>,
    count: f64,
}

impl Ranks {
    pub(super) fn of(histogram: &Histogram) -> Self {
        let count = histogram.count() as f64;
        let (min, max) = (histogram.min_number(), histogram.max_number());
        // Only times can be zero; their unit is far below the clock's resolution.
        let least = if min > 0.0 { min } else { 1.0 };
        let inside = |value: f64| value.clamp(min, max).max(least);
        let mut before = 0;
        let of = |(low, high, held): (f64, f64, u64)| {
            before += held;
            (inside(low).ln(), inside(high).ln(), before as f64 / count)
        };
        Self { buckets: histogram.number_buckets().map(of).collect(), count }
    }

    fn at(&self, share: f64) -> Option<&(f64, f64, f64)> {
        let i = self.buckets.partition_point(|bucket| bucket.2 < share - 1e-12);
        self.buckets.get(i).or(self.buckets.last())
    }

    fn value(&self, quantile: f64) -> f64 {
        self.at(quantile).map_or(0.0, |bucket| bucket.1)
    }

    /// A lower bound at the rank of `share`: the smallest value, or 0, if it is below all ranks.
    fn low(&self, share: f64) -> f64 {
        self.at(share.max(0.0)).map_or(0.0, |bucket| bucket.0)
    }

    /// An upper bound at the rank of `share`; infinite beyond the largest value.
    fn high(&self, share: f64) -> f64 {
        if share > 1.0 - 0.5 / self.count {
            return f64::INFINITY;
        }
        self.at(share).map_or(f64::INFINITY, |bucket| bucket.1)
    }
}

#[derive(Debug, Clone)]
pub(super) enum Contrast {
    /// Two independent runs.
    Apart(FigureEstimate, FigureEstimate),
    /// The mean difference of pairs.
    Paired { difference: f64, spread: ErrorEstimate },
}

impl Contrast {
    /// B − A.
    pub(super) fn estimate(&self) -> f64 {
        match self {
            Self::Apart(a, b) => b.estimate() - a.estimate(),
            Self::Paired { difference, .. } => *difference,
        }
    }

    /// Degrees of freedom: the smaller of the two sides.
    pub(super) fn freedom(&self) -> f64 {
        match self {
            Self::Apart(a, b) => a.freedom().min(b.freedom()),
            Self::Paired { spread, .. } => spread.freedom,
        }
    }

    /// The interval that misses the true value with probability `alpha`.
    pub(super) fn interval(&self, alpha: f64) -> (f64, f64) {
        match self {
            Self::Paired { difference, spread } => {
                let arm = critical(alpha, spread.freedom) * spread.error;
                (difference - arm, difference + arm)
            }
            Self::Apart(a, b) => {
                let (x, y) = (a.estimate(), b.estimate());
                let ((al, ah), (bl, bh)) = (a.interval(alpha), b.interval(alpha));
                let difference = y - x;
                (difference - (y - bl).hypot(ah - x), difference + (bh - y).hypot(x - al))
            }
        }
    }

    /// The smallest level at which the interval excludes 0.
    pub(super) fn p(&self) -> f64 {
        let differs = |log_alpha: f64| {
            let (low, high) = self.interval(log_alpha.exp());
            low > 0.0 || high < 0.0
        };
        let (mut no, mut yes) = (1e-12_f64.ln(), 0.0);
        if !differs(yes) {
            return 1.0;
        }
        if differs(no) {
            return no.exp();
        }
        for _ in 0..40 {
            let middle = (no + yes) / 2.0;
            if differs(middle) {
                yes = middle;
            } else {
                no = middle;
            }
        }
        // The upper end, so that a level of exactly p is significant too.
        yes.exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(errors: f64, n: f64) -> FigureEstimate {
        FigureEstimate::Share { share: errors / n, effective: n, freedom: 1e9 }
    }

    #[test]
    fn two_shares_are_compared_as_newcombe_does() {
        // Newcombe, Statistics in Medicine 17, 1998, table II, method 10: 56/70 − 48/80.
        let contrast = Contrast::Apart(share(48.0, 80.0), share(56.0, 70.0));
        let (low, high) = contrast.interval(0.05);
        assert!((low - 0.0524).abs() < 5e-4 && (high - 0.3339).abs() < 5e-4, "{low} {high}");
        // 10/10 − 0/20.
        let (low, high) = Contrast::Apart(share(0.0, 20.0), share(10.0, 10.0)).interval(0.05);
        assert!((low - 0.6791).abs() < 5e-4 && (high - 1.0).abs() < 5e-4, "{low} {high}");
        assert_eq!(Contrast::Apart(share(0.0, 50.0), share(0.0, 50.0)).p(), 1.0);
    }

    #[test]
    fn a_quantile_is_bounded_by_ranks() {
        let mut histogram = Histogram::new();
        (1..=1_000).for_each(|n| histogram.record(n * 1_000));
        let spread = ErrorEstimate { error: (0.9 * 0.1 / 1_000.0_f64).sqrt(), freedom: 1e9 };
        let side = FigureEstimate::Ranked { quantile: 0.9, ranks: Ranks::of(&histogram), spread };
        let (low, high) = side.interval(0.05);
        // 1.96·√(0.09/1000) is a rank of 18.6.
        let near = |log: f64, value: f64| (log.exp() / value - 1.0).abs() < 0.002;
        assert!(near(low, 882_000.0) && near(high, 919_000.0), "{} {}", low.exp(), high.exp());
        let spread = ErrorEstimate { error: 0.06, ..spread };
        let far = FigureEstimate::Ranked { quantile: 0.9, ranks: Ranks::of(&histogram), spread };
        assert_eq!(far.interval(0.05).1, f64::INFINITY);
    }

    #[test]
    fn p_and_interval_agree() {
        let spread = ErrorEstimate { error: 1.0, freedom: 1e9 };
        let contrast = Contrast::Paired { difference: 1.959_964, spread };
        assert!((contrast.p() - 0.05).abs() < 1e-6);
        let (low, _) = contrast.interval(contrast.p());
        assert!((0.0..1e-9).contains(&low), "{low}");
    }
}
