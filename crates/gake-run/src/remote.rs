//! Runs whose workers are in other processes.

use gake_core::record::Run;
use gake_engine::RunHandle;

use crate::drive::Workers;
use crate::{Beside, Moment, Prepared, Recorded, RunError};

/// Workers in other processes, ready to start.
pub trait RemoteWorkers {
    /// Starts them.
    ///
    /// # Errors
    /// When one of them cannot be started; none goes on then.
    fn start(&mut self) -> Result<RunHandle, RunError>;

    /// When the run starts, if [`start`](RemoteWorkers::start) follows now, or has started: in ns
    /// since 1970.
    fn started_unix_ns(&self) -> u64;

    /// Completes the run with what only the other processes know. Called after the last message.
    fn complete(&mut self, run: &mut Run);
}

impl Prepared {
    /// As [`Prepared::run_beside`], with workers in other processes.
    ///
    /// # Errors
    /// When a sink cannot take the run or wants every request, which stay where they are sent, or
    /// the workers cannot be started.
    pub fn run_elsewhere(
        &self,
        remote: &mut dyn RemoteWorkers,
        beside: Beside<'_>,
        each: impl FnMut(&Moment<'_>) -> Option<String> + Send,
    ) -> Result<Recorded, RunError> {
        self.drive(Elsewhere(remote), beside, each)
    }
}

struct Elsewhere<'a>(&'a mut dyn RemoteWorkers);

impl Workers for Elsewhere<'_> {
    fn started_unix_ns(&self) -> u64 {
        self.0.started_unix_ns()
    }

    fn start(&mut self, log: Option<gake_engine::LogSender>) -> Result<RunHandle, RunError> {
        if log.is_some() {
            let why = "the requests of a fleet are not passed on one by one: leave out --log and \
                       destinations that take every request; `gake agent --log` logs those of an \
                       agent";
            return Err(RunError::Sink(why.to_owned()));
        }
        self.0.start()
    }

    fn complete(&mut self, run: &mut Run) {
        self.0.complete(run);
    }
}
