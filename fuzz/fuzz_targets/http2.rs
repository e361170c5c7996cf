//! The HTTP/2 codec on a server's bytes: the same outcome whether they come at once, cut where the
//! fuzzer says, or one by one; bounded output; and every response that it takes is the one that the
//! `h2` crate takes, if that takes the connection.
//!
//! The first bytes of an input choose: windows, streams, and the distances between cuts.
#![no_main]

#[allow(dead_code, missing_docs, reason = "compiled from source, to do without TLS")]
#[path = "../../crates/gake-codec/src/http2/mod.rs"]
mod http2;
mod oracle;

use std::sync::Arc;

use http2::{
    ClientConnection, ConnectionLimits, HeaderFields, HpackError, RequestTemplate, SharedFields,
    StreamEnd, StreamEnding, StreamEvents, Violation,
};
use libfuzzer_sys::{Corpus, fuzz_target};
use oracle::Answer;

/// Bytes that a connection may want to write in response to an input.
const OUTPUT_MAX: usize = 1 << 20;

/// What can be seen of a connection.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    heads: Vec<(u32, u16, HeaderFields)>,
    /// The body of each stream, by owner.
    bodies: Vec<Vec<u8>>,
    trailers: Vec<(u32, HeaderFields)>,
    ends: Vec<(u32, StreamEnd)>,
    violation: Option<Violation>,
    capacity: u32,
}

impl StreamEvents for Outcome {
    fn began(&mut self, owner: u32) {
        assert!((owner as usize) < self.bodies.len());
    }

    fn head(&mut self, owner: u32, status: u16, fields: HeaderFields) {
        assert!(status >= 200);
        self.heads.push((owner, status, fields));
    }

    fn body(&mut self, owner: u32, bytes: &[u8]) {
        self.bodies[owner as usize].extend_from_slice(bytes);
    }

    fn trailers(&mut self, owner: u32, fields: HeaderFields) {
        self.trailers.push((owner, fields));
    }

    fn ended(&mut self, owner: u32, end: StreamEnd) {
        assert!(self.ends.iter().all(|(known, _)| *known != owner), "a stream ends once");
        self.ends.push((owner, end));
    }
}

/// Reads the bytes in slices of the given sizes, over and over.
fn read(bytes: &[u8], limits: ConnectionLimits, streams: usize, sizes: &[usize]) -> Outcome {
    let shared = SharedFields::new(&[(":authority", b"a.test")]);
    let request = RequestTemplate::new(("GET", "http", "/"), Arc::new(shared), &[], None);
    let mut connection = ClientConnection::new(limits);
    let mut outcome = Outcome { bodies: vec![Vec::new(); streams], ..Outcome::default() };
    for owner in 0..streams {
        assert!(connection.start(&request, owner as u32, true).is_some());
    }
    let mut sizes = sizes.iter().cycle();
    let mut rest = bytes;
    while !rest.is_empty() && outcome.violation.is_none() {
        let size = sizes.next().map_or(rest.len(), |size| (*size).max(1)).min(rest.len());
        let (now, later) = rest.split_at(size);
        rest = later;
        outcome.violation = connection.receive(now, &mut outcome).err();
        let waiting = connection.output().len();
        assert!(waiting < OUTPUT_MAX, "{waiting} bytes to write");
    }
    outcome.capacity = connection.capacity();
    connection.end_all(|owner, end| outcome.ended(owner, end));
    assert_eq!(outcome.ends.len(), streams, "every stream ends");
    outcome
}

/// Whether the bytes end where a frame does.
fn are_whole_frames(mut bytes: &[u8]) -> bool {
    while let [a, b, c, _, _, _, _, _, _, rest @ ..] = bytes {
        let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
        let Some(rest) = rest.get(length..) else { return false };
        bytes = rest;
    }
    bytes.is_empty()
}

fn has_continuation(mut bytes: &[u8]) -> bool {
    while let [a, b, c, kind, _, _, _, _, _, rest @ ..] = bytes {
        if *kind == 9 {
            return true;
        }
        let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
        bytes = rest.get(length..).unwrap_or_default();
    }
    false
}

/// Whether another frame comes while a header block is open (RFC 9113, section 6.10).
fn interrupts_block(mut bytes: &[u8]) -> bool {
    let mut open = None;
    while let [a, b, c, kind, flags, i, j, k, l, rest @ ..] = bytes {
        let stream = [i & 0x7f, *j, *k, *l];
        if open.is_some_and(|open| (*kind, stream) != (9, open)) {
            return true;
        }
        if matches!(kind, 1 | 5 | 9) {
            open = (flags & 4 == 0).then_some(stream);
        }
        let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
        bytes = rest.get(length..).unwrap_or_default();
    }
    false
}

fuzz_target!(|data: &[u8]| -> Corpus {
    let [choice, a, b, c, bytes @ ..] = data else { return Corpus::Reject };
    let stream_window = if choice & 1 == 0 { 65_535 } else { 100 };
    let limits = ConnectionLimits { stream_window, ..ConnectionLimits::default() };
    let streams = usize::from(choice >> 1 & 7) + 1;
    // Half of the inputs begin with SETTINGS, so that more than the first frame is reached.
    let settings: &[u8] = if choice & 16 == 0 { &[0, 0, 0, 4, 0, 0, 0, 0, 0] } else { &[] };
    let bytes = [settings, bytes].concat();
    let whole = read(&bytes, limits, streams, &[]);
    let sizes = [a, b, c].map(|&n| usize::from(n));
    assert_eq!(whole, read(&bytes, limits, streams, &sizes), "whole against cut");
    assert_eq!(whole, read(&bytes, limits, streams, &[1]), "whole against byte by byte");
    let verdict = oracle::judge(&bytes, streams, stream_window);
    for (owner, end) in &whole.ends {
        let (StreamEnding::Response { status, body_bytes }, Some(Answer::Whole(theirs, _, bytes))) =
            (end.ending, verdict.answers.get(*owner as usize))
        else {
            continue;
        };
        assert_eq!((status, body_bytes), (*theirs, *bytes));
        assert_eq!(whole.bodies[*owner as usize].len() as u64, body_bytes);
    }
    // The oracle takes a change of the table's size also where a CONTINUATION begins, which is not
    // the beginning of the block (RFC 7541, section 4.2).
    let is_late_size = whole.violation == Some(Violation::Hpack(HpackError::SizeUpdate))
        && has_continuation(&bytes);
    // The oracle forgets that a block is open when a part of it shows that it is malformed.
    let is_forgotten =
        whole.violation == Some(Violation::Continuation) && interrupts_block(&bytes);
    // What the oracle takes whole is taken here, too, unless a bound of ours ended the connection.
    // The oracle also forgives frames on streams that have ended, pushes among them, and before
    // SETTINGS.
    let is_bound = matches!(
        whole.violation,
        Some(
            Violation::Flood
                | Violation::HeaderBlockTooLarge
                | Violation::FrameTooLarge
                | Violation::FrameStream
                | Violation::Push
                | Violation::NotHttp2
        )
    );
    let is_judged = are_whole_frames(&bytes) && verdict.broken.is_none();
    if is_judged && !is_bound && !is_late_size && !is_forgotten {
        // It tells of a header block only when that is whole: a PING shows that none is open.
        let bytes = [&bytes[..], &[0, 0, 8, 6, 0, 0, 0, 0, 0], b"12345678"].concat();
        if oracle::judge(&bytes, streams, stream_window).broken.is_some() {
            return Corpus::Keep;
        }
        assert_eq!(whole.violation, None, "{verdict:?}");
    }
    Corpus::Keep
});
