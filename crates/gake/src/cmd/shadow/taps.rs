//! The listeners of a proxy's exchanges: the comparison and the recording, each on its own thread
//! behind a bounded queue.

use std::path::{Path, PathBuf};
use std::sync::mpsc::RecvTimeoutError;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use gake_run::unix_now;
use gake_shadow::compare::judge::{ShadowReport, Terms, judge};
use gake_shadow::compare::{ComparisonRules, ShadowComparison, file};
use gake_shadow::config::Config;
use gake_shadow::exchange::Role;
use gake_shadow::traffic::Record;
use gake_shadow::traffic::gakerec::{RecordingHead, RecordingWriter};
use gake_shadow::{Exchanges, Proxy};
use gake_text::redact::Redactor;
use gake_text::units::{count, plural};

use crate::cli::TapArgs;
use gake_session::Failure;
use gake_session::files::distinct;

/// Maximum exchanges queued for the comparison, and for the recording.
const QUEUE: usize = 4_096;

/// How often the comparison's file is replaced.
const SAVE_EVERY: Duration = Duration::from_secs(10);

/// Maximum time that the recording buffers requests before it writes them.
const FLUSH_AFTER: Duration = Duration::from_secs(1);

/// Maximum bytes of a rules file.
const RULES_BYTES_MAX: u64 = 16 << 20;

/// The listening threads.
#[derive(Debug, Default)]
pub struct Taps {
    comparing: Option<JoinHandle<Compared>>,
    recording: Option<(PathBuf, JoinHandle<Recorded>)>,
}

/// The outcome of a comparison.
#[derive(Debug)]
struct Compared {
    comparisons: Vec<ShadowComparison>,
    rules: ComparisonRules,
    lost: Option<String>,
}

/// The outcome of a recording.
#[derive(Debug)]
struct Recorded {
    records: u64,
    missed: u64,
    lost: Option<String>,
}

impl Taps {
    /// Starts the requested listeners.
    ///
    /// # Errors
    /// When a file cannot be read or written, or two outputs are the same file.
    pub fn start(
        args: &TapArgs,
        config: &Config,
        redactor: &Redactor,
        proxy: &mut Proxy,
    ) -> Result<Self, Failure> {
        let outputs = [&args.record, &args.diff_out].into_iter().flatten();
        distinct(outputs.map(PathBuf::as_path), args.rules.iter().map(PathBuf::as_path))?;
        let mut taps = Self::default();
        if let Some(path) = &args.record {
            let head = RecordingHead { started_unix_ns: unix_now() };
            let limit = config.limits.shadow_body as usize;
            let writer = RecordingWriter::create(path, head, redactor.clone(), limit)
                .map_err(|e| cannot(path, &e))?;
            let exchanges = proxy.exchanges(QUEUE);
            let thread = spawn("gake-record", move || record(writer, head, &exchanges))?;
            taps.recording = Some((path.clone(), thread));
        }
        if args.diff_out.is_none() && !args.diff {
            return Ok(taps);
        }
        let mut rules = rules(&args.rules)?;
        for (name, _) in config.shadows.iter().filter_map(|shadow| shadow.marker.as_ref()) {
            rules.ignore_marker(name.as_str());
        }
        let shadows = config.shadows.iter().filter(|shadow| shadow.role == Role::Shadow);
        let mut comparisons: Vec<_> =
            shadows.map(|shadow| ShadowComparison::new(&shadow.backend.name)).collect();
        if comparisons.is_empty() {
            return Err(Failure::usage("there is no shadow to compare with the master: --shadow"));
        }
        let path = args.diff_out.clone();
        if let Some(path) = &path {
            file::write(path, &comparisons).map_err(|error| cannot(path, &error))?;
        }
        let exchanges = proxy.exchanges(QUEUE);
        let redactor = redactor.clone();
        let compare = move || {
            let lost = compare(&mut comparisons, &rules, &redactor, path.as_deref(), &exchanges);
            Compared { comparisons, rules, lost }
        };
        taps.comparing = Some(spawn("gake-compare", compare)?);
        Ok(taps)
    }

    /// Waits until both have ended. Returns the comparison's reports, and notes for the user.
    pub fn finish(self, terms: Terms) -> (Vec<ShadowReport>, Vec<String>) {
        let mut notes = Vec::new();
        if let Some((path, thread)) = self.recording {
            let path = path.display();
            match thread.join() {
                Ok(Recorded { records, missed, lost }) => {
                    notes.push(format!("{path}: {} recorded", plural(records, "request")));
                    if missed > 0 {
                        let missed = count(missed);
                        notes.push(format!(
                            "{path}: {missed} are missing: the writer was too slow (disk or CPU)"
                        ));
                    }
                    notes
                        .extend(lost.map(|error| format!("{path}: the recording is cut: {error}")));
                }
                Err(_) => notes.push(format!("{path}: the recording failed; this is a bug")),
            }
        }
        let mut reports = Vec::new();
        match self.comparing.map(JoinHandle::join) {
            Some(Ok(Compared { comparisons, rules, lost })) => {
                reports.extend(comparisons.iter().map(|one| judge(one, &rules, terms)));
                notes.extend(lost);
            }
            Some(Err(_)) => notes.push("the comparison failed; this is a bug".to_owned()),
            None => {}
        }
        (reports, notes)
    }
}

/// The rules of all files, merged.
///
/// # Errors
/// Names the file and what is wrong with it.
pub fn rules(paths: &[PathBuf]) -> Result<ComparisonRules, Failure> {
    let mut rules = ComparisonRules::default();
    for path in paths {
        let text = gake_files::read_to_string(path, "rules", RULES_BYTES_MAX)
            .map_err(Failure::could_not)?;
        let parsed = ComparisonRules::parse(&text)
            .map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
        rules.merge(parsed);
    }
    Ok(rules)
}

fn cannot(path: &Path, error: &dyn std::fmt::Display) -> Failure {
    Failure::could_not(format!("{} cannot be written: {error}", path.display()))
}

fn spawn<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, Failure> {
    std::thread::Builder::new().name(name.to_owned()).spawn(body).map_err(Failure::could_not)
}

/// Compares until the proxy has ended. Returns the error if the file could not be written.
fn compare(
    comparisons: &mut [ShadowComparison],
    rules: &ComparisonRules,
    redactor: &Redactor,
    path: Option<&Path>,
    exchanges: &Exchanges,
) -> Option<String> {
    let save = |comparisons: &[ShadowComparison]| {
        let path = path?;
        let error = file::write(path, comparisons).err()?;
        Some(format!("{} cannot be written: {error}", path.display()))
    };
    let mut saved = Instant::now();
    loop {
        match exchanges.next_within(SAVE_EVERY) {
            Ok(exchange) => {
                comparisons.iter_mut().for_each(|one| one.observe(&exchange, rules, redactor));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return save(comparisons),
        }
        if saved.elapsed() >= SAVE_EVERY {
            // Only the last attempt is reported.
            let _ = save(comparisons);
            saved = Instant::now();
        }
    }
}

/// Records until the proxy has ended; after an error it keeps draining the queue.
fn record(
    mut writer: RecordingWriter<std::io::BufWriter<std::fs::File>>,
    head: RecordingHead,
    exchanges: &Exchanges,
) -> Recorded {
    let mut lost = None;
    let mut flushed = Instant::now();
    loop {
        let result = match exchanges.next_within(FLUSH_AFTER) {
            Ok(exchange) if lost.is_none() => {
                let offset = exchange.received_unix_ns.saturating_sub(head.started_unix_ns);
                writer.write(Record::of(&exchange.request, offset))
            }
            Ok(_) | Err(RecvTimeoutError::Timeout) => Ok(()),
            Err(RecvTimeoutError::Disconnected) => break,
        };
        let due = flushed.elapsed() >= FLUSH_AFTER && lost.is_none();
        let result = result.and_then(|()| if due { writer.flush() } else { Ok(()) });
        if due {
            flushed = Instant::now();
        }
        lost = lost.or(result.err().map(|error| error.to_string()));
    }
    let last = writer.flush().err().map(|error| error.to_string());
    Recorded { records: writer.records(), missed: exchanges.dropped(), lost: lost.or(last) }
}
