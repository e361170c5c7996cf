//! A few requests after the load: one at a time, which shows how long one takes without a queue, and
//! some at the same moment.
//!
//! When all requests of a run waited, the time without a wait is in none of them; with it, the rate
//! gives how many the target serves at once. Requests that take turns for a part of their time look
//! the same; a few sent at the same moment tell them apart.

use std::sync::Arc;
use std::time::Duration;

use gake_core::Load;
use gake_core::plan::{Plan, PlanLoad, Stage, WorkKind};
use gake_core::record::{
    GaugeReading, LatencyMetric, LevelUnit, MACHINE, PROBE, PROBE_DELAY, Run, RunEnd, RunEvent,
};
use gake_core::schedule::Process;
use gake_judge::unloaded::Unloaded;
use gake_judge::{PROBE_GROUP, PROBE_TOGETHER};

use crate::ResolvedRun;

/// Requests of a probe, and its time, whichever ends first: longer if requests take so long that too
/// few would have an end.
const REQUESTS: u64 = 30;
const TIME: Duration = Duration::from_secs(2);
const TIME_MAX: Duration = Duration::from_secs(6);
/// Below this number of requests without failure a probe shows nothing.
const REQUESTS_MIN: u64 = 3;
/// Groups of requests sent at the same moment.
const GROUPS: u64 = 8;

impl ResolvedRun {
    /// The times to the first byte of requests sent one at a time after `run`, if they would tell
    /// more about its limit and do no harm: plain GET and HEAD requests, not a fixed number.
    pub(crate) fn probe(&self, run: &Run) -> Vec<GaugeReading> {
        let is_safe = self.scripts.is_empty()
            && self.wires.len() == 1
            && self.wires.iter().all(|wire| wire.is_idempotent())
            && self.plan.fires == WorkKind::Requests
            && self.plan.requests.is_none()
            && run.ending == RunEnd::Done;
        let Some(after) = is_safe.then(|| gake_judge::probe_after(run)).flatten() else {
            return Vec::new();
        };
        std::thread::sleep(Duration::from_nanos(after));
        let fastest = Duration::from_nanos(run.tally.latency.response().min());
        let time = (fastest * (REQUESTS_MIN as u32 + 1)).clamp(TIME, TIME_MAX);
        let Some(probed) = self.send(Load::closed(1), 1, REQUESTS, time) else { return Vec::new() };
        let ok = probed.tally.counts.ok;
        if ok < REQUESTS_MIN {
            return Vec::new();
        }
        let own = probed.generator.run_delay as f64 / ok as f64;
        let times = first_bytes(&probed);
        let together = self.probe_together(run, &times, own);
        let alone = times.into_iter().map(|time| seconds(PROBE, time));
        alone.chain([seconds(PROBE_DELAY, own)]).chain(together).collect()
    }

    /// The longest times to the first byte of groups of requests sent at the same moment, if those
    /// sent one at a time leave open whether as many are served at once.
    fn probe_together(&self, run: &Run, times: &[f64], own: f64) -> Vec<GaugeReading> {
        let Some(alone) = Unloaded::new(times.to_vec(), own) else { return Vec::new() };
        let Some(size) = gake_judge::probe_together(run, &alone) else { return Vec::new() };
        // Groups far enough apart for requests that are served one after another.
        let pace = Duration::from_nanos(((size + 1) as f64 * alone.mean()) as u64);
        let time = TIME.max(pace * (GROUPS as u32 + 1));
        let stages = vec![Stage::step(size as f64 / pace.as_secs_f64(), time)];
        let load = Load::Open { stages, process: Process::Bursts { size, jitter: 0 } };
        let probed = self.send(load, size as usize, GROUPS * size, time);
        let Some(probed) = probed.filter(|probed| probed.tally.counts.ok == GROUPS * size) else {
            return Vec::new();
        };
        let times = first_bytes(&probed);
        let longest = times.iter().rev().take(GROUPS as usize);
        let group = GaugeReading {
            unit: LevelUnit::Count,
            value: size as f64,
            ..seconds(PROBE_GROUP, 0.0)
        };
        longest.map(|time| seconds(PROBE_TOGETHER, *time)).chain([group]).collect()
    }

    /// Sends requests, over at most `connections` connections; `None` when one failed.
    fn send(&self, load: Load, connections: usize, requests: u64, time: Duration) -> Option<Run> {
        let plan = Plan {
            load: PlanLoad::One(load),
            duration: Some(time),
            requests: Some(requests),
            warmup: Duration::ZERO,
            start: Duration::ZERO,
            drain: time,
            connections: self.plan.connections.min(connections),
            max_in_flight: connections,
            idle_connections: 0,
            threads: 1,
            tables: 1,
            spin: false,
            ..Plan::clone(&self.plan)
        };
        let probe = Self {
            plan: Arc::new(plan),
            watch: Vec::new(),
            objectives: Vec::new(),
            abort: false,
            ..self.clone()
        };
        let probed = probe.run().ok()?;
        let counts = &probed.tally.counts;
        (counts.ok == counts.due()).then_some(probed)
    }
}

/// The times to the first byte, in nanoseconds and in order.
fn first_bytes(run: &Run) -> Vec<f64> {
    let times = run.tally.latency.of(LatencyMetric::FirstByte);
    let middles =
        times.buckets().flat_map(|bucket| (0..bucket.count).map(move |_| bucket.middle()));
    middles.map(|nanos| nanos.clamp(times.min(), times.max()) as f64).collect()
}

/// A reading of a time in nanoseconds.
fn seconds(name: &str, nanos: f64) -> GaugeReading {
    GaugeReading {
        source: MACHINE.to_owned(),
        name: name.to_owned(),
        unit: LevelUnit::Seconds,
        value: nanos / 1e9,
    }
}

/// Adds the times of a probe to its run.
pub(crate) fn add(run: &mut Run, readings: &[GaugeReading]) {
    if readings.is_empty() {
        return;
    }
    for reading in readings {
        run.watched.add(run.elapsed, std::slice::from_ref(reading));
    }
    let count = |name: &str| readings.iter().filter(|reading| reading.name == name).count();
    let group = readings.iter().find(|reading| reading.name == PROBE_GROUP);
    let together = group.map_or(String::new(), |group| {
        format!(" and {} times {} at once", count(PROBE_TOGETHER), group.value)
    });
    let text = format!(
        "after the load, {} more requests were sent one at a time{together}, to learn their time \
         without a queue; they are in no other figure (--no-probe)",
        count(PROBE)
    );
    run.events.push(RunEvent::new(run.elapsed, &text));
}
