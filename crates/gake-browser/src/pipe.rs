//! The pipe to Chromium: JSON texts, each ended by a byte 0.

use std::io::{self, BufRead, BufReader, Read};

/// The bytes of a message of Chromium, at most.
pub(crate) const MESSAGE_MAX: u64 = 256 << 20;

/// Reads messages.
pub(crate) struct Messages<R>(BufReader<R>);

impl<R: Read> Messages<R> {
    pub(crate) fn new(input: R) -> Self {
        Self(BufReader::with_capacity(1 << 16, input))
    }

    /// The next message; none at the end.
    ///
    /// # Errors
    /// When it cannot be read or is too long.
    pub(crate) fn next(&mut self) -> io::Result<Option<String>> {
        let mut bytes = Vec::new();
        self.0.by_ref().take(MESSAGE_MAX).read_until(0, &mut bytes)?;
        match bytes.pop() {
            Some(0) => {
                let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                let text = String::from_utf8(bytes);
                Ok(Some(text.unwrap_or_else(|error| lossy(error.as_bytes()))))
            }
            Some(_) if bytes.len() as u64 + 1 >= MESSAGE_MAX => {
                Err(io::Error::other("a message of the browser is too long"))
            }
            _ => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_end_with_a_zero() {
        let mut messages = Messages::new(b"{\"a\":1}\0\xff\0rest".as_slice());
        let mut next = || messages.next().expect("readable");
        assert_eq!(next().as_deref(), Some("{\"a\":1}"));
        assert_eq!(next().as_deref(), Some("\u{fffd}"));
        assert_eq!(next(), None);
    }
}
