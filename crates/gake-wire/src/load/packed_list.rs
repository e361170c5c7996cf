//! Byte strings that resemble each other, packed: each is kept as its difference from an earlier one.

/// Entries from one indexed entry to the next.
const STRIDE: usize = 8;

/// Maximum number of strings that others differ from.
const BASES_MAX: usize = 256;

/// The bases that a new string is compared with: those used last.
const RECENT_MAX: usize = 4;

/// An append-only list of byte strings, each with a number as its tag.
#[derive(Debug, Default)]
pub(crate) struct PackedList {
    /// Strings that others differ from.
    bases: Vec<Box<[u8]>>,
    /// The numbers of the bases used last, the last one first.
    recent: Vec<usize>,
    /// The entries: tag, base, length of the difference, difference.
    entries: Vec<u8>,
    /// Where every [`STRIDE`]th entry begins.
    starts: Vec<usize>,
    len: usize,
    /// Differences from the bases used last, while a string is added.
    candidates: [Vec<u8>; 2],
}

impl PackedList {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn push(&mut self, tag: u32, text: &[u8]) {
        if self.len.is_multiple_of(STRIDE) {
            self.starts.push(self.entries.len());
        }
        self.len += 1;
        let base = self.compare(text);
        put(&mut self.entries, tag as usize);
        put(&mut self.entries, base);
        put(&mut self.entries, self.candidates[0].len());
        self.entries.extend_from_slice(&self.candidates[0]);
    }

    /// Finds a base for `text`, whose difference is the first candidate then.
    fn compare(&mut self, text: &[u8]) -> usize {
        let is_near = |difference: &[u8]| difference.len() <= text.len() / 2;
        let mut best = None;
        for (place, &number) in self.recent.iter().enumerate() {
            let [least, next] = &mut self.candidates;
            next.clear();
            put_difference(&self.bases[number], text, next);
            if best.is_none() || next.len() < least.len() {
                std::mem::swap(least, next);
                best = Some(place);
            }
            if is_near(&self.candidates[0]) {
                break;
            }
        }
        match best {
            Some(place) if is_near(&self.candidates[0]) || self.bases.len() == BASES_MAX => {
                self.recent[..=place].rotate_right(1);
            }
            _ => {
                self.candidates[0].clear();
                self.recent.truncate(RECENT_MAX - 1);
                self.recent.insert(0, self.bases.len());
                self.bases.push(text.into());
            }
        }
        self.recent[0]
    }

    /// Writes the string with this number into `text`, and returns its tag.
    #[inline]
    pub(crate) fn get(&self, number: usize, text: &mut Vec<u8>) -> u32 {
        let mut at = self.starts[number / STRIDE];
        for _ in 0..number % STRIDE {
            // The tag and the base.
            take(&self.entries, &mut at);
            take(&self.entries, &mut at);
            at = take(&self.entries, &mut at) + at;
        }
        self.read(&mut at, text)
    }

    /// Writes the string of the entry at `at` into `text`, moves `at` to the next entry, and returns
    /// the tag.
    pub(crate) fn read(&self, at: &mut usize, text: &mut Vec<u8>) -> u32 {
        let tag = take(&self.entries, at) as u32;
        let base = &*self.bases[take(&self.entries, at)];
        let length = take(&self.entries, at);
        text.clear();
        apply(base, &self.entries[*at..*at + length], text);
        *at += length;
        tag
    }
}

/// Appends the difference of `text` from `base`: any number of edits, each of which copies some bytes
/// of the base, skips some, and inserts others. The rest of the base follows the last one.
///
/// Lines are compared one by one, so that a few short edits suffice when several lines differ.
fn put_difference(base: &[u8], text: &[u8], out: &mut Vec<u8>) {
    let (mut base, mut text, mut copied) = (base, text, 0);
    while !(base.is_empty() && text.is_empty()) {
        let same = common_prefix(base, text);
        copied += same;
        (base, text) = (&base[same..], &text[same..]);
        // The last lines: everything that is left.
        let (end, text_end) = match (line_end(base), line_end(text)) {
            (Some(end), Some(text_end)) => (end, text_end),
            _ => (base.len(), text.len()),
        };
        let (old, new) = (&base[..end], &text[..text_end]);
        let tail = common_suffix(old, new);
        let (skipped, inserted) = (end - tail, &new[..text_end - tail]);
        if skipped > 0 || !inserted.is_empty() {
            put(out, copied);
            put(out, skipped);
            put(out, inserted.len());
            out.extend_from_slice(inserted);
            copied = 0;
        }
        copied += tail;
        (base, text) = (&base[end..], &text[text_end..]);
    }
}

/// Appends `base` with the edits of a difference.
#[inline]
fn apply(base: &[u8], edits: &[u8], text: &mut Vec<u8>) {
    let (mut at, mut rest) = (0, base);
    while at < edits.len() {
        let copied = take(edits, &mut at);
        let skipped = take(edits, &mut at);
        let inserted = take(edits, &mut at);
        text.extend_from_slice(&rest[..copied]);
        text.extend_from_slice(&edits[at..at + inserted]);
        at += inserted;
        rest = &rest[copied + skipped..];
    }
    text.extend_from_slice(rest);
}

/// The length of the first line with its end: a line feed, or a byte that no UTF-8 text has.
fn line_end(text: &[u8]) -> Option<usize> {
    text.iter().position(|byte| matches!(byte, b'\n' | 0xff)).map(|end| end + 1)
}

fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    const WORD: usize = 16;
    let words = a.chunks_exact(WORD).zip(b.chunks_exact(WORD));
    let same = words.take_while(|(a, b)| a == b).count() * WORD;
    same + a[same..].iter().zip(&b[same..]).take_while(|(a, b)| a == b).count()
}

fn common_suffix(a: &[u8], b: &[u8]) -> usize {
    a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count()
}

/// Appends a number in seven bits a byte, the lowest first.
pub(crate) fn put(out: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// The number at `at`, which moves behind it.
#[inline]
pub(crate) fn take(bytes: &[u8], at: &mut usize) -> usize {
    let (mut number, mut shift) = (0, 0);
    loop {
        let byte = bytes[*at];
        *at += 1;
        number |= usize::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 {
            return number;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn list<T: AsRef<[u8]>>(texts: &[T]) -> PackedList {
        let mut list = PackedList::default();
        for (tag, text) in (0..).zip(texts) {
            list.push(tag, text.as_ref());
        }
        list
    }

    fn all(list: &PackedList) -> Vec<Vec<u8>> {
        let mut text = Vec::new();
        let get = |number| {
            assert_eq!(list.get(number, &mut text), number as u32);
            text.clone()
        };
        (0..list.len()).map(get).collect()
    }

    #[test]
    fn a_request_takes_little_more_than_what_differs() {
        let text = |number: usize| {
            format!(
                "GET /users/{number:06} HTTP/1.1\r\nHost: localhost:8080\r\n\
                 Authorization: Bearer {:06}\r\nUser-Agent: gake\r\n\r\n",
                999_999 - number
            )
        };
        let texts: Vec<_> = (0..10_000).map(text).collect();
        let list = list(&texts);
        // Two edits of three lengths and six digits, the header of the entry.
        assert!(list.entries.len() <= 10_000 * (2 * (3 + 6) + 3), "{}", list.entries.len());
        let expected: Vec<_> = texts.into_iter().map(String::into_bytes).collect();
        assert_eq!(all(&list), expected);
    }

    #[test]
    fn kinds_that_alternate_have_a_base_each() {
        let kinds = ["GET /some/long/path/", "POST https://a.test/", "longer than all of them: "];
        let texts: Vec<_> = (0..999).map(|n| format!("{}{n:03}", kinds[n % 3])).collect();
        let list = list(&texts);
        assert_eq!(list.bases.len(), 3);
        // A tag of two bytes.
        assert!(list.entries.len() <= texts.len() * (4 + 3 + 3));
    }

    #[test]
    fn strings_without_anything_in_common_are_kept_too() {
        let texts: Vec<_> = (0..2_000_u64)
            .map(|n| gake_core::random::random_number(1, n).to_le_bytes().repeat(n as usize % 9))
            .collect();
        let list = list(&texts);
        assert_eq!(list.bases.len(), BASES_MAX);
        assert_eq!(all(&list), texts);
    }

    proptest! {
        #[test]
        fn every_string_comes_back(
            texts in prop::collection::vec("[ab\n]{0,12}", 0..40),
            bytes in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..10),
        ) {
            let texts: Vec<_> = texts.into_iter().map(String::into_bytes).chain(bytes).collect();
            prop_assert_eq!(all(&list(&texts)), texts);
        }
    }
}
