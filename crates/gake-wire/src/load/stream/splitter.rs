//! Finds the ends of events in a body.

/// The unit that counts as an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StreamFormat {
    /// Server-sent events.
    Events,
    Lines,
    /// gRPC messages.
    Messages,
    /// Chunks as they are received.
    Chunks,
}

/// An event needs this field: others only change the state of the stream.
const DATA: &[u8] = b"data:";

/// Counts the ends of events in a body. It buffers nothing.
#[derive(Debug)]
pub(super) struct Splitter {
    format: StreamFormat,
    /// Bytes of the line, or of the message's prefix.
    line: usize,
    /// Whether the line is a prefix of `data:`, or begins with it.
    is_data: bool,
    has_data: bool,
    /// Whether the last byte was a carriage return, to which a line feed belongs.
    after_return: bool,
    /// The length in the message's prefix, and the remaining bytes of the message.
    length: u32,
    left: u32,
}

/// Bytes of the prefix of a gRPC message: a compression flag, and the length.
const PREFIX: usize = 5;

impl Splitter {
    /// A splitter for a body of this type. The events of an encoded body are its chunks.
    pub(super) fn new(content_type: &[u8], is_coded: bool) -> Self {
        let text = std::str::from_utf8(content_type).unwrap_or_default();
        let kind = text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let format = match kind.as_str() {
            _ if crate::client::grpc::is_content_type(&kind) => StreamFormat::Messages,
            _ if is_coded => StreamFormat::Chunks,
            "text/event-stream" => StreamFormat::Events,
            "application/x-ndjson"
            | "application/ndjson"
            | "application/jsonl"
            | "application/x-jsonlines"
            | "application/json-seq" => StreamFormat::Lines,
            _ => StreamFormat::Chunks,
        };
        let (line, is_data, has_data) = (0, true, false);
        Self { format, line, is_data, has_data, after_return: false, length: 0, left: 0 }
    }

    /// Takes the next bytes; returns the number of events that end in them.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> u64 {
        match self.format {
            StreamFormat::Events => {
                bytes.iter().map(|byte| u64::from(self.event_byte(*byte))).sum()
            }
            StreamFormat::Lines => bytes.iter().map(|byte| u64::from(self.line_byte(*byte))).sum(),
            StreamFormat::Messages => self.messages(bytes),
            StreamFormat::Chunks => 1,
        }
    }

    /// Whether an event ends with this byte: an empty line after data.
    fn event_byte(&mut self, byte: u8) -> bool {
        let after_return = std::mem::replace(&mut self.after_return, byte == b'\r');
        match byte {
            b'\n' if after_return => false,
            b'\n' | b'\r' => {
                let length = std::mem::take(&mut self.line);
                let is_data = std::mem::replace(&mut self.is_data, true);
                if length > 0 {
                    // A field without a value needs no colon.
                    self.has_data |= is_data && length >= DATA.len() - 1;
                    return false;
                }
                std::mem::take(&mut self.has_data)
            }
            _ => {
                self.is_data &= DATA.get(self.line).is_none_or(|wanted| *wanted == byte);
                self.line = self.line.saturating_add(1);
                false
            }
        }
    }

    /// Whether a non-empty line ends with this byte.
    fn line_byte(&mut self, byte: u8) -> bool {
        match byte {
            b'\n' => std::mem::take(&mut self.line) > 0,
            b'\r' => false,
            _ => {
                self.line = self.line.saturating_add(1);
                false
            }
        }
    }

    fn messages(&mut self, mut bytes: &[u8]) -> u64 {
        let mut ended = 0;
        while let Some((byte, rest)) = bytes.split_first() {
            if self.left > 0 {
                let now = bytes.len().min(self.left as usize);
                self.left -= now as u32;
                bytes = &bytes[now..];
                ended += u64::from(self.left == 0);
                continue;
            }
            // The first byte of the prefix is shifted out by the four of the length.
            self.length = self.length << 8 | u32::from(*byte);
            self.line += 1;
            bytes = rest;
            if self.line == PREFIX {
                (self.line, self.left) = (0, std::mem::take(&mut self.length));
                ended += u64::from(self.left == 0);
            }
        }
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::grpc::grpc_frame;

    /// The number of events of a body, which must not depend on the chunks.
    fn events(content_type: &str, body: &[u8]) -> u64 {
        let found: Vec<u64> = [1, 2, 3, 7, body.len()]
            .into_iter()
            .map(|size| {
                let mut splitter = Splitter::new(content_type.as_bytes(), false);
                body.chunks(size).map(|chunk| splitter.feed(chunk)).sum()
            })
            .collect();
        assert!(found.iter().all(|count| *count == found[0]), "{found:?}");
        found[0]
    }

    #[test]
    fn an_event_is_data_and_an_empty_line() {
        for (body, count) in [
            ("data: a\n\ndata: b\n\n", 2),
            ("event: x\r\ndata: a\r\ndata: b\r\n\r\ndata\r\n\r\n", 2),
            ("data:a\r\rdata:b\r\r", 2),
            (": a comment\n\nid: 7\n\nretry: 5\n\n", 0),
            ("dat: a\n\ndatabase: b\n\n dat\n\n", 0),
            ("\n\n\ndata: a\n\n\n\ndata: b\n", 1),
        ] {
            assert_eq!(
                events("text/event-stream; charset=utf-8", body.as_bytes()),
                count,
                "{body}"
            );
        }
    }

    #[test]
    fn lines_and_messages_are_events() {
        assert_eq!(events("application/x-ndjson", b"{}\r\n\r\n{}\n\n{}"), 2);
        let body: Vec<u8> =
            [&[7; 300][..], b"", b"x"].iter().flat_map(|one| grpc_frame(one)).collect();
        assert_eq!(events("application/grpc+proto", &body), 3);
        assert_eq!(events("application/grpc", &body[..body.len() - 1]), 2);
    }

    #[test]
    fn chunks_are_events_without_a_known_format() {
        for (content_type, is_coded) in [("text/plain", false), ("text/event-stream", true)] {
            let mut splitter = Splitter::new(content_type.as_bytes(), is_coded);
            assert_eq!([splitter.feed(b"data: a\n\ndata: b\n\n"), splitter.feed(b"x")], [1, 1]);
        }
    }
}
