//! Tests on complete, truncated and damaged recordings.

use std::io::Write;

use gake_text::redact::{Redactor, SecretNames};

use super::*;

fn redactor() -> Redactor {
    Redactor::new([1; 16], SecretNames::default())
}

fn record(n: u64) -> Record {
    Record {
        offset: n * 1_000_000,
        method: if n.is_multiple_of(3) { "POST" } else { "GET" }.to_owned(),
        target: format!("/things/{n}?x=1"),
        headers: vec![
            ("host".to_owned(), b"shop.example".to_vec()),
            ("Authorization".to_owned(), b"Bearer s3cret".to_vec()),
            // Not UTF-8.
            ("x-note".to_owned(), b"\xe9\xff".to_vec()),
        ],
        body: if n.is_multiple_of(3) { vec![n as u8; n as usize] } else { Vec::new() },
        truncated: false,
    }
}

fn gakerec(count: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let head = gakerec::RecordingHead { started_unix_ns: 7 };
    let mut writer = gakerec::RecordingWriter::new(&mut bytes, head, redactor(), 1_000).unwrap();
    (0..count).for_each(|n| writer.write(record(n)).unwrap());
    assert_eq!(writer.records(), count);
    bytes
}

/// Format, records and notes of a file with these bytes.
fn read(bytes: &[u8]) -> (RecordingFormat, Vec<Record>, Vec<String>) {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    let mut traffic = Traffic::open(file.path()).unwrap();
    let records = traffic.by_ref().map(Result::unwrap).collect();
    (traffic.format(), records, traffic.notes())
}

#[test]
fn a_recording_is_redacted() {
    let (format, records, notes) = read(&gakerec(50));
    assert_eq!((format, notes), (RecordingFormat::Gakerec, vec![]));
    assert_eq!(records.len(), 50);
    for (n, found) in records.into_iter().enumerate() {
        let mut expected = record(n as u64);
        expected.headers[1].1 = format!("Bearer {}", redactor().tag(b"s3cret")).into();
        assert!(found.is_redacted());
        assert_eq!(found, expected);
    }
}

#[test]
fn requests_are_sorted_by_arrival() {
    let mut bytes = Vec::new();
    let head = gakerec::RecordingHead { started_unix_ns: 0 };
    let mut writer = gakerec::RecordingWriter::new(&mut bytes, head, Redactor::off(), 10).unwrap();
    // Each ends up to 1,000 requests later.
    let ended = |n: u64| n * 1_000 + n.wrapping_mul(0x9e37_79b9) % 1_000_000;
    let mut order: Vec<u64> = (0..20_000).collect();
    order.sort_by_key(|n| ended(*n));
    order.iter().for_each(|n| writer.write(Record { offset: *n, ..record(1) }).unwrap());
    let (_, records, _) = read(&bytes);
    assert!(records.iter().map(|record| record.offset).eq(0..20_000));
}

#[test]
fn a_body_is_recorded_up_to_the_limit() {
    let mut bytes = Vec::new();
    let head = gakerec::RecordingHead { started_unix_ns: 0 };
    let mut writer = gakerec::RecordingWriter::new(&mut bytes, head, Redactor::off(), 10).unwrap();
    writer.write(record(30)).unwrap();
    let (_, records, _) = read(&bytes);
    assert_eq!((records[0].body.len(), records[0].truncated), (10, true));
    assert_eq!(records[0].header("authorization"), Some("Bearer s3cret"));
}

#[test]
fn a_truncated_recording_is_read_up_to_its_last_complete_record() {
    let whole = gakerec(12);
    let head = gakerec(0).len();
    let ends: Vec<usize> = (0..=12).map(|n| gakerec(n).len()).collect();
    for length in head..whole.len() {
        let (_, records, notes) = read(&whole[..length]);
        let expected = ends.iter().filter(|end| **end <= length).count() - 1;
        assert_eq!(records.len(), expected, "cut at {length}");
        let at_an_end = ends.contains(&length);
        assert_eq!(notes.is_empty(), at_an_end, "cut at {length}: {notes:?}");
        assert!(at_an_end || notes[0].contains(&format!("byte {}", ends[expected])), "{notes:?}");
    }
}

#[test]
fn a_damaged_recording_is_read_up_to_the_damage() {
    let whole = gakerec(12);
    let third = gakerec(3).len();
    for at in [third, third + 2, third + 20] {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x55;
        let (_, records, notes) = read(&damaged);
        assert_eq!(records.len(), 3);
        assert!(notes[0].contains("after 3 complete requests"), "{notes:?}");
    }
    let mut other = whole;
    other[MAGIC_LENGTH + 6] ^= 0xff;
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&other).unwrap();
    assert!(matches!(Traffic::open(file.path()), Err(TrafficError::Head(_))));
}

const MAGIC_LENGTH: usize = gakerec::MAGIC.len();

#[test]
fn goreplays_format_survives_the_round_trip() {
    let mut bytes = Vec::new();
    let mut writer = gor::GorWriter::new(&mut bytes, 7, Redactor::off());
    (0..20).for_each(|n| writer.write(record(n)).unwrap());
    let (format, records, notes) = read(&bytes);
    assert_eq!((format, notes), (RecordingFormat::Gor, vec![]));
    for (n, found) in records.iter().enumerate() {
        let expected = record(n as u64);
        let same = |a: &Record| (a.offset, a.method.clone(), a.target.clone(), a.body.clone());
        assert_eq!(same(found), same(&expected));
        assert_eq!(found.headers[..3], expected.headers[..]);
    }
    assert_eq!(records.len(), 20);
}

#[test]
fn a_recording_has_a_start_time() {
    let began = |bytes: &[u8]| {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        let mut traffic = Traffic::open(file.path()).unwrap();
        traffic.next().unwrap().unwrap();
        traffic.started_unix_ns()
    };
    assert_eq!(began(&gakerec(1)), 7);
    let mut bytes = Vec::new();
    let mut writer = gor::GorWriter::new(&mut bytes, 1_700_000_000_000_000_007, Redactor::off());
    (2..4).for_each(|n| writer.write(record(n)).unwrap());
    assert_eq!(began(&bytes), 1_700_000_000_002_000_007, "when the first request came");
    let line = r#"1.2.3.4 - - [10/Oct/2000:13:55:36 +0200] "GET /a HTTP/1.1" 200 5"#;
    assert_eq!(began(format!("{line}\n").as_bytes()), 971_178_936_000_000_000);
}

#[test]
fn goreplays_format_is_read_tolerantly() {
    let separator = "\n🐵🙈🙉\n";
    // Three fields; a body with the separator; responses; chunks; no final separator.
    let text = [
        "1 a1 1000\nGET /a HTTP/1.1\r\nHost: h\r\n\r\n",
        &format!(
            "1 a2 2000 0\nPOST /b HTTP/1.1\r\nContent-Length: {}\r\n\r\nx{separator}1 y 5 0\ny",
            separator.len() + 10
        ),
        "2 a2 2500 17\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        &format!("1 a3 3000 0 more\nPOST /c HTTP/1.1\r\n\r\nz{separator}no line of a message"),
        "1 a4 4000 0\nPOST /d HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        "1 a5 4500 0\nnot HTTP",
        "1 a6 5000 0\nGET /e HTTP/1.1\r\n\r\n",
    ]
    .join(separator);
    let (format, records, notes) = read(text.as_bytes());
    assert_eq!(format, RecordingFormat::Gor);
    let found: Vec<_> = records.iter().map(|r| (r.offset, &*r.target, &*r.body)).collect();
    let with_separator = format!("x{separator}1 y 5 0\ny");
    let other = format!("z{separator}no line of a message");
    assert_eq!(
        found,
        [
            (0, "/a", &b""[..]),
            (1_000, "/b", with_separator.as_bytes()),
            (2_000, "/c", other.as_bytes()),
            (3_000, "/d", b"abc"),
            (4_000, "/e", b""),
        ]
    );
    expect_test::expect![[r#"
        1 messages are not HTTP requests and were skipped
        the last message has no end: the recording is truncated"#]]
    .assert_eq(&notes.join("\n"));
}

#[test]
fn access_logs_are_spread_within_their_seconds() {
    let line = |second: u32, request: &str, agent: &str| {
        format!(
            "127.0.0.1 - bob [22/Nov/2026:01:02:{second:02} +0100] \"{request}\" 200 12 \
             \"-\" \"{agent}\"\n"
        )
    };
    let log = [
        line(3, "GET /a?x=\\x22 HTTP/1.1", "curl \\\"8\\\""),
        line(3, "HEAD /b HTTP/1.1", "-"),
        line(3, "POST /c HTTP/1.1", "-"),
        line(3, "-", "-"),
        line(5, "GET /d HTTP/2.0", "x"),
        line(4, "GET /late HTTP/1.1", "x"),
        "::1 - - [22/Nov/2026:00:02:06 +0000] \"GET /common HTTP/1.0\" 304 -\n".to_owned(),
    ]
    .concat();
    let (format, records, notes) = read(log.as_bytes());
    assert_eq!(format, RecordingFormat::AccessLog);
    let found: Vec<_> = records.iter().map(|r| (r.offset / 1_000_000, &*r.target)).collect();
    assert_eq!(
        found,
        [(0, "/a?x=%22"), (500, "/b"), (2_000, "/d"), (2_500, "/late"), (3_000, "/common")]
    );
    assert_eq!(records[0].header("user-agent"), Some("curl \"8\""));
    assert_eq!(records[1].headers, []);
    expect_test::expect![[r#"
        the log has a resolution of one second: requests within a second are spread evenly
        1 requests with other methods than GET, HEAD, OPTIONS and TRACE were skipped: the log has no bodies
        1 lines are not requests and were skipped"#]].assert_eq(&notes.join("\n"));
}

#[test]
fn a_short_message_of_goreplay_costs_only_itself() {
    let separator = "\n🐵🙈🙉\n";
    let text = [
        "1 a1 1000 0\nPOST /short HTTP/1.1\r\nContent-Length: 100\r\n\r\nonly this",
        "2 a1 1100 0\nHTTP/1.1 200 OK\r\n\r\n",
        "1 a2 2000 0\nGET /next HTTP/1.1\r\n\r\n",
        "1 a3 3000 0\nPOST /endless HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\nx",
        "1 a4 4000 0\nGET /last HTTP/1.1\r\n\r\n",
        "",
    ]
    .join(separator);
    let (_, records, notes) = read(text.as_bytes());
    let found: Vec<_> = records.iter().map(|r| (&*r.target, r.truncated)).collect();
    let expected = [("/short", true), ("/next", false), ("/endless", true), ("/last", false)];
    assert_eq!(found, expected);
    assert_eq!(notes, [""; 0]);
}

#[test]
fn recordings_may_be_compressed() {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(b"1 a 1000 0\nGET /a HTTP/1.1\r\n\r\n").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.gor.gz");
    std::fs::write(&path, gzip.finish().unwrap()).unwrap();
    let traffic = Traffic::open(&path).unwrap();
    assert_eq!(traffic.format(), RecordingFormat::Gor);
    let targets: Vec<_> = traffic.map(|record| record.unwrap().target).collect();
    assert_eq!(targets, ["/a"]);
}

#[test]
fn access_logs_may_begin_with_junk_and_contain_any_bytes() {
    let line =
        |request: &str| format!("::1 - - [22/Nov/2026:00:02:06 +0000] \"{request}\" 200 1\n");
    let log = [
        line("\\x16\\x03\\x01"),
        line("GET /esc?a=\\x22b c\\x22&u=caf\\xC3\\xA9&l=\\xE9&b=\\x5C HTTP/1.1"),
        line("GET /old "),
        line("GET /cut HTT"),
    ]
    .concat();
    let (format, records, _) = read(log.as_bytes());
    assert_eq!(format, RecordingFormat::AccessLog);
    let targets: Vec<_> = records.iter().map(|record| record.target.as_str()).collect();
    assert_eq!(targets, ["/esc?a=%22b%20c%22&u=caf%C3%A9&l=%E9&b=%5C", "/old"]);
    let script =
        format!("// parses logs\n// {}export default function () {{}}\n", line("GET / HTTP/1.1"));
    assert_eq!(RecordingFormat::of(script.as_bytes()), None);
}

#[test]
fn other_files_are_rejected() {
    for bytes in [&b""[..], b"GET http://h/\n", b"{\"method\":\"GET\"}\n", b"\xff\xfe", b"1 2 x\n"]
    {
        assert_eq!(RecordingFormat::of(bytes), None, "{bytes:?}");
    }
}

proptest::proptest! {
    #[test]
    fn arbitrary_bytes_never_break_a_reader(
        mut bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..600),
        which in 0..3usize,
        flips in proptest::collection::vec((0..600usize, proptest::num::u8::ANY), 0..8),
    ) {
        match which {
            0 => bytes = gakerec(6),
            1 => {
                bytes.clear();
                let mut out = gor::GorWriter::new(&mut bytes, 7, Redactor::off());
                (0..6).for_each(|n| out.write(record(n)).unwrap());
                out.flush().unwrap();
            }
            _ => {}
        }
        for (at, byte) in flips {
            if let Some(target) = bytes.get_mut(at) {
                *target = byte;
            }
        }
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&bytes).unwrap();
        if let Ok(traffic) = Traffic::open(file.path()) {
            proptest::prop_assert!(traffic.map(Result::unwrap).count() <= 600);
        }
    }
}
