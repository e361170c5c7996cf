//! Joining frames that arrive late, twice, in chunks or not at all.

use std::time::Duration;

use expect_test::expect;
use gake_core::Load;
use gake_core::clock::SECOND;
use gake_core::plan::{ExpectedStatus, Stage};
use gake_core::record::{
    Exchange, ExchangeEnd, FailedBodies, Outcome, ResponseSummary, Run, RunEnd, ScenarioEnd,
    ScenarioInterval, Tally,
};
use gake_core::schedule::{Process, Slice};
use gake_core::work::{Arrival, Gauges};
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::coordinator::weights::of_weights;
use crate::frame::{Frame, heartbeat};

/// Duration of the runs, in seconds.
const SECONDS: u64 = 4;

fn plan() -> Arc<Plan> {
    let stages = vec![Stage::step(30.0, Duration::from_secs(SECONDS))];
    Arc::new(Plan::new("a test", Load::Open { stages, process: Process::Uniform }))
}

/// A request due at `due` that took `took`.
pub(crate) fn outcome(due: Nanos, took: Nanos) -> Outcome {
    Outcome {
        arrival: Arrival { number: 0, due },
        blocked: 0,
        fired: due,
        exchange: Exchange {
            write: due,
            written: true,
            first_byte: Some(due + took),
            end: ExchangeEnd::Response(ResponseSummary { status: 200, body_bytes: 1 }),
            ..Exchange::unfinished(due + took)
        },
    }
}

/// The figures of the only scenario in an interval.
pub(crate) fn part(tally: Tally) -> ScenarioInterval {
    ScenarioInterval {
        scenario: 0,
        tally,
        warmup: Counts::default(),
        gauges: Gauges { open: 1, peak: 1 },
        bodies: FailedBodies::default(),
    }
}

/// The messages of a worker of a slice, second by second, when each request takes one of `times`.
fn messages(slice: Slice, worker: usize, workers: usize, times: &[u64]) -> Vec<Message> {
    let plan = plan();
    let share = plan.slice(slice, Slice::new(worker, workers)).unwrap();
    let schedule = plan.schedule(Plan::scenario_seed(1, 0)).unwrap();
    let mut times = times.iter().cycle();
    let mut arrivals = schedule.arrivals(share).peekable();
    let mut messages = Vec::new();
    for second in 1..=SECONDS {
        let mut tally = Tally::default();
        while let Some(arrival) = arrivals.next_if(|arrival| arrival.due < second * SECOND) {
            let took = times.next().copied().unwrap_or(1);
            tally.record(&outcome(arrival.due, took), &ExpectedStatus::default());
        }
        let (tenth, scenarios) = (second * 10, vec![part(tally)]);
        let interval = Interval { worker, tenth, scenarios, cpu: 7, run_delay: 1 };
        messages.push(Message::Interval(Box::new(interval)));
    }
    let at = SECONDS * SECOND;
    let end = ScenarioEnd {
        arrivals_end: at,
        last_fired: at,
        last_ended: at,
        done: at,
        exhausted: false,
    };
    let scenarios = vec![(0, end)];
    messages.push(Message::Ended(WorkerEnd { worker, scenarios, log_lost: 0 }));
    messages
}

/// The chunks of an agent's frames, in order.
fn parts(slice: Slice, workers: usize, times: &[u64], size: usize) -> Vec<Vec<u8>> {
    let each: Vec<_> = (0..workers).map(|worker| messages(slice, worker, workers, times)).collect();
    let count = each[0].len();
    let alternating = (0..count).flat_map(|at| each.iter().map(move |messages| &messages[at]));
    let frames = alternating.map(|message| Frame::of(message).unwrap());
    let frames: Vec<_> = frames.chain([Frame::last(&AgentEnd::default())]).collect();
    (0..)
        .zip(&frames)
        .flat_map(|(number, frame)| frame.chunks(number, size).collect::<Vec<_>>())
        .collect()
}

/// Collects messages as one process does.
struct ReferenceCollector(Collector);

impl ReferenceCollector {
    fn new(workers: usize) -> Self {
        Self(Collector::new(&plan(), 1, workers))
    }

    fn take(&mut self, messages: Vec<Message>) {
        for message in messages {
            self.0.take(message, |_, _| {});
            while let Some(second) = self.0.next_second() {
                self.0.retire(second);
            }
        }
    }

    fn finish(self) -> Run {
        assert!(self.0.is_over());
        self.0.finish(0, RunEnd::Done, 1)
    }
}

fn joiner(workers: &[usize]) -> Joiner {
    let parts =
        of_weights(&vec![1; workers.len()], workers.len()).into_iter().enumerate().zip(workers);
    let agents: Vec<_> =
        parts.map(|((index, part), n)| (format!("agent-{index}"), *n, part)).collect();
    Joiner::new(&plan(), 1, &agents)
}

/// Checks the agents as a coordinator does.
fn look(joiner: &mut Joiner, now: Nanos, connected: bool, stopped: Option<Nanos>) -> Vec<Message> {
    let silent = joiner.silent(now, connected).into_iter();
    let lost: Vec<_> = silent.map(|index| (index, "it is silent".to_owned())).collect();
    joiner.look(now, &lost, stopped)
}

/// The run of the same workers in one process.
fn alone(workers: &[usize], times: &[u64]) -> Run {
    let mut whole = ReferenceCollector::new(workers.iter().sum());
    let mut first = 0;
    for (index, count) in workers.iter().enumerate() {
        let slice = Slice::new(index, workers.len());
        for worker in 0..*count {
            for message in messages(slice, worker, *count, times) {
                let moved = match message {
                    Message::Interval(interval) => Message::Interval(Box::new(Interval {
                        worker: first + worker,
                        ..*interval
                    })),
                    Message::Ended(end) => {
                        Message::Ended(WorkerEnd { worker: first + worker, ..end })
                    }
                };
                whole.take(vec![moved]);
            }
        }
        first += count;
    }
    whole.finish()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_figures_equal_one_process_under_any_network_faults(
        workers in vec(1usize..4, 1..5),
        times in vec(1u64..1 << 34, 1..9),
        size in 40usize..4_000,
        network in vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..200),
    ) {
        let agents: Vec<_> = (0..workers.len())
            .map(|index| parts(Slice::new(index, workers.len()), workers[index], &times, size))
            .collect();
        let mut joiner = joiner(&workers);
        let mut whole = ReferenceCollector::new(joiner.workers());
        let now = SECONDS * SECOND;
        // Some chunks arrive in any order, some of them twice; then all arrive once more.
        for (agent, part) in network {
            let index = agent.index(agents.len());
            let part = &agents[index][part.index(agents[index].len())];
            whole.take(joiner.take(index, part, now));
        }
        for (index, parts) in agents.iter().enumerate() {
            for part in parts {
                whole.take(joiner.take(index, part, now));
            }
        }
        prop_assert!(joiner.is_over() && joiner.events.is_empty());
        let (run, expected) = (whole.finish(), alone(&workers, &times));
        prop_assert_eq!(run.tally.counts.sent, 30 * SECONDS);
        prop_assert_eq!(&run.tally, &expected.tally, "every percentile is that of all samples");
        prop_assert_eq!(&run.series, &expected.series);
        prop_assert_eq!(run.measured, expected.measured);
    }

    #[test]
    fn every_arrival_of_a_lost_agent_is_dropped(
        workers in vec(1usize..3, 2..5),
        taken in any::<prop::sample::Index>(),
        dead_for in 0u64..3_000,
    ) {
        let mut joiner = joiner(&workers);
        let mut whole = ReferenceCollector::new(joiner.workers());
        let of = |index| parts(Slice::new(index, workers.len()), workers[index], &[1_000], 1 << 20);
        let dying = of(0);
        let kept = taken.index(dying.len());
        whole.take(joiner.take(0, &heartbeat(), SECOND));
        for part in &dying[..kept] {
            whole.take(joiner.take(0, part, SECOND));
        }
        for index in 1..workers.len() {
            for part in &of(index) {
                whole.take(joiner.take(index, part, SECOND));
            }
        }
        // Not yet, and not while agents cannot be received.
        whole.take(look(&mut joiner, SECOND + SILENCE_MAX, true, None));
        whole.take(look(&mut joiner, 2 * SECOND, false, None));
        prop_assert_eq!(joiner.lost(), Vec::<usize>::new());
        let mut now = 2 * SECOND + SILENCE_MAX + 1 + dead_for * 1_000_000;
        while !joiner.is_over() {
            prop_assert!(now < 60 * SECOND, "it does not end");
            whole.take(look(&mut joiner, now, true, None));
            now += 100_000_000;
        }
        let run = whole.finish();
        let counts = run.tally.counts;
        prop_assert_eq!(counts.due(), 30 * SECONDS, "due = sent + dropped");
        prop_assert_eq!(counts.dropped, counts.lost);
        // Its workers may have ended before it was lost.
        prop_assert_eq!(joiner.events.len(), usize::from(counts.lost > 0 || !joiner.lost().is_empty()));
        prop_assert_eq!(run.measured, SECONDS * SECOND);
    }

    #[test]
    fn hostile_chunks_lose_only_their_sender(bytes in vec(any::<u8>(), 0..80)) {
        let mut joiner = joiner(&[1, 1]);
        let mut whole = ReferenceCollector::new(2);
        for kind in [b'I', b'E', b'L', b'x'] {
            let mut part = [0_u64.to_le_bytes().as_slice(), &[0, 0, 0, 0, 1, 0, 0, 0, kind]].concat();
            part.extend(&bytes);
            whole.take(joiner.take(0, &part, SECOND));
        }
        prop_assert_eq!(joiner.lost(), [0]);
        prop_assert!(joiner.is_running(1));
    }
}

#[test]
fn figures_of_another_run_are_refused() {
    let of = |change: &dyn Fn(&mut Interval)| {
        let mut first = messages(Slice::WHOLE, 0, 1, &[5]).remove(0);
        if let Message::Interval(interval) = &mut first {
            change(interval);
        }
        let mut joiner = joiner(&[1]);
        let frame = Frame::of(&first).unwrap();
        let part = frame.chunks(0, 1 << 20).next().unwrap();
        let messages = joiner.take(0, &part, SECOND);
        (messages.len(), joiner.lost().len())
    };
    assert_eq!(of(&|_| ()), (1, 0));
    for change in [
        &(|interval: &mut Interval| interval.worker = 1) as &dyn Fn(&mut Interval),
        &|interval: &mut Interval| interval.tenth = 1_000_000,
        &|interval: &mut Interval| interval.scenarios[0].scenario = 1,
        &|interval: &mut Interval| interval.scenarios[0].tally.grow_labels(9),
    ] {
        assert_eq!(of(change), (0, 1));
    }
}

#[test]
fn a_lost_agent_owes_nothing_after_the_run_was_stopped() {
    let mut joiner = joiner(&[2]);
    let mut whole = ReferenceCollector::new(2);
    whole.take(joiner.lose(0, SECOND, "the agent was stopped"));
    whole.take(look(&mut joiner, SECOND + 5, true, Some(SECOND)));
    assert!(joiner.is_over());
    let run = whole.finish();
    assert_eq!((run.tally.counts.lost, run.measured), (30, SECOND));
    assert!(
        joiner.events[0].text.contains("agent agent-0 was lost after 1s: the agent was stopped")
    );
}

#[test]
fn an_agent_that_is_alive_and_sends_no_figures_is_reported() {
    let mut joiner = joiner(&[1, 1]);
    let texts = |joiner: &mut Joiner, tenth: u64| {
        let now = tenth * TENTH;
        joiner.take(0, &heartbeat(), now);
        joiner.take(1, &heartbeat(), now);
        joiner.report_lags(now);
        let events = std::mem::take(&mut joiner.events).into_iter();
        events.map(|event| event.text.into_inner()).collect::<Vec<_>>()
    };
    let second = |index: usize, number: u64, joiner: &mut Joiner| {
        let messages = messages(Slice::new(index, 2), 0, 1, &[5]);
        let frame = Frame::of(&messages[number as usize]).unwrap();
        let parts: Vec<_> = frame.chunks(number, 1 << 20).collect();
        parts.iter().for_each(|part| drop(joiner.take(index, part, (number + 1) * SECOND)));
    };
    for number in 0..2 {
        second(0, number, &mut joiner);
        second(1, number, &mut joiner);
    }
    assert!(texts(&mut joiner, 49).is_empty(), "not yet");
    second(0, 2, &mut joiner);
    expect!["agent agent-1 lags: its figures are 3.1s behind"]
        .assert_eq(&texts(&mut joiner, 51).join("\n"));
    assert!(texts(&mut joiner, 55).is_empty(), "once");
    joiner.hear_all(56 * TENTH);
    second(1, 2, &mut joiner);
    second(1, 3, &mut joiner);
    // No agent could be received until now.
    expect!["agent agent-1 has caught up, 3.7s after its figures stopped"]
        .assert_eq(&texts(&mut joiner, 57).join("\n"));
    // Without NATS, late figures are not the fault of agents.
    assert!(texts(&mut joiner, 85).is_empty());
    assert_eq!(texts(&mut joiner, 87).len(), 2, "both lag from then on");
}
