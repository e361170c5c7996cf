//! Figures and time series by label.

use gake_core::record::{LabelPoint, Run, SeriesPoint};
use serde::Serialize;
use serde_json::Number;

use super::figures::PageLatencyJson;
use super::series::{ShortNumber, micros, seconds};
use super::{LABELS_MAX, NAME_MAX, cut_to};

/// Most points in the series of all labels together: each has a small chart.
const POINTS_MAX: usize = 5_000;

/// Fewest points per label.
const POINTS_MIN: usize = 60;

#[derive(Serialize)]
pub(super) struct PageLabelJson {
    /// Its index in the plan.
    index: usize,
    name: String,
    sent: u64,
    failed: u64,
    response: PageLatencyJson,
    /// 99th percentile of the service time.
    service_p99: u64,
}

/// The labels with the most requests, in the order of the plan; empty when there is only one.
pub(super) fn labels(run: &Run) -> Vec<PageLabelJson> {
    let labels: Vec<_> = run.plan.labels.iter().zip(run.tally.labels()).enumerate().collect();
    if labels.len() < 2 {
        return Vec::new();
    }
    let mut sent: Vec<u64> = labels.iter().map(|(_, (_, label))| label.counts.sent).collect();
    sent.sort_unstable_by(|a, b| b.cmp(a));
    let least = sent.get(LABELS_MAX - 1).copied().unwrap_or(0);
    let most = labels.iter().filter(|(_, (_, label))| label.counts.sent >= least);
    most.take(LABELS_MAX)
        .map(|(index, (name, label))| PageLabelJson {
            index: *index,
            name: cut_to(name, NAME_MAX),
            sent: label.counts.sent,
            failed: label.counts.failed + label.counts.unfinished,
            response: PageLatencyJson::new("response", &label.response),
            service_p99: label.service.quantile(0.99),
        })
        .collect()
}

#[derive(Serialize)]
pub(super) struct LabelSeries {
    /// The start of each point and its length in seconds.
    second: Vec<Number>,
    seconds: Vec<Number>,
    /// The first labels of the plan.
    labels: Vec<LabelLine>,
}

/// One label over time; null where no request of it ended.
#[derive(Serialize)]
struct LabelLine {
    sent: Vec<u64>,
    failed: Vec<u64>,
    /// In microseconds.
    p50: Vec<Option<ShortNumber>>,
    p99: Vec<Option<ShortNumber>>,
}

impl LabelSeries {
    /// `None` when there is only one label.
    pub(super) fn new(run: &Run, points: usize) -> Option<Self> {
        let (series, per_second) = run.series.finest(points);
        let labels = series.points().iter().map(|point| point.labels.len()).max()?;
        if labels < 2 {
            return None;
        }
        // A page over its limit reduces the small charts first.
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
