//! A logarithmic scale of latencies, for charts.

use super::histogram::Histogram;
use crate::clock::Nanos;

/// Values below 2^`FLOOR_BITS` (1,024 ns) are one cell.
const FLOOR_BITS: u32 = 10;

/// A scale of `2^bits` cells of equal ratio an octave. Cell edges are bucket edges of a
/// [`Histogram`], so that counts by cell are exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Octaves {
    bits: u32,
}

impl Octaves {
    /// `2^bits` cells an octave, `bits` at most 6.
    #[must_use]
    pub const fn new(bits: u32) -> Self {
        Self { bits: if bits < 6 { bits } else { 6 } }
    }

    /// The cell of a value.
    #[must_use]
    pub fn cell(self, value: Nanos) -> u16 {
        let octave = 63 - (value | 1).leading_zeros();
        if octave < FLOOR_BITS {
            return 0;
        }
        let scaled = value >> (octave - FLOOR_BITS);
        let below = (1..1_u64 << self.bits).take_while(|cell| self.edge(*cell) <= scaled).count();
        // At most 1 + 54 · 64 cells.
        (1 + ((octave - FLOOR_BITS) << self.bits) as usize + below) as u16
    }

    /// The lower edge of a cell of the octave 1,024 to 2,048.
    fn edge(self, cell: u64) -> u64 {
        let ratio = (cell as f64 / f64::from(1_u32 << self.bits)).exp2();
        (ratio * f64::from(1_u32 << FLOOR_BITS)).round() as u64
    }

    /// The smallest value of a cell.
    #[must_use]
    pub fn low(self, cell: u16) -> Nanos {
        let Some(above) = cell.checked_sub(1) else { return 0 };
        let octave = FLOOR_BITS + u32::from(above >> self.bits);
        let within = u64::from(above) & ((1 << self.bits) - 1);
        match octave {
            ..64 => self.edge(within) << (octave - FLOOR_BITS),
            _ => Nanos::MAX,
        }
    }

    /// The cells that have values, in order, with their counts.
    #[must_use]
    pub fn counts(self, histogram: &Histogram) -> Vec<(u16, u64)> {
        if histogram.is_empty() {
            return Vec::new();
        }
        let cells = self.cell(histogram.min())..=self.cell(histogram.max());
        let counts = cells
            .map(|cell| (cell, histogram.count_between(self.low(cell), self.low(cell + 1) - 1)));
        counts.filter(|(_, count)| *count > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_in_its_cell() {
        for bits in [0, 2, 3, 6] {
            let octaves = Octaves::new(bits);
            for value in
                (0..46).flat_map(|bit| [1 << bit, (1 << bit) + 1, (2 << bit) - 1, 3 << bit])
            {
                let cell = octaves.cell(value);
                assert!(
                    octaves.low(cell) <= value && value < octaves.low(cell + 1),
                    "{bits} {value}"
                );
            }
        }
        let width = |cell| {
            let octaves = Octaves::new(2);
            octaves.low(cell + 1) as f64 / octaves.low(cell) as f64
        };
        assert!((1..150).all(|cell| (1.188..1.191).contains(&width(cell))));
    }

    #[test]
    fn every_value_is_counted_once() {
        let mut histogram = Histogram::new();
        for n in 0..20_000_u64 {
            histogram.record(n * n * 37 + n);
        }
        for bits in [0, 2, 4] {
            let counts = Octaves::new(bits).counts(&histogram);
            assert_eq!(counts.iter().map(|(_, count)| count).sum::<u64>(), 20_000);
            assert!(counts.is_sorted_by(|a, b| a.0 < b.0));
        }
        assert_eq!(Octaves::new(2).counts(&Histogram::new()), []);
    }
}
