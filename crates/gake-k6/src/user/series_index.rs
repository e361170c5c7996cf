//! Maps samples to series.
//!
//! A k6 sample has a dozen tags, a URL among them. Only the tags that thresholds and the summary
//! need distinguish series, so that the number of series does not grow with the URLs.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use gake_core::metric::{Definition, MetricKind, MetricUnit, SeriesId, Tags};
use gake_core::record::Recorder;

use crate::metrics::{MetricNumber, builtin};

/// The tags that the summary needs.
const SUMMARY_KEYS: [&str; 4] = ["check", "expected_response", "group", "scenario"];

/// Maximum number of cached tag sets.
const SETS_MAX: usize = 10_000;

/// Bytes of their keys.
const SET_BYTES_MAX: usize = 32 << 20;

/// Bytes of a tag's value that distinguish series: a script may name a group by a megabyte.
const VALUE_MAX: usize = 4 << 10;

/// Sets that are found without hashing.
const RECENT: usize = 4;

/// Separates tag values, which never contain it.
const SEPARATOR: char = '\u{1f}';

/// The part of a tag's value that distinguishes series.
fn bounded(value: &str) -> &str {
    &value[..value.floor_char_boundary(VALUE_MAX)]
}

/// Tags of a sample, by key.
pub trait TagSource {
    /// The value of a tag, if the sample has it.
    fn tag(&self, key: &str) -> Option<Cow<'_, str>>;

    /// The keys of all possible tags.
    fn keys(&self) -> Vec<String>;
}

/// The metrics and series of one worker and scenario.
#[derive(Debug)]
pub struct SeriesIndex {
    keys: Vec<String>,
    /// Whether single samples are written, with all of their tags.
    wants_all: bool,
    metrics: RefCell<Vec<Arc<Definition>>>,
    sets: RefCell<HashMap<Box<str>, Rc<TagSet>>>,
    /// Bytes of their keys.
    set_bytes: Cell<usize>,
    /// The last used sets: an iteration alternates between a few.
    recent: RefCell<RecentSets>,
    text: RefCell<String>,
}

/// A FIFO cache of tag sets by key.
#[derive(Debug, Default)]
struct RecentSets {
    sets: [Option<(Box<str>, Rc<TagSet>)>; RECENT],
    next: usize,
}

impl RecentSets {
    fn get(&self, text: &str) -> Option<&Rc<TagSet>> {
        let found = self.sets.iter().flatten().find(|(known, _)| **known == *text);
        found.map(|(_, set)| set)
    }

    fn put(&mut self, text: &str, set: &Rc<TagSet>) {
        self.sets[self.next] = Some((text.into(), Rc::clone(set)));
        self.next = (self.next + 1) % RECENT;
    }
}

/// One set of tags, and its series by metric.
#[derive(Debug)]
pub struct TagSet {
    /// The tags that distinguish series, without the secrets of URLs.
    tags: Tags,
    /// All tags, for single samples, as k6 writes them.
    pub(super) all: Option<Tags>,
    series: RefCell<Vec<Cell<Option<SeriesId>>>>,
}

impl TagSet {
    /// The tags that distinguish series.
    pub(crate) fn tags(&self) -> &Tags {
        &self.tags
    }
}

/// Why a metric cannot be created.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MetricError {
    /// Its name is invalid.
    #[error(
        "Invalid metric name: '{0}'. Metric names must only include up to 128 ASCII letters, numbers, or \
         underscores and start with a letter or an underscore."
    )]
    Name(String),
    /// The script has more metrics than are counted.
    #[error("a script may have {} metrics", u16::MAX)]
    TooMany,
    /// A metric of another kind has its name.
    #[error("metric '{name}' already exists but with type {old}, instead of {new}")]
    Taken {
        /// The name.
        name: String,
        /// The existing kind.
        old: &'static str,
        /// The new kind.
        new: &'static str,
    },
}

impl SeriesIndex {
    /// An index whose series are distinguished by `keys` and by the summary's keys.
    #[must_use]
    pub fn new<'a>(keys: impl IntoIterator<Item = &'a str>, wants_all: bool) -> Self {
        let mut keys: Vec<_> = SUMMARY_KEYS.into_iter().chain(keys).map(str::to_owned).collect();
        keys.sort_unstable();
        keys.dedup();
        Self {
            keys,
            wants_all,
            metrics: RefCell::new(builtin()),
            sets: RefCell::default(),
            set_bytes: Cell::new(0),
            recent: RefCell::default(),
            text: RefCell::default(),
        }
    }

    /// The metric of a name, created if it is new.
    ///
    /// # Errors
    /// When the name is invalid, or taken by another kind of metric.
    pub fn metric(
        &self,
        name: &str,
        kind: MetricKind,
        unit: MetricUnit,
    ) -> Result<MetricNumber, MetricError> {
        let mut metrics = self.metrics.borrow_mut();
        if let Some(at) = metrics.iter().position(|metric| metric.name == name) {
            let (old, new) = (metrics[at].kind, kind);
            if old == new {
                return Ok(MetricNumber(at as u16));
            }
            let (old, new) = (old.name(), new.name());
            return Err(MetricError::Taken { name: name.to_owned(), old, new });
        }
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if !starts || !(2..=128).contains(&name.len()) || !name.chars().all(is_word) {
            return Err(MetricError::Name(name.to_owned()));
        }
        let Ok(number) = u16::try_from(metrics.len()) else { return Err(MetricError::TooMany) };
        metrics.push(Arc::new(Definition { name: name.to_owned(), kind, unit }));
        Ok(MetricNumber(number))
    }

    /// Every metric, by number.
    #[must_use]
    pub fn metrics(&self) -> Vec<Arc<Definition>> {
        self.metrics.borrow().clone()
    }

    /// The tag set of a sample.
    #[must_use]
    pub fn tag_set(&self, source: &impl TagSource) -> Rc<TagSet> {
        let mut text = self.text.borrow_mut();
        text.clear();
        let all = self.wants_all.then(|| {
            let keys = source.keys().into_iter();
            Tags::new(keys.filter_map(|key| {
                let value = source.tag(&key)?.into_owned();
                Some((key, value))
            }))
        });
        for (key, value) in all.iter().flat_map(|all| all.pairs()) {
            text.extend([key.as_str(), "=", value.as_str(), "\u{1f}"]);
        }
        for key in &self.keys {
            if let Some(value) = source.tag(key) {
                text.push_str(bounded(&value));
            } else {
                // A missing tag is not an empty one.
                text.push('\0');
            }
            text.push(SEPARATOR);
        }
        if let Some(set) = self.recent.borrow().get(&text) {
            return Rc::clone(set);
        }
        let mut sets = self.sets.borrow_mut();
        if sets.len() >= SETS_MAX || self.set_bytes.get() > SET_BYTES_MAX {
            // Evicted sets are created again on their next use.
            sets.clear();
            self.set_bytes.set(0);
        }
        let set = match sets.get(text.as_str()) {
            Some(known) => Rc::clone(known),
            None => {
                let pairs = self.keys.iter().filter_map(|key| Some((key, source.tag(key)?)));
                let tags =
                    Tags::new(pairs.map(|(key, value)| (key.as_str(), bounded(&value).to_owned())));
                let tags = tags.without_secrets();
                let new = Rc::new(TagSet { tags, all, series: RefCell::default() });
                self.set_bytes.set(self.set_bytes.get() + text.len());
                sets.insert(text.as_str().into(), Rc::clone(&new));
                new
            }
        };
        self.recent.borrow_mut().put(&text, &set);
        set
    }

    pub(crate) fn definition(&self, metric: MetricNumber) -> Option<Arc<Definition>> {
        self.metrics.borrow().get(usize::from(metric.0)).cloned()
    }

    /// The series of `metric` under these tags in `recorder`, which must always be the same one.
    pub(crate) fn series(
        &self,
        metric: MetricNumber,
        set: &TagSet,
        recorder: &Recorder,
    ) -> Option<SeriesId> {
        let number = usize::from(metric.0);
        let mut series = set.series.borrow_mut();
        if number >= series.len() {
            series.resize(number + 1, Cell::new(None));
        }
        if let Some(known) = series[number].get() {
            return Some(known);
        }
        let metrics = self.metrics.borrow();
        let id = recorder.intern(metrics.get(number)?, &set.tags);
        series[number].set(Some(id));
        Some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct StaticTags(&'static [(&'static str, &'static str)]);

    impl TagSource for StaticTags {
        fn tag(&self, key: &str) -> Option<Cow<'_, str>> {
            let pair = self.0.iter().find(|(known, _)| *known == key)?;
            Some(pair.1.into())
        }

        fn keys(&self) -> Vec<String> {
            self.0.iter().map(|(key, _)| (*key).to_owned()).collect()
        }
    }

    #[test]
    fn samples_with_equal_keys_share_a_set() {
        let series_index = SeriesIndex::new(["name", "group"], false);
        let one = series_index.tag_set(&StaticTags(&[("name", "a"), ("url", "1")]));
        assert!(Rc::ptr_eq(
            &one,
            &series_index.tag_set(&StaticTags(&[("name", "a"), ("url", "2")]))
        ));
        let other = series_index.tag_set(&StaticTags(&[("name", "b")]));
        assert!(!Rc::ptr_eq(&one, &other));
        assert!(Rc::ptr_eq(&one, &series_index.tag_set(&StaticTags(&[("name", "a")]))));
        assert_eq!(other.tags, Tags::new([("name", "b")]));
        let empty = series_index.tag_set(&StaticTags(&[("name", "")]));
        assert!(
            !Rc::ptr_eq(&empty, &series_index.tag_set(&StaticTags(&[]))),
            "an empty value is one"
        );
    }

    #[test]
    fn single_samples_have_all_tags() {
        let series_index = SeriesIndex::new([], true);
        let one = series_index.tag_set(&StaticTags(&[("url", "1"), ("group", "g")]));
        let other = series_index.tag_set(&StaticTags(&[("url", "2"), ("group", "g")]));
        assert_eq!(one.all, Some(Tags::new([("url", "1"), ("group", "g")])));
        assert_eq!(one.tags, other.tags);
        assert!(!Rc::ptr_eq(&one, &other));
    }

    #[test]
    fn a_name_has_one_kind() {
        let series_index = SeriesIndex::new([], false);
        let trend = series_index.metric("my_trend", MetricKind::Trend, MetricUnit::Time).unwrap();
        assert_eq!(series_index.metric("my_trend", MetricKind::Trend, MetricUnit::Time), Ok(trend));
        let error =
            series_index.metric("my_trend", MetricKind::Rate, MetricUnit::Number).unwrap_err();
        assert!(error.to_string().contains("already exists but with type trend"), "{error}");
        for name in ["", "x", "1st", "a b", "näme"] {
            let error =
                series_index.metric(name, MetricKind::Rate, MetricUnit::Number).unwrap_err();
            assert_eq!(error, MetricError::Name(name.to_owned()));
        }
    }
}
