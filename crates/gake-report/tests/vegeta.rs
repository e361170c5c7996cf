//! Compares reading and writing with files written by Vegeta 12.13.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};

use expect_test::expect;
use gake_core::record::Run;
use gake_report::vegeta::{
    RecordError, ResultEncoding, ResultReader, ResultWriter, RoundRobin, Timestamp, VegetaRecord,
};
use proptest::prelude::*;

const GOB: &[u8] = include_bytes!("data/vegeta/results.gob");
const JSON: &[u8] = include_bytes!("data/vegeta/results.json");
const CSV: &[u8] = include_bytes!("data/vegeta/results.csv");

fn read(bytes: &[u8]) -> Vec<VegetaRecord> {
    let mut reader = ResultReader::detect(bytes).unwrap();
    std::iter::from_fn(|| reader.next_record().unwrap()).collect()
}

/// The number of readable records, and every error.
fn read_all(bytes: &[u8]) -> (usize, Vec<String>) {
    let mut reader = match ResultReader::detect(bytes) {
        Ok(reader) => reader,
        Err(error) => return (0, vec![error.to_string()]),
    };
    let (mut records, mut errors) = (0, Vec::new());
    loop {
        match reader.next_record() {
            Ok(Some(_)) => records += 1,
            Ok(None) => return (records, errors),
            Err(error) => errors.push(error.to_string()),
        }
    }
}

fn written(records: &[VegetaRecord], encoding: ResultEncoding) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = ResultWriter::new(&mut out, encoding);
    for record in records {
        writer.write(record).unwrap();
    }
    writer.flush().unwrap();
    out
}

/// Compares as text, for readable failures.
fn assert_same(ours: &[u8], theirs: &[u8]) {
    let [ours, theirs] = [ours, theirs].map(String::from_utf8_lossy);
    for (line, (a, b)) in ours.lines().zip(theirs.lines()).enumerate() {
        assert_eq!(a, b, "line {}", line + 1);
    }
    assert_eq!(ours, theirs);
}

#[test]
fn each_encoding_is_written_as_it_was_read() {
    assert!(written(&read(GOB), ResultEncoding::Gob) == GOB);
    assert_same(&written(&read(JSON), ResultEncoding::Json), JSON);
    assert_same(&written(&read(CSV), ResultEncoding::Csv), CSV);
}

#[test]
fn gob_to_csv_is_the_output_of_vegeta() {
    assert_same(&written(&read(GOB), ResultEncoding::Csv), CSV);
}

/// Go's maps have no order, so the order of headers in Vegeta's lines is arbitrary.
#[test]
fn gob_to_json_is_the_output_of_vegeta_except_for_the_order_of_headers() {
    let sorted = |bytes: &[u8]| {
        let mut records = read(bytes);
        for headers in records.iter_mut().filter_map(|record| record.headers.as_mut()) {
            headers.sort();
        }
        written(&records, ResultEncoding::Json)
    };
    let ours = written(&read(GOB), ResultEncoding::Json);
    assert_same(&sorted(&ours), &sorted(JSON));
    let body = |json: &[u8]| {
        let text = String::from_utf8(json.to_vec()).unwrap();
        text.lines().map(|line| line.split_once(",\"headers\"").unwrap().0.to_owned()).collect()
    };
    let (ours, theirs): (Vec<String>, Vec<String>) = (body(&ours), body(JSON));
    assert_eq!(ours, theirs);
}

#[test]
fn several_files_are_read_alternately() {
    let reader = |bytes: &[u8]| ResultReader::detect(Cursor::new(bytes.to_vec())).unwrap();
    let short = written(&read(CSV)[..2], ResultEncoding::Json);
    let mut all =
        RoundRobin::new(vec![("a".to_owned(), reader(GOB)), ("b".to_owned(), reader(&short))]);
    let mut seqs = Vec::new();
    while let Some(record) = all.next_record().unwrap() {
        seqs.push(record.seq);
    }
    let first: Vec<_> = seqs[..6].to_vec();
    assert_eq!((first, seqs.len()), (vec![0, 0, 1, 1, 2, 3], 122));
}

#[test]
fn one_stream_after_the_other_is_one_file() {
    for stream in [GOB, JSON, CSV] {
        let twice = [stream, stream].concat();
        assert_eq!(read_all(&twice), (240, vec![]));
    }
}

#[test]
fn a_cut_off_file_gives_what_is_whole_and_one_warning() {
    for stream in [GOB, JSON, CSV] {
        let end = stream.len() - 10;
        let (records, errors) = read_all(&stream[..end]);
        assert_eq!(records, 119);
        expect!["record 120 is cut off and was left out: the file ends within it"]
            .assert_eq(&errors.join("\n"));
    }
    // Only the line feed is missing: nothing is lost.
    for stream in [JSON, CSV] {
        assert_eq!(read_all(&stream[..stream.len() - 1]), (120, vec![]));
    }
}

#[test]
fn a_stream_cut_anywhere_is_reported() {
    let few = read(GOB);
    for encoding in [ResultEncoding::Gob, ResultEncoding::Json, ResultEncoding::Csv] {
        let whole = written(&few[..3], encoding);
        for end in 0..whole.len() {
            let (records, errors) = read_all(&whole[..end]);
            assert!(records <= 3 && errors.len() <= 1, "{encoding} {end}: {errors:?}");
            assert!(records > 0 || errors.len() == 1, "{encoding} {end}");
        }
    }
}

#[test]
fn a_broken_record_is_left_out_and_the_next_one_read() {
    let mut lines: Vec<_> = std::str::from_utf8(JSON).unwrap().lines().collect();
    lines[3] = "{\"attack\":7}";
    let (records, errors) = read_all(lines.join("\n").as_bytes());
    assert_eq!((records, errors.len()), (119, 1));
    expect!["record 4 was left out: it is not a result in JSON: invalid type: integer `7`, expected a string at line 1 column 11"].assert_eq(&errors[0]);

    let text = std::str::from_utf8(CSV).unwrap().replacen(",204,", ",twohundred,", 1);
    let (records, errors) = read_all(text.as_bytes());
    assert_eq!((records, errors.len()), (119, 1));
    expect![[r#"record 3 was left out: its code is "twohundred""#]].assert_eq(&errors[0]);

    // A byte in the second record's time claims an unknown version.
    let mut gob = GOB.to_vec();
    let at = gob.windows(5).position(|w| w == b"\x01\x0f\x01\x00\x00").unwrap();
    let next =
        at + 5 + gob[at + 5..].windows(5).position(|w| w == b"\x01\x0f\x01\x00\x00").unwrap();
    gob[next + 2] = 9;
    let (records, errors) = read_all(&gob);
    assert_eq!((records, errors.len()), (119, 1));
    expect!["record 2 was left out: its timestamp is in an unknown form"].assert_eq(&errors[0]);
}

#[test]
fn foreign_and_hostile_files_are_rejected_in_a_sentence() {
    let foreign = "holds no results of Vegeta: it is neither gob, nor JSON, nor CSV of results";
    let cases: [(&[u8], &str); 8] = [
        (b"", "is empty: it holds no result of an attack"),
        (b"\x7fELF\x02\x01\x01", foreign),
        (b"<html></html>", foreign),
        (b"{\"name\":\"x\"}\n", foreign),
        (b"1,2,3\n4,5,6\n", foreign),
        (b"\n\n\n", foreign),
        // A message of 2^63 bytes.
        (b"\xf8\x80\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff", foreign),
        // A gob of another struct: struct{ X int }.
        (b"\x13\x7f\x03\x01\x01\x01P\x01\xff\x80\x00\x01\x01\x01\x01X\x01\x04\x00\x00\x00\x05\xff\x80\x01\x02\x00", foreign),
    ];
    for (bytes, error) in cases {
        assert_eq!(read_all(bytes), (0, vec![error.to_owned()]), "{bytes:?}");
    }
    // A length beyond the file allocates no memory.
    let promised = [GOB, b"\xfc\x0f\xff\xff\xff\xff"].concat();
    let (records, errors) = read_all(&promised);
    assert_eq!((records, errors.len()), (120, 1));
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ -~]{0,20}",
        "\\PC{0,8}",
        prop::sample::select(vec!["a,b", "\"", "a\nb", " lead", "\t", "\\.", "<&>"])
            .prop_map(str::to_owned),
    ]
}

prop_compose! {
    fn record()(
        (attack, error, method, url) in (text(), text(), "[A-Z]{0,7}", text()),
        (seq, code, latency) in (any::<u64>(), any::<u16>(), any::<i64>()),
        (bytes_out, bytes_in) in (any::<u64>(), any::<u64>()),
        (unix_ns, offset) in (
            any::<i64>(),
            prop::option::of((-720..=720).prop_filter("-1 is UTC", |m| *m != -1)),
        ),
        body in prop::collection::vec(any::<u8>(), 0..40),
        headers in prop::option::of(prop::collection::btree_map(
            "[A-Za-z][A-Za-z0-9-]{0,12}",
            prop::collection::vec("[!-~]([ -~]{0,8}[!-~])?", 1..3),
            0..4,
        )),
    ) -> VegetaRecord {
        let offset = offset.map(|minutes: i32| minutes * 60);
        let headers = headers.map(|map| map.into_iter().collect());
        VegetaRecord {
            attack, seq, code, latency, bytes_out, bytes_in, error, body, method, url, headers,
            timestamp: Timestamp { unix_ns, offset },
        }
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(records in prop::collection::vec(record(), 1..5)) {
        prop_assert_eq!(&read(&written(&records, ResultEncoding::Gob)), &records);
        prop_assert_eq!(&read(&written(&records, ResultEncoding::Json)), &json(&records));
        prop_assert_eq!(&read(&written(&records, ResultEncoding::Csv)), &csv(&records));
    }

    #[test]
    fn no_bytes_panic_or_hang(bytes in prop::collection::vec(any::<u8>(), 0..300), at in 0..GOB.len()) {
        read_all(&bytes);
        let mut gob = GOB[..2_000].to_vec();
        for (i, byte) in bytes.iter().enumerate() {
            let at = (at + i * 97) % gob.len();
            gob[at] = *byte;
        }
        read_all(&gob);
    }
}

/// What JSON preserves: an offset of 0 becomes UTC.
fn json(records: &[VegetaRecord]) -> Vec<VegetaRecord> {
    let mut records = records.to_vec();
    for record in &mut records {
        record.timestamp.offset = record.timestamp.offset.filter(|offset| *offset != 0);
    }
    records
}

/// What CSV preserves: no zone. Go reads `\r\n` in a column as `\n`; we keep it.
fn csv(records: &[VegetaRecord]) -> Vec<VegetaRecord> {
    let mut records = records.to_vec();
    for record in &mut records {
        record.timestamp.offset = Some(0);
    }
    records
}

#[test]
fn an_error_that_ends_reading_ends_it() {
    let mut reader = ResultReader::detect(&b"{\"x\":1}\n{\"y\":2}\n"[..]).unwrap();
    assert!(matches!(reader.next_record(), Err(RecordError::Foreign)));
    assert!(reader.next_record().unwrap().is_none());
}

#[test]
fn results_are_a_run_as_far_as_they_go() {
    for name in ["results.gob", "results.json", "results.csv"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/vegeta");
        let (run, warnings) = gake_report::read_run(&path.join(name)).unwrap();
        assert_eq!(warnings, []);
        let counts = run.tally.counts;
        assert_eq!((counts.sent, counts.ok, counts.failed, counts.body_bytes), (120, 60, 60, 340));
        assert_eq!(run.tally.statuses(), [(200, 40), (204, 20), (404, 20)]);
        let faults: Vec<_> =
            run.tally.faults().iter().map(|(fault, count)| (fault.name(), *count)).collect();
        assert_eq!(faults, [("connect_refused", 20), ("closed_early", 20)]);
        // Refused and cancelled requests are not part of the latencies.
        assert_eq!(run.tally.latency.response().count(), 80);
        assert_eq!(run.tally.latency.response().max(), 5_660_325);
        assert_eq!(run.plan.labels.len(), 6);
        let points = run.series.points();
        assert_eq!(points.iter().map(|point| point.counts.sent).sum::<u64>(), 120);
        assert_eq!(points.iter().map(|point| point.fired).sum::<u64>(), 120);
        // 60 per second, as requested.
        let rate = 120.0 / (run.sending as f64 / 1e9);
        assert!((59.9..60.1).contains(&rate), "{rate}");
        assert_eq!(run.started_unix_ns, 1_795_291_684_781_924_887);
    }
}

/// The run of results, and the run read back from its run file.
fn through_a_run_file(paths: &[PathBuf]) -> (Run, Run) {
    let read = |path: &PathBuf| gake_report::read_run(path).unwrap().0;
    let runs: Vec<Run> = paths.iter().map(read).collect();
    let whole = gake_report::merge_runs(runs.clone()).unwrap();
    let files: Vec<_> = paths.iter().map(PathBuf::as_path).zip(&runs).collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.hlog");
    gake_report::join_files(&whole, &files, fs::File::create(&path).unwrap()).unwrap();
    let (back, warnings) = gake_report::read_run(&path).unwrap();
    assert_eq!(warnings, []);
    (whole, back)
}

#[test]
fn results_written_as_a_run_file_are_the_same_run() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/vegeta");
    for names in [&["results.gob"][..], &["results.json"], &["results.gob", "results.csv"]] {
        let paths: Vec<_> = names.iter().map(|name| folder.join(name)).collect();
        let (whole, back) = through_a_run_file(&paths);
        assert_eq!(back.tally.counts, whole.tally.counts);
        assert_eq!(back.tally.statuses(), whole.tally.statuses());
        let faults = |run: &Run| -> Vec<_> {
            run.tally.faults().iter().map(|(fault, count)| (fault.name(), *count)).collect()
        };
        assert_eq!(faults(&back), faults(&whole));
        assert_eq!(back.tally.latency, whole.tally.latency);
        assert_eq!(back.tally.labels(), whole.tally.labels());
        assert_eq!((&back.plan, &back.events), (&whole.plan, &whole.events));
        let times = |run: &Run| (run.measured, run.sending, run.completing, run.elapsed);
        assert_eq!(times(&back), times(&whole));
        assert_eq!(back.series.points().len(), whole.series.points().len());
        assert_eq!(back.tally.fired, 120 * names.len() as u64);
    }
}

#[test]
fn a_result_that_comes_late_is_in_the_run_file_too() {
    let second = 1_000_000_000;
    let at = |unix_s: i64| VegetaRecord {
        timestamp: Timestamp::local(1_700_000_000 * second + unix_s * second),
        latency: second / 2,
        code: 200,
        method: "GET".to_owned(),
        url: format!("http://h/{}", unix_s % 2),
        ..VegetaRecord::default()
    };
    // A minute of seconds is kept open: the last one's has closed.
    let records: Vec<_> = (0..100).chain([3]).map(at).collect();
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), written(&records, ResultEncoding::Gob)).unwrap();
    let (whole, back) = through_a_run_file(&[file.path().to_owned()]);
    assert_eq!((back.tally.counts.sent, back.tally.fired), (101, 101));
    assert_eq!(back.tally.counts, whole.tally.counts);
    assert_eq!(back.tally.latency, whole.tally.latency);
    assert_eq!(back.tally.labels(), whole.tally.labels());
}

#[test]
fn a_run_from_hostile_instants_is_bounded() {
    let at = |unix_ns: i64, latency: i64| VegetaRecord {
        timestamp: Timestamp::local(unix_ns),
        latency,
        code: 200,
        ..VegetaRecord::default()
    };
    let hour = 3_600_000_000_000;
    let records = [
        at(0, 1),
        at(i64::MAX, i64::MAX),
        at(i64::MIN, 1),
        at(0, -1),
        at(700 * hour, 1),
        at(-hour, hour),
    ];
    let bytes = written(&records, ResultEncoding::Json);
    let reader = ResultReader::detect(bytes.as_slice()).unwrap();
    let (run, warnings) = gake_report::vegeta::read_run(reader).unwrap();
    assert_eq!((run.tally.counts.sent, warnings.len()), (3, 3), "{warnings:?}");
    let seconds = run.series.points().iter().map(|point| point.seconds).sum::<u64>();
    assert!(seconds >= 700 * 3_600 && run.series.points().len() <= 1_800);
}
