//! The arrivals of a schedule that one of several independent processes fires.

use serde::{Deserialize, Serialize};

/// Selects the arrivals at certain positions of every period of a larger schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "UncheckedPattern")]
pub struct NumberPattern {
    period: u64,
    /// In ascending order, below `period`, at least one.
    places: Vec<u64>,
}

/// A pattern from another process.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct UncheckedPattern {
    period: u64,
    places: Vec<u64>,
}

impl TryFrom<UncheckedPattern> for NumberPattern {
    type Error = &'static str;

    fn try_from(
        UncheckedPattern { period, places }: UncheckedPattern,
    ) -> Result<Self, Self::Error> {
        Self::new(period, places).ok_or("a pattern without a valid position")
    }
}

impl NumberPattern {
    /// The numbers at positions `places` of every `period` numbers. `None` unless the positions are
    /// ascending, below the period, and at least one.
    #[must_use]
    pub fn new(period: u64, places: Vec<u64>) -> Option<Self> {
        let is_ordered = places.windows(2).all(|pair| pair[0] < pair[1]);
        let is_within = places.last().is_some_and(|last| *last < period);
        (is_ordered && is_within).then_some(Self { period, places })
    }

    /// The number in the whole of arrival `own`, both from 0. Saturates.
    #[must_use]
    pub fn number(&self, own: u64) -> u64 {
        let each = self.places.len() as u64;
        let place = self.places[(own % each) as usize];
        (own / each).saturating_mul(self.period).saturating_add(place)
    }

    /// How many of the first `total` numbers it selects.
    #[must_use]
    pub fn count(&self, total: u64) -> u64 {
        let rest = total % self.period;
        let within = self.places.partition_point(|place| *place < rest) as u64;
        total / self.period * self.places.len() as u64 + within
    }

    /// Its share of the whole, up to 1.
    #[must_use]
    pub fn fraction(&self) -> f64 {
        self.places.len() as f64 / self.period as f64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn places_are_in_order_below_the_period() {
        for (period, places) in [(3, vec![]), (3, vec![3]), (3, vec![1, 0]), (3, vec![1, 1])] {
            assert_eq!(NumberPattern::new(period, places), None);
        }
        let pattern = NumberPattern::new(3, vec![0, 2]).unwrap();
        assert_eq!((0..5).map(|own| pattern.number(own)).collect::<Vec<_>>(), [0, 2, 3, 5, 6]);
        assert_eq!(pattern.number(u64::MAX), u64::MAX, "saturates");
    }

    proptest! {
        #[test]
        fn disjoint_patterns_are_the_whole(owners in prop::collection::vec(0usize..3, 1..20), total in 0u64..300) {
            let part = |owner| {
                let places = (0..).zip(&owners).filter(|(_, own)| **own == owner);
                NumberPattern::new(owners.len() as u64, places.map(|(place, _)| place).collect())
            };
            let parts: Vec<_> = (0..3).filter_map(part).collect();
            let mut numbers: Vec<_> = parts
                .iter()
                .flat_map(|part| (0..part.count(total)).map(|own| part.number(own)))
                .collect();
            numbers.sort_unstable();
            prop_assert_eq!(numbers, (0..total).collect::<Vec<_>>());
            let sum: f64 = parts.iter().map(NumberPattern::fraction).sum();
            prop_assert!((sum - 1.0).abs() < 1e-9);
        }
    }
}
