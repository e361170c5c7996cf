//! Recordings of traffic, for replay.
//!
//! The native format is [`gakerec`]. GoReplay's ([`gor`]) is read and written, access logs of nginx
//! and Apache ([`access_log`]) are read. All are streams of [`Record`]s in the order in which the
//! requests arrived.

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
pub use redaction::{RedactedRecord, redact};

/// Maximum bytes of a record in any format, whatever length a file announces.
const RECORD_BYTES_MAX: usize = 64 << 20;

/// Bytes read at once.
const READ_AHEAD: usize = 1 << 18;

/// The first bytes of a file that gzip has compressed (RFC 1952, section 2.3.1).
const GZIP: &[u8] = &[0x1f, 0x8b];

/// Maximum header lines of a request.
const HEADERS_MAX: usize = 1_000;

/// One recorded request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Record {
    /// The arrival, in nanoseconds since the start of the recording.
    pub offset: Nanos,
    /// The method.
    pub method: String,
    /// The target, as in the request line.
    pub target: String,
    /// The header lines in order, including `Host`; values are raw bytes.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The body.
    pub body: Vec<u8>,
    /// Whether the body is incomplete.
    pub truncated: bool,
}

impl Record {
    /// A record of a captured request.
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

    /// The value of a header if it is UTF-8; names are case-insensitive.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let (_, value) = headers.find(|(known, _)| known.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(value).ok()
    }

    /// Whether anything in it was redacted.
    #[must_use]
    pub fn is_redacted(&self) -> bool {
        let mut values = self.headers.iter().map(|(_, value)| value.as_slice());
        values.any(|value| is_redacted(value) || Self::is_removed(value))
            || is_redacted(self.target.as_bytes())
            || is_redacted(&self.body)
    }

    /// Whether a header's value was removed, as in recordings of earlier versions.
    #[must_use]
    pub fn is_removed(value: &[u8]) -> bool {
        value == b"[redacted]"
    }

    /// Whether the method is safe (RFC 9110, section 9.2.1).
    #[must_use]
    pub fn is_safe(&self) -> bool {
        matches!(self.method.as_str(), "GET" | "HEAD" | "OPTIONS" | "TRACE")
    }
}

/// The formats of recordings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordingFormat {
    /// The native one.
    Gakerec,
    /// GoReplay.
    Gor,
    /// The combined log format of nginx and Apache.
    AccessLog,
}

impl RecordingFormat {
    /// Detects a format by the first bytes of a file.
    #[must_use]
    pub fn of(start: &[u8]) -> Option<Self> {
        if start.starts_with(gakerec::MAGIC) {
            return Some(Self::Gakerec);
        }
        let line = start.split(|byte| *byte == b'\n').next().unwrap_or_default();
        if gor::is_meta(line) {
            return Some(Self::Gor);
        }
        access_log::is_log(start).then_some(Self::AccessLog)
    }

    /// The name, for messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Gakerec => "a recording of gake",
            Self::Gor => "a recording of GoReplay",
            Self::AccessLog => "an access log",
        }
    }
}

/// Why a recording cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum TrafficError {
    /// Reading fails.
    #[error("{0}")]
    Read(#[from] io::Error),
    /// The format is unknown.
    #[error(
        "it is not a recording; the formats are .gakerec of gake, .gor of GoReplay and access logs \
        in the combined format"
    )]
    Format,
    /// The head of a .gakerec is damaged, or of a later version.
    #[error("its head cannot be read: {0}")]
    Head(String),
}

/// Requests buffered for sorting: recorders write requests when they end, not when they arrive.
const WINDOW: usize = 4_096;

/// Bytes of bodies buffered for sorting.
const WINDOW_BYTES: usize = 32 << 20;

/// The requests of a recording by arrival, as long as they are out of order by at most 4,096.
pub struct Traffic {
    format: RecordingFormat,
    source: Box<dyn RecordSource>,
    window: BinaryHeap<Reverse<QueuedRecord>>,
    window_bytes: usize,
    read: u64,
    ended: bool,
}

/// A record in the sorting window.
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

/// A reader of one format.
trait RecordSource {
    fn next(&mut self) -> io::Result<Option<Record>>;

    /// The time of offset 0 in Unix nanoseconds; 0 if unknown, or before the first record.
    fn started_unix_ns(&self) -> u64;

    /// What was skipped or lost so far, in sentences.
    fn notes(&self) -> Vec<String>;
}

impl Traffic {
    /// Opens a recording of any format, which may be compressed by gzip.
    ///
    /// # Errors
    /// When it cannot be read, or is not a recording.
    pub fn open(path: &Path) -> Result<Self, TrafficError> {
        let mut file = BufReader::with_capacity(READ_AHEAD, File::open(path)?);
        if !file.fill_buf()?.starts_with(GZIP) {
            return Self::read(file);
        }
        let plain = flate2::bufread::MultiGzDecoder::new(file);
        Self::read(BufReader::with_capacity(READ_AHEAD, plain))
    }

    /// Reads a recording of any format.
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
        Ok(Self { format, source, window, window_bytes: 0, read: 0, ended: false })
    }

    /// The detected format.
    #[must_use]
    pub fn format(&self) -> RecordingFormat {
        self.format
    }

    /// The start of the recording in Unix nanoseconds, by its head or its first request; 0 if
    /// unknown, or before the first request was read.
    #[must_use]
    pub fn started_unix_ns(&self) -> u64 {
        self.source.started_unix_ns()
    }

    /// What was skipped or lost so far, in sentences.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        self.source.notes()
    }
}

impl Iterator for Traffic {
    type Item = io::Result<Record>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.ended && self.window.len() < WINDOW && self.window_bytes < WINDOW_BYTES {
            match self.source.next() {
                Ok(Some(record)) => {
                    self.window_bytes += record.body.len();
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
        self.window_bytes -= record.body.len();
        Some(Ok(record))
    }
}

#[cfg(test)]
mod tests;
