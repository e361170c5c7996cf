//! Tables of series: of a worker, a second or a run.

use std::collections::HashMap;
use std::sync::Arc;

use super::definition::Definition;
use super::tags::Tags;
use super::value::SeriesValue;
use crate::clock::Nanos;

/// Default maximum number of distinct series.
pub const MAX_SERIES: usize = 10_000;

/// Bytes of memory for samples that a cleared table keeps for reuse. The rest is freed: with many
/// series, each worker's table and its spare would otherwise hold it twice.
const KEPT_ROOM: usize = 1 << 20;

/// The index of a series in one worker's table. Not valid in any other table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SeriesId(u32);

/// One metric under one set of tags.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SeriesKey {
    /// The metric.
    pub metric: Arc<Definition>,
    /// The tags.
    pub tags: Tags,
}

impl SeriesKey {
    /// The series that collects the samples of `metric` beyond the limit: tag `series:other`.
    #[must_use]
    pub fn other(metric: &Arc<Definition>) -> Self {
        Self { metric: Arc::clone(metric), tags: Tags::new([("series", "other")]) }
    }

    /// Whether it is a [`SeriesKey::other`].
    #[must_use]
    pub fn is_other(&self) -> bool {
        self.tags.pairs().len() == 1 && self.tags.get("series") == Some("other")
    }
}

/// Series by index, and indexes by series.
#[derive(Debug, Clone, Default)]
struct SeriesIndex {
    list: Vec<SeriesKey>,
    numbers: HashMap<SeriesKey, u32>,
    /// How many of them are [`SeriesKey::other`].
    others: usize,
}

/// Series with their aggregated samples. Tables are merged by name and tags.
///
/// At most [`MAX_SERIES`] are distinguished, or the limit of [`SeriesTable::with_limit`]. Further
/// series of a metric are counted under one, [`SeriesKey::other`].
#[derive(Debug, Clone)]
pub struct SeriesTable {
    /// Shared with the tables of other seconds; copied when a series is added.
    keys: Arc<SeriesIndex>,
    values: Vec<SeriesValue>,
    limit: usize,
    /// Samples that were not finite numbers.
    not_numbers: u64,
}

impl Default for SeriesTable {
    fn default() -> Self {
        Self::with_limit(MAX_SERIES)
    }
}

impl SeriesTable {
    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// An empty table of at most `limit` distinct series.
    #[must_use]
    pub fn with_limit(limit: usize) -> Self {
        Self { keys: Arc::default(), values: Vec::new(), limit, not_numbers: 0 }
    }

    /// The index of a series, for [`SeriesTable::add`]; beyond the limit, that of the metric's
    /// `other`.
    pub fn intern(&mut self, metric: &Arc<Definition>, tags: &Tags) -> SeriesId {
        self.number(SeriesKey { metric: Arc::clone(metric), tags: tags.clone() })
    }

    fn number(&mut self, key: SeriesKey) -> SeriesId {
        if let Some(number) = self.keys.numbers.get(&key) {
            return SeriesId(*number);
        }
        if self.is_full() && !key.is_other() {
            return self.number(SeriesKey::other(&key.metric));
        }
        let keys = Arc::make_mut(&mut self.keys);
        let number = keys.list.len() as u32;
        keys.others += usize::from(key.is_other());
        keys.numbers.insert(key.clone(), number);
        self.values.push(SeriesValue::new(key.metric.kind));
        keys.list.push(key);
        SeriesId(number)
    }

    /// Adds a sample taken at `at`. Allocates only as [`crate::record::Histogram::record`] does.
    /// Values that are not finite are counted in [`SeriesTable::not_numbers`].
    #[inline]
    pub fn add(&mut self, series: SeriesId, value: f64, at: Nanos) {
        if !value.is_finite() {
            self.not_numbers += 1;
        } else if let Some(sum) = self.values.get_mut(series.0 as usize) {
            sum.add(value, at);
        }
    }

    /// Merges an aggregated value into a series, for readers of files.
    pub fn add_value(&mut self, key: SeriesKey, value: &SeriesValue) {
        let SeriesId(number) = self.number(key);
        self.values[number as usize].merge(value);
    }

    /// Whether a further series would be beyond the limit.
    pub(super) fn is_full(&self) -> bool {
        self.keys.list.len() - self.keys.others >= self.limit
    }

    pub(super) fn contains(&self, key: &SeriesKey) -> bool {
        self.keys.numbers.contains_key(key)
    }

    /// Adds everything of `other`, by name and tags. Takes over its limit while the table is empty,
    /// then keeps the larger one.
    pub fn merge(&mut self, other: &Self) {
        let own = if self.keys.list.is_empty() { 0 } else { self.limit };
        self.limit = own.max(other.limit);
        self.not_numbers = self.not_numbers.saturating_add(other.not_numbers);
        for (i, (key, value)) in other.keys.list.iter().zip(&other.values).enumerate() {
            if value.samples() == 0 {
                continue;
            }
            // Workers with the same work tend to intern in the same order.
            let is_same = self.keys.list.get(i).is_some_and(|mine| mine == key);
            let at = if is_same { i } else { self.number(key.clone()).0 as usize };
            self.values[at].merge(value);
        }
    }

    /// Removes all samples; keeps the series and some memory for new samples.
    pub fn clear(&mut self) {
        self.not_numbers = 0;
        let mut room = 0;
        for value in &mut self.values {
            room += value.clear(room < KEPT_ROOM);
        }
    }

    /// Gives an empty table the series indexes of `other`.
    pub fn follow(&mut self, other: &Self) {
        self.limit = other.limit;
        if !Arc::ptr_eq(&self.keys, &other.keys) {
            self.keys = Arc::clone(&other.keys);
        }
        self.values.truncate(other.values.len());
        for (at, theirs) in other.values.iter().enumerate() {
            match self.values.get_mut(at) {
                Some(mine) if mine.kind() == theirs.kind() => {}
                Some(mine) => *mine = SeriesValue::new(theirs.kind()),
                None => self.values.push(SeriesValue::new(theirs.kind())),
            }
        }
    }

    /// The series that have samples.
    pub fn series(&self) -> impl Iterator<Item = (&SeriesKey, &SeriesValue)> {
        self.keys.list.iter().zip(&self.values).filter(|(_, value)| value.samples() > 0)
    }

    /// The series that have samples, sorted by name and tags.
    #[must_use]
    pub fn sorted(&self) -> Vec<(&SeriesKey, &SeriesValue)> {
        let mut all: Vec<_> = self.series().collect();
        all.sort_by_key(|series| series.0);
        all
    }

    /// The series of a metric that carry every tag of `tags`.
    pub fn select<'a>(
        &'a self,
        metric: &'a str,
        tags: &'a Tags,
    ) -> impl Iterator<Item = (&'a SeriesKey, &'a SeriesValue)> {
        let fits = move |key: &SeriesKey| key.metric.name == metric && key.tags.contains(tags);
        self.series().filter(move |(key, _)| fits(key))
    }

    /// Samples counted under the `other` series of their metric because of the limit.
    #[must_use]
    pub fn over(&self) -> u64 {
        let others = self.series().filter(|(key, _)| key.is_other());
        others.map(|(_, value)| value.samples()).sum()
    }

    /// Number of samples that were not finite numbers.
    #[must_use]
    pub fn not_numbers(&self) -> u64 {
        self.not_numbers
    }

    /// Adds to [`SeriesTable::not_numbers`], for readers of files.
    pub fn add_not_numbers(&mut self, samples: u64) {
        self.not_numbers = self.not_numbers.saturating_add(samples);
    }

    /// Whether there is no sample.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.not_numbers == 0 && self.series().next().is_none()
    }

    /// Heap memory of samples, in bytes.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.values.capacity() * size_of::<SeriesValue>()
            + self.values.iter().map(SeriesValue::heap_bytes).sum::<usize>()
    }
}

impl PartialEq for SeriesTable {
    /// Compares series and samples, not indexes.
    fn eq(&self, other: &Self) -> bool {
        self.not_numbers == other.not_numbers && self.sorted() == other.sorted()
    }
}
