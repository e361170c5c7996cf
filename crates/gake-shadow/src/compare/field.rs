//! Where answers differ, and how.

use std::collections::BTreeMap;
use std::fmt;

use gake_text::redact::Redactor;
use serde::{Deserialize, Serialize};

use super::rules::Tolerances;

/// Differences of one pair of answers told apart; the rest is counted as one more.
const DIFFERENCES_MAX: usize = 200;

/// Bytes of a path.
const PATH_BYTES_MAX: usize = 200;

/// Bytes of a value that is shown.
const VALUE_BYTES_MAX: usize = 160;

/// How a place differs from what was expected there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DifferenceKind {
    /// It is not there.
    Missing,
    /// It should not be there.
    Added,
    /// It has another type.
    Type,
    /// It has another value.
    Value,
    /// The same things are there in another order.
    Order,
}

impl DifferenceKind {
    /// The stable name used in every format.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Added => "added",
            Self::Type => "type",
            Self::Value => "value",
            Self::Order => "order",
        }
    }
}

/// A place in answers of an endpoint: `status`, `header NAME`, `$.items[*].price` in JSON,
/// `line ...` in a text, `bytes` of anything else; and how it differs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DifferenceField {
    /// The place.
    pub path: String,
    /// How it differs.
    pub kind: DifferenceKind,
}

impl fmt::Display for DifferenceField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.path, self.kind.name())
    }
}

/// What stood at a place in two answers, cut to a length that can be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValuePair {
    /// In the answer that is taken as right.
    pub expected: String,
    /// In the other.
    pub actual: String,
}

/// Differences of one pair of answers, the first of each field.
#[derive(Debug)]
pub struct Differences<'a> {
    /// By field.
    pub fields: BTreeMap<DifferenceField, ValuePair>,
    /// Whether there were more fields than are told apart.
    pub more: bool,
    /// How far numbers may lie apart.
    pub tolerances: Tolerances<'a>,
    /// Hides secrets in what is kept.
    pub redactor: &'a Redactor,
}

impl<'a> Differences<'a> {
    pub(super) fn new(tolerances: Tolerances<'a>, redactor: &'a Redactor) -> Self {
        Self { fields: BTreeMap::new(), more: false, tolerances, redactor }
    }

    /// Notes a difference; the values are made only when they are kept.
    pub(super) fn note(
        &mut self,
        path: &str,
        kind: DifferenceKind,
        values: impl FnOnce() -> (String, String),
    ) {
        let field = DifferenceField { path: cut(path.to_owned(), PATH_BYTES_MAX), kind };
        if self.fields.contains_key(&field) {
            return;
        }
        if self.fields.len() == DIFFERENCES_MAX {
            self.more = true;
            return;
        }
        let (expected, actual) = values();
        let shown = |text| cut(text, VALUE_BYTES_MAX);
        self.fields.insert(field, ValuePair { expected: shown(expected), actual: shown(actual) });
    }
}

/// The first bytes of a text, with a mark when there were more.
fn cut(mut text: String, limit: usize) -> String {
    if text.len() > limit {
        let at = (0..=limit).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(at);
        text.push('…');
    }
    text
}
