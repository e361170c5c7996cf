//! Close codes of WebSocket sessions.

use std::fmt;

/// A close code of a WebSocket (RFC 6455, section 7.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CloseCode(u16);

const MEANINGS: [(u16, &str); 15] = [
    (1000, "normal closure"),
    (1001, "going away"),
    (1002, "protocol error"),
    (1003, "unsupported data"),
    (1005, "no status"),
    (1006, "abnormal closure"),
    (1007, "invalid payload"),
    (1008, "policy violation"),
    (1009, "message too big"),
    (1010, "missing extension"),
    (1011, "internal error"),
    (1012, "service restart"),
    (1013, "try again later"),
    (1014, "bad gateway"),
    (1015, "TLS handshake"),
];

impl CloseCode {
    /// Normal closure.
    pub const NORMAL: Self = Self(1000);

    /// The peer violated the protocol.
    pub const PROTOCOL_ERROR: Self = Self(1002);

    /// The close frame has no code.
    pub const NONE: Self = Self(1005);

    /// The code with this number.
    #[must_use]
    pub const fn new(number: u16) -> Self {
        Self(number)
    }

    /// The number of the code.
    #[must_use]
    pub const fn number(self) -> u16 {
        self.0
    }

    /// Whether a close frame may carry it: 1005, 1006 and 1015 are never sent.
    #[must_use]
    pub const fn may_be_sent(self) -> bool {
        matches!(self.0, 1000..=1003 | 1007..=1014 | 3000..=4999)
    }

    /// Parses the output of `to_string`; [`CloseCode::NONE`] if invalid.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let number = text.split(' ').next().and_then(|number| number.parse().ok());
        number.map_or(Self::NONE, Self)
    }
}

impl fmt::Display for CloseCode {
    /// The number, and its registered meaning.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        match MEANINGS.iter().find(|(number, _)| *number == self.0) {
            Some((_, meaning)) => write!(f, " {meaning}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_displayed_with_their_meaning_and_parsed() {
        for (code, text) in [(1001, "1001 going away"), (4000, "4000")] {
            assert_eq!(CloseCode::new(code).to_string(), text);
            assert_eq!(CloseCode::read(text), CloseCode::new(code));
        }
        assert_eq!(CloseCode::read("?"), CloseCode::NONE);
        let sent = [999, 1000, 1004, 1005, 1006, 1014, 1015, 2999, 3000, 4999, 5000];
        let may: Vec<_> = sent.into_iter().filter(|n| CloseCode::new(*n).may_be_sent()).collect();
        assert_eq!(may, [1000, 1014, 3000, 4999]);
    }
}
