//! Descriptor tables: how many a number of connections needs.
//!
//! A process has one table, of a bounded size; more connections than it holds need threads with a
//! table each.

/// Descriptors of a table that are not connections: the standard streams, files, timers, lookups.
pub const OTHER_DESCRIPTORS: usize = 64;

/// Descriptors that each table has for each of the tables: what waits for events and wakes a thread.
const PER_TABLE: usize = 4;

/// How connections come to their tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableShares {
    /// Each opens its own share, and the shares differ by one at most.
    Equal,
    /// The kernel assigns each at random, so that a table needs room for five standard deviations
    /// more than the mean.
    Random,
}

impl TableShares {
    /// Connections of the fullest of `tables`.
    fn fullest(self, connections: usize, tables: usize) -> usize {
        let mean = connections.div_ceil(tables);
        match self {
            Self::Equal => mean,
            Self::Random => mean.saturating_add((5.0 * (mean as f64).sqrt()).ceil() as usize),
        }
    }
}

/// Tables of `size` descriptors that `connections` need; 1 when that of the process is enough.
/// `None` when no number of tables is enough, since each has descriptors for all others.
#[must_use]
pub fn tables_for(connections: usize, size: usize, shares: TableShares) -> Option<usize> {
    if connections.saturating_add(OTHER_DESCRIPTORS) <= size {
        return Some(1);
    }
    let most = size.saturating_sub(OTHER_DESCRIPTORS) / PER_TABLE;
    (2..=most).find(|tables| {
        let room = size - OTHER_DESCRIPTORS - PER_TABLE * tables;
        shares.fullest(connections, *tables) <= room
    })
}

/// The most connections that tables of `size` descriptors hold in equal shares, however many tables
/// there are.
#[must_use]
pub fn tables_hold(size: usize) -> usize {
    let room = size.saturating_sub(OTHER_DESCRIPTORS);
    // Each of n tables holds room - PER_TABLE * n.
    let tables = (room + PER_TABLE) / (2 * PER_TABLE);
    room.max(tables.saturating_mul(room - PER_TABLE * tables))
}

/// As many of `asked` connections as tables of `size` descriptors hold, however many tables there
/// are.
#[must_use]
pub fn connections_within(asked: usize, size: usize, shares: TableShares) -> usize {
    if tables_for(asked, size, shares).is_some() {
        return asked;
    }
    let (mut fits, mut does_not) = (0, asked);
    while does_not - fits > 1 {
        let middle = usize::midpoint(fits, does_not);
        match tables_for(middle, size, shares) {
            Some(_) => fits = middle,
            None => does_not = middle,
        }
    }
    fits
}

#[cfg(test)]
mod tests {
    use super::TableShares::{Equal, Random};
    use super::*;

    #[test]
    fn a_table_holds_a_share_and_what_the_others_need() {
        for (connections, size, shares, tables) in [
            (50, 1_024, Equal, Some(1)),
            (960, 1_024, Equal, Some(1)),
            (961, 1_024, Equal, Some(2)),
            (19_936, 20_000, Equal, Some(1)),
            (40_000, 20_000, Equal, Some(3)),
            // Of 51, each has room for 20,000 - 64 - 51 × 4 = 19,732.
            (1_000_000, 20_000, Equal, Some(51)),
            // Of 53, the mean is 18,868, and 687 more are five standard deviations.
            (1_000_000, 20_000, Random, Some(53)),
            (1_000, 256, Equal, Some(6)),
            (1_000, 256, Random, Some(10)),
            (10, 64, Equal, None),
            (100_000, 128, Equal, None),
            (usize::MAX, usize::MAX, Random, Some(1)),
        ] {
            assert_eq!(tables_for(connections, size, shares), tables, "{connections} in {size}");
        }
    }

    #[test]
    fn what_any_number_of_tables_holds_is_the_most() {
        for size in (0..300).chain([1_024, 20_000]) {
            let most = tables_hold(size);
            assert!(most == 0 || tables_for(most, size, Equal).is_some(), "{most} in {size}");
            assert_eq!(tables_for(most + 1, size, Equal), None, "{most} in {size}");
        }
        assert_eq!(tables_hold(256), 2_304);
        assert_eq!(tables_hold(usize::MAX), usize::MAX);
    }

    #[test]
    fn what_fits_is_the_most_that_some_number_of_tables_holds() {
        assert_eq!(connections_within(500_000, 20_000, Random), 500_000);
        // Five tables of 100 - 64 - 5 × 4 = 16, or four of 20.
        assert_eq!(connections_within(500_000, 100, Equal), 80);
        assert_eq!(connections_within(500_000, 64, Equal), 0);
        for shares in [Equal, Random] {
            let most = connections_within(500_000, 300, shares);
            assert!(tables_for(most, 300, shares).is_some(), "{most}");
            assert_eq!(tables_for(most + 1, 300, shares), None, "{most}");
        }
    }
}
