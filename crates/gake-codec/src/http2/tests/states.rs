//! The life of streams and connections.

use gake_core::record::ErrorCode;
use proptest::prelude::*;

use super::super::frame::{flag, kind, setting};
use super::super::{ClientConnection, ConnectionLimits, StreamEnding};
use super::harness::{
    RecordedEvents, connection, data, field, get, goaway, headers, number, ok, request, sent,
    settings, take,
};

fn response(status: u16, body_bytes: u64) -> StreamEnding {
    StreamEnding::Response { status, body_bytes }
}

#[test]
fn a_connection_starts_with_preface_and_settings() {
    let mut connection = ClientConnection::new(ConnectionLimits::default());
    assert!(connection.output().starts_with(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
    let frames = sent(&mut connection);
    let kinds: Vec<_> = frames.iter().map(|frame| (frame.0, frame.2)).collect();
    assert_eq!(kinds, [(kind::SETTINGS, 0), (kind::WINDOW_UPDATE, 0)]);
    assert_eq!(frames[0].3[..6], [0, setting::ENABLE_PUSH as u8, 0, 0, 0, 0], "no push");
    // The server's settings are acknowledged, its acknowledgement is not.
    take(&mut connection, &settings(&[])).unwrap();
    assert_eq!(sent(&mut connection), [(kind::SETTINGS, flag::ACK, 0, vec![])]);
    take(&mut connection, &super::harness::frame(kind::SETTINGS, flag::ACK, 0, &[])).unwrap();
    assert_eq!(sent(&mut connection), []);
}

#[test]
fn requests_and_responses_in_any_order() {
    let mut connection = connection(&[]);
    let request = get();
    let slots = [10, 11, 12];
    for owner in slots {
        connection.start(&request, owner, false).unwrap();
    }
    let frames = sent(&mut connection);
    let heads: Vec<_> = frames.iter().map(|frame| (frame.0, frame.1, frame.2)).collect();
    let both = flag::END_HEADERS | flag::END_STREAM;
    assert_eq!(heads, [1, 3, 5].map(|id| (kind::HEADERS, both, id)));
    // From the second request on, a field takes one byte.
    assert_eq!(frames[1].3.len(), 5);
    assert_eq!(frames[1].3, frames[2].3);
    let bytes = [ok(5, false), ok(1, true), data(5, false, b"he"), data(5, true, b"y")].concat();
    let events = take(&mut connection, &bytes).unwrap();
    assert_eq!(events.ends[0].0, slots[0]);
    assert_eq!(events.ends[1].0, slots[2]);
    assert_eq!(events.endings(), [response(200, 0), response(200, 3)]);
    // Only frames of the stream count.
    assert_eq!(
        (events.ends[0].1.bytes_in, events.ends[0].1.bytes_out),
        (10, 9 + frames[0].3.len() as u64)
    );
    assert_eq!(events.ends[1].1.bytes_in, 10 + 11 + 10);
    assert!(events.ends.iter().all(|(_, end)| end.is_written));
    assert_eq!(connection.live(), 1);
}

#[test]
fn interim_heads_and_trailers_are_part_of_a_response() {
    let mut connection = connection(&[]);
    connection.start(&get(), 0, true).unwrap();
    let early = [field(":status", "103"), field("link", "x")].concat();
    let frames = [
        headers(1, false, &early),
        headers(1, false, &[vec![0x88], field("content-length", "2"), field("x", "y")].concat()),
        data(1, false, b"hi"),
        headers(1, true, &field("checksum", "z")),
    ];
    let events = take(&mut connection, &frames.concat()).unwrap();
    assert_eq!(events.endings(), [response(200, 2)]);
    let [(_, 200, fields)] = &events.heads[..] else { panic!("{:?}", events.heads) };
    assert_eq!(fields[1], (b"x".to_vec(), b"y".to_vec()));
    assert_eq!(events.bodies, b"hi");
}

#[test]
fn the_servers_limit_may_fall_below_the_live_streams() {
    let mut connection = connection(&[(setting::MAX_CONCURRENT_STREAMS, 3)]);
    for _ in 0..3 {
        connection.start(&get(), 0, false).unwrap();
    }
    assert_eq!(connection.start(&get(), 0, false), None);
    take(&mut connection, &settings(&[(setting::MAX_CONCURRENT_STREAMS, 0)])).unwrap();
    assert_eq!((connection.capacity(), connection.live()), (0, 3));
    assert!(!connection.is_ending());
    let events = take(&mut connection, &[ok(1, true), ok(3, true), ok(5, true)].concat()).unwrap();
    assert_eq!(events.endings(), [response(200, 0); 3]);
    assert_eq!(connection.start(&get(), 0, false), None);
    take(&mut connection, &settings(&[(setting::MAX_CONCURRENT_STREAMS, 1)])).unwrap();
    assert!(connection.start(&get(), 0, false).is_some());
}

#[test]
fn before_settings_a_hundred_streams_are_assumed() {
    let limits = ConnectionLimits { streams: 1000, ..ConnectionLimits::default() };
    let mut connection = ClientConnection::new(limits);
    assert_eq!(connection.capacity(), 100);
    take(&mut connection, &settings(&[])).unwrap();
    assert_eq!(connection.capacity(), 1000);
}

#[test]
fn goaway_lets_lower_streams_finish() {
    let mut connection = connection(&[]);
    let slots = [10, 11, 12];
    for owner in slots {
        connection.start(&get(), owner, false).unwrap();
    }
    // Servers send two, the first with the highest number.
    let events = take(&mut connection, &goaway((1 << 31) - 1, 0)).unwrap();
    assert_eq!((events.ends, connection.capacity()), (vec![], 0));
    let events = take(&mut connection, &goaway(1, 0)).unwrap();
    assert_eq!(events.endings(), [StreamEnding::GoneAway(ErrorCode::NoError); 2]);
    assert_eq!([events.ends[0].0, events.ends[1].0], slots[1..]);
    assert_eq!(connection.start(&get(), 0, false), None);
    assert_eq!(take(&mut connection, &ok(1, true)).unwrap().endings(), [response(200, 0)]);
    assert!(connection.is_ending() && connection.take_counts().goaways == 2);
}

#[test]
fn resets_end_one_stream() {
    let mut connection = connection(&[]);
    for _ in 0..3 {
        connection.start(&get(), 0, false).unwrap();
    }
    let resets = [number(kind::RST_STREAM, 1, 7), number(kind::RST_STREAM, 3, 11), ok(5, true)];
    let events = take(&mut connection, &resets.concat()).unwrap();
    let calm = StreamEnding::Reset(ErrorCode::EnhanceYourCalm);
    assert_eq!(events.endings(), [StreamEnding::Refused, calm, response(200, 0)]);
    // Late frames of a cancelled stream are ignored, but its headers are decoded.
    let slot = connection.start(&get(), 0, false).unwrap();
    sent(&mut connection);
    let end = connection.cancel(slot, ErrorCode::Cancel);
    assert_eq!((end.ending, end.is_written), (StreamEnding::Cancelled, true));
    assert_eq!(sent(&mut connection), [(kind::RST_STREAM, 0, 7, vec![0, 0, 0, 8])]);
    let mut indexed = field("x-new", "1");
    indexed[0] = 0x40;
    let late = headers(7, false, &[&[0x88], &indexed[..]].concat());
    assert_eq!(take(&mut connection, &late).unwrap(), RecordedEvents::default());
    connection.start(&get(), 0, true).unwrap();
    let events = take(&mut connection, &headers(9, true, &[0x88, 0x80 | 62])).unwrap();
    assert_eq!(events.heads[0].2, [(b"x-new".to_vec(), b"1".to_vec())]);
}

#[test]
fn a_response_before_the_end_of_the_body_stops_it() {
    let mut connection = connection(&[]);
    let body = vec![1; 100_000].into();
    connection.start(&request("POST", Some(body)), 0, false).unwrap();
    sent(&mut connection);
    let events = take(&mut connection, &ok(1, true)).unwrap();
    assert_eq!(events.endings(), [response(200, 0)]);
    assert!(!events.ends[0].1.is_written);
    assert_eq!(sent(&mut connection), [(kind::RST_STREAM, 0, 1, vec![0; 4])]);
}

proptest! {
    #[test]
    fn splits_make_no_difference(
        cuts in prop::collection::vec(0_usize..2_000, 0..20),
        padding in 0_u8..20,
        broken in prop::option::of((0_usize..600, any::<u8>())),
    ) {
        let long = field("x-long", &"v".repeat(100));
        let (first, second) = long.split_at(40);
        let padded = [&[padding][..], &[7; 50], &vec![0; usize::from(padding)]].concat();
        let mut script = [
            settings(&[(setting::MAX_CONCURRENT_STREAMS, 10)]),
            super::harness::frame(kind::HEADERS, 0, 1, &[&[0x88], first].concat()),
            super::harness::frame(kind::CONTINUATION, flag::END_HEADERS, 1, second),
            super::harness::frame(kind::DATA, flag::PADDED, 1, &padded),
            super::harness::frame(kind::PING, 0, 0, &[5; 8]),
            headers(3, true, &[0x8d]),
            data(1, false, &[2; 200]),
            data(1, true, b""),
            number(kind::RST_STREAM, 5, 8),
        ]
        .concat();
        if let Some((at, byte)) = broken {
            let at = at % script.len();
            script[at] = byte;
        }
        let play = |cuts: &[usize]| {
            let mut connection = ClientConnection::new(ConnectionLimits::default());
            for _ in 0..3 {
                connection.start(&get(), 0, true).unwrap();
            }
            let mut events = RecordedEvents::default();
            let mut points: Vec<_> = cuts.iter().map(|cut| cut % script.len()).collect();
            points.extend([0, script.len()]);
            points.sort_unstable();
            let mut outcome = Ok(());
            for range in points.windows(2) {
                let bytes = &script[range[0]..range[1]];
                outcome = outcome.and_then(|()| connection.receive(bytes, &mut events));
            }
            let output = connection.output().to_vec();
            (outcome, events, output, connection.take_counts())
        };
        prop_assert_eq!(play(&cuts), play(&[]));
    }
}
