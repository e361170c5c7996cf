//! The tests behind a verdict: exact sign tests, and a bound on false discoveries over all of
//! them.

/// The chance of `wins` or more heads in `of` throws of a fair coin: the exact one-sided sign
/// test, which for two kinds of discordant pairs is McNemar's (1947).
#[must_use]
pub fn sign_test(wins: u64, of: u64) -> f64 {
    if wins == 0 {
        return 1.0;
    }
    // Below the middle the other tail is the short one.
    if wins * 2 <= of {
        return 1.0 - sign_test(of - wins + 1, of);
    }
    let (n, k) = (of as f64, wins as f64);
    let first = ln_factorial(n) - ln_factorial(k) - ln_factorial(n - k) - n * 2f64.ln();
    // Each term is the one before times (n − k) / (k + 1), which is below 1 here and falls.
    let (mut sum, mut term, mut k) = (1.0, 1.0, k);
    while k < n && term > sum * 1e-16 {
        term *= (n - k) / (k + 1.0);
        k += 1.0;
        sum += term;
    }
    (first + f64::ln(sum)).exp().min(1.0)
}

/// ln n!, by Stirling's series above 20.
fn ln_factorial(n: f64) -> f64 {
    if n < 20.0 {
        return (2..=n as u32).map(|k| f64::from(k).ln()).sum();
    }
    let inverse = 1.0 / n;
    let series = inverse / 12.0 - inverse.powi(3) / 360.0 + inverse.powi(5) / 1260.0;
    n * n.ln() - n + 0.5 * (std::f64::consts::TAU * n).ln() + series
}

/// A test's p-value, and the smallest one it could have had with as many discordant pairs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tested {
    /// The p-value.
    pub p: f64,
    /// The least it could have been.
    pub least: f64,
}

impl Tested {
    /// The sign test of `wins` of `of`.
    #[must_use]
    pub fn sign(wins: u64, of: u64) -> Self {
        Self { p: sign_test(wins, of), least: (-(of as f64) * 2f64.ln()).exp() }
    }
}

/// The q-values of tests: calling those with q ≤ `rate` discoveries keeps the expected part of
/// false ones among them at or below `rate` (Benjamini and Hochberg 1995). Tests that could not
/// have been significant however they had come out do not count against the others (Gilbert
/// 2005); their q is 1.
#[must_use]
pub fn q_values(tests: &[Tested], rate: f64) -> Vec<f64> {
    let family = family(tests, rate);
    let could = |test: &Tested| test.least * family as f64 <= rate;
    let mut order: Vec<usize> = (0..tests.len()).filter(|&i| could(&tests[i])).collect();
    order.sort_by(|&a, &b| tests[a].p.total_cmp(&tests[b].p));
    let mut q = vec![1.0; tests.len()];
    let mut least = 1f64;
    for (rank, &index) in order.iter().enumerate().rev() {
        least = least.min(tests[index].p * order.len() as f64 / (rank + 1) as f64);
        q[index] = least;
    }
    q
}

/// Gilbert's size of the family: the least k for which no more than k tests could be significant
/// at rate / k.
fn family(tests: &[Tested], rate: f64) -> usize {
    let mut least: Vec<f64> = tests.iter().map(|test| test.least).collect();
    least.sort_by(f64::total_cmp);
    let enough = |k: usize| least.partition_point(|least| *least <= rate / k as f64) <= k;
    (1..=tests.len()).find(|&k| enough(k)).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sign_test_is_the_binomial_tail() {
        for (wins, of, p) in [
            (0, 0, 1.0),
            (5, 5, 1.0 / 32.0),
            (8, 10, 56.0 / 1024.0),
            (5, 10, 638.0 / 1024.0),
            (1, 10, 1023.0 / 1024.0),
            (15, 30, 0.572_232_224),
            (60, 100, 0.028_443_967),
            (5_100, 10_000, 0.023_292_763_85),
        ] {
            let found = sign_test(wins, of);
            assert!((found - p).abs() < 1e-6 * p.max(1e-3), "{wins} of {of}: {found}");
        }
        assert_eq!(sign_test(1_000_000, 1_000_000), 0.0);
        assert!((sign_test(50_000_000, 100_000_000) - 0.5).abs() < 1e-3);
    }

    #[test]
    fn q_values_are_those_of_benjamini_and_hochberg() {
        let p = [0.01, 0.04, 0.03, 0.5];
        let tests = p.map(|p| Tested { p, least: 0.0 });
        let q = q_values(&tests, 0.05);
        for (q, expected) in q.iter().zip([0.04, 0.16 / 3.0, 0.16 / 3.0, 0.5]) {
            assert!((q - expected).abs() < 1e-12, "{q} {expected}");
        }
        assert!(q_values(&[], 0.05).is_empty());
    }

    #[test]
    fn tests_that_cannot_be_significant_cost_the_others_nothing() {
        let mut tests = vec![Tested { p: 0.03, least: 0.03 }];
        tests.extend(std::iter::repeat_n(Tested { p: 1.0, least: 0.5 }, 100));
        let q = q_values(&tests, 0.05);
        assert!((q[0] - 0.03).abs() < 1e-12, "{}", q[0]);
        assert!(q[1..].iter().all(|q| *q == 1.0));
    }
}
