//! Servers that break the rules: each violation has a name, and floods are bounded.

use gake_core::record::ErrorCode;

use super::super::frame::{flag, kind, setting};
use super::super::{
    ClientConnection, ConnectionLimits, HpackError, MessageError, StreamEnding, Violation,
};
use super::harness::{
    connection, data, field, frame, get, goaway, headers, number, ok, sent, settings, take,
};

/// The violation that these bytes cause on a connection with one live stream.
fn violation(bytes: &[u8]) -> Violation {
    let mut connection = connection(&[]);
    connection.start(&get(), 0, false).unwrap();
    take(&mut connection, bytes).unwrap_err()
}

/// The error that ends the one live stream; the connection must continue.
fn message_error(bytes: &[u8]) -> MessageError {
    let mut connection = connection(&[]);
    connection.start(&get(), 0, false).unwrap();
    sent(&mut connection);
    let events = take(&mut connection, bytes).unwrap();
    let [StreamEnding::Malformed(error)] = events.endings()[..] else { panic!("{events:?}") };
    let resets: Vec<_> =
        sent(&mut connection).into_iter().map(|frame| (frame.0, frame.2)).collect();
    assert_eq!(resets, [(kind::RST_STREAM, 1)]);
    connection.start(&get(), 0, false).unwrap();
    assert_eq!(take(&mut connection, &ok(3, true)).unwrap().ends.len(), 1);
    error
}

#[test]
fn a_server_of_another_protocol_is_reported() {
    let greetings =
        [&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], b"SSH-2.0-OpenSSH_9.2\r\n", b"220 smtp\r\n"];
    for first in greetings {
        let mut connection = ClientConnection::new(ConnectionLimits::default());
        assert_eq!(take(&mut connection, first), Err(Violation::NotHttp2));
    }
    let mut connection = ClientConnection::new(ConnectionLimits::default());
    assert_eq!(take(&mut connection, &goaway(0, 0)), Err(Violation::NotHttp2));
}

#[test]
fn frames_have_the_length_of_their_kind() {
    let eight = [0; 8];
    for (kind, stream, lengths) in [
        (kind::SETTINGS, 0, &[1, 5, 7][..]),
        (kind::PING, 0, &[7, 0]),
        (kind::RST_STREAM, 1, &[3, 5]),
        (kind::WINDOW_UPDATE, 1, &[3, 5]),
        (kind::PRIORITY, 1, &[4, 6]),
        (kind::GOAWAY, 0, &[0, 7]),
    ] {
        for length in lengths {
            assert_eq!(
                violation(&frame(kind, 0, stream, &eight[..*length])),
                Violation::FrameLength
            );
        }
    }
    assert_eq!(violation(&[0, 0x40, 1, kind::DATA, 0, 0, 0, 0, 1]), Violation::FrameTooLarge);
    assert_eq!(violation(&frame(kind::SETTINGS, flag::ACK, 0, &[0; 6])), Violation::FrameLength);
}

#[test]
fn streams_that_do_not_exist_have_no_frames() {
    for stream in [0, 2, 3, 999] {
        for bytes in
            [data(stream, false, b"x"), ok(stream, false), number(kind::RST_STREAM, stream, 0)]
        {
            assert_eq!(violation(&bytes), Violation::FrameStream, "{stream}");
        }
    }
    assert_eq!(violation(&number(kind::WINDOW_UPDATE, 3, 1)), Violation::FrameStream);
    for (kind, length) in [(kind::SETTINGS, 0), (kind::PING, 8), (kind::GOAWAY, 8)] {
        assert_eq!(violation(&frame(kind, 0, 1, &[0; 8][..length])), Violation::FrameStream);
    }
    // The stream has ended without a reset.
    assert_eq!(violation(&[ok(1, true), data(1, false, b"x")].concat()), Violation::FrameStream);
}

#[test]
fn header_blocks_are_whole() {
    let begun = frame(kind::HEADERS, 0, 1, &[0x88]);
    let more = |stream| frame(kind::CONTINUATION, flag::END_HEADERS, stream, &[]);
    assert_eq!(violation(&more(1)), Violation::Continuation);
    for between in [frame(kind::PING, 0, 0, &[0; 8]), data(1, false, b""), more(3), ok(1, true)] {
        assert_eq!(violation(&[begun.clone(), between].concat()), Violation::Continuation);
    }
    let padded = frame(kind::HEADERS, flag::PADDED | flag::END_HEADERS, 1, &[9, 0x88]);
    assert_eq!(violation(&padded), Violation::Padding);
    assert_eq!(violation(&frame(kind::DATA, flag::PADDED, 1, &[4, 0, 0, 0])), Violation::Padding);
    assert_eq!(violation(&frame(kind::DATA, flag::PADDED, 1, &[])), Violation::FrameLength);
}

#[test]
fn bad_compression_ends_the_connection() {
    for (block, error) in [
        (&[0x80_u8][..], HpackError::Index),
        (&[0xff, 0x20], HpackError::Index),
        (&[0x40, 0x7f, 0xff, 0xff, 0xff, 0xff, 0x7f], HpackError::Integer),
        (&[0x00, 0x01], HpackError::Truncated),
        (&[0x00, 0x84, 0xff, 0xff, 0xff, 0xff, 0x00], HpackError::Huffman),
        (&[0x3f, 0xe2, 0x1f], HpackError::SizeUpdate),
        (&[0x88, 0x20], HpackError::SizeUpdate),
    ] {
        assert_eq!(violation(&headers(1, true, block)), Violation::Hpack(error), "{block:x?}");
    }
}

#[test]
fn windows_and_settings_have_bounds() {
    assert_eq!(violation(&number(kind::WINDOW_UPDATE, 0, 0)), Violation::WindowUpdate);
    let most = number(kind::WINDOW_UPDATE, 0, (1 << 31) - 1);
    assert_eq!(violation(&most), Violation::WindowOverflow);
    let first = settings(&[(setting::INITIAL_WINDOW_SIZE, 1 << 31)]);
    assert_eq!(violation(&first), Violation::WindowOverflow);
    assert_eq!(Violation::WindowOverflow.code(), ErrorCode::FlowControlError);
    for (setting, value) in [
        (setting::MAX_FRAME_SIZE, 16_383),
        (setting::MAX_FRAME_SIZE, 1 << 24),
        (setting::ENABLE_PUSH, 1),
    ] {
        assert_eq!(violation(&settings(&[(setting, value)])), Violation::Settings);
    }
    let more = number(kind::WINDOW_UPDATE, 1, 1 << 30);
    let larger = settings(&[(setting::INITIAL_WINDOW_SIZE, (1 << 31) - 1)]);
    assert_eq!(violation(&[more, larger].concat()), Violation::WindowOverflow);
    assert_eq!(
        violation(&frame(kind::PUSH_PROMISE, flag::END_HEADERS, 1, &[0, 0, 0, 2])),
        Violation::Push
    );
}

#[test]
fn a_server_may_not_send_more_than_the_window() {
    let limits = ConnectionLimits { stream_window: 10_000, ..ConnectionLimits::default() };
    for (has_acknowledged, expected) in [(false, Ok(())), (true, Err(Violation::Window))] {
        let mut connection = ClientConnection::new(limits);
        take(&mut connection, &settings(&[])).unwrap();
        if has_acknowledged {
            take(&mut connection, &frame(kind::SETTINGS, flag::ACK, 0, &[])).unwrap();
        }
        connection.start(&get(), 0, false).unwrap();
        take(&mut connection, &ok(1, false)).unwrap();
        assert_eq!(take(&mut connection, &data(1, false, &[0; 10_001])).map(drop), expected);
    }
}

#[test]
fn a_bad_response_ends_only_its_stream() {
    let status = |value| field(":status", value);
    for (bytes, error) in [
        (headers(1, true, &field("x", "y")), MessageError::StatusMissing),
        (headers(1, true, &[0x88, 0x88]), MessageError::StatusMissing),
        (headers(1, true, &[field("x", "y"), vec![0x88]].concat()), MessageError::PseudoHeader),
        (headers(1, true, &[vec![0x88], field(":path", "/")].concat()), MessageError::PseudoHeader),
        (headers(1, true, &status("2x0")), MessageError::Status),
        (headers(1, true, &status("099")), MessageError::Status),
        (headers(1, true, &status("20")), MessageError::Status),
        (headers(1, true, &[vec![0x88], field("X-Up", "y")].concat()), MessageError::HeaderName),
        (headers(1, true, &[vec![0x88], field("", "y")].concat()), MessageError::HeaderName),
        (headers(1, true, &[vec![0x88], field("x", "a\r\nb")].concat()), MessageError::HeaderValue),
        (
            headers(1, true, &[vec![0x88], field("transfer-encoding", "chunked")].concat()),
            MessageError::ConnectionHeader,
        ),
        (
            headers(1, true, &[vec![0x88], field("content-length", "1x")].concat()),
            MessageError::ContentLength,
        ),
        (
            headers(1, true, &[vec![0x88], field("content-length", "5")].concat()),
            MessageError::LengthMismatch,
        ),
        (data(1, true, b"x"), MessageError::DataBeforeHeaders),
        (headers(1, true, &status("100")), MessageError::Interim),
        (headers(1, false, &status("101")), MessageError::Interim),
        ([ok(1, false), headers(1, false, &field("x", "y"))].concat(), MessageError::Trailers),
        ([ok(1, false), ok(1, true)].concat(), MessageError::PseudoHeader),
        (headers(1, false, &status("100")).repeat(101), MessageError::TooManyInterim),
        (number(kind::WINDOW_UPDATE, 1, 0), MessageError::Window),
        (number(kind::WINDOW_UPDATE, 1, (1 << 31) - 1), MessageError::WindowOverflow),
    ] {
        assert_eq!(message_error(&bytes), error);
    }
}

#[test]
fn floods_are_bounded() {
    let ping = frame(kind::PING, 0, 0, &[0; 8]);
    let floods = [
        ping.clone(),
        settings(&[]),
        data(1, false, b""),
        number(kind::WINDOW_UPDATE, 0, 1),
        frame(kind::PRIORITY, 0, 1, &[0; 5]),
        frame(99, 0, 0, &[]),
        goaway(99, 0),
    ];
    for flood in floods {
        let mut connection = connection(&[]);
        connection.start(&get(), 0, false).unwrap();
        take(&mut connection, &ok(1, false)).unwrap();
        let outcome =
            (0..100).try_for_each(|_| take(&mut connection, &flood.repeat(101)).map(drop));
        assert_eq!(outcome, Err(Violation::Flood));
        assert!(connection.output().len() < 300_000, "acknowledgements are bounded");
    }
    // The same frames between responses are no flood.
    let mut connection = connection(&[]);
    for round in 0..300_u32 {
        connection.start(&get(), 0, false).unwrap();
        let bytes = [ping.repeat(100), ok(round * 2 + 1, true)].concat();
        take(&mut connection, &bytes).unwrap();
        sent(&mut connection);
    }
}

#[test]
fn endless_header_blocks_are_bounded() {
    let begun = frame(kind::HEADERS, 0, 1, &[0x88]);
    let filled = frame(kind::CONTINUATION, 0, 1, &vec![0; 16_000]);
    for (more, times) in [(filled, 20), (frame(kind::CONTINUATION, 0, 1, &[]), 2_000)] {
        let bytes = [begun.clone(), more.repeat(times)].concat();
        assert_eq!(violation(&bytes), Violation::HeaderBlockTooLarge);
    }
    // A large field in the table, referred to many times.
    let mut bomb = vec![0x88, 0x40, 1, b'x', 0x7f, 0x81, 0x1e];
    bomb.extend([b'v'; 0x7f + 0x81 - 0x80 + 0x1e * 128]);
    bomb.extend([0x80 | 62; 5_000]);
    let error = HpackError::TooLarge;
    assert_eq!(violation(&headers(1, true, &bomb)), Violation::Hpack(error));
}
