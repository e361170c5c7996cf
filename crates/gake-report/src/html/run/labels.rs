//! Labels: the figures of each, and how they went over time.

use gake_core::record::{LabelPoint, Run, SeriesPoint};
use serde::Serialize;
use serde_json::Number;

use super::figures::LatencyForm;
use super::series::{Short, micros, seconds};
use super::{LABELS_MAX, NAME_MAX, cut_to};

/// Numbers in the series of all labels at most: each has a small chart.
const POINTS_MAX: usize = 5_000;

/// Points of a label at least.
const POINTS_MIN: usize = 60;

/// What one label saw.
#[derive(Serialize)]
pub(super) struct LabelForm {
    /// Its place in the plan.
    index: usize,
    name: String,
    sent: u64,
    failed: u64,
    /// Response time.
    response: LatencyForm,
    /// 99th percentile of the service time.
    service_p99: u64,
}

/// The labels with most requests, in the order of the plan; none when there is one.
pub(super) fn labels(run: &Run) -> Vec<LabelForm> {
    let labels: Vec<_> = run.plan.labels.iter().zip(run.tally.labels()).enumerate().collect();
    if labels.len() < 2 {
        return Vec::new();
    }
    let mut sent: Vec<u64> = labels.iter().map(|(_, (_, label))| label.counts.sent).collect();
    sent.sort_unstable_by(|a, b| b.cmp(a));
    let least = sent.get(LABELS_MAX - 1).copied().unwrap_or(0);
    let most = labels.iter().filter(|(_, (_, label))| label.counts.sent >= least);
    most.take(LABELS_MAX)
        .map(|(index, (name, label))| LabelForm {
            index: *index,
            name: cut_to(name, NAME_MAX),
            sent: label.counts.sent,
            failed: label.counts.failed + label.counts.unfinished,
            response: LatencyForm::new("response", &label.response),
            service_p99: label.service.quantile(0.99),
        })
        .collect()
}

/// The labels over time: at each point a number of each.
#[derive(Serialize)]
pub(super) struct LabelSeries {
    /// Where each point starts and how many seconds it stands for.
    second: Vec<Number>,
    seconds: Vec<Number>,
    /// The first labels of the plan.
    labels: Vec<LabelLine>,
}

/// One label over time; null where nothing of it ended.
#[derive(Serialize)]
struct LabelLine {
    sent: Vec<u64>,
    failed: Vec<u64>,
    /// Microseconds.
    p50: Vec<Option<Short>>,
    p99: Vec<Option<Short>>,
}

impl LabelSeries {
    /// `None` when there is one label.
    pub(super) fn new(run: &Run, points: usize) -> Option<Self> {
        let (series, per_second) = run.series.finest(points);
        let labels = series.points().iter().map(|point| point.labels.len()).max()?;
        if labels < 2 {
            return None;
        }
        // A page that would be too large gives up detail of the small charts first.
        let share = points as f64 / super::POINTS_MAX as f64;
        let budget = (POINTS_MAX as f64 * share.powi(3)) as usize;
        let most = (budget / labels).max(POINTS_MIN).min(points);
        let series = series.at_most(most);
        let points = series.points();
        Some(Self {
            second: points.iter().map(|point| seconds(point.second, per_second)).collect(),
            seconds: points.iter().map(|point| seconds(point.seconds, per_second)).collect(),
            labels: (0..labels).map(|label| LabelLine::new(points, label)).collect(),
        })
    }
}

impl LabelLine {
    fn new(points: &[SeriesPoint], label: usize) -> Self {
        let of = || points.iter().map(|p| p.labels.get(label).copied().unwrap_or_default());
        let seen = |point: LabelPoint, value| (point.sent > 0).then(|| micros(value));
        Self {
            sent: of().map(|point| point.sent).collect(),
            failed: of().map(|point| point.failed).collect(),
            p50: of().map(|point| seen(point, point.p50)).collect(),
            p99: of().map(|point| seen(point, point.p99)).collect(),
        }
    }
}
