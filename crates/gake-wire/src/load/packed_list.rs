//! Byte strings that resemble each other, packed: each is kept as its difference from an earlier one.

/// Entries from one indexed entry to the next.
const STRIDE: usize = 8;

/// Bytes after which a block of entries is full. One growing list would be copied, and be twice as
/// large meanwhile.
const BLOCK: usize = 256 << 10;

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
    /// The entries, in blocks: tag, base, length of the difference, difference.
    blocks: Vec<Vec<u8>>,
    /// Every [`STRIDE`]th entry. The following ones are in the same block.
    starts: Vec<Place>,
    len: usize,
    /// Differences from the bases used last, while a string is added.
    candidates: [Vec<u8>; 2],
}

/// The beginning of an entry, or the end of the last one of a block.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Place {
    block: usize,
    at: usize,
}

impl PackedList {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn push(&mut self, tag: u32, text: &[u8]) {
        if self.len.is_multiple_of(STRIDE) {
            if self.blocks.last().is_none_or(|block| block.len() >= BLOCK) {
                // The last entries go over the edge. What is not written takes no memory.
                self.blocks.push(Vec::with_capacity(BLOCK + BLOCK / 8));
            }
            let block = self.blocks.len() - 1;
            self.starts.push(Place { block, at: self.blocks[block].len() });
        }
        self.len += 1;
        let base = self.compare(text);
        if let Some(entries) = self.blocks.last_mut() {
            put(entries, tag as usize);
            put(entries, base);
            put(entries, self.candidates[0].len());
            entries.extend_from_slice(&self.candidates[0]);
        }
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
        let mut place = self.starts[number / STRIDE];
        let (entries, at) = (&self.blocks[place.block], &mut place.at);
        for _ in 0..number % STRIDE {
            // The tag and the base.
            take(entries, at);
            take(entries, at);
            let length = take(entries, at);
            *at += length;
        }
        self.read(&mut place, text)
    }

    /// Writes the string of the entry at `place` into `text`, moves `place` to the next entry, and
    /// returns the tag.
    pub(crate) fn read(&self, place: &mut Place, text: &mut Vec<u8>) -> u32 {
        if place.at == self.blocks[place.block].len() {
            *place = Place { block: place.block + 1, at: 0 };
        }
        let (entries, at) = (&self.blocks[place.block], &mut place.at);
        let tag = take(entries, at) as u32;
        let base = &*self.bases[take(entries, at)];
        let length = take(entries, at);
        text.clear();
        apply(base, &entries[*at..*at + length], text);
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
    memchr::memchr2(b'\n', 0xff, text).map(|end| end + 1)
}

/// Bytes that are compared at once.
const WORD: usize = 16;

fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let words = a.chunks_exact(WORD).zip(b.chunks_exact(WORD));
    let same = words.take_while(|(a, b)| a == b).count() * WORD;
    same + a[same..].iter().zip(&b[same..]).take_while(|(a, b)| a == b).count()
}

fn common_suffix(a: &[u8], b: &[u8]) -> usize {
    let words = a.rchunks_exact(WORD).zip(b.rchunks_exact(WORD));
    let same = words.take_while(|(a, b)| a == b).count() * WORD;
    let (a, b) = (&a[..a.len() - same], &b[..b.len() - same]);
    same + a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count()
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

    fn bytes(list: &PackedList) -> usize {
        list.blocks.iter().map(Vec::len).sum()
    }

    #[test]
    fn many_entries_are_read_in_order_and_by_number() {
        let texts: Vec<_> = (0..50_000).map(|n| format!("/items/{n}").into_bytes()).collect();
        let list = list(&texts);
        assert!(list.blocks.len() > 1);
        assert_eq!(all(&list), texts);
        let (mut place, mut text) = (Place::default(), Vec::new());
        for (tag, expected) in (0..).zip(&texts) {
            assert_eq!((list.read(&mut place, &mut text), &text), (tag, expected));
        }
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
        assert!(bytes(&list) <= 10_000 * (2 * (3 + 6) + 3), "{}", bytes(&list));
        assert_eq!(list.blocks.len(), 1);
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
        assert!(bytes(&list) <= texts.len() * (4 + 3 + 3));
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
