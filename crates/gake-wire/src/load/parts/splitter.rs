//! Where the parts of a body end.

/// What the body of an answer is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Server-sent events.
    Events,
    /// Lines.
    Lines,
    /// Messages of gRPC.
    Messages,
    /// Pieces, as the connection brings them.
    Pieces,
}

/// The field of an event that makes it one: others only change what comes after.
const DATA: &[u8] = b"data:";

/// Finds the ends of parts in a body that comes in pieces. It keeps no bytes of it.
#[derive(Debug)]
pub(super) struct Splitter {
    form: Form,
    /// Bytes of the line, or of the prefix of the message.
    line: usize,
    /// Whether the line begins as `data:` does.
    is_data: bool,
    /// Whether the event has data.
    has_data: bool,
    /// Whether a carriage return ended the last line: a line feed belongs to it.
    after_return: bool,
    /// The length in the prefix of the message, and bytes of the message that are still to come.
    length: u32,
    left: u32,
}

/// Bytes before a message of gRPC: whether it is compressed, and its length.
const PREFIX: usize = 5;

impl Splitter {
    /// For a body of this type. One that is coded comes in pieces.
    pub(super) fn new(content_type: &[u8], is_coded: bool) -> Self {
        let text = std::str::from_utf8(content_type).unwrap_or_default();
        let kind = text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let form = match kind.as_str() {
            _ if crate::client::grpc::is_content_type(&kind) => Form::Messages,
            _ if is_coded => Form::Pieces,
            "text/event-stream" => Form::Events,
            "application/x-ndjson"
            | "application/ndjson"
            | "application/jsonl"
            | "application/x-jsonlines"
            | "application/json-seq" => Form::Lines,
            _ => Form::Pieces,
        };
        let (line, is_data, has_data) = (0, true, false);
        Self { form, line, is_data, has_data, after_return: false, length: 0, left: 0 }
    }

    /// Takes the next bytes: how many parts end in them.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> u64 {
        match self.form {
            Form::Events => bytes.iter().map(|byte| u64::from(self.event_byte(*byte))).sum(),
            Form::Lines => bytes.iter().map(|byte| u64::from(self.line_byte(*byte))).sum(),
            Form::Messages => self.messages(bytes),
            Form::Pieces => 1,
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

    /// Whether a line that is not empty ends with this byte.
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

    /// How many parts a body has, however it is cut.
    fn parts(content_type: &str, body: &[u8]) -> u64 {
        let found: Vec<u64> = [1, 2, 3, 7, body.len()]
            .into_iter()
            .map(|size| {
                let mut splitter = Splitter::new(content_type.as_bytes(), false);
                body.chunks(size).map(|piece| splitter.feed(piece)).sum()
            })
            .collect();
        assert!(found.iter().all(|count| *count == found[0]), "{found:?}");
        found[0]
    }

    #[test]
    fn an_event_is_data_and_an_empty_line() {
        for (body, events) in [
            ("data: a\n\ndata: b\n\n", 2),
            ("event: x\r\ndata: a\r\ndata: b\r\n\r\ndata\r\n\r\n", 2),
            ("data:a\r\rdata:b\r\r", 2),
            (": a comment\n\nid: 7\n\nretry: 5\n\n", 0),
            ("dat: a\n\ndatabase: b\n\n dat\n\n", 0),
            ("\n\n\ndata: a\n\n\n\ndata: b\n", 1),
        ] {
            assert_eq!(
                parts("text/event-stream; charset=utf-8", body.as_bytes()),
                events,
                "{body}"
            );
        }
    }

    #[test]
    fn lines_and_messages_are_parts() {
        assert_eq!(parts("application/x-ndjson", b"{}\r\n\r\n{}\n\n{}"), 2);
        let body: Vec<u8> =
            [&[7; 300][..], b"", b"x"].iter().flat_map(|one| grpc_frame(one)).collect();
        assert_eq!(parts("application/grpc+proto", &body), 3);
        assert_eq!(parts("application/grpc", &body[..body.len() - 1]), 2);
    }

    #[test]
    fn what_has_no_parts_comes_in_pieces() {
        for (content_type, is_coded) in [("text/plain", false), ("text/event-stream", true)] {
            let mut splitter = Splitter::new(content_type.as_bytes(), is_coded);
            assert_eq!([splitter.feed(b"data: a\n\ndata: b\n\n"), splitter.feed(b"x")], [1, 1]);
        }
    }
}
