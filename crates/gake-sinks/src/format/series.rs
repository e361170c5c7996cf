//! Series of a run as Prometheus and OpenTelemetry know them: totals that grow, levels, histograms.

use std::borrow::Cow;

use gake_core::clock::Nanos;
use gake_core::record::{GaugeReading, Histogram, Run, Tally};

use super::Format;
use crate::carrier::Batch;
use crate::figures;
use crate::figures::{ExportSecond, ExportStart, ExportVerdict};

/// Bounds of a classic histogram's buckets, in seconds.
pub(super) const BOUNDS: [f64; 18] = [
    0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0,
    10.0, 20.0, 60.0,
];
/// Percentiles of the run so far, which buckets alone do not give exactly.
pub(super) const QUANTILES: [(&str, f64); 5] =
    [("0.5", 0.5), ("0.9", 0.9), ("0.95", 0.95), ("0.99", 0.99), ("0.999", 0.999)];

/// What has been seen so far. Its size does not grow with the run.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    tally: Tally,
    labels: Vec<String>,
    asked: Option<f64>,
    in_flight: f64,
    open: u64,
    /// The newest reading of each level.
    readings: Vec<GaugeReading>,
    /// The verdict of a run that is over.
    verdict: Option<ExportVerdict>,
}

/// Writes the totals of an instant.
pub(crate) trait SeriesWriter: Send {
    /// Whether the totals of a run that begins, all 0, are written too.
    const AT_BEGIN: bool = true;

    /// Writes every series of a run that began at `started`; instants are Unix nanoseconds.
    fn write(&self, totals: &Totals, started: u64, unix_ns: u64) -> Batch;
}

/// A format that tells everything so far each second.
pub(crate) struct SeriesFormat<W> {
    writer: W,
    totals: Totals,
    started: u64,
}

impl<W: SeriesWriter> SeriesFormat<W> {
    pub(crate) fn new(writer: W) -> Self {
        Self { writer, totals: Totals::default(), started: 0 }
    }

    fn batch(&self, since_start: u64) -> Batch {
        self.writer.write(&self.totals, self.started, self.started + since_start)
    }
}

impl<W: SeriesWriter> Format for SeriesFormat<W> {
    fn begin(&mut self, start: &ExportStart<'_>) -> Batch {
        self.started = start.started_unix_ns;
        self.totals.begin(start.labels);
        if W::AT_BEGIN { self.batch(0) } else { Batch::default() }
    }

    fn second(&mut self, second: &ExportSecond<'_>) -> Batch {
        self.totals.second(second);
        self.batch((second.at + 1) * 1_000_000_000)
    }

    fn readings(&mut self, _at: Nanos, readings: &[GaugeReading]) -> Batch {
        self.totals.readings(readings);
        Batch::default()
    }

    fn end(&mut self, run: &Run, verdict: &ExportVerdict) -> Batch {
        self.totals.end(run, verdict);
        // Behind the last second, whose number may round up to the run's end.
        self.batch(run.elapsed + 1_000_000_000)
    }
}

/// A number with its labels.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Point {
    pub(super) labels: Vec<(&'static str, String)>,
    pub(super) value: f64,
}

/// Points of one name.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Family {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    pub(super) is_counter: bool,
    pub(super) points: Vec<Point>,
}

impl Totals {
    pub(super) fn begin(&mut self, labels: &[String]) {
        self.labels = labels.to_vec();
        self.tally.grow_labels(if labels.len() > 1 { labels.len() } else { 0 });
    }

    pub(super) fn second(&mut self, second: &ExportSecond<'_>) {
        self.tally.merge(second.tally);
        self.asked = second.asked;
        self.in_flight = second.tally.in_flight_ns as f64 / 1e9;
        self.open = second.open;
    }

    pub(super) fn readings(&mut self, readings: &[GaugeReading]) {
        for reading in readings {
            let same = |known: &&mut GaugeReading| {
                known.name == reading.name && known.source == reading.source
            };
            match self.readings.iter_mut().find(same) {
                Some(known) => *known = reading.clone(),
                None => self.readings.push(reading.clone()),
            }
        }
    }

    /// The run is over: its own figures count, and nothing is under way.
    pub(super) fn end(&mut self, run: &Run, verdict: &ExportVerdict) {
        self.verdict = Some(*verdict);
        self.tally = run.tally.clone();
        (self.asked, self.in_flight, self.open) = (None, 0.0, 0);
    }

    /// The histograms, by name: times in nanoseconds.
    pub(super) fn histograms(&self) -> Vec<(&'static str, Cow<'_, Histogram>)> {
        figures::histograms(&self.tally.latency)
    }

    /// Everything but the histograms.
    pub(super) fn families(&self) -> Vec<Family> {
        let counts = &self.tally.counts;
        let point = |name, value: &str, count: u64| Point {
            labels: vec![(name, value.to_owned())],
            value: count as f64,
        };
        let outcomes = [
            ("ok", counts.ok),
            ("failed", counts.failed),
            ("unfinished", counts.unfinished),
            ("dropped", counts.dropped),
        ];
        let single = |value: u64| vec![Point { labels: Vec::new(), value: value as f64 }];
        let mut families = vec![
            counter(
                "gake_requests",
                "Requests by outcome; sent = ok + failed + unfinished.",
                outcomes.map(|(outcome, count)| point("outcome", outcome, count)).to_vec(),
            ),
            counter(
                "gake_responses",
                "Whole responses by status code.",
                self.tally
                    .statuses()
                    .iter()
                    .map(|(status, n)| point("status", &status.to_string(), *n))
                    .collect(),
            ),
            counter(
                "gake_faults",
                "Requests that ended without a whole response, by fault.",
                self.tally.faults().iter().map(|(f, n)| point("fault", f.name(), *n)).collect(),
            ),
            counter("gake_received_bytes", "Bytes read.", single(counts.bytes_in)),
            counter("gake_sent_bytes", "Bytes written.", single(counts.bytes_out)),
            counter("gake_connections_opened", "Connections opened.", single(counts.opened)),
            gauge("gake_connections", "Connections open.", single(self.open)),
        ];
        let level = |value: f64| vec![Point { labels: Vec::new(), value }];
        families.push(gauge("gake_in_flight", "Mean number in flight.", level(self.in_flight)));
        if let Some(asked) = self.asked {
            families.push(gauge("gake_asked_rate", "Arrivals a second asked for.", level(asked)));
        }
        families.push(gauge(
            "gake_response_quantile_seconds",
            "Response time of the run so far, from the instant a request was due.",
            self.quantiles(),
        ));
        families.push(counter(
            "gake_endpoint_requests",
            "Requests by endpoint and outcome.",
            self.endpoints(),
        ));
        families.push(gauge("gake_target", "What the watched target says.", self.target()));
        if let Some(verdict) = &self.verdict {
            families.extend(verdict_families(verdict));
        }
        families.retain(|family| !family.points.is_empty());
        families
    }

    fn quantiles(&self) -> Vec<Point> {
        let response = self.tally.latency.response();
        if response.is_empty() {
            return Vec::new();
        }
        let point = |(name, quantile): (&str, f64)| Point {
            labels: vec![("quantile", name.to_owned())],
            value: response.quantile(quantile) as f64 / 1e9,
        };
        QUANTILES.map(point).to_vec()
    }

    fn endpoints(&self) -> Vec<Point> {
        let labels = self.labels.iter().zip(self.tally.labels());
        let points = |(name, label): (&String, &gake_core::record::LabelTally)| {
            let counts = [("ok", label.counts.ok), ("failed", label.counts.failed)];
            counts.map(|(outcome, count)| Point {
                labels: vec![("name", name.clone()), ("outcome", outcome.to_owned())],
                value: count as f64,
            })
        };
        labels.flat_map(points).collect()
    }

    fn target(&self) -> Vec<Point> {
        let point = |reading: &GaugeReading| Point {
            labels: vec![("level", reading.name.clone()), ("source", reading.source.clone())],
            value: reading.value,
        };
        self.readings.iter().map(point).collect()
    }
}

fn verdict_families(verdict: &ExportVerdict) -> [Family; 2] {
    let validity = Point { labels: Vec::new(), value: verdict.level as f64 };
    let objectives = [("met", verdict.met), ("missed", verdict.missed)];
    let objectives = objectives.map(|(state, count)| Point {
        labels: vec![("state", state.to_owned())],
        value: count as f64,
    });
    [
        gauge(
            "gake_run_validity",
            "Of a finished run: 0 valid, 1 suspect, 2 invalid, 3 nothing ok.",
            vec![validity],
        ),
        gauge("gake_run_objectives", "Objectives of a finished run.", objectives.to_vec()),
    ]
}

fn counter(name: &'static str, help: &'static str, points: Vec<Point>) -> Family {
    Family { name, help, is_counter: true, points }
}

fn gauge(name: &'static str, help: &'static str, points: Vec<Point>) -> Family {
    Family { name, help, is_counter: false, points }
}

/// How many values lie at or under each bound; the last is all of them.
pub(super) fn cumulative(histogram: &Histogram) -> Vec<(String, u64)> {
    let bound = |bound: f64| (bound.to_string(), histogram.count_up_to((bound * 1e9) as u64));
    let mut buckets: Vec<_> = BOUNDS.map(bound).to_vec();
    buckets.push(("+Inf".to_owned(), histogram.count()));
    buckets
}
