//! The order of weighted requests.

/// Maximum length of the cycle; larger weights are scaled down.
const CYCLE_MAX: u64 = 1 << 20;

/// A cycle of indices in which index i occurs in proportion to `weights[i]`, spread evenly. With equal
/// weights it is the original order.
pub(crate) fn cycle(weights: &[u32]) -> Vec<u32> {
    let divisor = weights.iter().copied().fold(0, gcd).max(1);
    let mut weights: Vec<i64> = weights.iter().map(|w| i64::from(w / divisor)).collect();
    let total: i64 = weights.iter().sum();
    // A fast path for any number of equal weights.
    if weights.iter().all(|w| *w == 1) {
        return (0..weights.len() as u32).collect();
    }
    if total as u64 > CYCLE_MAX {
        let scale = CYCLE_MAX as f64 / total as f64;
        for weight in weights.iter_mut().filter(|w| **w > 0) {
            *weight = ((*weight as f64 * scale).round() as i64).max(1);
        }
    }
    let total: i64 = weights.iter().sum();
    spread(&weights, total)
}

/// Sorts the k-th occurrence of each index by its ideal position in the cycle, (k + ½) / weight.
fn spread(weights: &[i64], total: i64) -> Vec<u32> {
    let mut positions = Vec::with_capacity(total.max(0) as usize);
    for (index, &weight) in weights.iter().enumerate() {
        for k in 0..weight {
            positions.push(((2 * k + 1) as f64 / (2 * weight) as f64, index as u32));
        }
    }
    positions.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    positions.into_iter().map(|(_, index)| index).collect()
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_weights_keep_the_order() {
        assert_eq!(cycle(&[5, 5, 5]), [0, 1, 2]);
        assert_eq!(cycle(&[1]), [0]);
    }

    #[test]
    fn weights_are_exact_and_spread() {
        let order = cycle(&[6, 2, 2]);
        assert_eq!(order.len(), 5);
        assert_eq!(order.iter().filter(|i| **i == 0).count(), 3);
        assert!(!order.windows(3).any(|w| w == [0, 0, 0]), "{order:?}");
    }

    #[test]
    fn a_weight_of_zero_is_never_sent() {
        assert_eq!(cycle(&[0, 1]), [1]);
    }

    #[test]
    fn huge_weights_fit() {
        let order = cycle(&[u32::MAX, 1, u32::MAX - 1]);
        assert!(order.len() as u64 <= CYCLE_MAX + 3);
        assert!(order.contains(&1));
    }
}
