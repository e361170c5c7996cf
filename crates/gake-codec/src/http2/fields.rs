//! The header fields that matter for a response (RFC 9113, section 8).

use gake_core::record::GrpcStatus;

use super::message_error::MessageError;

/// The fields of one header block, as far as they matter for the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ResponseFields {
    /// `:status`; 0 without one.
    pub status: u16,
    /// `content-length`.
    pub content_length: Option<u64>,
    /// `grpc-status`. UNKNOWN unless it is a number below 100: faults are counted by status, so the
    /// number of different ones must be bounded.
    pub grpc_status: Option<GrpcStatus>,
    /// The first error in the fields.
    pub error: Option<MessageError>,
    /// Bytes of all names and values.
    pub text_bytes: u32,
    /// Whether a field other than a pseudo-header has come.
    has_regular: bool,
}

const GRPC_STATUS_END: u32 = 100;

/// Headers that only HTTP/1.1 allows.
pub(super) const CONNECTION_HEADERS: &[&[u8]] =
    &[b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"];

impl ResponseFields {
    pub(crate) fn add(&mut self, name: &[u8], value: &[u8]) {
        self.text_bytes = self.text_bytes.saturating_add((name.len() + value.len()) as u32);
        if self.error.is_none() {
            self.error = self.check(name, value).err();
        }
    }

    fn check(&mut self, name: &[u8], value: &[u8]) -> Result<(), MessageError> {
        if !value.iter().all(|byte| !matches!(byte, 0 | b'\r' | b'\n')) {
            return Err(MessageError::HeaderValue);
        }
        if name.first() == Some(&b':') {
            return self.pseudo(name, value);
        }
        self.has_regular = true;
        if name.is_empty() || !name.iter().all(|byte| is_name(*byte)) {
            return Err(MessageError::HeaderName);
        }
        if name == b"content-length" {
            return self.length(value);
        }
        if name == b"grpc-status" {
            let number = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
            let number = number.filter(|number| *number < GRPC_STATUS_END);
            self.grpc_status = Some(number.map_or(GrpcStatus::UNKNOWN, GrpcStatus::new));
        }
        match CONNECTION_HEADERS.contains(&name) {
            true => Err(MessageError::ConnectionHeader),
            false => Ok(()),
        }
    }

    fn pseudo(&mut self, name: &[u8], value: &[u8]) -> Result<(), MessageError> {
        if name != b":status" || self.has_regular {
            return Err(MessageError::PseudoHeader);
        }
        if self.status != 0 {
            return Err(MessageError::StatusMissing);
        }
        let [hundreds @ b'1'..=b'9', tens @ b'0'..=b'9', ones @ b'0'..=b'9'] = value else {
            return Err(MessageError::Status);
        };
        let digit = |byte: &u8| u16::from(byte - b'0');
        self.status = digit(hundreds) * 100 + digit(tens) * 10 + digit(ones);
        Ok(())
    }

    fn length(&mut self, value: &[u8]) -> Result<(), MessageError> {
        let text = std::str::from_utf8(value).ok();
        let digits = text.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        let length: Option<u64> = digits.and_then(|digits| digits.parse().ok());
        match (length, self.content_length) {
            (None, _) => Err(MessageError::ContentLength),
            (Some(length), Some(before)) if length != before => Err(MessageError::ContentLength),
            (length, _) => {
                self.content_length = length;
                Ok(())
            }
        }
    }
}

/// A character of a token, without capital letters (RFC 9113, section 8.2.1).
pub(super) const fn is_name(byte: u8) -> bool {
    matches!(byte,
        b'a'..=b'z' | b'0'..=b'9' | b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-'
        | b'.' | b'^' | b'_' | b'`' | b'|' | b'~')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_of_grpc_are_numbers_below_100() {
        let cases: [(&[u8], u32); 5] =
            [(b"0", 0), (b"99", 99), (b"100", 2), (b"4294967296", 2), (b"x", 2)];
        for (value, number) in cases {
            let mut fields = ResponseFields::default();
            fields.add(b"grpc-status", value);
            assert_eq!(fields.grpc_status, Some(GrpcStatus::new(number)), "{value:?}");
        }
    }
}
