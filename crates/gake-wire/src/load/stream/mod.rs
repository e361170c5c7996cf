//! The timing of streamed responses: their events, lines, messages or chunks.

mod splitter;

use std::sync::{Arc, LazyLock};

use gake_codec::http1::ResponseHead;
use gake_core::clock::{Clock, Nanos};
use gake_core::metric::{Definition, MetricKind, MetricUnit, SeriesId, Tags};
use gake_core::work::Iteration;

use self::splitter::Splitter;

/// From the due instant of a request to the end of the first event of its response.
static FIRST: LazyLock<Arc<Definition>> =
    LazyLock::new(|| metric("stream_first", MetricKind::Trend, MetricUnit::Time));

/// From the end of an event to the end of the next one.
static GAP: LazyLock<Arc<Definition>> =
    LazyLock::new(|| metric("stream_gap", MetricKind::Trend, MetricUnit::Time));

static EVENTS: LazyLock<Arc<Definition>> =
    LazyLock::new(|| metric("stream_events", MetricKind::Counter, MetricUnit::Number));

fn metric(name: &str, kind: MetricKind, unit: MetricUnit) -> Arc<Definition> {
    Arc::new(Definition { name: name.to_owned(), kind, unit })
}

/// The metrics of streamed responses ([`ClientSettings::stream`](crate::ClientSettings)): `stream_first` and
/// `stream_gap` (trends of time), and `stream_events` (a counter).
#[must_use]
pub fn stream_metrics() -> [Arc<Definition>; 3] {
    [&FIRST, &GAP, &EVENTS].map(|metric| Arc::clone(metric))
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct StreamSeries {
    first: SeriesId,
    gap: SeriesId,
    events: SeriesId,
}

impl StreamSeries {
    pub(crate) fn of(iteration: &Iteration<'_>) -> Self {
        let intern = |metric| iteration.recorder().intern(metric, &Tags::default());
        Self { first: intern(&FIRST), gap: intern(&GAP), events: intern(&EVENTS) }
    }
}

/// Records the instants of the events of one response.
pub(crate) struct StreamVisitor<'a, C> {
    iteration: &'a Iteration<'a>,
    series: StreamSeries,
    clock: &'a C,
    splitter: Option<Splitter>,
    /// When the last event ended.
    last: Option<Nanos>,
}

impl<'a, C: Clock> StreamVisitor<'a, C> {
    pub(crate) fn new(iteration: &'a Iteration<'a>, series: StreamSeries, clock: &'a C) -> Self {
        Self { iteration, series, clock, splitter: None, last: None }
    }

    /// Starts a response. An earlier one was a redirect.
    pub(crate) fn head(&mut self, head: &ResponseHead<'_>) {
        let coding = head.get("content-encoding").unwrap_or_default().trim_ascii();
        let is_coded = !coding.is_empty() && !coding.eq_ignore_ascii_case(b"identity");
        let content_type = head.get("content-type").unwrap_or_default();
        self.splitter = Some(Splitter::new(content_type, is_coded));
        self.last = None;
    }

    pub(crate) fn body(&mut self, bytes: &[u8]) {
        let Some(splitter) = &mut self.splitter else { return };
        let events = splitter.feed(bytes);
        if events == 0 {
            return;
        }
        let Self { iteration, series, .. } = self;
        let now = self.clock.now();
        for _ in 0..events {
            match self.last.replace(now) {
                None => {
                    let waited = now.saturating_sub(iteration.arrival.due);
                    iteration.sample(series.first, waited as f64);
                }
                Some(last) => iteration.sample(series.gap, now.saturating_sub(last) as f64),
            }
        }
        iteration.sample(series.events, events as f64);
    }
}
