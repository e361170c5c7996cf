//! Files written while the run goes on. They are created before it, so that a bad path costs
//! nothing; a disk that fills costs the file and not the run.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

use gake_core::clock::Nanos;
use gake_core::plan::Plan;
use gake_core::record::{Reading, Run, Setting};
use gake_engine::{Batch, LogSender, Second, log_channel};
use gake_report::{Log, LogFormat, RunFile};

use crate::cli::OutputArgs;
use crate::exit::Failure;

/// Batches that may wait for the log's writer: 4 MiB or so.
const LOG_QUEUE: usize = 16;

/// Nanoseconds since 1970.
pub fn unix_now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |since| since.as_nanos() as u64)
}

/// The files of a run.
#[derive(Debug)]
pub struct Outputs {
    /// When the run starts, in Unix nanoseconds: it follows at once.
    pub started_unix_ns: u64,
    run_file: Option<(PathBuf, RunFile)>,
    log: Option<(PathBuf, JoinHandle<io::Result<()>>)>,
    /// What was lost, a sentence a file.
    losses: Vec<String>,
}

impl Outputs {
    /// Creates the files asked for. The sender is the log's, to be given to the workers.
    ///
    /// # Errors
    /// When one cannot be written.
    pub fn create(args: &OutputArgs, plan: &Plan) -> Result<(Self, Option<LogSender>), Failure> {
        let mut outputs = Self::run_file(args.out.as_deref(), plan)?;
        let started_unix_ns = outputs.started_unix_ns;
        let Some(path) = &args.log else { return Ok((outputs, None)) };
        let format = LogFormat::of_path(path).ok_or_else(|| {
            Failure::usage(format!("{}: a log ends in .csv or .json", path.display()))
        })?;
        let file = File::create(path).map_err(|error| cannot(path, &error))?;
        let log = Log::new(
            BufWriter::with_capacity(1 << 18, file),
            format,
            started_unix_ns,
            &plan.labels,
        )
        .map_err(|error| cannot(path, &error))?;
        // No answers are kept for it.
        let (sender, receiver) = log_channel(LOG_QUEUE, usize::MAX);
        let writer = std::thread::Builder::new()
            .name("gake-log".to_owned())
            .spawn(move || write_log(log, &receiver))
            .map_err(Failure::could_not)?;
        outputs.log = Some((path.to_owned(), writer));
        Ok((outputs, Some(sender)))
    }

    /// The run file alone, when a path is given.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn run_file(path: Option<&Path>, plan: &Plan) -> Result<Self, Failure> {
        let started_unix_ns = unix_now();
        let file = path.map(|path| {
            let file =
                RunFile::create(path, plan, started_unix_ns).map_err(|e| cannot(path, &e))?;
            Ok::<_, Failure>((path.to_owned(), file))
        });
        Ok(Self { started_unix_ns, run_file: file.transpose()?, log: None, losses: Vec::new() })
    }

    /// Writes one second.
    pub fn second(&mut self, second: &Second, asked: Option<f64>) {
        let Some((path, file)) = &mut self.run_file else { return };
        let written = file.second(&gake_report::Second {
            at: second.second.saturating_sub(1),
            asked,
            tally: &second.tally,
            warmup: &second.warmup,
            gauges: second.gauges,
            cpu: second.cpu,
        });
        if let Err(error) = written
            && self.losses.is_empty()
        {
            let path = path.display();
            self.losses.push(format!("{path}: seconds of the run file are lost: {error}"));
        }
    }

    /// Writes what the watched target said at an instant.
    pub fn watched(&mut self, at: Nanos, readings: &[Reading]) {
        self.write_watched(|file| file.watched(at, readings));
    }

    /// Writes the settings in force at the watched target.
    pub fn settings(&mut self, settings: &[Setting]) {
        self.write_watched(|file| file.settings(settings));
    }

    fn write_watched(&mut self, write: impl FnOnce(&mut RunFile) -> io::Result<()>) {
        let Some((path, file)) = &mut self.run_file else { return };
        if let Err(error) = write(file)
            && self.losses.is_empty()
        {
            let path = path.display();
            self.losses.push(format!("{path}: what the target said is lost: {error}"));
        }
    }

    /// Writes the ends. Returns what was lost on the way, a sentence a file.
    pub fn finish(mut self, run: &Run, log_lost: u64) -> Vec<String> {
        if let Some((path, file)) = self.run_file
            && let Err(error) = file.finish(run)
            && self.losses.is_empty()
        {
            self.losses.push(format!("{}: the run file has no end: {error}", path.display()));
        }
        if let Some((path, writer)) = self.log {
            let path = path.display();
            match writer.join() {
                Ok(Ok(())) => {}
                Ok(Err(error)) => self.losses.push(format!("{path}: the log is cut: {error}")),
                Err(_) => self.losses.push(format!("{path}: the log's writer failed")),
            }
            if log_lost > 0 {
                self.losses.push(format!(
                    "{path}: {log_lost} requests are not in the log, whose disk was too slow; they \
                     are in the figures"
                ));
            }
        }
        self.losses
    }
}

fn cannot(path: &Path, error: &dyn std::fmt::Display) -> Failure {
    Failure::could_not(format!("{} cannot be written: {error}", path.display()))
}

/// Writes until every sender is gone; after an error it goes on taking, so that nobody waits.
fn write_log(mut log: Log<BufWriter<File>>, receiver: &Receiver<Batch>) -> io::Result<()> {
    let mut result = Ok(());
    for batch in receiver {
        if result.is_ok() {
            result = log.write(&batch);
        }
    }
    result.and_then(|()| log.flush())
}
