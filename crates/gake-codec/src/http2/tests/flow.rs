//! Flow control in both directions.

use super::super::frame::{flag, kind, setting};
use super::super::{ClientConnection, ConnectionLimits, StreamEnding};
use super::harness::{connection, data, number, ok, request, sent, settings, take};

fn data_sent(connection: &mut ClientConnection) -> (usize, bool) {
    let frames = sent(connection);
    let data = frames.iter().filter(|frame| frame.0 == kind::DATA);
    let ends = data.clone().any(|frame| frame.1 & flag::END_STREAM != 0);
    assert!(data.clone().all(|frame| frame.3.len() <= 16_384));
    (data.map(|frame| frame.3.len()).sum(), ends)
}

#[test]
fn a_body_waits_for_both_windows() {
    let mut connection = connection(&[(setting::INITIAL_WINDOW_SIZE, 10)]);
    connection.start(&request("POST", Some(vec![1; 100_000].into())), 0, false).unwrap();
    assert_eq!(data_sent(&mut connection), (10, false));
    assert_eq!(connection.stalled(), 1);
    take(&mut connection, &number(kind::WINDOW_UPDATE, 1, 1_000_000)).unwrap();
    assert_eq!(data_sent(&mut connection), (65_535 - 10, false), "the connection's window is left");
    take(&mut connection, &number(kind::WINDOW_UPDATE, 0, 100)).unwrap();
    assert_eq!(data_sent(&mut connection), (100, false));
    take(&mut connection, &number(kind::WINDOW_UPDATE, 0, 1_000_000)).unwrap();
    assert_eq!(data_sent(&mut connection), (100_000 - 65_635, true));
    assert_eq!(connection.stalled(), 0);
    // It counts as one wait, although the windows were empty several times.
    assert_eq!(connection.take_counts().window_waits, 1);
    let events = take(&mut connection, &ok(1, true)).unwrap();
    assert!(events.ends[0].1.is_written);
    assert!(events.ends[0].1.bytes_out > 100_000);
}

#[test]
fn a_body_may_follow_its_headers() {
    let mut connection = connection(&[(setting::INITIAL_WINDOW_SIZE, 20_000)]);
    let slot = connection.start_open(&request("POST", None), 0).unwrap();
    let heads = sent(&mut connection);
    assert!(heads.iter().all(|frame| frame.1 & flag::END_STREAM == 0 || frame.0 == kind::SETTINGS));
    assert_eq!(connection.stalled(), 0);
    for size in [10, 0, 19_000] {
        connection.send(slot, vec![1; size].into());
    }
    assert_eq!(data_sent(&mut connection), (19_010, false));
    connection.send(slot, vec![1; 1_000].into());
    connection.finish(slot);
    assert_eq!((data_sent(&mut connection), connection.stalled()), ((990, false), 1));
    take(&mut connection, &number(kind::WINDOW_UPDATE, 1, 100)).unwrap();
    assert_eq!(data_sent(&mut connection), (10, true));
    let events = take(&mut connection, &ok(1, true)).unwrap();
    assert!(events.ends[0].1.is_written);
    // The end needs no window, and the response may come before it.
    let slot = connection.start_open(&request("POST", None), 0).unwrap();
    connection.finish(slot);
    assert_eq!(data_sent(&mut connection), (0, true));
    connection.start_open(&request("POST", None), 0).unwrap();
    sent(&mut connection);
    let events = take(&mut connection, &ok(5, true)).unwrap();
    assert!(!events.ends[0].1.is_written);
    let reset = sent(&mut connection).into_iter().find(|frame| frame.0 == kind::RST_STREAM);
    assert_eq!(reset.unwrap().2, 5);
}

#[test]
fn a_new_first_window_changes_live_streams_and_may_be_negative() {
    let mut connection = connection(&[(setting::INITIAL_WINDOW_SIZE, 1_000)]);
    connection.start(&request("POST", Some(vec![1; 5_000].into())), 0, false).unwrap();
    assert_eq!(data_sent(&mut connection), (1_000, false));
    take(&mut connection, &settings(&[(setting::INITIAL_WINDOW_SIZE, 100)])).unwrap();
    // The window is −900: 900 more do not open it.
    take(&mut connection, &number(kind::WINDOW_UPDATE, 1, 900)).unwrap();
    assert_eq!(data_sent(&mut connection), (0, false));
    take(&mut connection, &number(kind::WINDOW_UPDATE, 1, 1)).unwrap();
    assert_eq!(data_sent(&mut connection), (1, false));
    take(&mut connection, &settings(&[(setting::INITIAL_WINDOW_SIZE, 10_000)])).unwrap();
    assert_eq!(data_sent(&mut connection), (3_999, true));
}

#[test]
fn bodies_share_the_connection_in_turn_and_memory_is_bounded() {
    let huge = 1 << 30;
    let mut connection = connection(&[(setting::INITIAL_WINDOW_SIZE, huge)]);
    take(&mut connection, &number(kind::WINDOW_UPDATE, 0, huge)).unwrap();
    for _ in 0..2 {
        connection.start(&request("POST", Some(vec![1; 2_000_000].into())), 0, false).unwrap();
    }
    assert!(connection.output().len() < 300_000);
    let frames = sent(&mut connection);
    let data: Vec<_> = frames.iter().filter(|frame| frame.0 == kind::DATA).collect();
    assert_eq!(data.iter().map(|frame| frame.3.len()).sum::<usize>(), 4_000_000);
    let turns = data[20..100].windows(2).filter(|pair| pair[0].2 != pair[1].2).count();
    assert!(turns > 70, "{turns}");
}

#[test]
fn windows_are_opened_again_before_they_are_empty() {
    let limits = ConnectionLimits {
        stream_window: 10_000,
        connection_window: 65_535,
        ..ConnectionLimits::default()
    };
    let mut connection = ClientConnection::new(limits);
    take(&mut connection, &settings(&[])).unwrap();
    connection.start(&super::harness::get(), 0, false).unwrap();
    take(&mut connection, &ok(1, false)).unwrap();
    sent(&mut connection);
    let (mut stream, mut whole) = (0, 0);
    for _ in 0..100 {
        take(&mut connection, &data(1, false, &[0; 4_000])).unwrap();
        for (kind, _, id, payload) in sent(&mut connection) {
            assert_eq!(kind, kind::WINDOW_UPDATE);
            let size = u32::from_be_bytes(payload.try_into().unwrap());
            *(if id == 0 { &mut whole } else { &mut stream }) += size;
        }
    }
    // All but less than half a window is returned.
    assert!((395_000..=400_000).contains(&stream), "{stream}");
    assert!((367_232..=400_000).contains(&whole), "{whole}");
    let events = take(&mut connection, &data(1, true, b"")).unwrap();
    let ending = StreamEnding::Response { status: 200, body_bytes: 400_000 };
    assert_eq!(events.endings(), [ending]);
}
