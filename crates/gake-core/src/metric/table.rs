//! Tables of series: of a worker, a second or a run.

use std::collections::HashMap;
use std::sync::Arc;

use super::definition::Definition;
use super::tags::Tags;
use super::value::SeriesValue;
use crate::clock::Nanos;

/// Default maximum number of distinct series.
pub const MAX_SERIES: usize = 10_000;

/// Room for samples that a cleared table keeps for the next ones, in bytes. What is over it is
/// given back, so that many series do not take their room twice: in the worker that fills a table
/// and in the one that waits for its turn.
const KEPT_ROOM: usize = 1 << 20;

/// The index of a series in one worker's table; valid while the worker runs, and in no other table.
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
    /// The series that takes what is over the bound: the one of its metric with the tag
    /// `series:other`.
    #[must_use]
    pub fn other(metric: &Arc<Definition>) -> Self {
        Self { metric: Arc::clone(metric), tags: Tags::new([("series", "other")]) }
    }

    /// Whether it stands for the series over the bound.
    #[must_use]
    pub fn is_other(&self) -> bool {
        self.tags.pairs().len() == 1 && self.tags.get("series") == Some("other")
    }
}

/// Series by number, and numbers by series.
#[derive(Debug, Clone, Default)]
struct Keys {
    list: Vec<SeriesKey>,
    numbers: HashMap<SeriesKey, u32>,
    /// How many of them take what is over the bound.
    others: usize,
}

/// Series with their aggregated samples. Tables are merged by name and tags.
///
/// At most [`MAX_SERIES`] are distinguished, or the limit of [`SeriesTable::with_limit`]. What is
/// over the limit is counted under one series of each metric, [`SeriesKey::other`].
#[derive(Debug, Clone)]
pub struct SeriesTable {
    /// Shared with the tables of other seconds: they change only when a series is new.
    keys: Arc<Keys>,
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
    /// The maximum number of distinct series.
    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// An empty table of at most `limit` distinct series.
    #[must_use]
    pub fn with_limit(limit: usize) -> Self {
        Self { keys: Arc::default(), values: Vec::new(), limit, not_numbers: 0 }
    }

    /// The number of a series, by which it is recorded from then on; over the bound that of the
    /// metric's `other`.
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

    /// Adds a sample of the instant `at`. Allocates nothing, but for a trend as
    /// [`crate::record::Histogram::record`] does. Values that are not finite are counted as such.
    #[inline]
    pub fn add(&mut self, series: SeriesId, value: f64, at: Nanos) {
        if !value.is_finite() {
            self.not_numbers += 1;
        } else if let Some(sum) = self.values.get_mut(series.0 as usize) {
            sum.add(value, at);
        }
    }

    /// Adds a whole value to a series, for readers of files.
    pub fn add_value(&mut self, key: SeriesKey, value: &SeriesValue) {
        let SeriesId(number) = self.number(key);
        self.values[number as usize].merge(value);
    }

    /// Whether a further series is over the bound.
    pub(super) fn is_full(&self) -> bool {
        self.keys.list.len() - self.keys.others >= self.limit
    }

    /// Whether the table has this series.
    pub(super) fn contains(&self, key: &SeriesKey) -> bool {
        self.keys.numbers.contains_key(key)
    }

    /// Adds everything of `other`, by name and tags.
    /// It takes over the bound on their number when it has none of its own series yet; else the
    /// larger one holds.
    pub fn merge(&mut self, other: &Self) {
        let own = if self.keys.list.is_empty() { 0 } else { self.limit };
        self.limit = own.max(other.limit);
        self.not_numbers = self.not_numbers.saturating_add(other.not_numbers);
        for (i, (key, value)) in other.keys.list.iter().zip(&other.values).enumerate() {
            if value.samples() == 0 {
                continue;
            }
            // Workers that do the same tend to have the same order.
            let is_same = self.keys.list.get(i).is_some_and(|mine| mine == key);
            let at = if is_same { i } else { self.number(key.clone()).0 as usize };
            self.values[at].merge(value);
        }
    }

    /// Forgets every sample but keeps the series, with some room for new samples.
    pub fn clear(&mut self) {
        self.not_numbers = 0;
        let mut room = 0;
        for value in &mut self.values {
            room += value.clear(room < KEPT_ROOM);
        }
    }

    /// Gives an empty table the series numbers of `other`.
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

    /// The series that have samples, in the order of their metrics' names and tags.
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

    /// Samples left out because they were not finite numbers.
    #[must_use]
    pub fn not_numbers(&self) -> u64 {
        self.not_numbers
    }

    /// Adds to the samples left out, for readers of files.
    pub fn add_not_numbers(&mut self, samples: u64) {
        self.not_numbers = self.not_numbers.saturating_add(samples);
    }

    /// Whether there is no sample.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.not_numbers == 0 && self.series().next().is_none()
    }

    /// Bytes of memory that samples take.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.values.capacity() * size_of::<SeriesValue>()
            + self.values.iter().map(SeriesValue::heap_bytes).sum::<usize>()
    }
}

impl PartialEq for SeriesTable {
    /// The same series with the same samples, whatever their numbers.
    fn eq(&self, other: &Self) -> bool {
        self.not_numbers == other.not_numbers && self.sorted() == other.sorted()
    }
}
