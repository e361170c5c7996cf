//! Correction for multiple comparisons.

/// The level of each test by Holm's procedure (Scandinavian Journal of Statistics 6, 1979): the
/// smallest p is compared with α/m, the next with α/(m−1), until one is above; the rest use that
/// level too. A difference is significant exactly when its p is at most its level, so an interval
/// at that level never contradicts the verdict. `None` is no test.
pub(super) fn holm(ps: &[Option<f64>], alpha: f64) -> Vec<f64> {
    let mut order: Vec<(usize, f64)> =
        ps.iter().enumerate().filter_map(|(i, p)| Some((i, (*p)?))).collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    let tests = order.len();
    let mut levels = vec![alpha; ps.len()];
    let mut stopped = None;
    for (step, (i, p)) in order.into_iter().enumerate() {
        let level = stopped.unwrap_or(alpha / (tests - step) as f64);
        levels[i] = level;
        if p > level {
            stopped = Some(level);
        }
    }
    levels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_rise_until_one_is_missed() {
        let ps = [Some(0.03), Some(0.001), None, Some(0.011), Some(0.9)];
        let levels = holm(&ps, 0.05);
        // 0.001 ≤ 0.05/4, 0.011 ≤ 0.05/3, 0.03 > 0.05/2; the last keeps that level.
        let expected = [0.025, 0.0125, 0.05, 0.05 / 3.0, 0.025];
        for (level, expected) in levels.iter().zip(expected) {
            assert!((level - expected).abs() < 1e-12, "{levels:?}");
        }
    }
}
