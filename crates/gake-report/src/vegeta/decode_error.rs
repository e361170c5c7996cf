//! Errors and limits that the decoders share.

use std::io::{self, BufRead, Read};

/// Bytes of the longest record accepted.
pub(super) const RECORD_MAX: u64 = 256 << 20;

/// Why a record cannot be decoded.
#[derive(Debug)]
pub(super) enum DecodeError {
    Io(io::Error),
    CutOff,
    Record(String),
    Unreadable(String),
}

impl From<io::Error> for DecodeError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Appends a line of at most [`RECORD_MAX`] bytes; returns whether there was one.
pub(super) fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> Result<bool, DecodeError> {
    let room = RECORD_MAX.saturating_sub(line.len() as u64);
    let read = input.by_ref().take(room).read_until(b'\n', line)?;
    if line.len() as u64 >= RECORD_MAX {
        return Err(DecodeError::Unreadable("it is longer than 256 MiB".to_owned()));
    }
    Ok(read > 0)
}
