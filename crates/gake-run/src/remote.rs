//! Runs whose workers are in other processes.

use gake_core::record::Run;
use gake_engine::RunHandle;

use crate::drive::Workers;
use crate::{EachSecond, RecordedRun, ResolvedRun, RunError, RunOptions};

/// Workers in other processes, ready to start.
pub trait RemoteWorkers {
    /// Starts the workers.
    ///
    /// # Errors
    /// When one of them cannot be started; all are stopped then.
    fn start(&mut self) -> Result<RunHandle, RunError>;

    /// The start of the run in Unix nanoseconds: the actual one, or the expected one if
    /// [`start`](RemoteWorkers::start) follows immediately.
    fn started_unix_ns(&self) -> u64;

    /// Adds what only the other processes know. Called after the last message.
    fn complete(&mut self, run: &mut Run);
}

impl ResolvedRun {
    /// As [`ResolvedRun::run_with`], with workers in other processes.
    ///
    /// # Errors
    /// When a sink cannot take the run or needs every request, or the workers cannot be started.
    pub fn run_remote(
        &self,
        remote: &mut dyn RemoteWorkers,
        options: RunOptions<'_>,
        each: &mut EachSecond<'_>,
    ) -> Result<RecordedRun, RunError> {
        self.drive(&mut RemoteAdapter(remote), options, each)
    }
}

struct RemoteAdapter<'a>(&'a mut dyn RemoteWorkers);

impl Workers for RemoteAdapter<'_> {
    fn started_unix_ns(&self) -> u64 {
        self.0.started_unix_ns()
    }

    fn start(&mut self, log: Option<gake_engine::LogSender>) -> Result<RunHandle, RunError> {
        if log.is_some() {
            let why = "agents do not send outcomes of single requests: leave out --log and \
                       destinations that take every request; `gake agent --log` logs them on \
                       an agent";
            return Err(RunError::Sink(why.to_owned()));
        }
        self.0.start()
    }

    fn complete(&mut self, run: &mut Run) {
        self.0.complete(run);
    }
}
