//! A few requests one at a time after the load, which show how long one takes without a queue.
//!
//! When all requests of a run waited, the time without a wait is in none of them; with it, the rate
//! gives how many the target serves at once.

use std::sync::Arc;
use std::time::Duration;

use gake_core::Load;
use gake_core::plan::{Plan, PlanLoad, WorkKind};
use gake_core::record::{
    GaugeReading, LatencyMetric, LevelUnit, MACHINE, PROBE, PROBE_DELAY, Run, RunEnd, RunEvent,
};

use crate::ResolvedRun;

/// Requests of a probe, and its time, whichever ends first: longer if requests take so long that too
/// few would have an end.
const REQUESTS: u64 = 30;
const TIME: Duration = Duration::from_secs(2);
const TIME_MAX: Duration = Duration::from_secs(6);
/// Below this number of requests without failure a probe shows nothing.
const REQUESTS_MIN: u64 = 3;

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
        let connections = self.plan.connections.min(1);
        let fastest = Duration::from_nanos(run.tally.latency.response().min());
        let time = (fastest * (REQUESTS_MIN as u32 + 1)).clamp(TIME, TIME_MAX);
        let plan = Plan {
            load: PlanLoad::One(Load::closed(1)),
            duration: Some(time),
            requests: Some(REQUESTS),
            warmup: Duration::ZERO,
            start: Duration::ZERO,
            drain: time,
            connections,
            max_in_flight: 1,
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
        let Ok(probed) = probe.run() else { return Vec::new() };
        let counts = &probed.tally.counts;
        if counts.ok < REQUESTS_MIN || counts.ok < counts.due() {
            return Vec::new();
        }
        let reading = |name: &str, nanos: u64| GaugeReading {
            source: MACHINE.to_owned(),
            name: name.to_owned(),
            unit: LevelUnit::Seconds,
            value: nanos as f64 / 1e9,
        };
        let own = reading(PROBE_DELAY, probed.generator.run_delay / counts.ok);
        let times = probed.tally.latency.of(LatencyMetric::FirstByte);
        let each = times.buckets().flat_map(|bucket| {
            (0..bucket.count).map(move |_| bucket.middle().clamp(times.min(), times.max()))
        });
        each.map(|nanos| reading(PROBE, nanos)).chain([own]).collect()
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
    let text = format!(
        "after the load, {} more requests were sent one at a time, to learn their time without a \
         queue; they are in no other figure (--no-probe)",
        readings.len() - 1
    );
    run.events.push(RunEvent::new(run.elapsed, &text));
}
