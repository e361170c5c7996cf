//! Quantiles of the normal and of Student's distribution.

/// The value below which a standard normal variable is with probability `p`, to nine digits
/// (Acklam's rational approximation, 2003).
pub(super) fn normal_quantile(p: f64) -> f64 {
    const A: [f64; 6] = [
        -3.969683028665376e+01,
        2.209460984245205e+02,
        -2.759285104469687e+02,
        1.383_577_518_672_69e2,
        -3.066479806614716e+01,
        2.506628277459239e+00,
    ];
    const B: [f64; 5] = [
        -5.447609879822406e+01,
        1.615858368580409e+02,
        -1.556989798598866e+02,
        6.680131188771972e+01,
        -1.328068155288572e+01,
    ];
    const C: [f64; 6] = [
        -7.784894002430293e-03,
        -3.223964580411365e-01,
        -2.400758277161838e+00,
        -2.549732539343734e+00,
        4.374664141464968e+00,
        2.938163982698783e+00,
    ];
    const D: [f64; 4] = [
        7.784695709041462e-03,
        3.224671290700398e-01,
        2.445134137142996e+00,
        3.754408661907416e+00,
    ];
    const TAIL: f64 = 0.02425;
    let horner = |coefficients: &[f64], x: f64| coefficients.iter().fold(0.0, |sum, c| sum * x + c);
    if p > 0.5 {
        return -normal_quantile(1.0 - p);
    }
    if p < TAIL {
        let q = (-2.0 * p.max(f64::MIN_POSITIVE).ln()).sqrt();
        return horner(&C, q) / (horner(&D, q) * q + 1.0);
    }
    let q = p - 0.5;
    let r = q * q;
    horner(&A, r) * q / (horner(&B, r) * r + 1.0)
}

/// The critical value of a two-sided test at `alpha` with `freedom` degrees of freedom: Student's
/// quantile from the normal one (Abramowitz and Stegun 26.7.5), within a few per cent from three
/// degrees on at the levels used here.
pub(super) fn critical(alpha: f64, freedom: f64) -> f64 {
    let z = normal_quantile(1.0 - alpha.clamp(0.0, 1.0) / 2.0).max(0.0);
    let (z2, n) = (z * z, freedom.max(1.0));
    let g1 = (z2 + 1.0) / 4.0;
    let g2 = ((5.0 * z2 + 16.0) * z2 + 3.0) / 96.0;
    let g3 = (((3.0 * z2 + 19.0) * z2 + 17.0) * z2 - 15.0) / 384.0;
    let g4 = ((((79.0 * z2 + 776.0) * z2 + 1482.0) * z2 - 1920.0) * z2 - 945.0) / 92_160.0;
    z * (1.0 + (g1 + (g2 + (g3 + g4 / n) / n) / n) / n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_match_the_tables() {
        for (p, z) in [(0.5, 0.0), (0.975, 1.959_964), (0.8, 0.841_621), (0.999, 3.090_232)] {
            assert!((normal_quantile(p) - z).abs() < 1e-6, "{p}");
            assert!((normal_quantile(1.0 - p) + z).abs() < 1e-6, "{p}");
        }
        // Student's t, two-sided.
        for (alpha, freedom, t) in
            [(0.05, 5.0, 2.5706), (0.05, 30.0, 2.0423), (0.01, 9.0, 3.2498), (0.003, 19.0, 3.4023)]
        {
            let got = critical(alpha, freedom);
            assert!((got / t - 1.0).abs() < 0.01, "{alpha} {freedom}: {got}");
        }
    }
}
