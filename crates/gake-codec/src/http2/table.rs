//! The dynamic table of an HPACK decoder (RFC 7541, section 2.3.2).

use std::collections::VecDeque;

/// The size of an entry beyond its text (RFC 7541, section 4.1).
pub(super) const ENTRY_OVERHEAD: usize = 32;

/// Names and values in order, in one buffer.
#[derive(Debug)]
pub(super) struct DynamicTable {
    text: Vec<u8>,
    /// The oldest first.
    entries: VecDeque<TableEntry>,
    size: usize,
    max: usize,
}

#[derive(Debug, Clone, Copy)]
struct TableEntry {
    at: usize,
    name: usize,
    value: usize,
}

impl TableEntry {
    fn size(self) -> usize {
        self.name + self.value + ENTRY_OVERHEAD
    }
}

impl DynamicTable {
    /// An empty table of at most `max` bytes.
    pub(super) const fn new(max: usize) -> Self {
        Self { text: Vec::new(), entries: VecDeque::new(), size: 0, max }
    }

    pub(super) const fn max(&self) -> usize {
        self.max
    }

    /// Changes the maximum size, and evicts the oldest entries beyond it.
    pub(super) fn resize(&mut self, max: usize) {
        self.max = max;
        self.evict(0);
    }

    /// The entry `back` entries before the newest.
    pub(super) fn get(&self, back: usize) -> Option<(&[u8], &[u8])> {
        let entry = self.entries.get(self.entries.len().checked_sub(back + 1)?)?;
        Some(self.text.get(entry.at..)?.get(..entry.name + entry.value)?.split_at(entry.name))
    }

    /// Adds an entry. One that is larger than the table empties it.
    pub(super) fn push(&mut self, name: &[u8], value: &[u8]) {
        let entry = TableEntry { at: self.text.len(), name: name.len(), value: value.len() };
        self.evict(entry.size());
        if entry.size() > self.max {
            return;
        }
        // Evicted text precedes the first entry; it is removed once it exceeds the table's size.
        let unused = self.entries.front().map_or(self.text.len(), |first| first.at);
        if unused > self.max {
            self.text.drain(..unused);
            self.entries.iter_mut().for_each(|entry| entry.at -= unused);
        }
        let at = self.text.len();
        self.text.extend_from_slice(name);
        self.text.extend_from_slice(value);
        self.entries.push_back(TableEntry { at, ..entry });
        self.size += entry.size();
    }

    /// Evicts the oldest entries until one of `size` fits.
    fn evict(&mut self, size: usize) {
        while self.size + size > self.max
            && let Some(oldest) = self.entries.pop_front()
        {
            self.size -= oldest.size();
        }
    }
}
