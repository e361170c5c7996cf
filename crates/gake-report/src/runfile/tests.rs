//! Run files: written, read, truncated, corrupted, merged.

use std::io::{self, Write};
use std::time::Duration;

use gake_core::Load;
use gake_core::clock::SECOND;
use gake_core::exact;
use gake_core::plan::{Plan, Timeouts};
use gake_core::record::{Counts, GaugeReading, Provenance, Run, RunEnd, RunEvent, Tally};
use gake_core::schedule::RateChange;
use gake_judge::Summary;
use gake_text::redact::{Redacted, Redactor};
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use proptest::prelude::*;

use super::*;
use crate::testing::{MS, plan, run, second, tallies, troubled, watched};

fn labelled() -> Plan {
    let labels = ["a", "two words, and a comma", "a"].map(str::to_owned).to_vec();
    Plan { labels, ..plan() }
}

pub(super) fn written(run: &Run, tallies: &[Tally], end: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = RunFileWriter::new(&mut bytes, &run.plan, run.started_unix_ns).unwrap();
    for (at, tally) in (0..).zip(tallies) {
        writer.second(&second(at, tally)).unwrap();
    }
    if end {
        writer.finish(run).unwrap();
    }
    bytes
}

pub(super) fn read_clean(bytes: &[u8]) -> Run {
    let (run, warnings) = read(bytes).unwrap();
    assert_eq!(warnings, []);
    run
}

pub(super) fn same(a: &Run, b: &Run) {
    assert_eq!(a.tally, b.tally);
    assert_eq!(a.plan, b.plan);
    assert_eq!(a.series, b.series);
    assert_eq!(a.generator, b.generator);
    assert_eq!((a.warmup, &a.ending, &a.events), (b.warmup, &b.ending, &b.events));
    let times = |run: &Run| (run.measured, run.sending, run.completing, run.elapsed);
    assert_eq!(times(a), times(b));
    assert_eq!((a.asked_rate, a.started_unix_ns), (b.asked_rate, b.started_unix_ns));
}

#[test]
fn a_run_comes_back_whole() {
    for trouble in [false, true] {
        let parts = tallies(3, 3, trouble);
        let whole = run(labelled(), &parts);
        same(&whole, &read_clean(&written(&whole, &parts, true)));
    }
}

#[test]
fn rates_changed_during_the_run_come_back() {
    let parts = tallies(2, 1, false);
    let begun = run(plan(), &parts);
    let changes = [RateChange { at: Duration::from_millis(1_200), factor: 1.5 }];
    let ended = Run { plan: begun.plan.with_rates_changed(&changes), ..begun.clone() };
    assert_ne!(begun.plan, ended.plan);
    let mut bytes = Vec::new();
    let mut writer = RunFileWriter::new(&mut bytes, &begun.plan, begun.started_unix_ns).unwrap();
    for (at, tally) in (0..).zip(&parts) {
        writer.second(&second(at, tally)).unwrap();
    }
    writer.finish(&ended).unwrap();
    same(&ended, &read_clean(&bytes));
}

#[test]
fn the_warm_up_comes_back() {
    let parts = tallies(2, 0, false);
    let mut whole = run(plan(), &parts);
    whole.warmup = Counts { sent: 7, ok: 7, ..Counts::default() };
    let mut bytes = Vec::new();
    let mut writer = RunFileWriter::new(&mut bytes, &whole.plan, 1).unwrap();
    writer.second(&Second { warmup: &whole.warmup, ..second(0, &parts[0]) }).unwrap();
    writer.second(&second(1, &parts[1])).unwrap();
    writer.finish(&whole).unwrap();
    assert_eq!(read_clean(&bytes).warmup, whole.warmup);
}

#[test]
fn other_tools_read_the_log() {
    let parts = tallies(2, 0, false);
    let bytes = written(&run(plan(), &parts), &parts, true);
    let mut seconds = 0;
    for entry in IntervalLogIterator::new(&bytes) {
        match entry.unwrap() {
            LogEntry::StartTime(at) => assert_eq!(at.as_secs(), 1_700_000_000),
            LogEntry::BaseTime(_) => panic!("there is no base time"),
            LogEntry::Interval(interval) => {
                assert_eq!(interval.duration(), Duration::from_secs(1));
                let tag = interval.tag().unwrap();
                seconds += u64::from(tag.as_str() == "service");
            }
        }
    }
    assert_eq!(seconds, 2);
}

#[test]
fn cut_off_anywhere_it_holds_the_whole_seconds_before() {
    // Five requests per second keep the file small enough to cut it at every byte.
    let small = |at: u64| {
        let mut tally = Tally::new(0);
        for outcome in crate::testing::second_of(at, 0, false).iter().step_by(200) {
            tally.record(outcome, &gake_core::plan::ExpectedStatus::default());
        }
        tally
    };
    let parts: Vec<_> = (0..2).map(small).collect();
    let whole = run(plan(), &parts);
    let bytes = written(&whole, &parts, true);
    let mut seen = Vec::new();
    for cut in 0..bytes.len() {
        let Ok((part, warnings)) = read(&bytes[..cut]) else {
            assert!(seen.is_empty(), "unreadable after it was readable, at byte {cut}");
            continue;
        };
        let incomplete = |text: &str| text.contains("cut off") || text.contains("has no end");
        assert!(warnings.iter().any(|w| incomplete(&w.text)), "byte {cut}: {warnings:?}");
        let seconds = part.elapsed / SECOND;
        let mut expected = Tally::new(0);
        parts.iter().take(seconds as usize).for_each(|tally| expected.merge(tally));
        assert_eq!(part.tally, expected, "cut at byte {cut}");
        assert_eq!(part.ending, RunEnd::Interrupted);
        seen.push(seconds);
    }
    assert!(seen.is_sorted());
    assert_eq!((seen.first(), seen.last()), (Some(&0), Some(&2)));
}

#[test]
fn a_cut_off_run_has_rates() {
    let parts = tallies(4, 0, false);
    let mut whole = run(plan(), &parts);
    whole.plan.warmup = Duration::from_secs(1);
    let (part, _) = read(written(&whole, &parts, false).as_slice()).unwrap();
    assert_eq!((part.measured, part.elapsed), (3 * SECOND, 4 * SECOND));
    assert_eq!((part.asked_rate, part.peak_connections), (Some(1_000.0), 12));
    assert_eq!(part.generator.cpu, 3 * 80 * MS);
}

/// A disk that is full for a while: writes fail midway.
struct FullDisk {
    bytes: Vec<u8>,
    from: usize,
    to: usize,
    tried: usize,
}

impl Write for &mut FullDisk {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.tried += 1;
        if (self.from..self.to).contains(&self.tried) {
            let half = text.len() / 2;
            self.bytes.extend_from_slice(&text[..half]);
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.bytes.extend_from_slice(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_loses_its_seconds_only_and_says_so() {
    let parts = tallies(4, 0, false);
    let whole = run(plan(), &parts);
    let mut disk = FullDisk { bytes: Vec::new(), from: 3, to: 4, tried: 0 };
    let mut writer = RunFileWriter::new(&mut disk, &whole.plan, 1).unwrap();
    let mut lost = 0;
    for (at, tally) in (0..).zip(&parts) {
        lost += u32::from(writer.second(&second(at, tally)).is_err());
    }
    writer.finish(&whole).unwrap();
    assert_eq!(lost, 1);
    let (back, warnings) = read(disk.bytes.as_slice()).unwrap();
    let mut expected = Tally::new(0);
    for i in [0, 2, 3] {
        expected.merge(&parts[i]);
    }
    assert_eq!(back.tally, expected);
    assert!(warnings.iter().any(|w| w.text.contains("seconds are missing")), "{warnings:?}");
}

#[test]
fn events_are_kept_when_the_end_is_not() {
    let mut bytes = Vec::new();
    let mut writer = RunFileWriter::new(&mut bytes, &plan(), 1).unwrap();
    let event = RunEvent::new(5, "line\nbreak");
    writer.event(&event).unwrap();
    assert_eq!(read(bytes.as_slice()).unwrap().0.events, [event]);
}

#[test]
fn other_files_are_rejected() {
    for text in ["hello\n", "#[Histogram log format version 1.3]\n", "#gake {}\n"] {
        assert!(matches!(read(text.as_bytes()), Err(ReadError::NotARunFile)), "{text}");
    }
    let parts = tallies(1, 0, false);
    let bytes = written(&run(plan(), &parts), &parts, true);
    let text = String::from_utf8(bytes).unwrap();
    let newer = text.replace("gake.runfile/1", "gake.runfile/9");
    assert!(matches!(read(newer.as_bytes()), Err(ReadError::Version(_))));
    let invalid = text.replace("\"drain_s\":5.0", "\"drain_s\":-5.0");
    assert!(matches!(read(invalid.as_bytes()), Err(ReadError::Plan(3, _))));
}

#[test]
fn runs_side_by_side_and_after_one_another() {
    let parts = tallies(2, 0, false);
    let one = run(plan(), &parts);
    let beside = merge_runs(vec![one.clone(), one.clone()]).unwrap();
    assert_eq!(beside.tally.counts.sent, 2 * one.tally.counts.sent);
    assert_eq!((beside.measured, beside.asked_rate), (one.measured, Some(2_000.0)));
    assert_eq!((beside.peak_connections, beside.plan.connections), (24, 128));
    assert_eq!(beside.series.points().len(), 2);
    assert_eq!(beside.series.points()[0].counts.sent, 2_000);
    let mut later = one.clone();
    later.started_unix_ns += 60 * SECOND;
    let after = merge_runs(vec![later, one.clone()]).unwrap();
    assert_eq!((after.measured, after.asked_rate), (2 * one.measured, Some(1_000.0)));
    assert_eq!((after.peak_connections, after.plan.connections), (12, 64));
    assert_eq!(after.started_unix_ns, one.started_unix_ns);
    assert_eq!(after.series.points().len(), 4);
    assert!(merge_runs(Vec::new()).is_none());
}

#[test]
fn files_joined_are_the_runs_merged() {
    let directory = tempfile::tempdir().unwrap();
    let paths = ["a", "b"].map(|name| directory.path().join(name));
    let parts = [tallies(3, 0, false), tallies(2, 3, true)];
    let mut runs = [run(plan(), &parts[0]), run(labelled(), &parts[1])];
    runs[1].started_unix_ns += 2 * SECOND;
    for i in [0, 1] {
        std::fs::write(&paths[i], written(&runs[i], &parts[i], true)).unwrap();
    }
    let whole = merge_runs(runs.to_vec()).unwrap();
    let mut bytes = Vec::new();
    let files = [(paths[0].as_path(), &runs[0]), (paths[1].as_path(), &runs[1])];
    join_files(&whole, &files, &mut bytes).unwrap();
    let back = read_clean(&bytes);
    assert_eq!(back.tally, whole.tally);
    assert_eq!((&back.plan, &back.events), (&whole.plan, &whole.events));
    assert_eq!((back.measured, back.sending), (whole.measured, whole.sending));
    let sent =
        |run: &Run| run.series.points().iter().map(|p| (p.second, p.counts)).collect::<Vec<_>>();
    assert_eq!(sent(&back), sent(&whole));
    assert_eq!(back.series.points().len(), 4);
}

#[test]
fn an_idle_second_at_the_end_of_a_file_is_not_joined() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a");
    let parts = tallies(2, 0, false);
    let first = run(plan(), &parts);
    let mut bytes = Vec::new();
    let mut writer = RunFileWriter::new(&mut bytes, &first.plan, first.started_unix_ns).unwrap();
    let nothing = Tally::default();
    for (at, tally) in (0..).zip(parts.iter().chain([&nothing])) {
        let asked = if at < 2 { Some(1_000.0) } else { Some(0.0) };
        writer.second(&Second { asked, ..second(at, tally) }).unwrap();
    }
    writer.finish(&first).unwrap();
    std::fs::write(&path, &bytes).unwrap();
    let first = read_clean(&bytes);
    assert_eq!(first.series.points().len(), 2);
    let mut next = first.clone();
    next.started_unix_ns += 2 * SECOND;
    let whole = merge_runs(vec![first.clone(), next.clone()]).unwrap();
    let mut bytes = Vec::new();
    join_files(&whole, &[(&path, &first), (&path, &next)], &mut bytes).unwrap();
    assert_eq!(read_clean(&bytes).series, whole.series);
}

#[test]
fn the_readings_of_the_target_come_back() {
    let parts = tallies(1, 0, false);
    let mut run = run(plan(), &parts);
    let said = watched();
    let mut bytes = Vec::new();
    let mut writer = RunFileWriter::new(&mut bytes, &run.plan, run.started_unix_ns).unwrap();
    writer.settings(&said.settings).unwrap();
    for gauge in said.gauges() {
        for sample in gauge.samples() {
            let (source, name) = (gauge.source.clone(), gauge.name.clone());
            let reading = GaugeReading { source, name, unit: gauge.unit, value: sample.mean };
            writer.watched(sample.at, &[reading]).unwrap();
        }
    }
    writer.finish(&run).unwrap();
    let (back, _) = read(bytes.as_slice()).unwrap();
    assert_eq!(back.watched, said);
    run.watched = said;
    let mut later = run.clone();
    later.started_unix_ns += SECOND;
    let joined = merge_runs(vec![run.clone(), later]).unwrap();
    assert_eq!(joined.watched, run.watched);
}

#[test]
fn a_foreign_file_is_named() {
    for (start, part) in [
        (&b""[..], "empty"),
        (b"\x89PNG\r\n\x1a\n", "PNG"),
        (b"\x1f\x8b\x08", "unpack"),
        (b"{\"schema\":\"gake.run/1\"}", "--out"),
        (b"abc\0def", "binary"),
    ] {
        let error = read(start).unwrap_err();
        assert!(matches!(error, ReadError::Foreign(_)), "{error:?}");
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[test]
fn the_peaks_of_overlapping_runs_add_up() {
    let at = |start: u64| {
        let mut run = run(plan(), &tallies(2, 0, false));
        run.started_unix_ns += start * SECOND;
        run
    };
    let connections = |starts: &[u64]| {
        let whole = merge_runs(starts.iter().map(|start| at(*start)).collect()).unwrap();
        let rate = match whole.plan.load.one() {
            Some(Load::Open { stages, .. }) => stages[0].from,
            _ => 0.0,
        };
        (whole.plan.connections, whole.plan.threads, whole.generator.threads, rate)
    };
    assert_eq!(connections(&[0, 0, 60]), (128, 4, 4, 2_000.0));
    assert_eq!(connections(&[0, 60, 60, 61]), (192, 6, 6, 1_000.0));
    assert_eq!(connections(&[0, 60, 120]), (64, 2, 2, 1_000.0));
    // The second overlaps both others, which do not overlap each other.
    assert_eq!(connections(&[0, 1, 3]), (128, 4, 4, 2_000.0));
}

#[test]
fn labels_are_joined_by_name() {
    let plain = run(plan(), &tallies(1, 0, false));
    let several = troubled();
    let joined = merge_runs(vec![plain.clone(), several.clone()]).unwrap();
    assert_eq!(joined.plan.labels, [plain.plan.target.as_str(), "catalogue", "basket", "checkout"]);
    assert_eq!(joined.tally.labels()[0].counts, plain.tally.counts);
    assert_eq!(joined.tally.labels()[3], several.tally.labels()[2]);
    assert_eq!(joined.tally.counts.sent, 11_000);
    // In the series too, where a run without labels counts under its target.
    let points = joined.series.points();
    let sent = |label: usize| points.iter().map(|p| p.labels[label].sent).sum::<u64>();
    assert_eq!([sent(0), sent(3)], [1_000, several.tally.labels()[2].counts.sent]);
}

#[test]
fn the_origin_of_a_run_comes_back() {
    let origin = |name: &str| Provenance {
        commands: vec![Redactor::off().text(&format!("gake run {name}"))],
        hosts: vec!["here".to_owned()],
        versions: vec!["0.1.0".to_owned()],
        objectives: vec!["p99<50ms".to_owned()],
        specs: vec![Redacted::plain("{\"scenario\":[{\"url\":\"http://h/\"}]}")],
    };
    let back = |origin: &Provenance| {
        let mut bytes = Vec::new();
        let mut writer = RunFileWriter::new(&mut bytes, &plan(), 1).unwrap();
        writer.origin(origin).unwrap();
        read(bytes.as_slice()).unwrap().0
    };
    let runs = ["a", "b"].map(|name| back(&origin(name)));
    assert_eq!(runs[0].origin, origin("a"));
    assert_eq!(back(&Provenance::default()).origin, Provenance::default());
    let joined = merge_runs(runs.to_vec()).unwrap().origin;
    let commands = ["gake run a", "gake run b"].map(Redacted::plain).to_vec();
    assert_eq!(joined, Provenance { commands, ..origin("a") });
}

/// A run of a few seconds, which started a few seconds after others.
fn some_run() -> impl Strategy<Value = Run> {
    (1u64..4, any::<bool>(), any::<bool>(), 0u64..5).prop_map(
        |(seconds, trouble, labels, begun)| {
            let plan = if labels { labelled() } else { plan() };
            let parts = tallies(seconds, plan.labels.len(), trouble);
            let mut run = run(plan, &parts);
            run.started_unix_ns += begun * SECOND;
            run.origin.commands.push(Redactor::off().text(&format!("gake run of {seconds} s")));
            run
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Times are seconds with a fraction in the file; up to 26 days none loses a nanosecond.
    #[test]
    fn the_plan_comes_back_to_the_nanosecond(times in prop::array::uniform6(1u64..1 << 51)) {
        let [start, warmup, duration, drain, think, total] = times.map(Duration::from_nanos);
        let timeouts = Timeouts { total, ..Timeouts::default() };
        let load = Load::Closed { users: 3, think };
        let plan = Plan { start, warmup, duration: Some(duration), drain, timeouts, load: load.into(), ..plan() };
        let mut bytes = Vec::new();
        drop(RunFileWriter::new(&mut bytes, &plan, 1).unwrap());
        prop_assert_eq!(read(bytes.as_slice()).unwrap().0.plan, plan);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    #[test]
    fn runs_that_another_process_gets_join_to_the_same(
        runs in prop::collection::vec(some_run(), 1..4),
    ) {
        let again = |run: &Run| exact::decode::<Run>(&exact::encode(run).unwrap()).unwrap();
        let joined = merge_runs(runs.iter().map(again).collect()).unwrap();
        prop_assert_eq!(joined, again(&merge_runs(runs).unwrap()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_broken_file_never_panics(at in any::<prop::sample::Index>(), byte: u8) {
        let parts = tallies(1, 3, true);
        let mut bytes = written(&run(labelled(), &parts), &parts, true);
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let _ = read(bytes.as_slice());
    }
}

#[test]
fn a_file_of_an_older_version_shows_what_it_showed() {
    let (run, warnings) =
        read(&include_bytes!("../../tests/data/runfile/labels.hlog")[..]).unwrap();
    assert_eq!(warnings, []);
    let mut json = Vec::new();
    crate::formats::json::write(&Summary::new(run, &[]), &mut json).unwrap();
    let shown: serde_json::Value = serde_json::from_slice(&json).unwrap();
    let then = include_str!("../../tests/data/runfile/labels.json");
    let then: serde_json::Value = serde_json::from_str(then).unwrap();
    assert_fields_remain(&then, &shown, "");
}

/// Fields may be added, never renamed or removed.
fn assert_fields_remain(then: &serde_json::Value, now: &serde_json::Value, at: &str) {
    use serde_json::Value;
    match (then, now) {
        (Value::Object(then), _) => {
            then.iter().for_each(|(key, value)| {
                assert_fields_remain(value, &now[key], &format!("{at}.{key}"))
            });
        }
        (Value::Array(then), Value::Array(now)) if then.len() == now.len() => {
            then.iter().zip(now).for_each(|(then, now)| assert_fields_remain(then, now, at));
        }
        _ => assert_eq!(now, then, "{at}"),
    }
}
