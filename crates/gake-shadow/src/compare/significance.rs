//! The tests behind the verdicts: exact sign tests, and a bound on the false discovery rate.

/// Trials up to which the tail is summed term by term.
const EXACT_MAX: u64 = 1_000_000;

/// The probability of `wins` or more heads in `of` tosses of a fair coin: the exact one-sided sign
/// test, for discordant pairs McNemar's test (1947).
#[must_use]
pub fn sign_test(wins: u64, of: u64) -> f64 {
    let wins = wins.min(of);
    if wins == 0 {
        return 1.0;
    }
    // Below the middle the other tail is shorter.
    if wins <= of / 2 { 1.0 - tail(of - wins + 1, of) } else { tail(wins, of) }
}

/// The upper tail from `wins`, which is above the middle.
fn tail(wins: u64, of: u64) -> f64 {
    if of > EXACT_MAX {
        // The normal approximation with continuity correction.
        let deviation = (of as f64).sqrt() / 2.0;
        // In integers: above 2^53 a float cannot represent halves.
        let above = (2 * u128::from(wins)).saturating_sub(u128::from(of) + 1);
        return normal_tail(above as f64 / 2.0 / deviation);
    }
    let (n, k) = (of as f64, wins as f64);
    let first = ln_factorial(n) - ln_factorial(k) - ln_factorial(n - k) - n * 2f64.ln();
    // Each term is the previous one times (n − k) / (k + 1), which is below 1 and falls.
    let (mut sum, mut term, mut k) = (1.0, 1.0, k);
    while k < n && term > sum * 1e-16 {
        term *= (n - k) / (k + 1.0);
        k += 1.0;
        sum += term;
    }
    (first + f64::ln(sum)).exp().min(1.0)
}

/// The upper tail of the standard normal distribution at `z` ≥ 0, within 8e-8 (Abramowitz and
/// Stegun 26.2.17).
fn normal_tail(z: f64) -> f64 {
    const TERMS: [f64; 5] =
        [0.319_381_530, -0.356_563_782, 1.781_477_937, -1.821_255_978, 1.330_274_429];
    let t = 1.0 / (1.0 + 0.231_641_9 * z);
    let sum = TERMS.iter().rev().fold(0.0, |sum, term| (sum + term) * t);
    (-z * z / 2.0).exp() / std::f64::consts::TAU.sqrt() * sum
}

/// ln n!, by Stirling's series from 20.
fn ln_factorial(n: f64) -> f64 {
    if n < 20.0 {
        return (2..=n as u32).map(|k| f64::from(k).ln()).sum();
    }
    let inverse = 1.0 / n;
    let series = inverse / 12.0 - inverse.powi(3) / 360.0 + inverse.powi(5) / 1260.0;
    n * n.ln() - n + 0.5 * (std::f64::consts::TAU * n).ln() + series
}

/// The result of a sign test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SignTest {
    /// The p-value.
    pub p: f64,
    /// The smallest p-value possible with this number of pairs.
    pub p_min: f64,
}

impl SignTest {
    /// Tests `wins` of `of` pairs.
    #[must_use]
    pub fn sign(wins: u64, of: u64) -> Self {
        Self { p: sign_test(wins, of), p_min: (-(of as f64) * 2f64.ln()).exp() }
    }
}

/// The q-values of tests: rejecting those with q ≤ `rate` keeps the false discovery rate at or
/// below `rate` (Benjamini and Hochberg 1995). Tests that cannot be significant with any result do
/// not count towards the family (Gilbert 2005); their q is 1.
#[must_use]
pub fn q_values(tests: &[SignTest], rate: f64) -> Vec<f64> {
    let family = family(tests, rate);
    let could = |test: &SignTest| test.p_min * family as f64 <= rate;
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

/// Gilbert's size of the family: the smallest k for which at most k tests can be significant at
/// rate / k.
fn family(tests: &[SignTest], rate: f64) -> usize {
    let mut least: Vec<f64> = tests.iter().map(|test| test.p_min).collect();
    least.sort_by(f64::total_cmp);
    let enough = |k: usize| least.partition_point(|least| *least <= rate / k as f64) <= k;
    (1..=tests.len()).find(|&k| enough(k)).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p_values_are_probabilities() {
        let all = [0, 1, EXACT_MAX, EXACT_MAX + 1, 1 << 53, 1 << 63, u64::MAX];
        for (wins, of) in all.iter().flat_map(|wins| all.iter().map(move |of| (*wins, *of))) {
            let p = sign_test(wins, of);
            assert!((0.0..=1.0).contains(&p), "{wins} of {of}: {p}");
        }
        // Exact sum and approximation agree where they meet.
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
    fn q_values_follow_benjamini_and_hochberg() {
        let p = [0.01, 0.04, 0.03, 0.5];
        let tests = p.map(|p| SignTest { p, p_min: 0.0 });
        let q = q_values(&tests, 0.05);
        for (q, expected) in q.iter().zip([0.04, 0.16 / 3.0, 0.16 / 3.0, 0.5]) {
            assert!((q - expected).abs() < 1e-12, "{q} {expected}");
        }
        assert!(q_values(&[], 0.05).is_empty());
    }

    #[test]
    fn tests_that_cannot_be_significant_do_not_count() {
        let mut tests = vec![SignTest { p: 0.03, p_min: 0.03 }];
        tests.extend(std::iter::repeat_n(SignTest { p: 1.0, p_min: 0.5 }, 100));
        let q = q_values(&tests, 0.05);
        assert!((q[0] - 0.03).abs() < 1e-12, "{}", q[0]);
        assert!(q[1..].iter().all(|q| *q == 1.0));
    }
}
