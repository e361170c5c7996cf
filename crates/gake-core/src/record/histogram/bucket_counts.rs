//! Counts by bucket: a short list at first, then pages of an octave.

use super::pages::Pages;

/// Maximum buckets of a list. Most series of a run with many tags see fewer in a second.
const FEW: usize = 64;

#[derive(Debug, Clone)]
pub(super) enum BucketCounts {
    /// Sorted by bucket.
    Few(Vec<(i32, u64)>),
    /// Any number.
    Many(Pages),
}

impl Default for BucketCounts {
    fn default() -> Self {
        Self::Few(Vec::new())
    }
}

impl BucketCounts {
    /// Counts sorted by bucket.
    pub(super) fn listed(list: Vec<(i32, u64)>) -> Self {
        Self::Few(list)
    }

    /// Adds to the count of a bucket.
    #[inline]
    pub(super) fn add(&mut self, number: i32, count: u64) {
        match self {
            Self::Many(pages) => pages.add(number, count),
            Self::Few(list) => {
                if !add_to_list(list, number, count) {
                    self.paged().add(number, count);
                }
            }
        }
    }

    /// Maps pages for the octaves of these buckets. Requires empty counts.
    pub(super) fn make_room(&mut self, numbers: impl Iterator<Item = i32>) {
        let pages = self.paged();
        // Clearing a used page keeps it and touches all of it.
        numbers.for_each(|number| pages.add(number, 1));
        pages.clear();
    }

    #[cold]
    fn paged(&mut self) -> &mut Pages {
        if let Self::Few(list) = self {
            let mut pages = Pages::default();
            list.iter().for_each(|&(number, count)| pages.add(number, count));
            *self = Self::Many(pages);
        }
        match self {
            Self::Many(pages) => pages,
            Self::Few(_) => unreachable!("the list was replaced"),
        }
    }

    /// Adds every count of `other`.
    pub(super) fn merge(&mut self, other: &Self) {
        match other {
            other if matches!(self, Self::Few(list) if list.is_empty()) => *self = other.clone(),
            Self::Few(list) => list.iter().for_each(|&(number, count)| self.add(number, count)),
            Self::Many(pages) => self.paged().merge(pages),
        }
    }

    /// Removes all counts, `values` in total. Keeps memory in use: the next interval resembles the
    /// last.
    pub(super) fn clear(&mut self, values: u64) {
        match self {
            Self::Few(list) => list.clear(),
            Self::Many(_) if values <= FEW as u64 / 2 => *self = Self::default(),
            Self::Many(pages) => pages.clear(),
        }
    }

    /// The buckets with values, in order.
    pub(super) fn buckets(&self) -> impl Iterator<Item = (i32, u64)> + '_ {
        let (few, many) = match self {
            Self::Few(list) => (Some(list.iter().copied()), None),
            Self::Many(pages) => (None, Some(pages.buckets())),
        };
        few.into_iter().flatten().chain(many.into_iter().flatten())
    }

    /// The bucket of the value with rank `rank`, from 1; `None` if there are fewer values.
    pub(super) fn at_rank(&self, rank: u64) -> Option<i32> {
        match self {
            Self::Few(list) => {
                let mut through = 0_u64;
                let reaches = |entry: &&(i32, u64)| {
                    through = through.saturating_add(entry.1);
                    through >= rank
                };
                list.iter().find(reaches).map(|entry| entry.0)
            }
            Self::Many(pages) => pages.at_rank(rank),
        }
    }

    /// The number of values in the buckets `low..=high`.
    pub(super) fn count_within(&self, low: i32, high: i32) -> u64 {
        match self {
            Self::Few(list) => {
                let within = list.iter().filter(|entry| (low..=high).contains(&entry.0));
                within.fold(0, |sum, entry| sum.saturating_add(entry.1))
            }
            Self::Many(pages) => pages.count_within(low, high),
        }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        match self {
            Self::Few(list) => list.capacity() * size_of::<(i32, u64)>(),
            Self::Many(pages) => pages.heap_bytes(),
        }
    }
}

impl PartialEq for BucketCounts {
    fn eq(&self, other: &Self) -> bool {
        self.buckets().eq(other.buckets())
    }
}

/// Adds to a count in the list; returns false if the list is full.
fn add_to_list(list: &mut Vec<(i32, u64)>, number: i32, count: u64) -> bool {
    match list.binary_search_by_key(&number, |entry| entry.0) {
        Ok(at) => list[at].1 = list[at].1.saturating_add(count),
        Err(_) if list.len() >= FEW => return false,
        Err(at) => list.insert(at, (number, count)),
    }
    true
}
