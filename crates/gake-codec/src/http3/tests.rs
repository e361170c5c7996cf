//! The codec against bytes as servers write them.

use gake_core::record::GrpcStatus;
use proptest::collection::vec;
use proptest::prelude::*;

use super::frame::{put_varint, take_varint};
use super::*;
use crate::http1::{ResponseHead, Visitor};
use crate::http2::{HpackError, MessageError};

#[derive(Debug, Default, PartialEq, Eq)]
struct RecordingVisitor {
    heads: Vec<(u16, Vec<(String, String)>)>,
    body: Vec<u8>,
    trailers: usize,
}

impl Visitor for RecordingVisitor {
    fn head(&mut self, head: &ResponseHead<'_>) {
        let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        let headers = head.headers.iter().map(|h| (h.name.to_owned(), text(h.value)));
        self.heads.push((head.status, headers.collect()));
    }

    fn body(&mut self, bytes: &[u8]) {
        self.body.extend_from_slice(bytes);
    }

    fn trailers(&mut self, trailers: &[httparse::Header<'_>]) {
        self.trailers += trailers.len();
    }
}

fn frame(kind: u64, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_varint(&mut bytes, kind);
    put_varint(&mut bytes, payload.len() as u64);
    bytes.extend_from_slice(payload);
    bytes
}

fn headers(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    let fields = fields.iter().map(|(name, value)| (*name, value.as_bytes()));
    qpack::encode(fields, &mut block);
    frame(1, &block)
}

fn data(bytes: &[u8]) -> Vec<u8> {
    frame(0, bytes)
}

/// Reads a stream in chunks of `size`.
fn read(stream: &[u8], size: usize) -> Result<(StreamResponse, RecordingVisitor), StreamViolation> {
    let mut reader = ResponseReader::new(4096, 2, false);
    let (mut visitor, mut text) = (RecordingVisitor::default(), Vec::new());
    for chunk in stream.chunks(size.max(1)) {
        reader.receive(chunk, &mut text, &mut visitor)?;
    }
    reader.finish().map(|response| (response, visitor))
}

/// The violation, which must not depend on the chunks.
fn refused(stream: &[u8]) -> StreamViolation {
    let refused = read(stream, usize::MAX).unwrap_err();
    for size in [1, 2, 3, 7] {
        assert_eq!(read(stream, size).unwrap_err(), refused, "{size}");
    }
    refused
}

#[test]
fn integers_match_the_rfc() {
    // RFC 9000, section A.1.
    for (bytes, value) in [
        (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c][..], 151_288_809_941_952_652),
        (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
        (&[0x7b, 0xbd], 15_293),
        (&[0x25], 37),
    ] {
        let mut rest = bytes;
        assert_eq!((take_varint(&mut rest), rest), (Some(value), &[][..]));
        assert_eq!(take_varint(&mut &bytes[..bytes.len() - 1]), None);
        let mut out = Vec::new();
        put_varint(&mut out, value);
        assert_eq!(out, bytes);
    }
}

#[test]
fn a_response_is_read_in_chunks_of_any_size() {
    let interim = headers(&[(":status", "103"), ("link", "</x>")]);
    let head = [(":status", "200"), ("content-length", "5"), ("x-server", "Lab"), ("date", "x")];
    let (unknown, trailers) = (frame(0x21, b"grease"), headers(&[("grpc-status", "7")]));
    let stream = [
        interim,
        unknown.clone(),
        headers(&head),
        data(b"he"),
        data(b""),
        unknown,
        data(b"llo"),
        trailers,
    ];
    let stream = stream.concat();
    let (response, shown) = read(&stream, usize::MAX).unwrap();
    let status = Some(GrpcStatus::new(7));
    assert_eq!(response, StreamResponse { status: 200, body_bytes: 5, grpc_status: status });
    let fields = head[1..].iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    assert_eq!(shown.heads, [(200, fields.collect())]);
    assert_eq!((shown.body.as_slice(), shown.trailers), (&b"hello"[..], 1));
    for size in [1, 2, 3, 5, 11] {
        let (again, shown_again) = read(&stream, size).unwrap();
        assert_eq!((again, &shown_again), (response, &shown), "{size}");
    }
}

#[test]
fn violations_of_a_response() {
    let head = headers(&[(":status", "200"), ("content-length", "3")]);
    let plain = headers(&[(":status", "200")]);
    let block = |bytes: &[u8]| frame(1, bytes);
    let message = StreamViolation::Message;
    for (stream, violation) in [
        (vec![], message(MessageError::StatusMissing)),
        (data(b"x"), message(MessageError::DataBeforeHeaders)),
        (headers(&[("x", "y")]), message(MessageError::StatusMissing)),
        (headers(&[(":status", "101")]), message(MessageError::Interim)),
        (headers(&[(":status", "100")]).repeat(3), message(MessageError::TooManyInterim)),
        (headers(&[(":status", "200"), ("X", "y")]), message(MessageError::HeaderName)),
        ([&head[..], &data(b"four")].concat(), message(MessageError::LengthMismatch)),
        (head.clone(), message(MessageError::LengthMismatch)),
        (plain.repeat(2), message(MessageError::PseudoHeader)),
        (
            [&plain[..], &headers(&[("t", "")]), &data(b"")].concat(),
            message(MessageError::Trailers),
        ),
        ([&plain[..], &data(b"cut")[..4]].concat(), StreamViolation::FrameCut),
        (vec![1], StreamViolation::FrameCut),
        (frame(4, b""), StreamViolation::FrameUnexpected),
        (frame(8, b""), StreamViolation::FrameUnexpected),
        (frame(5, b"\0"), StreamViolation::Push),
        (block(&[0; 5000]), StreamViolation::HeaderBlockTooLarge),
        // An index beyond the static table, one of the dynamic table, and a block that needs an
        // entry of the latter.
        (block(&[0, 0, 0xff, 36]), StreamViolation::Qpack(HpackError::Index)),
        (block(&[0, 0, 0x80]), StreamViolation::Qpack(HpackError::SizeUpdate)),
        (block(&[2, 0, 0xd9]), StreamViolation::Qpack(HpackError::SizeUpdate)),
        (block(&[0, 0, 0x51, 9]), StreamViolation::Qpack(HpackError::Truncated)),
        (block(&[0]), StreamViolation::Qpack(HpackError::Truncated)),
    ] {
        assert_eq!(refused(&stream), violation, "{stream:?}");
    }
    // Many short fields count for more than their encoded bytes.
    let many = [&[0, 0][..], &[0xd9; 200]].concat();
    assert_eq!(refused(&block(&many)), StreamViolation::Qpack(HpackError::TooLarge));
}

#[test]
fn a_block_may_have_any_base_but_a_negative_one() {
    let read = |base: &[u8]| read(&frame(1, &[&[0], base, &[0xd9]].concat()), 9);
    let most = [0x7f, 0x80, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x3f];
    for base in [&[0][..], &[0x7e], &[0x7f, 0], &most] {
        assert_eq!(read(base).map(|(response, _)| response.status), Ok(200), "{base:?}");
    }
    let endless = [&[0x7f][..], &[0xff; 9], &[0]].concat();
    for (base, error) in [
        (&[0x80][..], HpackError::SizeUpdate),
        (&[0xff, 0], HpackError::SizeUpdate),
        (&[0x7f, 0xff], HpackError::Truncated),
        (&endless, HpackError::Integer),
    ] {
        assert_eq!(read(base).map(drop), Err(StreamViolation::Qpack(error)), "{base:?}");
    }
}

#[test]
fn responses_to_head_have_no_body() {
    let mut reader = ResponseReader::new(4096, 2, true);
    let head = headers(&[(":status", "200"), ("content-length", "3")]);
    reader.receive(&head, &mut Vec::new(), &mut ()).unwrap();
    assert_eq!(reader.finish().map(|response| response.status), Ok(200));
}

/// The GOAWAYs of a control stream, read in chunks of `size`.
fn control(stream: &[u8], size: usize) -> Result<Vec<u64>, StreamViolation> {
    let (mut reader, mut goaways) = (ControlReader::default(), Vec::new());
    for chunk in stream.chunks(size) {
        reader.receive(chunk, |ControlEvent::Goaway(stream)| goaways.push(stream))?;
    }
    Ok(goaways)
}

#[test]
fn a_control_stream_is_read_or_refused() {
    let own = control_opening(4096);
    assert_eq!(control(&own[1..], 1), Ok(vec![]));
    let settings = frame(4, &[1, 0, 6, 0x40, 0x64, 0x21, 0]);
    let goaway = |stream| frame(7, &[stream]);
    let good = [&settings[..], &frame(0x21, b"grease"), &goaway(40), &goaway(40), &goaway(8)];
    let good = good.concat();
    for size in [1, 2, 3, good.len()] {
        assert_eq!(control(&good, size), Ok(vec![40, 40, 8]));
    }
    for (stream, violation) in [
        (goaway(0), StreamViolation::SettingsMissing),
        (settings.repeat(2), StreamViolation::FrameUnexpected),
        (frame(4, &[2, 0]), StreamViolation::Settings),
        (frame(4, &[6]), StreamViolation::FrameLength),
        ([&settings[..], &data(b"")].concat(), StreamViolation::FrameUnexpected),
        ([&settings[..], &goaway(4), &goaway(8)].concat(), StreamViolation::GoawayGrows),
        ([&settings[..], &goaway(1)].concat(), StreamViolation::GoawayGrows),
        ([&settings[..], &frame(7, b"")].concat(), StreamViolation::FrameLength),
        ([&settings[..], &frame(3, &[0])].concat(), StreamViolation::Push),
        (vec![4, 0x80, 1, 0, 0], StreamViolation::FrameLength),
    ] {
        for size in [1, stream.len()] {
            assert_eq!(control(&stream, size), Err(violation), "{stream:?}");
        }
    }
}

/// Streams of frames of all kinds, many of them broken.
fn streams() -> impl Strategy<Value = Vec<u8>> {
    let bytes = || vec(any::<u8>(), 0..40);
    let field = prop_oneof![
        Just(vec![0xd9]),
        Just(vec![0x51, 1, b'x']),
        (0xc0_u8.., bytes()).prop_map(|(first, rest)| [vec![first], rest].concat()),
        bytes(),
    ];
    let block = vec(field, 0..4).prop_map(|fields| [vec![0, 0], fields.concat()].concat());
    let kind = prop_oneof![Just(0_u64), Just(1), Just(4), Just(7), 0..0x40_u64];
    let fragment = prop_oneof![
        bytes(),
        block.prop_map(|block| frame(1, &block)),
        (kind, bytes()).prop_map(|(kind, payload)| frame(kind, &payload)),
    ];
    vec(fragment, 0..6).prop_map(|fragments| fragments.concat())
}

proptest! {
    #[test]
    fn chunk_sizes_do_not_change_the_outcome(stream in streams(), size in 1..20_usize) {
        let whole = read(&stream, usize::MAX).map(|(response, _)| response);
        prop_assert_eq!(read(&stream, size).map(|(response, _)| response), whole);
        let settings = frame(4, b"");
        let stream = [settings, stream].concat();
        prop_assert_eq!(control(&stream, size), control(&stream, usize::MAX));
    }
}
