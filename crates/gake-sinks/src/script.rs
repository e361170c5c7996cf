//! The metrics of a script for Prometheus in k6's form, for dashboards made for k6.

use std::sync::Arc;
use std::time::{Duration, Instant};

use gake_core::clock::Nanos;
use gake_core::metric::{Definition, SeriesTable, Tags};

use crate::address::SinkAddress;
use crate::carrier::{Carrier, Push, RETRY};
use crate::format::{self, TrendFigure, Trends, script_request};
use crate::spill::Spill;

const USUAL_FIGURES: &str = "p(99)";

/// Tags with too many values for an index.
const UNLABELLED: [&str; 2] = ["vu", "iter"];

/// Sends the series of a script's metrics to a database during a run: totals so far, at intervals.
pub struct ScriptSeries {
    name: String,
    tags: Vec<(String, String)>,
    trends: Trends,
    every: Duration,
    push: Push,
    /// The totals, bounded in the number of series.
    table: SeriesTable,
    written: Instant,
    /// The instant of the newest sample, in Unix milliseconds.
    newest: u64,
    /// The instant of the last write: a database accepts one sample per series and instant.
    written_ms: u64,
    is_new: bool,
    marks_end: bool,
}

impl ScriptSeries {
    /// Prepares to write to a `prometheus-rw` database at intervals. `figures` selects the figures
    /// of trends, such as `p(99),avg`; ignored with native histograms.
    ///
    /// # Errors
    /// When one of them is unknown.
    pub fn new(
        address: &SinkAddress,
        every: Duration,
        figures: Option<&str>,
        spill: &Spill,
    ) -> Result<Self, String> {
        let text = figures.unwrap_or(USUAL_FIGURES);
        let figures = TrendFigure::list(text).ok_or_else(|| {
            format!("{text:?}: write avg, min, max, med, count, sum and p(N), separated by commas")
        })?;
        let trends = if address.is_native() { Trends::Native } else { Trends::Figures(figures) };
        Ok(Self {
            name: address.to_string(),
            tags: address.tags(),
            trends,
            every,
            push: Push::new(&format::post(address), RETRY, spill),
            table: SeriesTable::default(),
            written: Instant::now(),
            newest: 0,
            written_ms: 0,
            is_new: false,
            marks_end: false,
        })
    }

    /// This writer, which at the end marks every series as ended: a query at a later instant finds
    /// none.
    #[must_use]
    pub fn marking_end(self) -> Self {
        Self { marks_end: true, ..self }
    }

    /// Checks that the database responds.
    ///
    /// # Errors
    /// One sentence on what is wrong.
    pub fn check(&mut self) -> Result<(), String> {
        self.push.check()
    }

    /// Adds a sample; times in nanoseconds.
    pub fn write(&mut self, metric: &Arc<Definition>, tags: &Tags, value: f64, unix_ns: i128) {
        // As in k6, tags that differ by user and iteration are no labels.
        let has = |name: &&&str| tags.get(name).is_some();
        let tags =
            UNLABELLED.iter().filter(has).fold(tags.clone(), |tags, name| tags.without(name));
        let series = self.table.intern(metric, &tags);
        self.table.add(series, value, Nanos::try_from(unix_ns).unwrap_or(0));
        self.newest = self.newest.max(u64::try_from(unix_ns / 1_000_000).unwrap_or(0));
        self.is_new = true;
    }

    /// Sends the totals when it is time; call it about once a second.
    pub fn tick(&mut self) {
        if self.written.elapsed() >= self.every {
            self.flush();
        }
    }

    /// Ends the writing. Blocks until everything is delivered or given up; returns one sentence on
    /// losses.
    pub fn finish(&mut self) -> Option<String> {
        self.flush();
        if self.marks_end && self.written_ms > 0 {
            self.send(self.written_ms + 1, true);
        }
        self.push.finish();
        self.push.lost().sentence(&self.name)
    }

    fn flush(&mut self) {
        if std::mem::take(&mut self.is_new) {
            self.written_ms = self.newest.max(self.written_ms + 1);
            self.send(self.written_ms, false);
        }
        self.written = Instant::now();
    }

    fn send(&mut self, instant: u64, is_stale: bool) {
        let trends = (&self.trends, is_stale);
        self.push.carry(script_request(&self.table, &self.tags, trends, instant));
    }
}
