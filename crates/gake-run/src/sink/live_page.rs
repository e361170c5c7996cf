//! The live page: shows the run in browsers, and becomes its report.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use gake_core::clock::Nanos;
use gake_core::record::{GaugeReading, Run};
use gake_judge::{Objective, Summary};
use gake_report::html::PageControl;
use gake_report::{PartialRun, html};
use gake_sinks::{LiveControls, LiveServer, PageFrame};

use super::{Sink, SinkSecond, SinkStart};
use crate::{RateControl, RunError};

/// Average bytes a second for each viewer: larger pages are updated less often.
const BYTES_A_SECOND: usize = 200_000;

/// Serves the page of a run. Viewers may come and go at any time, and see the whole run so far.
/// Their number is bounded, and they do not delay the run.
#[derive(Debug)]
pub struct LivePage {
    state: Arc<LivePageState>,
}

#[derive(Debug)]
struct LivePageState {
    server: LiveServer,
    objectives: Vec<Objective>,
    has_stop: bool,
    /// The rate control, whose factor the page shows.
    rate: Option<RateControl>,
}

impl LivePage {
    /// Listens at `HOST:PORT`. With `controls` the page has a button that ends the run; with `rate`
    /// it shows changes of the rate.
    ///
    /// # Errors
    /// When it cannot listen there, or this build lacks the page.
    pub fn bind(
        address: &str,
        objectives: Vec<Objective>,
        controls: Option<LiveControls>,
        rate: Option<RateControl>,
    ) -> Result<Self, RunError> {
        let [before, after] = html::frame();
        let has_stop = controls.is_some();
        let server = LiveServer::bind(address, PageFrame { before, after }, controls)
            .map_err(RunError::Sink)?;
        Ok(Self { state: Arc::new(LivePageState { server, objectives, has_stop, rate }) })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.state.server.address()
    }

    /// The sink that updates the page.
    #[must_use]
    pub fn sink(&self) -> Box<dyn Sink> {
        Box::new(LivePageSink { state: Arc::clone(&self.state), so_far: None, next: 0 })
    }

    /// Turns the page into the report of the run. Waits a few seconds until every viewer has it,
    /// and before that up to `first` for a first viewer.
    pub fn finish(self, summary: &Summary, first: Duration) {
        self.state.server.finish(html::run_data(summary), first);
    }
}

struct LivePageSink {
    state: Arc<LivePageState>,
    so_far: Option<PartialRun>,
    /// The second of the next update at the earliest.
    next: u64,
}

impl LivePageSink {
    /// Shows the run so far, and returns the size in bytes.
    fn show(&self, so_far: &PartialRun) -> usize {
        let LivePageState { server, objectives, has_stop, rate } = &*self.state;
        // In floating point, 1.1 times 100 is not 110.
        let rate_percent = rate.as_ref().map(|rate| (rate.factor() * 100.0).round());
        let control = PageControl { stop: *has_stop, rate_percent };
        let data = html::running_data(&Summary::new(so_far.run(), objectives), control);
        let length = data.len();
        server.show(data);
        length
    }
}

impl Sink for LivePageSink {
    fn name(&self) -> String {
        "the live page".to_owned()
    }

    fn begin(&mut self, run: &SinkStart<'_>) -> Result<(), String> {
        let plan = run.plan.clone();
        let so_far = PartialRun::new(plan, run.started_unix_ns, run.origin, run.settings);
        self.show(&so_far);
        self.so_far = Some(so_far);
        let started = self.state.server.start();
        started.map_err(|error| format!("{}: {error}", self.name()))
    }

    fn second(&mut self, second: &SinkSecond) -> io::Result<()> {
        let Some(mut so_far) = self.so_far.take() else { return Ok(()) };
        so_far.second(&second.as_recorded());
        let number = second.second.second;
        if number >= self.next && self.state.server.has_viewers() {
            self.next = number + self.show(&so_far).div_ceil(BYTES_A_SECOND) as u64;
        }
        self.so_far = Some(so_far);
        Ok(())
    }

    fn readings(&mut self, at: Nanos, readings: &[GaugeReading]) -> io::Result<()> {
        if let Some(so_far) = &mut self.so_far {
            so_far.watched(at, readings);
        }
        Ok(())
    }

    fn end(&mut self, _: &Run) -> io::Result<()> {
        Ok(())
    }
}
