//! GoReplay's format: `TYPE ID TIMESTAMP [LATENCY]`, the raw message, and a separator. Requests
//! have type 1; responses are skipped.
//!
//! The format has no lengths, and bodies may contain the separator. One ends a message when the start
//! of another message follows, unless the message ends at a later one with exactly the length that
//! it announces. A message shorter than that costs only itself.

use std::io::{self, BufRead, Read, Write};

use gake_text::redact::Redactor;
use memchr::memmem::Finder;

use super::{RECORD_BYTES_MAX, Record, RecordSource, RedactedRecord, message, redact};

const SEPARATOR: &[u8] = "\n🐵🙈🙉\n".as_bytes();

const STEP: u64 = 1 << 18;

pub(super) fn is_meta(line: &[u8]) -> bool {
    meta(line).is_some()
}

/// The type and the timestamp of the first line of a message.
fn meta(line: &[u8]) -> Option<(u8, u64)> {
    let line = std::str::from_utf8(line).ok()?;
    let mut fields = line.trim_end_matches('\r').split(' ');
    let kind = match fields.next()? {
        "1" => 1,
        "2" => 2,
        "3" => 3,
        _ => return None,
    };
    let id = fields.next()?;
    let is_id = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let timestamp = fields.next()?.parse().ok()?;
    is_id.then_some((kind, timestamp))
}

pub(super) struct Reader<R> {
    input: R,
    finder: Finder<'static>,
    /// Unprocessed input.
    buffer: Vec<u8>,
    ended: bool,
    started: Option<u64>,
    malformed: u64,
    cut: bool,
}

impl<R: BufRead> Reader<R> {
    pub(super) fn new(input: R) -> Self {
        let finder = Finder::new(SEPARATOR);
        Self {
            input,
            finder,
            buffer: Vec::new(),
            ended: false,
            started: None,
            malformed: 0,
            cut: false,
        }
    }

    /// Reads more input; sets `ended` at the end.
    fn fill(&mut self) -> io::Result<()> {
        let read = (&mut self.input).take(STEP).read_to_end(&mut self.buffer)?;
        self.ended = read == 0;
        Ok(())
    }

    /// The ends of the next message, without and with its separator; `None` at the end.
    fn message(&mut self) -> io::Result<Option<(usize, usize)>> {
        let mut from = 0;
        loop {
            let found = self.finder.find(&self.buffer[from..]).map(|at| at + from);
            if let Some(at) = found {
                let after = at + SEPARATOR.len();
                // The decision needs the bytes that follow.
                if self.buffer.len() < after + 256
                    && !self.ended
                    && self.buffer.len() < RECORD_BYTES_MAX
                {
                    self.fill()?;
                    continue;
                }
                let announced = self.announced_end(at);
                let needed = announced.map_or(0, |end| end.saturating_add(SEPARATOR.len()));
                if self.buffer.len() < needed.min(RECORD_BYTES_MAX) && !self.ended {
                    self.fill()?;
                    continue;
                }
                let is_inside = announced.is_some_and(|end| end > at && self.is_end(end));
                let ends = self.starts_at(after) && !is_inside;
                if ends || self.buffer.len() >= RECORD_BYTES_MAX {
                    return Ok(Some((at, after)));
                }
                from = at + 1;
                continue;
            }
            if self.ended || self.buffer.len() >= RECORD_BYTES_MAX {
                let rest = self.buffer.len();
                self.cut |= rest > 0;
                return Ok((rest > 0).then_some((rest, rest)));
            }
            from = self.buffer.len().saturating_sub(SEPARATOR.len());
            self.fill()?;
        }
    }

    /// Where the message ends that the separator at `at` may end, by its own account.
    fn announced_end(&self, at: usize) -> Option<usize> {
        let (_, _, raw) = payload(&self.buffer[..at])?;
        (at - raw.len()).checked_add(message::announced(raw)?)
    }

    /// Whether a message, or the file, ends at `at`.
    fn is_end(&self, at: usize) -> bool {
        let rest = self.buffer.get(at..);
        rest.is_some_and(|rest| rest.starts_with(SEPARATOR) || rest.is_empty() && self.ended)
    }

    /// Whether another message, or the end of the file, is at `after`.
    fn starts_at(&self, after: usize) -> bool {
        let next = &self.buffer[after..];
        let line = next.split(|byte| *byte == b'\n').next().unwrap_or_default();
        next.is_empty() || meta(line).is_some()
    }
}

/// Type, timestamp and raw HTTP of a message.
fn payload(message: &[u8]) -> Option<(u8, u64, &[u8])> {
    let end = memchr::memchr(b'\n', message)?;
    let (kind, timestamp) = meta(&message[..end])?;
    Some((kind, timestamp, &message[end + 1..]))
}

impl<R: BufRead> RecordSource for Reader<R> {
    fn next(&mut self) -> io::Result<Option<Record>> {
        while let Some((end, after)) = self.message()? {
            let message: Vec<u8> = self.buffer.drain(..after).take(end).collect();
            let Some((kind, timestamp, raw)) = payload(&message) else {
                self.malformed += 1;
                continue;
            };
            if kind != 1 {
                continue;
            }
            let Some(record) = message::read(raw) else {
                self.malformed += 1;
                continue;
            };
            let started = *self.started.get_or_insert(timestamp);
            return Ok(Some(Record { offset: timestamp.saturating_sub(started), ..record }));
        }
        Ok(None)
    }

    fn started_unix_ns(&self) -> u64 {
        self.started.unwrap_or(0)
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.malformed > 0 {
            notes.push(format!(
                "{} messages are not HTTP requests and were skipped",
                self.malformed
            ));
        }
        if self.cut {
            notes.push("the last message has no end: the recording is truncated".to_owned());
        }
        notes
    }
}

/// Writes requests in GoReplay's format.
#[derive(Debug)]
pub struct GorWriter<W> {
    out: W,
    started_unix_ns: u64,
    redactor: Redactor,
    buffer: Vec<u8>,
    number: u64,
}

impl<W: Write> GorWriter<W> {
    /// A writer of redacted requests; offsets count from `started_unix_ns`.
    pub fn new(out: W, started_unix_ns: u64, redactor: Redactor) -> Self {
        Self { out, started_unix_ns, redactor, buffer: Vec::new(), number: 0 }
    }

    /// Writes a request, redacted.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&mut self, record: Record) -> io::Result<()> {
        self.put(&redact(&self.redactor, record))
    }

    fn put(&mut self, record: &RedactedRecord) -> io::Result<()> {
        self.buffer.clear();
        self.number += 1;
        let timestamp = self.started_unix_ns.saturating_add(record.offset);
        writeln!(self.buffer, "1 {:024x} {timestamp} 0", self.number)?;
        message::write(record, &mut self.buffer);
        self.buffer.extend_from_slice(SEPARATOR);
        self.out.write_all(&self.buffer)
    }

    /// Flushes the buffers.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
