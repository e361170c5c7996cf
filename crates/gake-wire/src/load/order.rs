//! The order in which weighted targets are sent.

/// Maximum number of entries of the cycle; larger weights are scaled down to fit.
const CYCLE_MAX: u64 = 1 << 20;

/// A cycle of indexes in which index i stands in proportion to `weights[i]`, each spread as evenly
/// as can be. With equal weights it is the plain order.
pub(crate) fn cycle(weights: &[u32]) -> Vec<u32> {
    let divisor = weights.iter().copied().fold(0, gcd).max(1);
    let mut weights: Vec<i64> = weights.iter().map(|w| i64::from(w / divisor)).collect();
    let total: i64 = weights.iter().sum();
    // Equal weights need no arithmetic, however many there are.
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

/// Each index wants its k-th place at (k + ½) / weight of the cycle; places are given in the order
/// of these wishes.
fn spread(weights: &[i64], total: i64) -> Vec<u32> {
    let mut wishes = Vec::with_capacity(total.max(0) as usize);
    for (index, &weight) in weights.iter().enumerate() {
        for k in 0..weight {
            wishes.push(((2 * k + 1) as f64 / (2 * weight) as f64, index as u32));
        }
    }
    wishes.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    wishes.into_iter().map(|(_, index)| index).collect()
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_weights_are_the_plain_order() {
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
