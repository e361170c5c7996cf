//! `.gakerec`: requests as frames with length and checksum, so that a recording that was cut short
//! or is still being written can be read up to its last complete request.
//!
//! ```text
//! "GAKEREC1"  length u32  JSON {"started_unix_ns": n}  CRC-32 u32
//! then for each request:
//! length u32  payload  CRC-32 of the payload u32
//! payload: offset u64, flags u8 (1: the body is truncated),
//!          method: length u16 and bytes, target: length u32 and bytes,
//!          headers: count u16, each name: length u16 and bytes, value: length u32 and bytes,
//!          body: the rest
//! ```
//!
//! Numbers are little-endian. Offsets are nanoseconds since the start. Requests are written when
//! they end, so offsets of overlapping requests are out of order.

use std::fs::File;
use std::io::{self, BufRead, BufWriter, Read, Write};
use std::path::Path;

use flate2::Crc;
use serde::{Deserialize, Serialize};

use gake_files::Access;
use gake_text::redact::Redactor;

use super::{HEADERS_MAX, RECORD_BYTES_MAX, Record, RecordSource, TrafficError};
use super::{RedactedRecord, redact};

/// The first bytes of a file: name and version.
pub const MAGIC: &[u8] = b"GAKEREC1";

/// Maximum bytes of the head.
const HEAD_BYTES_MAX: u32 = 1 << 16;

const TRUNCATED: u8 = 1;

/// The head of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordingHead {
    /// The time of offset 0, in nanoseconds since the Unix epoch.
    pub started_unix_ns: u64,
}

/// Writes a recording.
#[derive(Debug)]
pub struct RecordingWriter<W: Write> {
    out: W,
    redactor: Redactor,
    body_limit: usize,
    frame: Vec<u8>,
    records: u64,
}

impl RecordingWriter<BufWriter<File>> {
    /// Creates a file with permissions for its owner only. Requests are redacted, bodies truncated
    /// to `body_limit` bytes.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn create(
        path: &Path,
        head: RecordingHead,
        redactor: Redactor,
        body_limit: usize,
    ) -> io::Result<Self> {
        let file = gake_files::create(path, Access::Owner)?;
        let out = BufWriter::with_capacity(1 << 18, file);
        Self::new(out, head, redactor, body_limit)
    }
}

impl<W: Write> RecordingWriter<W> {
    /// Writes the head of a recording.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn new(
        mut out: W,
        head: RecordingHead,
        redactor: Redactor,
        body_limit: usize,
    ) -> io::Result<Self> {
        let json = serde_json::to_vec(&head)?;
        out.write_all(MAGIC)?;
        framed(&mut out, &json)?;
        let body_limit = body_limit.min(RECORD_BYTES_MAX / 2);
        Ok(Self { out, redactor, body_limit, frame: Vec::new(), records: 0 })
    }

    /// Writes a request, redacted.
    ///
    /// # Errors
    /// When writing fails, or the request exceeds the size of a record; then nothing is written.
    pub fn write(&mut self, record: Record) -> io::Result<()> {
        self.put(&redact(&self.redactor, record))
    }

    fn put(&mut self, record: &RedactedRecord) -> io::Result<()> {
        let body = &record.body[..record.body.len().min(self.body_limit)];
        let truncated = record.truncated || body.len() < record.body.len();
        let frame = &mut self.frame;
        frame.clear();
        frame.extend_from_slice(&record.offset.to_le_bytes());
        frame.push(if truncated { TRUNCATED } else { 0 });
        short(frame, &record.method)?;
        long(frame, record.target.as_bytes())?;
        let headers = &record.headers[..record.headers.len().min(HEADERS_MAX)];
        frame.extend_from_slice(&(headers.len() as u16).to_le_bytes());
        for (name, value) in headers {
            short(frame, name)?;
            long(frame, value)?;
        }
        frame.extend_from_slice(body);
        if frame.len() > RECORD_BYTES_MAX {
            return Err(io::Error::other("the request exceeds the maximum size of a record"));
        }
        framed(&mut self.out, frame)?;
        self.records += 1;
        Ok(())
    }

    /// The number of requests written.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Flushes the buffers.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn framed(out: &mut impl Write, payload: &[u8]) -> io::Result<()> {
    out.write_all(&(payload.len() as u32).to_le_bytes())?;
    out.write_all(payload)?;
    out.write_all(&checksum(payload).to_le_bytes())
}

fn checksum(bytes: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum()
}

fn short(out: &mut Vec<u8>, text: &str) -> io::Result<()> {
    let length = u16::try_from(text.len()).map_err(io::Error::other)?;
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(text.as_bytes());
    Ok(())
}

fn long(out: &mut Vec<u8>, bytes: &[u8]) -> io::Result<()> {
    let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(bytes);
    Ok(())
}

/// Reads a recording up to its last complete request.
pub(super) struct Reader<R> {
    input: R,
    head: RecordingHead,
    /// Bytes read.
    at: u64,
    records: u64,
    ended: Option<RecordingEnd>,
}

/// How a recording ends.
enum RecordingEnd {
    Whole,
    Cut,
    Damaged,
}

impl<R: BufRead> Reader<R> {
    pub(super) fn new(mut input: R) -> Result<Self, TrafficError> {
        let mut magic = [0; MAGIC.len()];
        input.read_exact(&mut magic)?;
        let head = RecordingHead { started_unix_ns: 0 };
        let mut reader = Self { input, head, at: magic.len() as u64, records: 0, ended: None };
        let head = reader.frame(HEAD_BYTES_MAX)?;
        let head =
            head.ok_or_else(|| TrafficError::Head("it is truncated or damaged".to_owned()))?;
        let head = serde_json::from_slice(&head);
        reader.head = head.map_err(|error| TrafficError::Head(error.to_string()))?;
        Ok(reader)
    }

    /// The payload of the next frame; `None` without another complete one.
    fn frame(&mut self, limit: u32) -> io::Result<Option<Vec<u8>>> {
        if self.input.fill_buf()?.is_empty() {
            self.ended = Some(RecordingEnd::Whole);
            return Ok(None);
        }
        let Some(length) = self.number()? else { return Ok(None) };
        if length > limit {
            self.ended = Some(RecordingEnd::Damaged);
            return Ok(None);
        }
        let mut payload = Vec::new();
        // Grows with the data: a bogus length must not allocate memory.
        let read = (&mut self.input).take(u64::from(length)).read_to_end(&mut payload)?;
        if read < length as usize {
            self.ended = Some(RecordingEnd::Cut);
            return Ok(None);
        }
        let Some(sum) = self.number()? else { return Ok(None) };
        if sum != checksum(&payload) {
            self.ended = Some(RecordingEnd::Damaged);
            return Ok(None);
        }
        self.at += u64::from(length) + 8;
        Ok(Some(payload))
    }

    fn number(&mut self) -> io::Result<Option<u32>> {
        let mut bytes = [0; 4];
        match self.input.read_exact(&mut bytes) {
            Ok(()) => Ok(Some(u32::from_le_bytes(bytes))),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                self.ended = Some(RecordingEnd::Cut);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

impl<R: BufRead> RecordSource for Reader<R> {
    fn next(&mut self) -> io::Result<Option<Record>> {
        if self.ended.is_some() {
            return Ok(None);
        }
        let Some(payload) = self.frame(RECORD_BYTES_MAX as u32)? else { return Ok(None) };
        let record = PayloadReader(&payload).record();
        if record.is_none() {
            self.ended = Some(RecordingEnd::Damaged);
        }
        self.records += u64::from(record.is_some());
        Ok(record)
    }

    fn started_unix_ns(&self) -> u64 {
        self.head.started_unix_ns
    }

    fn notes(&self) -> Vec<String> {
        let state = match self.ended {
            Some(RecordingEnd::Cut) => "truncated",
            Some(RecordingEnd::Damaged) => "damaged",
            None | Some(RecordingEnd::Whole) => return Vec::new(),
        };
        vec![format!(
            "the recording is {state} after {} complete requests, at byte {}",
            self.records, self.at
        )]
    }
}

/// The unread rest of a payload.
struct PayloadReader<'a>(&'a [u8]);

impl PayloadReader<'_> {
    fn record(mut self) -> Option<Record> {
        let offset = u64::from_le_bytes(self.bytes(8)?.try_into().ok()?);
        let flags = self.bytes(1)?[0];
        let method = self.short()?;
        let target = String::from_utf8(self.long()?).ok()?;
        let count = u16::from_le_bytes(self.bytes(2)?.try_into().ok()?);
        let mut headers = Vec::new();
        for _ in 0..count {
            headers.push((self.short()?, self.long()?));
        }
        let truncated = flags & TRUNCATED != 0;
        Some(Record { offset, method, target, headers, body: self.0.to_vec(), truncated })
    }

    fn bytes(&mut self, count: usize) -> Option<&[u8]> {
        let (bytes, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(bytes)
    }

    fn short(&mut self) -> Option<String> {
        let length = u16::from_le_bytes(self.bytes(2)?.try_into().ok()?);
        String::from_utf8(self.bytes(length.into())?.to_vec()).ok()
    }

    fn long(&mut self) -> Option<Vec<u8>> {
        let length = u32::from_le_bytes(self.bytes(4)?.try_into().ok()?);
        self.bytes(length as usize).map(<[u8]>::to_vec)
    }
}
