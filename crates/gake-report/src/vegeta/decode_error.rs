//! What the decoders have in common: how long a record may be, and what can be wrong with one.

use std::io::{self, BufRead, Read};

/// Bytes of the longest record that is read.
pub(super) const RECORD_MAX: u64 = 256 << 20;

/// What a decoder says of the record it is at.
#[derive(Debug)]
pub(super) enum Broken {
    Io(io::Error),
    CutOff,
    Record(String),
    Unreadable(String),
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Reads to a line's end, at most [`RECORD_MAX`] bytes, and appends it; whether there was any.
pub(super) fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> Result<bool, Broken> {
    let room = RECORD_MAX.saturating_sub(line.len() as u64);
    let read = input.by_ref().take(room).read_until(b'\n', line)?;
    if line.len() as u64 >= RECORD_MAX {
        return Err(Broken::Unreadable("it is longer than 256 MiB".to_owned()));
    }
    Ok(read > 0)
}
