//! Places in a text and what stands there instead.

use std::borrow::Cow;
use std::ops::Range;

/// Replacements, in any order.
#[derive(Debug, Default)]
pub(super) struct Edits(Vec<(Range<usize>, Vec<u8>)>);

impl Edits {
    /// Puts bytes in a place.
    pub(super) fn put(&mut self, place: Range<usize>, bytes: impl Into<Vec<u8>>) {
        self.0.push((place, bytes.into()));
    }

    /// The text with all replacements. Of two that overlap the one that begins first counts, and
    /// the longer when both do; it then goes as far as both.
    pub(super) fn apply(mut self, text: &[u8]) -> Cow<'_, [u8]> {
        if self.0.is_empty() {
            return Cow::Borrowed(text);
        }
        self.0.sort_by(|(a, _), (b, _)| a.start.cmp(&b.start).then(b.end.cmp(&a.end)));
        let mut out = Vec::with_capacity(text.len());
        let mut done = 0;
        for (place, bytes) in self.0 {
            if place.start < done {
                done = done.max(place.end);
                continue;
            }
            out.extend_from_slice(&text[done..place.start]);
            out.extend_from_slice(&bytes);
            done = place.end;
        }
        out.extend_from_slice(&text[done..]);
        Cow::Owned(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_overlaps_goes_as_one() {
        let mut edits = Edits::default();
        edits.put(2..4, "X");
        edits.put(3..6, "Y");
        edits.put(0..1, "Z");
        edits.put(2..3, "W");
        assert_eq!(edits.apply(b"abcdefgh"), &b"ZbXgh"[..]);
        assert_eq!(Edits::default().apply(b"ab"), &b"ab"[..]);
    }
}
