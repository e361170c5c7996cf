//! Several runs as one: generators side by side, or one after the other.

use std::collections::BTreeMap;

use gake_core::clock::{Nanos, SECOND};
use gake_core::plan::{Load, Plan};
use gake_core::record::{Ending, Event, Generator, Metric, Point, Run, Series, Tally, Watched};

/// A span on the clock of the day: the start and end in Unix nanoseconds.
type Span = (u64, u64);

/// Joins runs exactly: every count and histogram is the sum. `None` when there is no run.
///
/// Times are those in which at least one of them ran, so that rates of generators side by side
/// add up, and runs after one another follow on. Peaks of runs that overlapped add up, as an upper
/// bound. Percentiles of the series are, of the seconds joined, the worst.
#[must_use]
pub fn merge_runs(mut runs: Vec<Run>) -> Option<Run> {
    runs.sort_by_key(|run| run.started_unix_ns);
    if runs.len() < 2 {
        return runs.pop();
    }
    let first = runs.first()?;
    let started = first.started_unix_ns;
    let ended = runs.iter().map(end).max()?;
    let labels = union_of_labels(&runs);
    let mut tally = Tally::new(labels.len());
    let mut warmup = first.warmup;
    for (i, run) in runs.iter().enumerate() {
        add(&mut tally, &run.plan, &run.tally, &labels);
        if i > 0 {
            warmup.merge(&run.warmup);
        }
    }
    let measured = covered(&runs, |run| run.measured);
    let ending = runs.iter().map(|run| &run.ending).find(|ending| **ending != Ending::Done);
    Some(Run {
        plan: plan(&runs, labels),
        started_unix_ns: started,
        measured,
        sending: covered(&runs, |run| run.sending),
        completing: covered(&runs, |run| run.completing),
        elapsed: ended - started,
        ending: ending.cloned().unwrap_or(Ending::Done),
        asked_rate: asked_rate(&runs, measured),
        tally,
        warmup,
        series: series(&runs, started),
        peak_connections: peak(&runs),
        generator: generator(&runs),
        events: events(&runs, started),
        watched: watched(&runs, started),
    })
}

/// What every generator saw of the target; of a gauge that several saw, the first one's view.
fn watched(runs: &[Run], started: u64) -> Watched {
    let mut all = Watched::default();
    for run in runs {
        all.absorb(&run.watched, run.started_unix_ns - started);
    }
    all
}

/// When a run ended, in Unix nanoseconds. What a file says may be any number.
fn end(run: &Run) -> u64 {
    run.started_unix_ns.saturating_add(run.elapsed)
}

fn warmup_of(run: &Run) -> Nanos {
    u64::try_from(run.plan.warmup.as_nanos()).unwrap_or(u64::MAX)
}

/// Nanoseconds in which at least one run was within its span of `length` after the warm-up.
fn covered(runs: &[Run], length: impl Fn(&Run) -> Nanos) -> Nanos {
    let mut spans: Vec<Span> = runs
        .iter()
        .map(|run| {
            let from = run.started_unix_ns.saturating_add(warmup_of(run));
            (from, from.saturating_add(length(run)))
        })
        .collect();
    spans.sort_unstable();
    let (mut sum, mut reached) = (0, 0);
    for (from, to) in spans {
        sum += to.saturating_sub(from.max(reached));
        reached = reached.max(to);
    }
    sum
}

/// Arrivals asked for over the joint time; unknown as soon as one run asked for no rate.
fn asked_rate(runs: &[Run], measured: Nanos) -> Option<f64> {
    let asked: Option<f64> =
        runs.iter().map(|run| Some(run.asked_rate? * run.measured as f64)).sum();
    asked.filter(|_| measured > 0).map(|asked| asked / measured as f64)
}

/// The labels of all, each name once; a run without labels goes by its target.
fn union_of_labels(runs: &[Run]) -> Vec<String> {
    if runs.iter().all(|run| run.plan.labels == runs[0].plan.labels) {
        return runs[0].plan.labels.clone();
    }
    let mut all: Vec<String> = Vec::new();
    for name in runs.iter().flat_map(|run| names(&run.plan)) {
        if !all.contains(name) {
            all.push(name.clone());
        }
    }
    all
}

fn names(plan: &Plan) -> &[String] {
    if plan.labels.is_empty() { std::slice::from_ref(&plan.target) } else { &plan.labels }
}

/// Adds the tally of a run of `plan` under the joint labels.
pub(super) fn add(sum: &mut Tally, plan: &Plan, tally: &Tally, labels: &[String]) {
    if plan.labels == labels {
        sum.merge(tally);
        return;
    }
    let own = tally.labels();
    sum.merge(&without_labels(tally));
    for (i, name) in names(plan).iter().enumerate() {
        let place = labels.iter().position(|label| label == name);
        let Some(into) = place.and_then(|n| u16::try_from(n).ok()).and_then(|n| sum.label_mut(n))
        else {
            continue;
        };
        match own.get(i) {
            Some(label) => {
                into.counts.merge(&label.counts);
                into.response.merge(&label.response);
                into.service.merge(&label.service);
            }
            None => {
                into.counts.merge(&tally.counts);
                into.response.merge(&tally.latency.response());
                into.service.merge(tally.latency.of(Metric::Service));
            }
        }
    }
}

fn without_labels(tally: &Tally) -> Tally {
    let mut plain = Tally::new(0);
    plain.counts = tally.counts;
    plain.latency = tally.latency.clone();
    plain.in_flight_ns = tally.in_flight_ns;
    plain.fired = tally.fired;
    for &(status, count) in tally.statuses() {
        plain.add_status(status, count);
    }
    for &(fault, count) in tally.faults() {
        plain.add_fault(fault, count);
    }
    plain
}

/// The first plan, with what adds up added up: of the same stages side by side the rates, and
/// always connections and threads of runs that overlapped.
fn plan(runs: &[Run], labels: Vec<String>) -> Plan {
    let mut plan = Plan { labels, ..runs[0].plan.clone() };
    let mut targets: Vec<&str> = Vec::new();
    for run in runs {
        if !targets.contains(&run.plan.target.as_str()) {
            targets.push(&run.plan.target);
        }
    }
    plan.target = targets.join(" + ");
    if !overlap(&runs[0], &runs[1]) {
        return plan;
    }
    for run in &runs[1..] {
        plan.connections += run.plan.connections;
        plan.max_in_flight += run.plan.max_in_flight;
        plan.threads += run.plan.threads;
        if let (Load::Open { stages, .. }, Load::Open { stages: more, .. }) =
            (&mut plan.load, &run.plan.load)
            && stages.len() == more.len()
            && stages.iter().zip(more).all(|(a, b)| a.duration == b.duration)
        {
            for (stage, other) in stages.iter_mut().zip(more) {
                stage.from += other.from;
                stage.to += other.to;
            }
        }
    }
    plan
}

fn overlap(a: &Run, b: &Run) -> bool {
    a.started_unix_ns < end(b) && b.started_unix_ns < end(a)
}

/// The highest sum of peaks of runs that were on at one instant.
fn peak(runs: &[Run]) -> u64 {
    let at_start_of = |run: &Run| {
        let at = run.started_unix_ns;
        let on = runs.iter().filter(|r| {
            r.started_unix_ns <= at && at < end(r).max(r.started_unix_ns.saturating_add(1))
        });
        on.map(|r| r.peak_connections).sum()
    };
    runs.iter().map(at_start_of).max().unwrap_or(0)
}

fn generator(runs: &[Run]) -> Generator {
    runs.iter().map(|run| &run.generator).fold(Generator::default(), |sum, one| Generator {
        cpu: sum.cpu + one.cpu,
        busiest: sum.busiest.max(one.busiest),
        run_delay: sum.run_delay + one.run_delay,
        rss_bytes: sum.rss_bytes + one.rss_bytes,
        threads: sum.threads + one.threads,
        cores: sum.cores + one.cores,
    })
}

fn events(runs: &[Run], started: u64) -> Vec<Event> {
    let of = |run: &Run| {
        let offset = run.started_unix_ns - started;
        let shift = move |event: &Event| Event {
            at: event.at.saturating_add(offset),
            text: event.text.clone(),
        };
        run.events.iter().map(shift).collect::<Vec<_>>()
    };
    let mut events: Vec<_> = runs.iter().flat_map(of).collect();
    events.sort_by_key(|event| event.at);
    events
}

fn series(runs: &[Run], started: u64) -> Series {
    let points = || runs.iter().flat_map(|run| run.series.points());
    let width = points().map(|point| point.seconds).max().unwrap_or(1).max(1);
    let mut all: BTreeMap<u64, Point> = BTreeMap::new();
    for run in runs {
        let offset = (run.started_unix_ns - started) / SECOND;
        let mut own: BTreeMap<u64, Point> = BTreeMap::new();
        for point in run.series.points() {
            let at = point.second.saturating_add(offset) / width * width;
            // A mean over a part of the width counts for that part.
            let in_flight = point.in_flight * point.seconds as f64 / width as f64;
            let point = Point { second: at, seconds: width, in_flight, ..point.clone() };
            let open = point.open;
            own.entry(at).and_modify(|sum| join(sum, &point, open)).or_insert(point);
        }
        for (at, point) in own {
            let beside = all.get(&at).map_or(0, |sum| sum.open) + point.open;
            all.entry(at).and_modify(|sum| join(sum, &point, beside)).or_insert(point);
        }
    }
    let mut series = Series::default();
    all.into_values().for_each(|point| series.push(point));
    series
}

/// Adds a point of the same piece of time.
fn join(sum: &mut Point, point: &Point, open: u64) {
    sum.absorb(point);
    sum.in_flight += point.in_flight;
    sum.open = open;
}
