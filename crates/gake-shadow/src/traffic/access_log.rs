//! Reads access logs in the common and the combined format of nginx and Apache.
//!
//! Timestamps have a resolution of one second: requests within a second are spread evenly over it.
//! Logs have no bodies and few headers, so only safe methods are read.

use std::collections::VecDeque;
use std::io::{self, BufRead, Read};

use gake_core::clock::SECOND;

use super::{Record, RecordSource};

/// Bytes read of a line; the rest is skipped.
const LINE_BYTES_MAX: u64 = 1 << 16;

/// Requests buffered for one second; more count towards the next.
const SECOND_MAX: usize = 1_000_000;

pub(super) struct Reader<R> {
    input: R,
    line: Vec<u8>,
    /// Requests of the last complete second, with their offsets.
    ready: VecDeque<Record>,
    /// Requests of the current second.
    open: Vec<Record>,
    /// The current and the first second, since the Unix epoch.
    second: Option<(i64, i64)>,
    unsafe_methods: u64,
    malformed: u64,
    ended: bool,
}

impl<R: BufRead> Reader<R> {
    pub(super) fn new(input: R) -> Self {
        Self {
            input,
            line: Vec::new(),
            ready: VecDeque::new(),
            open: Vec::new(),
            second: None,
            unsafe_methods: 0,
            malformed: 0,
            ended: false,
        }
    }

    fn take(&mut self) -> io::Result<()> {
        self.line.clear();
        let read = (&mut self.input).take(LINE_BYTES_MAX).read_until(b'\n', &mut self.line)?;
        if read == 0 {
            self.ended = true;
            self.close();
            return Ok(());
        }
        if self.line.last() != Some(&b'\n') && read as u64 == LINE_BYTES_MAX {
            self.input.skip_until(b'\n')?;
        }
        let line = String::from_utf8_lossy(&self.line);
        let Some((unix, record)) = parse(line.trim_end()) else {
            self.malformed += u64::from(!line.trim().is_empty());
            return Ok(());
        };
        if !record.is_safe() {
            self.unsafe_methods += 1;
            return Ok(());
        }
        // Lines are in the order of the responses, so one of an earlier second may follow.
        let (second, _) = *self.second.get_or_insert((unix, unix));
        if unix > second || self.open.len() == SECOND_MAX {
            self.close();
            self.second = self.second.map(|(last, first)| (unix.max(last), first));
        }
        self.open.push(record);
        Ok(())
    }

    fn close(&mut self) {
        let Some((second, first)) = self.second else { return };
        let start = second.saturating_sub(first).max(0) as u64 * SECOND;
        let count = self.open.len().max(1) as u64;
        for (n, mut record) in self.open.drain(..).enumerate() {
            record.offset = start.saturating_add(n as u64 * SECOND / count);
            self.ready.push_back(record);
        }
    }
}

impl<R: BufRead> RecordSource for Reader<R> {
    fn next(&mut self) -> io::Result<Option<Record>> {
        while self.ready.is_empty() && !self.ended {
            self.take()?;
        }
        Ok(self.ready.pop_front())
    }

    fn started_unix_ns(&self) -> u64 {
        let first = self.second.map_or(0, |(_, first)| first);
        u64::try_from(first).unwrap_or(0).saturating_mul(SECOND)
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = vec![
            "the log has a resolution of one second: requests within a second are spread evenly"
                .to_owned(),
        ];
        if self.unsafe_methods > 0 {
            notes.push(format!(
                "{} requests with other methods than GET, HEAD, OPTIONS and TRACE were skipped: \
                 the log has no bodies",
                self.unsafe_methods
            ));
        }
        if self.malformed > 0 {
            notes.push(format!("{} lines are not requests and were skipped", self.malformed));
        }
        notes
    }
}

/// Lines by which a log is known.
const KNOWN_BY: usize = 20;

/// Whether a file that begins with `start` is an access log: most of its first lines have a time in
/// brackets and a quoted request, whatever the request is.
pub(super) fn is_log(start: &[u8]) -> bool {
    let whole = memchr::memrchr(b'\n', start).map_or(start, |end| &start[..end]);
    let is_line = |line: &&[u8]| {
        let line = String::from_utf8_lossy(line);
        times(&line).is_some_and(|(_, rest)| quoted(rest.trim_start()).is_some())
    };
    let lines = || whole.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    let all = lines().take(KNOWN_BY).count();
    2 * lines().take(KNOWN_BY).filter(is_line).count() > all
}

/// The second of a line since the Unix epoch, and the text after it.
fn times(line: &str) -> Option<(i64, &str)> {
    let (_, rest) = line.split_once(" [")?;
    let (time, rest) = rest.split_once(']')?;
    Some((seconds(time)?, rest))
}

/// A target that can be sent: bytes that no URL may contain are percent-encoded.
fn encoded(target: &[u8]) -> String {
    let mut text = String::with_capacity(target.len());
    for &byte in target {
        match byte {
            b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}' | b'#' => {
                text.push_str(&format!("%{byte:02X}"));
            }
            0x21..=0x7e => text.push(char::from(byte)),
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

/// Parses a line into the second since the Unix epoch and the request.
pub(super) fn parse(line: &str) -> Option<(i64, Record)> {
    let (unix, rest) = times(line)?;
    let (request, rest) = quoted(rest.trim_start())?;
    let space = memchr::memchr(b' ', &request)?;
    let (method, target) = (&request[..space], request[space..].trim_ascii());
    // The target may contain blanks.
    let last = memchr::memrchr(b' ', target).map_or(target.len(), |at| at);
    let target = if target[last..].starts_with(b" HTTP/") { &target[..last] } else { target };
    let is_method = !method.is_empty() && method.iter().all(u8::is_ascii_uppercase);
    let has_scheme = memchr::memmem::find(target, b"://").is_some();
    let is_target = target.starts_with(b"/") || target == b"*" || has_scheme;
    let is_cut = last < target.len() && b" HTTP/".starts_with(&target[last..]);
    if !is_method || !is_target || is_cut {
        return None;
    }
    let mut headers = Vec::new();
    let mut rest = rest;
    for name in ["Referer", "User-Agent"] {
        let Some(at) = rest.find('"') else { break };
        let Some((value, after)) = quoted(&rest[at..]) else { break };
        if value != b"-" && !value.is_empty() {
            headers.push((name.to_owned(), value));
        }
        rest = after;
    }
    let method = String::from_utf8_lossy(method).into_owned();
    let target = encoded(target);
    Some((unix, Record { method, target, headers, ..Record::default() }))
}

/// The unescaped quoted text at the start, and the rest.
fn quoted(text: &str) -> Option<(Vec<u8>, &str)> {
    let inner = text.strip_prefix('"')?;
    let bytes = inner.as_bytes();
    let mut out = Vec::new();
    let mut at = 0;
    loop {
        match *bytes.get(at)? {
            b'"' => break,
            b'\\' => {
                let hex = bytes.get(at + 1) == Some(&b'x');
                let code = hex.then(|| inner.get(at + 2..at + 4)).flatten();
                match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
                    Some(byte) => (out.push(byte), at += 4).1,
                    None => (out.push(*bytes.get(at + 1)?), at += 2).1,
                }
            }
            byte => (out.push(byte), at += 1).1,
        }
    }
    Some((out, &inner[at + 1..]))
}

/// The seconds since the Unix epoch of `22/Nov/2026:01:02:03 +0100`.
fn seconds(text: &str) -> Option<i64> {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let (stamp, zone) = text.split_once(' ')?;
    let mut fields = stamp.split(['/', ':']);
    let day: i64 = fields.next()?.parse().ok()?;
    let name = fields.next().filter(|name| name.len() == 3)?;
    let month = MONTHS.find(name).filter(|at| at % 3 == 0)? as i64 / 3 + 1;
    let mut number = || fields.next()?.parse::<i64>().ok();
    let (year, hour, minute, second) = (number()?, number()?, number()?, number()?);
    let fits = (1..=31).contains(&day)
        && (1970..10_000).contains(&year)
        && (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0..=60).contains(&second);
    let (sign, digits) = match zone.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let zone: i64 = digits.parse().ok().filter(|_| digits.len() == 4)?;
    let zone = sign * (zone / 100 * 3_600 + zone % 100 * 60);
    fits.then(|| days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second - zone)
}

/// Days since 1970-01-01 in the Gregorian calendar, with years from March so that the leap day is
/// the last of its year.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let from_march = (month + 9) % 12;
    let of_year = (153 * from_march + 2) / 5 + day - 1;
    year * 365 + year / 4 - year / 100 + year / 400 + of_year - 719_468
}
