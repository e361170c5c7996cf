//! Down-sampling that preserves the shape of a line.

/// At most `threshold` of `points`, selected by Largest-Triangle-Three-Buckets: the first, the
/// last, and from each of equal buckets in between the point that forms the largest triangle with
/// the previously selected point and the mean of the next bucket. (Steinarsson, "Downsampling Time
/// Series for Visual Representation", University of Iceland, 2013, section 4.2.)
///
/// `points` are in order of x. All are kept when there are at most `threshold`, or when `threshold`
/// is less than 3, which leaves no bucket.
#[must_use]
pub fn lttb(points: &[(f64, f64)], threshold: usize) -> Vec<(f64, f64)> {
    let count = points.len();
    if count <= threshold || threshold < 3 {
        return points.to_vec();
    }
    let width = (count - 2) as f64 / (threshold - 2) as f64;
    let edge = |bucket: usize| (1 + (bucket as f64 * width) as usize).min(count - 1);
    let mut chosen = Vec::with_capacity(threshold);
    let mut before = points[0];
    chosen.push(before);
    for bucket in 0..threshold - 2 {
        let own = &points[edge(bucket)..edge(bucket + 1)];
        let after = &points[edge(bucket + 1)..(edge(bucket + 2).max(edge(bucket + 1) + 1))];
        let mean = mean(after);
        let area = |point: &(f64, f64)| {
            ((before.0 - mean.0) * (point.1 - before.1)
                - (before.0 - point.0) * (mean.1 - before.1))
                .abs()
        };
        if let Some(largest) = own.iter().max_by(|a, b| area(a).total_cmp(&area(b))) {
            chosen.push(*largest);
            before = *largest;
        }
    }
    chosen.push(points[count - 1]);
    chosen
}

fn mean(points: &[(f64, f64)]) -> (f64, f64) {
    let count = points.len() as f64;
    let sum = points.iter().fold((0.0, 0.0), |sum, point| (sum.0 + point.0, sum.1 + point.1));
    (sum.0 / count, sum.1 / count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_and_spikes_are_kept() {
        let mut points: Vec<_> =
            (0..100_000).map(|n| (f64::from(n), (f64::from(n) / 900.0).sin())).collect();
        points[31_415].1 = 80.0;
        points[77_777].1 = -80.0;
        for threshold in [10, 777, 4_000] {
            let chosen = lttb(&points, threshold);
            assert_eq!(chosen.len(), threshold);
            assert_eq!((chosen[0], chosen[threshold - 1]), (points[0], points[99_999]));
            assert!(chosen.contains(&points[31_415]) && chosen.contains(&points[77_777]));
            assert!(chosen.is_sorted_by(|a, b| a.0 < b.0));
        }
    }

    #[test]
    fn few_points_are_kept_as_they_are() {
        let points = [(0.0, 1.0), (1.0, 2.0), (2.0, 0.0), (3.0, 5.0)];
        assert_eq!(lttb(&points, 4), points);
        assert_eq!(lttb(&points, 0), points);
        assert_eq!(lttb(&points, 3).len(), 3);
        assert_eq!(lttb(&[], 4_000), []);
    }
}
