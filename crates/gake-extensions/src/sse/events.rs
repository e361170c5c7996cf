//! Server-sent events in a body, as the extension reads them.

use std::collections::VecDeque;

/// An event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SseEvent {
    pub(super) id: String,
    pub(super) comment: String,
    pub(super) name: String,
    pub(super) data: String,
}

/// An event, or a line that belongs to none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SseItem {
    Event(SseEvent),
    Unknown(String),
}

/// Reads events from chunks of a body.
#[derive(Debug, Default)]
pub(super) struct SseReader {
    /// Bytes of a line whose end has not come.
    line: Vec<u8>,
    event: SseEvent,
    items: VecDeque<SseItem>,
    /// Bytes of what is held.
    held: usize,
}

impl SseReader {
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some(at) = rest.iter().position(|byte| *byte == b'\n') {
            self.line.extend_from_slice(&rest[..at]);
            rest = &rest[at + 1..];
            let line = std::mem::take(&mut self.line);
            self.take(&line);
        }
        self.line.extend_from_slice(rest);
        self.held += bytes.len();
    }

    /// The next item.
    pub(super) fn next(&mut self) -> Option<SseItem> {
        let item = self.items.pop_front();
        if self.items.is_empty() {
            self.held = self.line.len() + self.event.data.len();
        }
        item
    }

    /// Whether there is a next item.
    pub(super) fn has_items(&self) -> bool {
        !self.items.is_empty()
    }

    /// Bytes of what is held, at most.
    pub(super) fn held(&self) -> usize {
        self.held
    }

    /// Takes a line without its line feed.
    fn take(&mut self, line: &[u8]) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let value = |name: &[u8]| {
            let value = line.strip_prefix(name)?;
            Some(value.strip_prefix(b" ").unwrap_or(value))
        };
        if let Some(id) = value(b"id:") {
            self.event.id = text(id);
        } else if let Some(comment) = value(b":") {
            self.event.comment = text(comment);
        } else if let Some(name) = value(b"event:") {
            self.event.name = text(name);
        } else if let Some(data) = value(b"data:") {
            self.event.data += &text(data);
            self.event.data.push('\n');
        } else if line.is_empty() || line == b"\r" {
            let mut event = std::mem::take(&mut self.event);
            event.data.truncate(event.data.trim_end_matches(['\r', '\n']).len());
            self.items.push_back(SseItem::Event(event));
        } else if value(b"retry:").is_none() {
            self.items.push_back(SseItem::Unknown(text(line)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(chunks: &[&str]) -> Vec<SseItem> {
        let mut reader = SseReader::default();
        chunks.iter().for_each(|chunk| reader.feed(chunk.as_bytes()));
        std::iter::from_fn(|| reader.next()).collect()
    }

    #[test]
    fn events_may_be_cut_anywhere() {
        let body = ": hi\nid: 1\nevent:tick\ndata: a\ndata:b\nretry: 5\n\ndata: c\r\n\r\n";
        let event = |id: &str, comment: &str, name: &str, data: &str| {
            let text = str::to_owned;
            let (id, comment, name, data) = (text(id), text(comment), text(name), text(data));
            SseItem::Event(SseEvent { id, comment, name, data })
        };
        let expected = [event("1", "hi", "tick", "a\nb"), event("", "", "", "c")];
        for at in 0..body.len() {
            let (first, second) = body.split_at(at);
            assert_eq!(items(&[first, second]), expected, "{at}");
        }
    }

    #[test]
    fn other_lines_are_unknown() {
        assert_eq!(items(&["what\n", "data: no end"]), [SseItem::Unknown("what".to_owned())]);
    }
}
