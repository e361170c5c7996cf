//! Counts by bucket in pages of an octave.

use super::bucket::{OCTAVE, OCTAVE_BITS};

/// The counts of an octave, modulo 2^32.
type OctavePage = [u32; OCTAVE];

/// Counts by bucket, in a page of 4 KB for each octave that has values.
#[derive(Debug, Clone, Default)]
pub(super) struct Pages {
    zeros: u64,
    /// The octave of the first page.
    first: i32,
    pages: Vec<Option<Box<OctavePage>>>,
    /// Overflow of counts, in units of `2^32`, by bucket.
    carries: Vec<(i32, u64)>,
}

impl Pages {
    /// Adds to the count of a bucket. Allocates if the octave has no page.
    #[inline]
    pub(super) fn add(&mut self, number: i32, count: u64) {
        if number == 0 {
            self.zeros = self.zeros.saturating_add(count);
            return;
        }
        // Octaves below the first wrap to large numbers.
        let at = (number >> OCTAVE_BITS).wrapping_sub(self.first) as usize;
        if let Some(Some(page)) = self.pages.get_mut(at) {
            let low = &mut page[number as usize % OCTAVE];
            let sum = u64::from(*low).saturating_add(count);
            *low = sum as u32;
            if sum >> 32 != 0 {
                self.carry(number, sum >> 32);
            }
        } else {
            *self.slot(number >> OCTAVE_BITS) = Some(Box::new([0; OCTAVE]));
            self.add(number, count);
        }
    }

    #[cold]
    fn carry(&mut self, number: i32, count: u64) {
        match self.carries.binary_search_by_key(&number, |carry| carry.0) {
            Ok(at) => self.carries[at].1 = self.carries[at].1.saturating_add(count),
            Err(at) => self.carries.insert(at, (number, count)),
        }
    }

    /// The slot of an octave's page.
    #[cold]
    fn slot(&mut self, octave: i32) -> &mut Option<Box<OctavePage>> {
        if self.pages.is_empty() {
            self.first = octave;
        }
        if octave < self.first {
            let before = (self.first - octave) as usize;
            self.pages.splice(0..0, std::iter::repeat_with(|| None).take(before));
            self.first = octave;
        }
        let at = (octave - self.first) as usize;
        if self.pages.len() <= at {
            self.pages.resize_with(at + 1, || None);
        }
        &mut self.pages[at]
    }

    /// Adds every count of `other`, a page at a time.
    pub(super) fn merge(&mut self, other: &Self) {
        self.zeros = self.zeros.saturating_add(other.zeros);
        for (octave, theirs) in other.octaves().filter(|(_, page)| !is_empty(page)) {
            match self.slot(octave) {
                Some(mine) => {
                    if add_page(mine, theirs) {
                        self.carry_after_adding(octave, theirs);
                    }
                }
                none => *none = Some(Box::new(*theirs)),
            }
        }
        for &(number, count) in &other.carries {
            self.carry(number, count);
        }
    }

    /// Carries where the sum of two 32-bit counts has wrapped.
    #[cold]
    fn carry_after_adding(&mut self, octave: i32, theirs: &OctavePage) {
        let Some(mine) = self.slot(octave) else { return };
        let wrapped = mine.iter().zip(theirs).zip(0..).filter(|((sum, added), _)| sum < added);
        let wrapped: Vec<i32> = wrapped.map(|(_, index)| index).collect();
        for index in wrapped {
            self.carry((octave << OCTAVE_BITS) + index, 1);
        }
    }

    /// Removes all counts. Frees pages not used since the last call.
    pub(super) fn clear(&mut self) {
        self.zeros = 0;
        self.carries.clear();
        for slot in &mut self.pages {
            if slot.as_ref().is_some_and(|page| is_empty(page)) {
                *slot = None;
            } else if let Some(page) = slot {
                page.fill(0);
            }
        }
    }

    /// The pages, from the lowest values to the highest.
    fn octaves(&self) -> impl Iterator<Item = (i32, &OctavePage)> {
        let pages = (self.first..).zip(&self.pages);
        pages.filter_map(|(octave, page)| Some((octave, &**page.as_ref()?)))
    }

    fn carried(&self, number: i32) -> u64 {
        let at = self.carries.binary_search_by_key(&number, |carry| carry.0);
        at.map_or(0, |at| self.carries[at].1.saturating_mul(1 << 32))
    }

    /// The buckets with values, in order.
    pub(super) fn buckets(&self) -> impl Iterator<Item = (i32, u64)> + '_ {
        let of_page = |(octave, page)| self.in_page(octave, page);
        let negative = self.octaves().filter(|page| page.0 < 0).flat_map(of_page);
        let positive = self.octaves().filter(|page| page.0 > 0).flat_map(of_page);
        let zeros = (self.zeros > 0).then_some((0, self.zeros));
        negative.chain(zeros).chain(positive)
    }

    fn in_page<'a>(
        &'a self,
        octave: i32,
        page: &'a OctavePage,
    ) -> impl Iterator<Item = (i32, u64)> + use<'a> {
        let numbers = (octave << OCTAVE_BITS)..;
        numbers.zip(page).filter_map(|(number, low)| {
            let high = if self.carries.is_empty() { 0 } else { self.carried(number) };
            let count = high.saturating_add(u64::from(*low));
            (count > 0).then_some((number, count))
        })
    }

    /// The bucket of the value with rank `rank`, from 1; `None` if there are fewer values.
    pub(super) fn at_rank(&self, rank: u64) -> Option<i32> {
        let mut before = 0_u64;
        let mut zeros = Some(self.zeros);
        for (octave, page) in self.octaves() {
            if octave > 0 {
                before = before.saturating_add(zeros.take().unwrap_or(0));
                if before >= rank {
                    return Some(0);
                }
            }
            let through = before.saturating_add(self.sum(octave, 0..OCTAVE, page));
            if through < rank {
                before = through;
                continue;
            }
            for (number, count) in self.in_page(octave, page) {
                before = before.saturating_add(count);
                if before >= rank {
                    return Some(number);
                }
            }
        }
        (before.saturating_add(zeros.unwrap_or(0)) >= rank).then_some(0)
    }

    /// The number of values in the buckets `low..=high`.
    pub(super) fn count_within(&self, low: i32, high: i32) -> u64 {
        let zeros = if (low..=high).contains(&0) { self.zeros } else { 0 };
        let pages = self.octaves().map(|(octave, page)| {
            let start = octave << OCTAVE_BITS;
            let index = |number: i32| number.saturating_sub(start).clamp(0, OCTAVE as i32) as usize;
            let (from, to) = (index(low), index(high.saturating_add(1)));
            if from < to { self.sum(octave, from..to, page) } else { 0 }
        });
        pages.fold(zeros, u64::saturating_add)
    }

    fn sum(&self, octave: i32, range: std::ops::Range<usize>, page: &OctavePage) -> u64 {
        let start = octave << OCTAVE_BITS;
        let numbers = start + range.start as i32..start + range.end as i32;
        let low: u64 = page[range].iter().map(|count| u64::from(*count)).sum();
        let carries = self.carries.iter().filter(|carry| numbers.contains(&carry.0));
        carries.fold(low, |sum, carry| sum.saturating_add(carry.1.saturating_mul(1 << 32)))
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.octaves().count() * size_of::<OctavePage>()
            + self.pages.capacity() * size_of::<Option<Box<OctavePage>>>()
            + self.carries.capacity() * size_of::<(i32, u64)>()
    }
}

fn is_empty(page: &OctavePage) -> bool {
    // Without an early exit it vectorises.
    page.iter().fold(0, |all, count| all | count) == 0
}

/// Adds a page; returns whether a count has wrapped.
fn add_page(mine: &mut OctavePage, theirs: &OctavePage) -> bool {
    let mut wrapped = false;
    for (mine, theirs) in mine.iter_mut().zip(theirs) {
        *mine = mine.wrapping_add(*theirs);
        wrapped |= *mine < *theirs;
    }
    wrapped
}
