//! Text without secrets, by its type.

use std::borrow::Cow;
use std::fmt;
use std::ops::{Deref, Range};

use serde::{Deserialize, Serialize};

use crate::foreign;

/// What went through a [`Redactor`](super::Redactor), the only source of such values, or a part of
/// it. Logs, diffs, reports and run files take it, so that nothing raw can be written to them.
///
/// Deserialized from a file, it is as its writer left it.
#[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Redacted<T = String>(pub(super) T);

impl<T> Redacted<T> {
    /// The value, as it may be stored or shown.
    #[must_use]
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl Redacted {
    /// A text of gake's own.
    #[must_use]
    pub fn plain(text: &'static str) -> Self {
        Self(text.to_owned())
    }

    /// The parts, joined.
    #[must_use]
    pub fn concat(parts: impl IntoIterator<Item = Self>) -> Self {
        Self(parts.into_iter().map(Self::into_inner).collect())
    }

    /// A part of it; empty if there is none at these bytes.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> Self {
        Self(self.0.get(range).unwrap_or_default().to_owned())
    }

    /// Without blanks at its ends.
    #[must_use]
    pub fn trimmed(&self) -> Self {
        Self(self.0.trim().to_owned())
    }

    /// Its lines.
    pub fn each_line(&self) -> impl Iterator<Item = Self> {
        self.0.lines().map(|line| Self(line.to_owned()))
    }

    /// Truncates to `bytes` bytes; `end` follows if there were more.
    pub fn cut(&mut self, bytes: usize, end: &'static str) {
        if self.0.len() > bytes {
            self.0.truncate(self.0.floor_char_boundary(bytes));
            self.0.push_str(end);
        }
    }
}

impl<'a> Redacted<Cow<'a, [u8]>> {
    /// As text.
    #[must_use]
    pub fn text(&self) -> Redacted {
        Redacted(String::from_utf8_lossy(&self.0).into_owned())
    }

    /// The new value, if it differs.
    #[must_use]
    pub fn changed(self) -> Option<Vec<u8>> {
        match self.0 {
            Cow::Owned(bytes) => Some(bytes),
            Cow::Borrowed(_) => None,
        }
    }
}

impl<T: Deref> Deref for Redacted<T> {
    type Target = T::Target;

    fn deref(&self) -> &T::Target {
        &self.0
    }
}

impl fmt::Display for Redacted {
    /// On one line, with control characters as escapes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&foreign::line(&self.0))
    }
}

impl<T: fmt::Debug> fmt::Debug for Redacted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: PartialEq<str>> PartialEq<str> for Redacted<T> {
    fn eq(&self, other: &str) -> bool {
        self.0 == *other
    }
}

impl<T: PartialEq<str>> PartialEq<&str> for Redacted<T> {
    fn eq(&self, other: &&str) -> bool {
        self.0 == **other
    }
}
