//! Lines of bounded length, numbered, with one line of look-ahead.

use std::io::{BufRead, Read};

use super::{MAX_LINE, TargetError, TargetErrorKind};

/// Reads trimmed lines.
#[derive(Debug)]
pub(super) struct LineReader<R> {
    reader: R,
    /// The number of the line in `text`, from 1; 0 before the first.
    number: usize,
    text: Vec<u8>,
    /// Whether `text` is returned once more.
    held: bool,
}

impl<R: BufRead> LineReader<R> {
    pub(super) const fn new(reader: R) -> Self {
        Self { reader, number: 0, text: Vec::new(), held: false }
    }

    /// The next line, its number and its text without the blanks around it; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<(usize, &str)>, TargetError> {
        if !std::mem::take(&mut self.held) {
            self.text.clear();
            // One more byte distinguishes a line that is too long from one that just fits.
            let mut bounded = Read::take(&mut self.reader, MAX_LINE as u64 + 1);
            let read = bounded.read_until(b'\n', &mut self.text);
            self.number += 1;
            match read {
                Ok(0) => return Ok(None),
                Ok(_) if self.text.len() > MAX_LINE => {
                    return Err(self.error(TargetErrorKind::TooLong));
                }
                Ok(_) => {}
                Err(error) => return Err(self.error(TargetErrorKind::Read(error))),
            }
        }
        let number = self.number;
        match str::from_utf8(&self.text) {
            // Editors on Windows put a byte order mark at the start of a file.
            Ok(text) if number == 1 => Ok(Some((1, text.trim_start_matches('\u{feff}').trim()))),
            Ok(text) => Ok(Some((number, text.trim()))),
            Err(_) => Err(TargetError { line: number, kind: TargetErrorKind::NotUtf8 }),
        }
    }

    /// Returns the last line again with the next call.
    pub(super) const fn hold(&mut self) {
        self.held = true;
    }

    /// An error in the last line.
    pub(super) const fn error(&self, kind: TargetErrorKind) -> TargetError {
        TargetError { line: self.number, kind }
    }
}
