//! The fields in which responses differ, and the kinds of differences.

use std::collections::BTreeMap;
use std::fmt;

use gake_text::redact::{Redacted, Redactor};
use serde::{Deserialize, Serialize};

use super::rules::Tolerances;

/// Differences recorded for one pair of responses.
const DIFFERENCES_MAX: usize = 200;

/// Bytes of a path.
const PATH_BYTES_MAX: usize = 200;

/// Bytes of a value shown in an example.
const VALUE_BYTES_MAX: usize = 160;

/// How a field differs from the expected one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DifferenceKind {
    /// It is missing.
    Missing,
    /// It is unexpected.
    Added,
    /// Its type differs.
    Type,
    /// Its value differs.
    Value,
    /// It has the same elements in another order.
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

/// A field of an endpoint's responses and how it differs. The path is `status`, `header NAME`,
/// `$.items[*].price` in JSON, `line ...` in a text, or `bytes`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DifferenceField {
    /// The path of the field.
    pub path: String,
    /// The kind of the difference.
    pub kind: DifferenceKind,
}

impl fmt::Display for DifferenceField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.path, self.kind.name())
    }
}

/// The values of a field in two responses, truncated for display.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValuePair {
    /// The master's value.
    pub expected: Redacted,
    /// The other backend's value.
    pub actual: Redacted,
}

/// The differences of one pair of responses, the first of each field.
#[derive(Debug)]
pub struct Differences<'a> {
    /// The values by field.
    pub fields: BTreeMap<DifferenceField, ValuePair>,
    /// Whether there were fields beyond the bound.
    pub more: bool,
    /// Tolerances for numbers.
    pub tolerances: Tolerances<'a>,
    /// Redacts values before they are stored.
    pub redactor: &'a Redactor,
}

impl<'a> Differences<'a> {
    pub(super) fn new(tolerances: Tolerances<'a>, redactor: &'a Redactor) -> Self {
        Self { fields: BTreeMap::new(), more: false, tolerances, redactor }
    }

    /// Records a difference; `values` is called only if it is stored.
    pub(super) fn note(
        &mut self,
        path: &str,
        kind: DifferenceKind,
        values: impl FnOnce() -> (Redacted, Redacted),
    ) {
        let field = DifferenceField { path: cut(path.to_owned(), PATH_BYTES_MAX), kind };
        if self.fields.contains_key(&field) {
            return;
        }
        if self.fields.len() == DIFFERENCES_MAX {
            self.more = true;
            return;
        }
        let (mut expected, mut actual) = values();
        expected.cut(VALUE_BYTES_MAX, "…");
        actual.cut(VALUE_BYTES_MAX, "…");
        self.fields.insert(field, ValuePair { expected, actual });
    }
}

/// Truncates a text, with an ellipsis.
fn cut(mut text: String, limit: usize) -> String {
    if text.len() > limit {
        let at = (0..=limit).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(at);
        text.push('…');
    }
    text
}
