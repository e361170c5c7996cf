//! Header blocks: the examples of RFC 7541, and remembered blocks.

use std::sync::Arc;

use proptest::prelude::*;

use super::super::decoder::HeaderDecoder;
use super::super::frame::{flag, kind, setting};
use super::super::{ClientConnection, ConnectionLimits, RequestTemplate, SharedFields};
use super::harness::{field, request, sent, settings, take};

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<_> = text.chars().filter(|char| !char.is_whitespace()).collect();
    digits
        .chunks(2)
        .map(|two| u8::from_str_radix(&two.iter().collect::<String>(), 16).unwrap())
        .collect()
}

fn fields(decoder: &mut HeaderDecoder, block: &[u8]) -> Vec<String> {
    let mut all = Vec::new();
    let mut keep = |name: &[u8], value: &[u8]| {
        all.push(format!("{}: {}", String::from_utf8_lossy(name), String::from_utf8_lossy(value)));
    };
    decoder.decode_shown(block, &mut keep).unwrap();
    all
}

#[test]
fn responses_of_the_rfc_with_huffman_coding() {
    // RFC 7541, C.6. Its table has 256 bytes, so entries are evicted.
    let mut decoder = HeaderDecoder::new(1 << 16);
    let first = hex(
        "3fe1 0148 8264 02 58 85 aec3 771a 4b 61 96 d07a be94 1054 d444 a820 0595 040b 8166 e082 a62d 1bff \
         6e 91 9d29 ad17 1863 c78f 0b97 c8e9 ae82 ae43 d3",
    );
    assert_eq!(
        fields(&mut decoder, &first),
        [
            ":status: 302",
            "cache-control: private",
            "date: Mon, 21 Oct 2013 20:13:21 GMT",
            "location: https://www.example.com",
        ]
    );
    let second = hex("4883 640e ffc1 c0bf");
    assert_eq!(
        fields(&mut decoder, &second),
        [
            ":status: 307",
            "cache-control: private",
            "date: Mon, 21 Oct 2013 20:13:21 GMT",
            "location: https://www.example.com",
        ]
    );
    let third = hex(
        "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d \
         d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 \
         3d50 07",
    );
    assert_eq!(
        fields(&mut decoder, &third),
        [
            ":status: 200",
            "cache-control: private",
            "date: Mon, 21 Oct 2013 20:13:22 GMT",
            "location: https://www.example.com",
            "content-encoding: gzip",
            "set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
        ]
    );
}

/// Any field of a block: static, literal, added, or by an index of the table.
fn any_field() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        (1_u8..=61).prop_map(|index| vec![0x80 | index]),
        (62_u8..=70).prop_map(|index| vec![0x80 | index]),
        ("[a-z]{1,4}", "[a-z]{0,60}").prop_map(|(name, value)| field(&name, &value)),
        ("[a-z]{1,4}", "[a-z]{0,60}").prop_map(|(name, value)| {
            let mut added = field(&name, &value);
            added[0] = 0x40;
            added
        }),
    ]
}

proptest! {
    #[test]
    fn remembering_blocks_changes_nothing(
        blocks in prop::collection::vec(
            (prop::collection::vec(any_field(), 0..4), 1_usize..80, prop::option::of(0_u8..=200)),
            1..8,
        ),
    ) {
        let (mut quick, mut plain) = (HeaderDecoder::new(1 << 16), HeaderDecoder::new(1 << 16));
        for (fields, times, size) in blocks {
            let mut block = Vec::new();
            if let Some(size) = size {
                super::super::integer::put_integer(&mut block, 0x20, 5, usize::from(size) * 16);
            }
            block.extend(fields.concat());
            for _ in 0..times {
                let fields = quick.decode(&block);
                prop_assert_eq!(fields, plain.decode_shown(&block, &mut |_, _| {}));
                if fields.is_err() {
                    return Ok(());
                }
            }
        }
    }
}

/// The fields of the requests in the output, as the server decodes them.
fn requests_received(
    decoder: &mut HeaderDecoder,
    connection: &mut ClientConnection,
) -> Vec<Vec<String>> {
    let (mut block, mut all) = (Vec::new(), Vec::new());
    for (kind, flags, _, payload) in sent(connection) {
        if matches!(kind, kind::HEADERS | kind::CONTINUATION) {
            block.extend(payload);
            if flags & flag::END_HEADERS != 0 {
                all.push(fields(decoder, &std::mem::take(&mut block)));
            }
        }
    }
    all
}

#[test]
fn every_encoding_of_a_request_has_the_same_fields() {
    let shared = Arc::new(SharedFields::new(&[
        (":authority", b"a.test:8080"),
        ("user-agent", b"gake"),
        ("accept-encoding", b"gzip, deflate"),
        ("x-own", b"\xff\x01"),
    ]));
    let tail = [("content-length", &b"3"[..])];
    let body: Option<Arc<[u8]>> = Some(Arc::from(&b"abc"[..]));
    let of = |path| {
        RequestTemplate::new(("PUT", "https", path), Arc::clone(&shared), &tail, body.clone())
    };
    let (one, two, other) = (of("/"), of("/two?x=1"), request("GET", None));
    let mut connection = ClientConnection::new(ConnectionLimits::default());
    let mut server = HeaderDecoder::new(1 << 16);
    for request in [&one, &one, &other, &two, &one] {
        connection.start(request, 0, false).unwrap();
    }
    let requests = requests_received(&mut server, &mut connection);
    let expected = |path: &str| {
        [
            ":method: PUT",
            ":scheme: https",
            path,
            ":authority: a.test:8080",
            "user-agent: gake",
            "accept-encoding: gzip, deflate",
            "x-own: \u{fffd}\u{1}",
            "content-length: 3",
        ]
        .map(str::to_owned)
    };
    for (number, path) in
        [(0, ":path: /"), (1, ":path: /"), (3, ":path: /two?x=1"), (4, ":path: /")]
    {
        assert_eq!(requests[number], expected(path), "{number}");
    }
    assert_eq!(
        requests[2][..4],
        [":method: GET", ":scheme: http", ":path: /", ":authority: a.test"]
    );
}

#[test]
fn a_smaller_table_is_announced_and_respected() {
    for size in [0, 50, 100, 4096, 100_000] {
        let mut connection = ClientConnection::new(ConnectionLimits::default());
        let mut server = HeaderDecoder::new(1 << 16);
        let one = request("GET", None);
        connection.start(&one, 0, false).unwrap();
        let first = requests_received(&mut server, &mut connection);
        take(&mut connection, &settings(&[(setting::HEADER_TABLE_SIZE, size)])).unwrap();
        for _ in 0..3 {
            connection.start(&one, 0, false).unwrap();
            assert_eq!(requests_received(&mut server, &mut connection), first, "{size}");
        }
    }
}

#[test]
fn a_long_header_takes_several_frames() {
    let value = vec![b'~'; 40_000];
    let shared = SharedFields::new(&[(":authority", b"a"), ("x-long", &value)]);
    let long = RequestTemplate::new(("GET", "http", "/"), Arc::new(shared), &[], None);
    let mut connection = ClientConnection::new(ConnectionLimits::default());
    connection.start(&long, 0, false).unwrap();
    let frames: Vec<_> = sent(&mut connection).into_iter().filter(|frame| frame.2 == 1).collect();
    let kinds: Vec<_> = frames.iter().map(|frame| (frame.0, frame.1)).collect();
    let whole: usize = frames.iter().map(|frame| frame.3.len()).sum();
    assert!(frames.iter().all(|frame| frame.3.len() <= 16_384) && whole > 40_000);
    assert_eq!(kinds[0], (kind::HEADERS, flag::END_STREAM));
    assert_eq!(kinds[1..], [(kind::CONTINUATION, 0), (kind::CONTINUATION, flag::END_HEADERS)]);
}
