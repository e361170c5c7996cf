//! Descriptor tables: connections beyond the limit of the process's table need threads with tables
//! of their own.

/// Descriptors of a table that are not connections: the standard streams, files, timers, lookups.
pub const OTHER_DESCRIPTORS: usize = 64;

/// Descriptors of each runtime (epoll, eventfd, timers) that every table holds.
const PER_TABLE: usize = 4;

/// Distribution of connections over tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableShares {
    /// Equal shares, plus or minus one.
    Equal,
    /// The kernel assigns connections at random: a table needs room for the mean plus five standard
    /// deviations.
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

/// Number of tables of `size` descriptors for `connections`; 1 if the process's table suffices.
/// `None` if no number does, since each table also holds descriptors of all others.
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

/// Maximum connections that any number of tables of `size` descriptors hold in equal shares.
#[must_use]
pub fn tables_hold(size: usize) -> usize {
    let room = size.saturating_sub(OTHER_DESCRIPTORS);
    // Each of n tables holds room - PER_TABLE * n.
    let tables = (room + PER_TABLE) / (2 * PER_TABLE);
    room.max(tables.saturating_mul(room - PER_TABLE * tables))
}

/// `asked` connections, or the maximum that any number of tables of `size` descriptors holds.
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
    fn a_table_holds_its_share_and_descriptors_of_the_others() {
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
    fn no_number_of_tables_holds_more_than_the_maximum() {
        for size in (0..300).chain([1_024, 20_000]) {
            let most = tables_hold(size);
            assert!(most == 0 || tables_for(most, size, Equal).is_some(), "{most} in {size}");
            assert_eq!(tables_for(most + 1, size, Equal), None, "{most} in {size}");
        }
        assert_eq!(tables_hold(256), 2_304);
        assert_eq!(tables_hold(usize::MAX), usize::MAX);
    }

    #[test]
    fn connections_are_capped_at_what_tables_hold() {
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
