//! The tests behind a verdict: exact sign tests, and a bound on false discoveries over all of
//! them.

/// Throws up to which the tail is summed term by term.
const EXACT_MAX: u64 = 1_000_000;

/// The chance of `wins` or more heads in `of` throws of a fair coin: the exact one-sided sign
/// test, which for two kinds of discordant pairs is McNemar's (1947).
#[must_use]
pub fn sign_test(wins: u64, of: u64) -> f64 {
    let wins = wins.min(of);
    if wins == 0 {
        return 1.0;
    }
    // Below the middle the other tail is the short one.
    if wins <= of / 2 { 1.0 - tail(of - wins + 1, of) } else { tail(wins, of) }
}

/// The upper tail from `wins` on, which is above the middle.
fn tail(wins: u64, of: u64) -> f64 {
    if of > EXACT_MAX {
        // The binomial has become the normal distribution; half a throw for the steps between.
        let deviation = (of as f64).sqrt() / 2.0;
        // As integers, for above 2^53 a float has no halves.
        let above = (2 * u128::from(wins)).saturating_sub(u128::from(of) + 1);
        return normal_tail(above as f64 / 2.0 / deviation);
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

/// The chance of more than `z`, which is positive, under the standard normal distribution
/// (Abramowitz and Stegun 26.2.17), within 8e-8.
fn normal_tail(z: f64) -> f64 {
    const TERMS: [f64; 5] =
        [0.319_381_530, -0.356_563_782, 1.781_477_937, -1.821_255_978, 1.330_274_429];
    let t = 1.0 / (1.0 + 0.231_641_9 * z);
    let sum = TERMS.iter().rev().fold(0.0, |sum, term| (sum + term) * t);
    (-z * z / 2.0).exp() / std::f64::consts::TAU.sqrt() * sum
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
pub struct SignTest {
    /// The p-value.
    pub p: f64,
    /// The least it could have been.
    pub least: f64,
}

impl SignTest {
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
pub fn q_values(tests: &[SignTest], rate: f64) -> Vec<f64> {
    let family = family(tests, rate);
    let could = |test: &SignTest| test.least * family as f64 <= rate;
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
fn family(tests: &[SignTest], rate: f64) -> usize {
    let mut least: Vec<f64> = tests.iter().map(|test| test.least).collect();
    least.sort_by(f64::total_cmp);
    let enough = |k: usize| least.partition_point(|least| *least <= rate / k as f64) <= k;
    (1..=tests.len()).find(|&k| enough(k)).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_counts_have_a_chance() {
        let all = [0, 1, EXACT_MAX, EXACT_MAX + 1, 1 << 53, 1 << 63, u64::MAX];
        for (wins, of) in all.iter().flat_map(|wins| all.iter().map(move |of| (*wins, *of))) {
            let p = sign_test(wins, of);
            assert!((0.0..=1.0).contains(&p), "{wins} of {of}: {p}");
        }
        // Both ways agree where they meet.
        for wins in [500_000, 500_001, 501_000, 499_000] {
            let (exact, normal) = (sign_test(wins, EXACT_MAX), sign_test(wins, EXACT_MAX + 1));
            assert!((exact - normal).abs() < 2e-3, "{wins}: {exact} {normal}");
        }
    }

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
        let tests = p.map(|p| SignTest { p, least: 0.0 });
        let q = q_values(&tests, 0.05);
        for (q, expected) in q.iter().zip([0.04, 0.16 / 3.0, 0.16 / 3.0, 0.5]) {
            assert!((q - expected).abs() < 1e-12, "{q} {expected}");
        }
        assert!(q_values(&[], 0.05).is_empty());
    }

    #[test]
    fn tests_that_cannot_be_significant_cost_the_others_nothing() {
        let mut tests = vec![SignTest { p: 0.03, least: 0.03 }];
        tests.extend(std::iter::repeat_n(SignTest { p: 1.0, least: 0.5 }, 100));
        let q = q_values(&tests, 0.05);
        assert!((q[0] - 0.03).abs() < 1e-12, "{}", q[0]);
        assert!(q[1..].iter().all(|q| *q == 1.0));
    }
}
