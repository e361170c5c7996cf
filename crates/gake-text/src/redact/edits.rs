//! Replacements in a text.

use std::borrow::Cow;
use std::ops::Range;

/// Replacements, in any order.
#[derive(Debug, Default)]
pub(super) struct Edits(Vec<(Range<usize>, Vec<u8>)>);

impl Edits {
    /// Replaces a range.
    pub(super) fn put(&mut self, range: Range<usize>, bytes: impl Into<Vec<u8>>) {
        self.0.push((range, bytes.into()));
    }

    /// Adds the replacements of others.
    pub(super) fn add(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// The places that are replaced.
    pub(super) fn places(self) -> impl Iterator<Item = Range<usize>> {
        self.0.into_iter().map(|(range, _)| range)
    }

    /// Applies the replacements. Overlapping ones are merged: the first to begin, or the longer,
    /// replaces all of them.
    pub(super) fn apply(mut self, text: &[u8]) -> Cow<'_, [u8]> {
        if self.0.is_empty() {
            return Cow::Borrowed(text);
        }
        self.0.sort_by(|(a, _), (b, _)| a.start.cmp(&b.start).then(b.end.cmp(&a.end)));
        let mut out = Vec::with_capacity(text.len());
        let mut done = 0;
        for (range, bytes) in self.0 {
            if range.start < done {
                done = done.max(range.end);
                continue;
            }
            out.extend_from_slice(&text[done..range.start]);
            out.extend_from_slice(&bytes);
            done = range.end;
        }
        out.extend_from_slice(&text[done..]);
        Cow::Owned(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_edits_are_merged() {
        let mut edits = Edits::default();
        edits.put(2..4, "X");
        edits.put(3..6, "Y");
        edits.put(0..1, "Z");
        edits.put(2..3, "W");
        assert_eq!(edits.apply(b"abcdefgh"), &b"ZbXgh"[..]);
        assert_eq!(Edits::default().apply(b"ab"), &b"ab"[..]);
    }
}
