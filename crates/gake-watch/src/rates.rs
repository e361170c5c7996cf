//! Rates of counters.

use std::collections::HashMap;
use std::time::Instant;

use crate::threads::INTERVAL_MIN;

const COUNTERS_MAX: usize = 1_024;

/// The last value of each counter.
#[derive(Debug, Default)]
pub(crate) struct CounterRates {
    last: HashMap<String, (Instant, f64)>,
}

impl CounterRates {
    /// The growth of `name` per second since the last call; `None` at the first call, too soon
    /// after the last, and after it fell, when the target was restarted.
    pub(crate) fn rate(&mut self, name: &str, now: Instant, value: f64) -> Option<f64> {
        if let Some((before, last)) = self.last.get_mut(name) {
            let elapsed = now.saturating_duration_since(*before);
            if elapsed < INTERVAL_MIN {
                return None;
            }
            let grown = value - *last;
            (*before, *last) = (now, value);
            return (grown >= 0.0).then(|| grown / elapsed.as_secs_f64());
        }
        if self.last.len() < COUNTERS_MAX {
            self.last.insert(name.to_owned(), (now, value));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_rate_needs_two_values_that_grow() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut rates = CounterRates::default();
        assert_eq!(rates.rate("a", at(0), 10.0), None);
        assert_eq!(rates.rate("a", at(2), 30.0), Some(10.0));
        assert_eq!(rates.rate("a", at(3), 5.0), None);
        assert_eq!(rates.rate("a", at(4), 6.0), Some(1.0));
        assert_eq!(rates.rate("a", at(4), 7.0), None);
    }
}
