//! A grid over the logarithm of the capacity, and distributions on it.

/// Distance of two grid points in ln C: 1 %.
pub(super) const STEP: f64 = 0.01;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Grid {
    low: f64,
    len: usize,
}

impl Grid {
    pub(super) fn between(low: f64, high: f64) -> Self {
        let low = low.ln();
        let len = ((high.ln() - low) / STEP).ceil().max(1.0) as usize + 1;
        Self { low, len }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// ln C at a point.
    pub(super) fn at(&self, point: usize) -> f64 {
        self.low + point as f64 * STEP
    }

    /// The lowest and the highest C.
    pub(super) fn range(&self) -> (f64, f64) {
        (self.low.exp(), self.at(self.len - 1).exp())
    }

    /// ln C at which a rising `cdf` on the points reaches `share`, interpolated linearly.
    pub(super) fn quantile(&self, cdf: &[f64], share: f64) -> f64 {
        let above = cdf.partition_point(|value| *value < share);
        if above == 0 {
            return self.at(0);
        }
        if above == cdf.len() {
            return self.at(cdf.len() - 1);
        }
        let (low, high) = (cdf[above - 1], cdf[above]);
        let part = if high > low { (share - low) / (high - low) } else { 1.0 };
        self.at(above - 1) + part * STEP
    }
}

/// The distribution function of point masses; each mass counts half at its own point.
pub(super) fn cumulate(masses: &[f64]) -> Vec<f64> {
    let mut sum = 0.0;
    masses
        .iter()
        .map(|mass| {
            sum += mass;
            sum - mass / 2.0
        })
        .collect()
}

/// A normal kernel of standard deviation `deviation` (in ln C) on grid offsets.
pub(super) fn normal_kernel(deviation: f64) -> Vec<(isize, f64)> {
    let reach = (3.0 * deviation / STEP) as isize + 1;
    let weight = |offset: isize| (-0.5 * (offset as f64 * STEP / deviation).powi(2)).exp();
    let sum: f64 = (-reach..=reach).map(weight).sum();
    (-reach..=reach).map(|offset| (offset, weight(offset) / sum)).collect()
}

/// `values` convolved with a kernel; edge values extend beyond the edges.
pub(super) fn convolve(values: &[f64], kernel: &[(isize, f64)]) -> Vec<f64> {
    let last = values.len() as isize - 1;
    let at = |point: isize| values[point.clamp(0, last) as usize];
    (0..=last)
        .map(|x| kernel.iter().map(|(offset, weight)| weight * at(x + offset)).sum())
        .collect()
}
