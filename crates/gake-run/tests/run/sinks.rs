//! Sinks: their calls, and the effects of a bad one on the others and on the run.

use std::io;
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::Duration;

use gake_core::record::{Outcome, Run};
use gake_run::sink::{
    LogSink, OutcomeBounds, OutcomeSink, RunFileSink, Sink, SinkInterests, SinkLosses, SinkSecond,
    SinkStart,
};
use gake_run::spec::{Load, RunSpec, ScenarioSpec};
use gake_run::{Inputs, RecordedRun, ResolvedRun, RunError, RunOptions};

use crate::support::*;

/// The calls of a sink, in order.
#[derive(Debug, Default)]
struct SinkCalls {
    calls: Vec<&'static str>,
    sent: u64,
    outcomes: u64,
    losses: Vec<(u64, u64)>,
    ended: Option<u64>,
}

/// A sink with configurable faults.
#[derive(Default)]
struct ProbeSink {
    seen: Arc<Mutex<SinkCalls>>,
    takes: SinkInterests,
    /// Time it takes for a second, and for a batch of outcomes.
    slow: Duration,
    fails: bool,
    panics: bool,
    refuses: bool,
}

impl ProbeSink {
    fn with_outcomes() -> Self {
        let takes =
            SinkInterests { outcomes: Some(OutcomeBounds { batches: 2, bytes: usize::MAX }) };
        Self { takes, ..Self::default() }
    }

    fn call(&self, what: &'static str) -> io::Result<()> {
        self.seen.lock().unwrap().calls.push(what);
        sleep(self.slow);
        assert!(!self.panics, "a test panic");
        if self.fails { Err(io::Error::other("a test error")) } else { Ok(()) }
    }
}

impl Sink for ProbeSink {
    fn name(&self) -> String {
        "a probe".to_owned()
    }

    fn takes(&self) -> SinkInterests {
        self.takes
    }

    fn begin(&mut self, run: &SinkStart<'_>) -> Result<(), String> {
        self.seen.lock().unwrap().calls.push("begin");
        assert!(run.started_unix_ns > 0 && !run.plan.target.is_empty());
        if self.refuses { Err("a probe wants none of it".to_owned()) } else { Ok(()) }
    }

    fn second(&mut self, second: &SinkSecond) -> io::Result<()> {
        self.seen.lock().unwrap().sent += second.second.tally.counts.sent;
        self.call("second")
    }

    fn outcomes(&mut self, outcomes: &[Outcome]) -> io::Result<()> {
        self.seen.lock().unwrap().outcomes += outcomes.len() as u64;
        self.call("outcomes")
    }

    fn end(&mut self, run: &Run) -> io::Result<()> {
        let mut seen = self.seen.lock().unwrap();
        seen.calls.push("end");
        seen.ended = Some(run.tally.counts.sent);
        Ok(())
    }

    fn losses(&self, losses: &SinkLosses) -> Vec<String> {
        self.seen.lock().unwrap().losses.push((losses.seconds, losses.outcomes));
        losses.sentences(&self.name())
    }
}

fn run(spec: &RunSpec, sinks: Vec<Box<dyn Sink>>) -> Result<RecordedRun, RunError> {
    let prepared = ResolvedRun::new(spec, Inputs::default()).unwrap();
    prepared.run_with(RunOptions { sinks, ..RunOptions::default() }, &mut |_| None)
}

fn seen(of: &Arc<Mutex<SinkCalls>>) -> std::sync::MutexGuard<'_, SinkCalls> {
    of.lock().unwrap()
}

#[test]
fn every_sink_has_every_second_and_missing_outcomes_are_reported() {
    let lab = lab();
    let probes = [ProbeSink::default(), ProbeSink::with_outcomes(), ProbeSink::with_outcomes()];
    let all: Vec<_> = probes.iter().map(|probe| Arc::clone(&probe.seen)).collect();
    let sinks = probes.into_iter().map(|probe| Box::new(probe) as Box<dyn Sink>).collect();
    let load = Load::rate(100.0, ms(2_200));
    let spec = RunSpec::new(ScenarioSpec::new(url(&lab, "/fast"), load));
    let recorded = run(&spec, sinks).unwrap();
    for (i, probe) in all.iter().enumerate() {
        let seen = seen(probe);
        // Sinks run in the background: a busy machine may delay them.
        let missing: u64 = seen.losses.iter().map(|(_, outcomes)| outcomes).sum();
        let losses = recorded.losses.iter().filter(|loss| loss.sink == i).count();
        assert_eq!(losses, usize::from(missing > 0), "{i}: {:?}", recorded.losses);
        assert_eq!((seen.sent, seen.ended), (220, Some(220)), "{i}: the seconds are the whole");
        assert_eq!(seen.outcomes + missing, if i == 0 { 0 } else { 220 }, "{i}");
        assert_eq!((seen.calls[0], *seen.calls.last().unwrap()), ("begin", "end"), "{i}");
        assert_eq!(seen.calls.iter().filter(|call| **call == "second").count(), 3, "{i}");
    }
}

#[test]
fn a_sink_that_fails_is_reported_and_the_others_continue() {
    let lab = lab();
    let (bad, good) =
        (ProbeSink { fails: true, ..ProbeSink::with_outcomes() }, ProbeSink::with_outcomes());
    let (bad_seen, good_seen) = (Arc::clone(&bad.seen), Arc::clone(&good.seen));
    let recorded = run(&counted(&lab, 50), vec![Box::new(bad), Box::new(good)]).unwrap();
    assert_eq!(recorded.run.tally.counts.ok, 50);
    assert_eq!(seen(&good_seen).outcomes, 50);
    assert_eq!(seen(&bad_seen).ended, Some(50), "it is ended all the same");
    let texts: Vec<_> =
        recorded.losses.iter().map(|loss| (loss.sink, loss.text.as_str())).collect();
    let [(0, text)] = texts[..] else { panic!("{texts:?}") };
    assert!(text.starts_with("a probe: ") && text.ends_with("a test error"), "{text}");
    assert!(recorded.run.events.iter().any(|event| event.text == text), "it is in the run");
}

#[test]
fn a_sink_that_panics_does_not_affect_others() {
    let lab = lab();
    let (bad, good) =
        (ProbeSink { panics: true, ..ProbeSink::with_outcomes() }, ProbeSink::with_outcomes());
    let good_seen = Arc::clone(&good.seen);
    let recorded = run(&counted(&lab, 20_000), vec![Box::new(bad), Box::new(good)]).unwrap();
    assert_eq!(recorded.run.tally.counts.ok, 20_000);
    let good = seen(&good_seen);
    assert_eq!(good.outcomes + good.losses[0].1, 20_000);
    assert!(recorded.losses.iter().any(|loss| loss.sink == 0), "{:?}", recorded.losses);
}

#[test]
fn a_slow_sink_drops_and_counts_and_delays_no_other() {
    let lab = lab();
    // Two takers, so that each has a queue of its own: two batches of up to 2,048.
    let slow = ProbeSink { slow: ms(300), ..ProbeSink::with_outcomes() };
    let fast = ProbeSink::with_outcomes();
    let all = [Arc::clone(&slow.seen), Arc::clone(&fast.seen)];
    let load = Load::Shared { users: 4, iterations: 40_000 };
    let spec = RunSpec::new(ScenarioSpec::new(url(&lab, "/fast"), load));
    let recorded = run(&spec, vec![Box::new(slow), Box::new(fast)]).unwrap();
    assert_eq!(recorded.run.tally.counts.ok, 40_000);
    for (i, probe) in all.iter().enumerate() {
        let seen = seen(probe);
        assert_eq!(seen.outcomes + seen.losses[0].1, 40_000, "{i}: what is lost is counted");
        assert_eq!(seen.losses[0].0, 0, "{i}: seconds find room");
    }
    assert!(seen(&all[0]).losses[0].1 > 0, "300 ms a batch are too slow");
    let loss = recorded.losses.iter().find(|loss| loss.sink == 0).unwrap();
    assert!(loss.text.contains("requests are missing"), "{}", loss.text);
}

#[test]
fn a_sink_that_cannot_take_the_run_keeps_it_from_starting() {
    let lab = lab();
    let refusing = ProbeSink { refuses: true, ..ProbeSink::default() };
    let error = run(&counted(&lab, 5), vec![Box::new(refusing)]).unwrap_err();
    assert_eq!(error, RunError::Sink("a probe wants none of it".to_owned()));
    assert_eq!(lab.shutdown().requests, 0);
}

#[test]
fn files_are_sinks() {
    let lab = lab();
    let folder = tempfile::tempdir().unwrap();
    let (out, log) = (folder.path().join("a.hlog"), folder.path().join("a.csv"));
    let counted_by = Arc::new(Mutex::new(0));
    let counter = Arc::clone(&counted_by);
    let sinks: Vec<Box<dyn Sink>> = vec![
        Box::new(RunFileSink::create(&out).unwrap()),
        Box::new(LogSink::create(&log).unwrap()),
        Box::new(OutcomeSink::new(move |outcomes: &[Outcome]| {
            *counter.lock().unwrap() += outcomes.len();
            Ok(())
        })),
    ];
    let recorded = run(&counted(&lab, 30), sinks).unwrap();
    assert!(recorded.losses.is_empty(), "{:?}", recorded.losses);
    assert_eq!(*counted_by.lock().unwrap(), 30);
    let lines = std::fs::read_to_string(&log).unwrap();
    assert_eq!(lines.lines().count(), 31, "a line each, and the header");
    let (read, _) = gake_report::read_run(&out).unwrap();
    assert_eq!(read.tally.counts.sent, 30);
    assert!(matches!(
        RunFileSink::create(&folder.path().join("no/a.hlog")),
        Err(RunError::Sink(_))
    ));
    assert!(LogSink::create(&folder.path().join("a.txt")).is_err());
}
