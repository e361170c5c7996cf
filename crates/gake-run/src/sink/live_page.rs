//! A page that shows the run in browsers while it goes on, and becomes its report.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use gake_core::clock::Nanos;
use gake_core::record::{GaugeReading, Run};
use gake_judge::{Objective, Summary};
use gake_report::html::PageControl;
use gake_report::{RunSoFar, html};
use gake_sinks::{LiveControls, LiveServer, PageFrame};

use super::{Sink, SinkSecond, SinkStart};
use crate::{RateControl, RunError};

/// Bytes that a viewer is sent a second on average: updates of a large page come less often.
const BYTES_A_SECOND: usize = 200_000;

/// Serves the page of a run. Viewers come and go at any time, see the whole run so far, and are
/// bounded in number; none of them delays the run.
#[derive(Debug)]
pub struct LivePage {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    server: LiveServer,
    objectives: Vec<Objective>,
    has_stop: bool,
    /// What the page changes the rate with.
    rate: Option<RateControl>,
}

impl LivePage {
    /// Listens at `HOST:PORT`. With `controls` the page has a button that ends the run, with `rate`
    /// it shows how the rate was changed.
    ///
    /// # Errors
    /// When it cannot listen there, or this gake was built without the page.
    pub fn bind(
        address: &str,
        objectives: Vec<Objective>,
        controls: Option<LiveControls>,
        rate: Option<RateControl>,
    ) -> Result<Self, RunError> {
        let [before, after] = html::frame().map_err(RunError::cannot)?;
        let has_stop = controls.is_some();
        let server = LiveServer::bind(address, PageFrame { before, after }, controls)
            .map_err(RunError::Sink)?;
        Ok(Self { shared: Arc::new(Shared { server, objectives, has_stop, rate }) })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.shared.server.address()
    }

    /// The sink that keeps the page up to date.
    #[must_use]
    pub fn sink(&self) -> Box<dyn Sink> {
        Box::new(LivePageSink { shared: Arc::clone(&self.shared), so_far: None, next: 0 })
    }

    /// Makes the page the report of the run. Waits, for seconds at most, until every viewer has
    /// it, and before that up to `first` for a first viewer.
    pub fn finish(self, summary: &Summary, first: Duration) {
        self.shared.server.finish(html::run_data(summary), first);
    }
}

struct LivePageSink {
    shared: Arc<Shared>,
    so_far: Option<RunSoFar>,
    /// The second from which on there may be an update.
    next: u64,
}

impl LivePageSink {
    /// Shows the run so far; how many bytes that takes.
    fn show(&self, so_far: &RunSoFar) -> usize {
        let Shared { server, objectives, has_stop, rate } = &*self.shared;
        // 1.1 times 100 is not 110.
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
        let so_far = RunSoFar::new(plan, run.started_unix_ns, run.origin, run.settings);
        self.show(&so_far);
        self.so_far = Some(so_far);
        let started = self.shared.server.start();
        started.map_err(|error| format!("{}: {error}", self.name()))
    }

    fn second(&mut self, second: &SinkSecond) -> io::Result<()> {
        let Some(mut so_far) = self.so_far.take() else { return Ok(()) };
        so_far.second(&second.as_recorded());
        let number = second.second.second;
        if number >= self.next && self.shared.server.has_viewers() {
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
