//! The HTTP/3 codec on a server's bytes: the same outcome whether a stream comes at once, cut where
//! the fuzzer says, or byte by byte; what it takes as a response, the `h3` crate takes with the same
//! status, fields and body, and what it refuses as frames or as QPACK is refused there; fields that
//! it encodes are those that it decodes.
//!
//! The first bytes of an input choose: which stream it is, and the distances between cuts.
#![no_main]

#[allow(dead_code, missing_docs, reason = "compiled from source, to do without TLS")]
#[path = "../../crates/gake-codec/src/http1/mod.rs"]
mod http1;
#[allow(dead_code, missing_docs, reason = "compiled from source, to do without TLS")]
#[path = "../../crates/gake-codec/src/http2/mod.rs"]
mod http2;
#[allow(dead_code, missing_docs, reason = "compiled from source, to do without TLS")]
#[path = "../../crates/gake-codec/src/http3/mod.rs"]
mod http3;
mod oracle3;

use http1::{ResponseHead, Visitor};
use http2::HpackError;
use http3::{
    ControlEvent, ControlReader, ResponseReader, StreamRequest, StreamResponse, StreamViolation,
};
use libfuzzer_sys::{Corpus, fuzz_target};
use oracle3::Answer;

/// Bytes of a header block, and of its fields.
const HEADER_BYTES: usize = 8_192;

/// Interim responses.
const INTERIM_MAX: u32 = 3;

type Fields = Vec<(String, Vec<u8>)>;

/// What a response shows.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    heads: Vec<(u16, Fields)>,
    body: Vec<u8>,
    trailers: Vec<Fields>,
}

impl Visitor for Seen {
    fn head(&mut self, head: &ResponseHead<'_>) {
        assert!(head.status >= 200);
        self.heads.push((head.status, owned(head.headers)));
    }

    fn body(&mut self, bytes: &[u8]) {
        assert!(!bytes.is_empty());
        self.body.extend_from_slice(bytes);
    }

    fn trailers(&mut self, trailers: &[httparse::Header<'_>]) {
        self.trailers.push(owned(trailers));
    }
}

fn owned(headers: &[httparse::Header<'_>]) -> Fields {
    headers.iter().map(|one| (one.name.to_owned(), one.value.to_vec())).collect()
}

/// Reads slices of the given sizes, over and over.
fn cut<'a>(mut bytes: &'a [u8], sizes: &'a [usize]) -> impl Iterator<Item = &'a [u8]> {
    let mut sizes = sizes.iter().cycle();
    std::iter::from_fn(move || {
        let size = sizes.next().map_or(bytes.len(), |size| (*size).max(1)).min(bytes.len());
        let (now, later) = bytes.split_at(size);
        bytes = later;
        (!now.is_empty()).then_some(now)
    })
}

fn response(bytes: &[u8], sizes: &[usize]) -> (Result<StreamResponse, StreamViolation>, Seen) {
    let mut reader = ResponseReader::new(HEADER_BYTES, INTERIM_MAX, false);
    let (mut text, mut seen) = (Vec::new(), Seen::default());
    for part in cut(bytes, sizes) {
        if let Err(violation) = reader.receive(part, &mut text, &mut seen) {
            return (Err(violation), seen);
        }
    }
    (reader.finish(), seen)
}

fn control(bytes: &[u8], sizes: &[usize]) -> (Result<(), StreamViolation>, Vec<u64>) {
    let (mut reader, mut said) = (ControlReader::default(), Vec::new());
    for part in cut(bytes, sizes) {
        let received = reader.receive(part, |ControlEvent::Goaway(stream)| said.push(stream));
        if received.is_err() {
            return (received, said);
        }
    }
    (Ok(()), said)
}

/// Whether the oracle refuses what breaks this rule, too: it knows no content-length, its bounds are
/// others, and it forgives a block that says it needs the dynamic table and does not (RFC 9204,
/// section 4.5.1.1), and padding of Huffman codes that is too long or has zeros (RFC 7541, section
/// 5.2); the target `hpack` compares those with the `h2` crate.
fn is_common(violation: StreamViolation) -> bool {
    match violation {
        StreamViolation::Qpack(error) => {
            !matches!(error, HpackError::TooLarge | HpackError::SizeUpdate | HpackError::Huffman)
        }
        StreamViolation::FrameCut | StreamViolation::FrameUnexpected | StreamViolation::Push => {
            true
        }
        _ => false,
    }
}

/// The frames of a response: kind, length, and what is there behind the head.
fn frames(mut bytes: &[u8]) -> impl Iterator<Item = (u64, u64, &[u8])> {
    std::iter::from_fn(move || {
        let (kind, rest) = varint(bytes)?;
        let (length, rest) = varint(rest)?;
        let behind = usize::try_from(length).ok().and_then(|length| rest.get(length..));
        bytes = behind.unwrap_or_default();
        Some((kind, length, rest))
    })
}

/// Whether the oracle refuses a frame that RFC 9114 allows: it takes an empty DATA frame for the end
/// of the body, and knows a frame of WebTransport (0x41), which means nothing without that.
fn has_strange_frame(bytes: &[u8]) -> bool {
    frames(bytes).any(|(kind, length, _)| (kind, length) == (0, 0) || kind == 0x41)
}

/// Whether the bytes end behind the head of a DATA frame.
fn ends_before_data(bytes: &[u8]) -> bool {
    frames(bytes).any(|(kind, length, rest)| kind == 0 && length > 0 && rest.is_empty())
}

/// A number of QUIC's (RFC 9000, section 16), and what is behind it.
fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let first = *bytes.first()?;
    let (number, rest) = bytes.split_at_checked(1 << (first >> 6))?;
    let number = number.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    Some((number & (u64::MAX >> (66 - 8 * (1_u32 << (first >> 6)))), rest))
}

/// Compares with the oracle.
fn judge(bytes: &[u8], (ours, seen): &(Result<StreamResponse, StreamViolation>, Seen)) {
    // There the oracle panics, as if it had been asked for trailers too early.
    let theirs = match ends_before_data(bytes) {
        true => Answer::Failed("the body is cut".to_owned()),
        false => oracle3::judge(bytes, HEADER_BYTES as u64),
    };
    match (ours, theirs) {
        (Ok(response), Answer::Whole { status, mut fields, body_bytes, trailers }) => {
            assert_eq!((response.status, response.body_bytes), (status, body_bytes));
            let mut own = seen.heads[0].1.clone();
            own.sort();
            fields.sort();
            assert_eq!(own, fields);
            assert_eq!(seen.trailers.len(), usize::from(trailers));
        }
        (Ok(_), Answer::Failed(why)) => {
            // The oracle also refuses control characters, which RFC 9114 allows in values.
            let is_control = |byte: &u8| (*byte < 0x20 && *byte != b'\t') || *byte == 0x7f;
            let all = seen.heads.iter().map(|(_, fields)| fields).chain(&seen.trailers).flatten();
            let mut values = all.map(|(_, value)| value);
            let has_control = values.any(|value| value.iter().any(is_control));
            // Interim responses, which are not shown, may have them.
            let shown = seen.heads.len() + seen.trailers.len();
            let has_interim = frames(bytes).filter(|(kind, ..)| *kind == 1).count() > shown;
            let is_lenient = has_control || has_interim || has_strange_frame(bytes);
            assert!(is_lenient, "it refused: {why}");
        }
        (Err(violation), Answer::Whole { .. }) => {
            assert!(!is_common(*violation), "{violation:?}");
        }
        (_, Answer::Interim) | (Err(_), _) => {}
    }
}

/// Encodes fields that the input spells out, and decodes them.
fn round_trip(mut bytes: &[u8]) {
    let mut fields = Fields::new();
    while let [name, value, rest @ ..] = bytes {
        let (name, value) = (usize::from(name % 16) + 1, usize::from(value % 64));
        if rest.len() < name + value || fields.len() == 50 {
            break;
        }
        let (text, rest) = rest.split_at(name);
        let (value, rest) = rest.split_at(value);
        let name = text.iter().map(|byte| char::from(b'a' + byte % 26)).collect();
        let value = value.iter().map(|byte| if *byte < 0x20 { b' ' } else { *byte });
        fields.push((name, value.collect()));
        bytes = rest;
    }
    let all = fields.iter().map(|(name, value)| (name.as_str(), value.as_slice()));
    let request = StreamRequest::new([(":status", &b"200"[..])].into_iter().chain(all), None);
    let bytes = request.buffers().concat();
    assert_eq!(bytes.len(), request.len());
    let (outcome, seen) = response(&bytes, &[]);
    if outcome.is_ok() {
        assert_eq!(seen.heads, [(200, fields)]);
    }
}

fuzz_target!(|data: &[u8]| -> Corpus {
    let [choice, a, b, bytes @ ..] = data else { return Corpus::Reject };
    let sizes = [a, b].map(|&n| usize::from(n));
    match choice % 4 {
        0 | 1 => {
            let whole = response(bytes, &[]);
            assert_eq!(whole, response(bytes, &sizes), "whole against cut");
            assert_eq!(whole, response(bytes, &[1]), "whole against byte by byte");
            judge(bytes, &whole);
        }
        2 => {
            let whole = control(bytes, &[]);
            assert_eq!(whole, control(bytes, &sizes), "whole against cut");
            assert_eq!(whole, control(bytes, &[1]), "whole against byte by byte");
        }
        _ => round_trip(bytes),
    }
    Corpus::Keep
});
