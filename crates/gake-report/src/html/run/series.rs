//! The data of the charts: the series by column, the histogram, the percentile curves.

use gake_core::clock::Nanos;
use gake_core::record::{HEAT, Histogram, LatencyMetric, Octaves, Run, SeriesPoint};
use serde::{Serialize, Serializer};
use serde_json::Number;

/// Most kinds of errors with a line of their own.
const KINDS_MAX: usize = 10;

/// Bits per octave of the histogram's cells: eight cells.
const HISTOGRAM_BITS: u32 = 3;

/// Points of a percentile curve per nine.
const CURVE_STEPS: u32 = 16;

/// Most nines of a curve.
const NINES_MAX: u32 = 7;

/// The series, one column per figure. Times are in microseconds to four digits; null without
/// samples.
#[derive(Serialize)]
pub(super) struct PageSeriesJson {
    /// The start of each point and its length in seconds.
    second: Vec<Number>,
    seconds: Vec<Number>,
    asked: Vec<Option<ShortNumber>>,
    /// Empty for a script, whose arrivals are iterations.
    fired: Vec<u64>,
    ok: Vec<u64>,
    failed: Vec<u64>,
    unfinished: Vec<u64>,
    dropped: Vec<u64>,
    unsent: Vec<u64>,
    bytes_in: Vec<u64>,
    bytes_out: Vec<u64>,
    /// p50, p90, p99, max.
    response: [Vec<Option<ShortNumber>>; 4],
    service: [Vec<Option<ShortNumber>>; 4],
    /// p99, max.
    lateness: [Vec<Option<ShortNumber>>; 2],
    in_flight: Vec<ShortNumber>,
    open: Vec<u64>,
    /// Share of the workers' cores.
    cpu: Vec<ShortNumber>,
    /// Errors by kind, the most frequent first.
    errors: Vec<ErrorSeriesJson>,
    /// Per point, alternately the distance to the next cell and its number of requests.
    heat: Vec<Vec<u64>>,
    /// The lower edges of the cells 0, 1, 2 ... in nanoseconds, and the upper edge of the last.
    heat_edges: Vec<Nanos>,
}

#[derive(Serialize)]
struct ErrorSeriesJson {
    kind: String,
    counts: Vec<u64>,
}

impl PageSeriesJson {
    pub(super) fn new(run: &Run, points: usize) -> Self {
        let (series, per_second) = run.series.finest(points);
        let points = series.points();
        // Its iterations are not comparable with the requests.
        let is_script = run.plan.fires_iterations();
        let starts = points.iter().map(|point| seconds(point.second, per_second));
        let lengths = points.iter().map(|point| seconds(point.seconds, per_second));
        let threads = run.generator.threads.max(run.plan.threads).max(1) as f64;
        let cores = threads * 1e9 / per_second as f64;
        let times = |of: fn(&SeriesPoint) -> Nanos,
                     seen: fn(&SeriesPoint) -> bool|
         -> Vec<Option<ShortNumber>> {
            points.iter().map(|point| seen(point).then(|| micros(of(point)))).collect()
        };
        let answered = |point: &SeriesPoint| !point.heat.is_empty();
        let served = |point: &SeriesPoint| point.service_max > 0;
        let sent = |point: &SeriesPoint| point.counts.sent > 0;
        let counts = |of: fn(&SeriesPoint) -> u64| points.iter().map(of).collect::<Vec<_>>();
        let highest = points.iter().flat_map(|point| point.heat.last()).map(|cell| cell.0).max();
        Self {
            second: starts.collect(),
            seconds: lengths.collect(),
            asked: points
                .iter()
                .map(|p| p.asked.filter(|_| !is_script))
                .map(|asked| asked.map(|asked| ShortNumber(digits(asked, 6))))
                .collect(),
            // Requests that were never sent ended as they were fired.
            fired: match is_script {
                true => Vec::new(),
                false => counts(|p| p.fired.saturating_sub(p.counts.unsent)),
            },
            ok: counts(|p| p.counts.ok),
            failed: counts(|p| p.counts.failed),
            unfinished: counts(|p| p.counts.unfinished),
            dropped: counts(|p| p.counts.dropped),
            unsent: counts(|p| p.counts.unsent),
            bytes_in: counts(|p| p.counts.bytes_in),
            bytes_out: counts(|p| p.counts.bytes_out),
            response: [
                times(|p| p.p50, answered),
                times(|p| p.p90, answered),
                times(|p| p.p99, answered),
                times(|p| p.max, answered),
            ],
            service: [
                times(|p| p.service_p50, served),
                times(|p| p.service_p90, served),
                times(|p| p.service_p99, served),
                times(|p| p.service_max, served),
            ],
            lateness: [times(|p| p.lateness_p99, sent), times(|p| p.lateness_max, sent)],
            in_flight: points.iter().map(|p| ShortNumber(digits(p.in_flight, 4))).collect(),
            open: counts(|p| p.open),
            cpu: points
                .iter()
                .map(|p| ShortNumber(digits(p.cpu as f64 / (p.seconds.max(1) as f64 * cores), 3)))
                .collect(),
            errors: errors(run, points),
            heat: points.iter().map(|p| gaps(&p.heat)).collect(),
            heat_edges: (0..highest.map_or(0, |cell| cell + 2)).map(|c| HEAT.low(c)).collect(),
        }
    }
}

impl PageSeriesJson {
    pub(super) fn clear_heat(&mut self) {
        self.heat.clear();
        self.heat_edges.clear();
    }
}

/// Cells as distances from the previous one, which are shorter numbers, with their counts.
fn gaps(cells: &[(u16, u64)]) -> Vec<u64> {
    let mut before = 0;
    let gap = |(cell, count): &(u16, u64)| {
        let gap = cell - before;
        before = *cell;
        [u64::from(gap), *count]
    };
    cells.iter().flat_map(gap).collect()
}

/// A number of intervals in seconds, as short as possible.
pub(super) fn seconds(pieces: u64, per_second: u64) -> Number {
    if pieces.is_multiple_of(per_second) {
        return (pieces / per_second).into();
    }
    Number::from_f64(pieces as f64 / per_second as f64).unwrap_or(0.into())
}

/// A number without a decimal point in JSON when it is whole.
#[derive(Debug, Clone, Copy)]
pub(super) struct ShortNumber(f64);

impl Serialize for ShortNumber {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let whole = self.0 as i64;
        if whole as f64 == self.0 {
            serializer.serialize_i64(whole)
        } else {
            serializer.serialize_f64(self.0)
        }
    }
}

/// Nanoseconds as microseconds, to four digits.
pub(super) fn micros(ns: Nanos) -> ShortNumber {
    ShortNumber(digits(ns as f64 / 1e3, 4))
}

/// Rounds to significant digits, which shortens the text.
pub(super) fn digits(value: f64, digits: i32) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let scale = digits - 1 - value.abs().log10().floor() as i32;
    // Dividing by a power of ten gives a short text where multiplying by a fraction does not.
    if scale >= 0 {
        let power = 10f64.powi(scale);
        (value * power).round() / power
    } else {
        let power = 10f64.powi(-scale);
        (value / power).round() * power
    }
}

/// Unexpected statuses, faults, unfinished and dropped arrivals.
fn errors(run: &Run, points: &[SeriesPoint]) -> Vec<ErrorSeriesJson> {
    let mut kinds: Vec<ErrorSeriesJson> = Vec::new();
    for (at, point) in points.iter().enumerate() {
        let bad = point.statuses.iter().filter(|(code, _)| !run.plan.expect.accepts(*code));
        let statuses = bad.map(|(code, count)| match code {
            0 => ("other statuses".to_owned(), *count),
            _ => (format!("status {code}"), *count),
        });
        let faults = point.faults.iter().map(|(name, count)| ((*name).to_owned(), *count));
        let rest = [("unfinished", point.counts.unfinished), ("dropped", point.counts.dropped)];
        let rest = rest.map(|(name, count)| (name.to_owned(), count));
        for (name, count) in statuses.chain(faults).chain(rest).filter(|kind| kind.1 > 0) {
            let place = kinds.iter().position(|kind| kind.kind == name).unwrap_or_else(|| {
                kinds.push(ErrorSeriesJson { kind: name, counts: vec![0; points.len()] });
                kinds.len() - 1
            });
            kinds[place].counts[at] += count;
        }
    }
    kinds.sort_by_key(|kind| std::cmp::Reverse(kind.counts.iter().sum::<u64>()));
    if kinds.len() > KINDS_MAX {
        let mut others = vec![0; points.len()];
        for kind in kinds.drain(KINDS_MAX - 1..) {
            others.iter_mut().zip(&kind.counts).for_each(|(sum, count)| *sum += count);
        }
        kinds.push(ErrorSeriesJson { kind: "other kinds".to_owned(), counts: others });
    }
    kinds
}

/// Counts of samples between edges.
#[derive(Serialize)]
pub(super) struct PageHistogramJson {
    /// The lower edges of the cells, in nanoseconds, and the upper edge of the last.
    edges: Vec<Nanos>,
    response: Vec<u64>,
    service: Vec<u64>,
}

/// The histograms of response and service time, on one scale.
pub(super) fn histogram(run: &Run) -> PageHistogramJson {
    let scale = Octaves::new(HISTOGRAM_BITS);
    let latency = &run.tally.latency;
    let response = scale.counts(&latency.response());
    let service = scale.counts(latency.of(LatencyMetric::Service));
    let cells = || response.iter().chain(&service).map(|cell| cell.0);
    let (Some(first), Some(last)) = (cells().min(), cells().max()) else {
        return PageHistogramJson { edges: Vec::new(), response: Vec::new(), service: Vec::new() };
    };
    let dense = |sparse: &[(u16, u64)]| {
        let mut counts = vec![0; usize::from(last - first) + 1];
        sparse.iter().for_each(|(cell, count)| counts[usize::from(cell - first)] = *count);
        counts
    };
    PageHistogramJson {
        edges: (first..=last + 1).map(|cell| scale.low(cell)).collect(),
        response: dense(&response),
        service: dense(&service),
    }
}

/// The percentile curve of a metric.
#[derive(Serialize)]
pub(super) struct CurveJson {
    metric: &'static str,
    count: u64,
    /// Microseconds at the quantiles 1 − 10^(−n/16), n from 0, as far as there are samples; the
    /// last is the maximum.
    values: Vec<ShortNumber>,
}

/// The percentile curves of the metrics with samples.
pub(super) fn curves(run: &Run) -> Vec<CurveJson> {
    let latency = &run.tally.latency;
    let response = latency.response();
    let all = [
        ("response", &*response),
        ("service", latency.of(LatencyMetric::Service)),
        ("lateness", latency.of(LatencyMetric::Lateness)),
    ];
    let seen = all.into_iter().filter(|(_, histogram)| !histogram.is_empty());
    seen.map(|(metric, histogram)| curve(metric, histogram)).collect()
}

fn curve(metric: &'static str, histogram: &Histogram) -> CurveJson {
    let count = histogram.count();
    let steps = (count as f64).log10() * f64::from(CURVE_STEPS);
    let steps = (steps.floor() as u32).min(NINES_MAX * CURVE_STEPS);
    let at = |n: u32| 1.0 - 10f64.powf(-f64::from(n) / f64::from(CURVE_STEPS));
    let mut values: Vec<_> = (0..=steps).map(|n| micros(histogram.quantile(at(n)))).collect();
    values.push(micros(histogram.max()));
    CurveJson { metric, count, values }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_near() {
        for (value, text) in [(1234.567, "1235"), (0.0123456, "0.01235"), (123_456.0, "123500")] {
            assert_eq!(serde_json::to_string(&ShortNumber(digits(value, 4))).unwrap(), text);
        }
        assert_eq!([digits(0.0, 4), digits(f64::NAN, 4)], [0.0, 0.0]);
    }
}
