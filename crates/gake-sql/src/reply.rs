//! Parsing of replies.

/// A row's fields as text; `None` is NULL.
pub type Row = Vec<Option<String>>;

/// The remaining bytes of a reply.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReplyReader<'a>(pub(super) &'a [u8]);

impl<'a> ReplyReader<'a> {
    pub(super) fn bytes(&mut self, length: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or_else(cut)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn byte(&mut self) -> Result<u8, String> {
        Ok(self.bytes(1)?[0])
    }

    /// A little-endian number of `length` bytes, as in MySQL.
    pub(super) fn little(&mut self, length: usize) -> Result<u64, String> {
        let bytes = self.bytes(length)?;
        Ok(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// A big-endian number of `length` bytes, as in PostgreSQL.
    pub(super) fn big(&mut self, length: usize) -> Result<u64, String> {
        let bytes = self.bytes(length)?;
        Ok(bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// The bytes before the next zero, which is skipped, or all bytes.
    pub(super) fn until_zero(&mut self) -> &'a [u8] {
        match self.0.iter().position(|byte| *byte == 0) {
            Some(at) => {
                let taken = &self.0[..at];
                self.0 = &self.0[at + 1..];
                taken
            }
            None => std::mem::take(&mut self.0),
        }
    }
}

fn cut() -> String {
    "the server's reply is truncated".to_owned()
}

/// Untrusted bytes as part of a sentence.
pub(super) fn displayable(bytes: &[u8]) -> String {
    const CHARS_MAX: usize = 200;
    let text = String::from_utf8_lossy(bytes);
    let short: String = text.chars().take(CHARS_MAX).collect();
    gake_text::foreign::line(&short).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_stops_at_the_end() {
        let mut reply = ReplyReader(&[1, 2, 3, b'a', 0, b'b']);
        assert_eq!(reply.little(2), Ok(0x0201));
        assert_eq!(reply.byte(), Ok(3));
        assert_eq!(reply.until_zero(), b"a");
        assert!(ReplyReader(reply.0).big(2).is_err());
        assert_eq!(reply.until_zero(), b"b");
        assert!(reply.byte().is_err());
    }

    #[test]
    fn control_characters_are_escaped() {
        assert!(!displayable(b"\x1b[2Jno\nentry").contains(['\x1b', '\n']));
    }
}
