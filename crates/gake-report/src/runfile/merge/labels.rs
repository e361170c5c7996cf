//! Labels of several runs, joined by name.

use gake_core::plan::Plan;
use gake_core::record::{LABELS_MAX, LabelPoint, LatencyMetric, Run, SeriesPoint, Tally};

/// The labels of all, each name once; a run without labels goes by its target.
pub(super) fn union_of_labels(runs: &[Run]) -> Vec<String> {
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
pub(in crate::runfile) fn add(sum: &mut Tally, plan: &Plan, tally: &Tally, labels: &[String]) {
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
                into.service.merge(tally.latency.of(LatencyMetric::Service));
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
    plain.series = tally.series.clone();
    for &(status, count) in tally.statuses() {
        plain.add_status(status, count);
    }
    for &(fault, count) in tally.faults() {
        plain.add_fault(fault, count);
    }
    plain
}

/// What a point knows of labels, under the joint ones.
pub(super) fn of_point(point: &SeriesPoint, plan: &Plan, labels: &[String]) -> Vec<LabelPoint> {
    if plan.labels == labels {
        return point.labels.clone();
    }
    let (counts, whole) = (&point.counts, plan.labels.len() < 2);
    let whole = whole.then(|| LabelPoint {
        sent: counts.sent,
        failed: counts.failed + counts.unfinished,
        p50: point.p50,
        p99: point.p99,
    });
    let own = if let Some(whole) = &whole { std::slice::from_ref(whole) } else { &point.labels };
    let mut joint = vec![LabelPoint::default(); labels.len().min(LABELS_MAX)];
    for (name, figures) in names(plan).iter().zip(own) {
        let place = labels.iter().position(|label| label == name);
        if let Some(into) = place.and_then(|place| joint.get_mut(place)) {
            into.absorb(figures);
        }
    }
    joint
}
