//! Traffic as a file: recorded, imported, exported, and read to be replayed.
//!
//! [`gakerec`] is our own format. GoReplay's ([`gor`]) is read and written; access logs in the
//! combined format of nginx and Apache ([`access_log`]) are read. All are streams of [`Record`]s
//! in the order in which the requests came.

pub mod access_log;
pub mod gakerec;
pub mod gor;
mod message;
mod redaction;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use gake_core::clock::Nanos;
use gake_text::redact::is_redacted;

use crate::exchange::CapturedRequest;
pub use redaction::redact;

/// Bytes of one record at most, in any format: what a file says of its own lengths is not
/// believed beyond this.
const RECORD_BYTES_MAX: usize = 64 << 20;

/// Header lines of one request at most.
const HEADERS_MAX: usize = 1_000;

/// One recorded request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Record {
    /// When it came, since the start of the recording.
    pub offset: Nanos,
    /// The method.
    pub method: String,
    /// The target as it stood in the request line.
    pub target: String,
    /// Header lines in order, `Host` among them, each value as its bytes were.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The body.
    pub body: Vec<u8>,
    /// Whether the body was longer than what was kept.
    pub truncated: bool,
}

impl Record {
    /// A request as the proxy saw it.
    #[must_use]
    pub fn of(request: &CapturedRequest, offset: Nanos) -> Self {
        let headers = request.headers.iter();
        Self {
            offset,
            method: request.method.as_str().to_owned(),
            target: request.uri.to_string(),
            headers: headers
                .map(|(name, value)| (name.to_string(), value.as_bytes().to_vec()))
                .collect(),
            body: request.body.bytes.to_vec(),
            truncated: request.body.truncated,
        }
    }

    /// The value of a header, when it is text; names are compared without case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let (_, value) = headers.find(|(known, _)| known.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(value).ok()
    }

    /// Whether something in it was redacted when it was recorded.
    #[must_use]
    pub fn is_redacted(&self) -> bool {
        let mut values = self.headers.iter().map(|(_, value)| value.as_slice());
        values.any(|value| is_redacted(value) || Self::is_taken_out(value))
            || is_redacted(self.target.as_bytes())
            || is_redacted(&self.body)
    }

    /// Whether a header's value is gone, as in recordings of earlier versions.
    #[must_use]
    pub fn is_taken_out(value: &[u8]) -> bool {
        value == b"[redacted]"
    }

    /// Whether the method is safe to be sent again (RFC 9110, section 9.2.1).
    #[must_use]
    pub fn is_safe(&self) -> bool {
        matches!(self.method.as_str(), "GET" | "HEAD" | "OPTIONS" | "TRACE")
    }
}

/// The formats that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordingFormat {
    /// Our own.
    Gakerec,
    /// GoReplay's.
    Gor,
    /// The combined log of nginx and Apache.
    AccessLog,
}

impl RecordingFormat {
    /// The format of a file by its first bytes; `None` for any other.
    #[must_use]
    pub fn of(start: &[u8]) -> Option<Self> {
        if start.starts_with(gakerec::MAGIC) {
            return Some(Self::Gakerec);
        }
        let line = start.split(|byte| *byte == b'\n').next().unwrap_or_default();
        if gor::is_meta(line) {
            return Some(Self::Gor);
        }
        access_log::parse(&String::from_utf8_lossy(line)).map(|_| Self::AccessLog)
    }

    /// What to call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Gakerec => "a recording of gake",
            Self::Gor => "a recording of GoReplay",
            Self::AccessLog => "an access log",
        }
    }
}

/// Why a recording cannot be read, or not further.
#[derive(Debug, thiserror::Error)]
pub enum TrafficError {
    /// The file cannot be read.
    #[error("{0}")]
    Read(#[from] io::Error),
    /// Its format is unknown.
    #[error(
        "it is not a recording: a .gakerec of gake, a .gor of GoReplay and access logs in the \
         combined format are read"
    )]
    Format,
    /// A .gakerec of a later version, or whose start is damaged.
    #[error("its head cannot be read: {0}")]
    Head(String),
}

/// Requests that are held back to bring them into order: a recorder writes a request when it is
/// over, and a later one may be over sooner.
const WINDOW: usize = 4_096;

/// Bytes of bodies that are held back for it.
const WINDOW_BYTES: usize = 32 << 20;

/// The requests of a file, in the order in which they came as far as they stand within 4,096 of
/// each other, and what was left out on the way.
pub struct Traffic {
    format: RecordingFormat,
    source: Box<dyn RecordSource>,
    window: BinaryHeap<Reverse<QueuedRecord>>,
    held_bytes: usize,
    read: u64,
    ended: bool,
}

/// A record that waits for those that came before it.
struct QueuedRecord {
    number: u64,
    record: Record,
}

impl QueuedRecord {
    fn key(&self) -> (Nanos, u64) {
        (self.record.offset, self.number)
    }
}

impl PartialEq for QueuedRecord {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for QueuedRecord {}

impl PartialOrd for QueuedRecord {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for QueuedRecord {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

/// Reads records one by one.
trait RecordSource {
    fn next(&mut self) -> io::Result<Option<Record>>;

    /// When offsets begin, in Unix nanoseconds; 0 before a record was read, or where none tells.
    fn started_unix_ns(&self) -> u64;

    /// What was left out or lost so far, in sentences.
    fn notes(&self) -> Vec<String>;
}

impl Traffic {
    /// Opens a recording, whatever its format.
    ///
    /// # Errors
    /// When it cannot be read, or is not a recording.
    pub fn open(path: &Path) -> Result<Self, TrafficError> {
        Self::read(BufReader::with_capacity(1 << 18, File::open(path)?))
    }

    /// Reads a recording, whatever its format.
    ///
    /// # Errors
    /// When it cannot be read, or is not a recording.
    pub fn read(mut file: impl BufRead + 'static) -> Result<Self, TrafficError> {
        let format = RecordingFormat::of(file.fill_buf()?).ok_or(TrafficError::Format)?;
        let source: Box<dyn RecordSource> = match format {
            RecordingFormat::Gakerec => Box::new(gakerec::Reader::new(file)?),
            RecordingFormat::Gor => Box::new(gor::Reader::new(file)),
            RecordingFormat::AccessLog => Box::new(access_log::Reader::new(file)),
        };
        let window = BinaryHeap::new();
        Ok(Self { format, source, window, held_bytes: 0, read: 0, ended: false })
    }

    /// The format it is in.
    #[must_use]
    pub fn format(&self) -> RecordingFormat {
        self.format
    }

    /// When the recording began, in Unix nanoseconds: by its head, or when its first request came.
    /// 0 before a request was read, or where the recording does not know.
    #[must_use]
    pub fn started_unix_ns(&self) -> u64 {
        self.source.started_unix_ns()
    }

    /// What was left out or lost of what was read so far, in sentences.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        self.source.notes()
    }
}

impl Iterator for Traffic {
    type Item = io::Result<Record>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.ended && self.window.len() < WINDOW && self.held_bytes < WINDOW_BYTES {
            match self.source.next() {
                Ok(Some(record)) => {
                    self.held_bytes += record.body.len();
                    self.window.push(Reverse(QueuedRecord { number: self.read, record }));
                    self.read += 1;
                }
                Ok(None) => self.ended = true,
                Err(error) => {
                    self.ended = true;
                    return Some(Err(error));
                }
            }
        }
        let Reverse(QueuedRecord { record, .. }) = self.window.pop()?;
        self.held_bytes -= record.body.len();
        Some(Ok(record))
    }
}

#[cfg(test)]
mod tests;
