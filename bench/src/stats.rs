//! The few statistics a bench needs, exact on the samples it has.

/// The quantile by nearest rank of samples in any order; NaN of none.
pub fn quantile(samples: &[f64], q: f64) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (q * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN)
}

/// The median; of an even number the mean of the middle two.
pub fn median(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

/// The smallest and the largest.
pub fn range(samples: &[f64]) -> (f64, f64) {
    let fold = |pick: fn(f64, f64) -> f64| samples.iter().copied().fold(f64::NAN, pick);
    (fold(f64::min), fold(f64::max))
}

/// The items, beginning with another one each round, so that none is always first.
pub fn rotated<T>(items: &[T], round: usize) -> impl Iterator<Item = (usize, &T)> {
    let count = items.len();
    (0..count).map(move |at| (at + round) % count).map(|at| (at, &items[at]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_and_the_ends() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0]), 2.5);
        assert!(median(&[]).is_nan());
        assert_eq!(range(&[3.0, 1.0, 2.0]), (1.0, 3.0));
    }

    #[test]
    fn quantiles_are_samples() {
        let samples: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(quantile(&samples, 0.5), 50.0);
        assert_eq!(quantile(&samples, 0.99), 99.0);
        assert_eq!(quantile(&samples, 1.0), 100.0);
        assert_eq!(quantile(&samples, 0.0), 1.0);
    }

    #[test]
    fn every_round_begins_with_another() {
        let order =
            |round| rotated(&['a', 'b', 'c'], round).map(|(_, item)| *item).collect::<String>();
        assert_eq!((order(0), order(1), order(5)), ("abc".into(), "bca".into(), "cab".into()));
    }
}
