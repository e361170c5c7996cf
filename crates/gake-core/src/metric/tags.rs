//! Tags of samples.

use std::fmt;
use std::sync::Arc;

use gake_text::redact::{Redactor, SecretNames};

/// Keys and values, each key once. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tags(Arc<[(String, String)]>);

impl Default for Tags {
    fn default() -> Self {
        Self(Arc::from([]))
    }
}

impl Tags {
    /// Tags from pairs; the last value of a repeated key wins.
    pub fn new<K: Into<String>, V: Into<String>>(pairs: impl IntoIterator<Item = (K, V)>) -> Self {
        let mut all: Vec<(String, String)> =
            pairs.into_iter().map(|(key, value)| (key.into(), value.into())).collect();
        all.reverse();
        // Stable, so that the last one given comes first.
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all.dedup_by(|later, kept| later.0 == kept.0);
        Self(all.into())
    }

    /// The pairs, sorted by key.
    #[must_use]
    pub fn pairs(&self) -> &[(String, String)] {
        &self.0
    }

    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        let at = self.0.binary_search_by(|pair| pair.0.as_str().cmp(key)).ok()?;
        Some(&self.0[at].1)
    }

    /// These tags without `key`.
    #[must_use]
    pub fn without(&self, key: &str) -> Self {
        self.without_any(|name| name == key)
    }

    /// These tags without the keys that `is_out` matches; shared if none does.
    #[must_use]
    pub fn without_any(&self, is_out: impl Fn(&str) -> bool) -> Self {
        if !self.0.iter().any(|pair| is_out(&pair.0)) {
            return self.clone();
        }
        Self(self.0.iter().filter(|pair| !is_out(&pair.0)).cloned().collect())
    }

    /// These tags, with masks for values that are secrets by their keys, or hold some. A mask is the
    /// same on every machine: series of several agents are joined by their tags.
    #[must_use]
    pub fn without_secrets(&self) -> Self {
        let mask = Redactor::masking(SecretNames::default());
        let shown = |key: &str, value: &str| mask.tag_value(key, value).into_inner();
        Self(self.0.iter().map(|(key, value)| (key.clone(), shown(key, value))).collect())
    }

    /// Whether there are no tags.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether these tags include every tag of `selector`.
    #[must_use]
    pub fn contains(&self, selector: &Self) -> bool {
        selector.0.iter().all(|(key, value)| self.get(key) == Some(value))
    }
}

impl fmt::Display for Tags {
    /// `{key:value,key:value}`; empty without tags.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = '{';
        for (key, value) in self.0.iter() {
            write!(f, "{separator}{key}:{value}")?;
            separator = ',';
        }
        if self.0.is_empty() { Ok(()) } else { f.write_str("}") }
    }
}

impl fmt::Debug for Tags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.0.iter().map(|(key, value)| (key, value))).finish()
    }
}
