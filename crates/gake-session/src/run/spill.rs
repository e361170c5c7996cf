//! Figures that a destination has not taken: where they wait, and their delivery after the run.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use gake_run::Interrupt;
use gake_sinks::Spill;

use gake_text::redact::{Redactor, SecretNames};

use crate::Console;

/// The most that waits on disk unless the user gives a size.
const USUAL_MAX: u64 = 2_000_000_000;
/// Time before the first note on a delivery, and between two.
const NOTES: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(10)];

/// The queues of a run's destinations, and the delivery of what they hold after the run.
#[derive(Debug, Clone)]
pub struct SinkDrain {
    spill: Spill,
    interrupt: Arc<OnceLock<Interrupt>>,
}

/// The delivery in progress.
#[derive(Debug)]
struct Delivery {
    /// Whether the run was interrupted before.
    was_interrupted: bool,
    next_note: Instant,
}

impl SinkDrain {
    /// Queues of at most `size` bytes in the folder of the file `beside`; by default 2 GB or a tenth
    /// of the free disk in the folder for temporary files.
    pub fn new(size: Option<u64>, beside: Option<&Path>, console: &Console) -> Self {
        let folder =
            beside.and_then(Path::parent).map(|folder| match folder.as_os_str().is_empty() {
                true => PathBuf::from("."),
                false => folder.to_owned(),
            });
        let folder = folder.unwrap_or_else(std::env::temp_dir);
        let bytes = size.unwrap_or_else(|| USUAL_MAX.min(free(&folder) / 10));
        let interrupt = Arc::<OnceLock<Interrupt>>::default();
        let watch = watcher(Arc::clone(&interrupt), *console);
        let spill = Spill { folder: Some(folder), bytes, watch: Some(Arc::new(watch)) };
        Self { spill, interrupt }
    }

    /// The queues' place and bounds.
    pub fn spill(&self) -> &Spill {
        &self.spill
    }

    /// A signal during the delivery ends it from now on; if the run was interrupted before, the
    /// second one does.
    pub fn obey(&self, interrupt: &Interrupt) {
        // A run has one interrupt.
        let _ = self.interrupt.set(interrupt.clone());
    }
}

/// Shows the delivery, and ends it at a signal.
fn watcher(
    interrupt: Arc<OnceLock<Interrupt>>,
    console: Console,
) -> impl Fn(&str, u64) -> bool + Send + Sync {
    let delivery = Mutex::<Option<Delivery>>::default();
    move |name, rows| {
        let mut delivery = delivery.lock().unwrap_or_else(PoisonError::into_inner);
        let interrupt = interrupt.get();
        let begun = || Delivery {
            was_interrupted: interrupt.is_some_and(Interrupt::came),
            next_note: Instant::now() + NOTES[0],
        };
        let delivery = delivery.get_or_insert_with(begun);
        let ends = interrupt.is_some_and(|interrupt| match delivery.was_interrupted {
            true => interrupt.is_urgent(),
            false => interrupt.came(),
        });
        if !ends && Instant::now() >= delivery.next_note {
            delivery.next_note = Instant::now() + NOTES[1];
            let name = Redactor::masking(SecretNames::default()).urls(name);
            console.note(&format!(
                "{name}: {rows} figures are still to be delivered; Ctrl-C drops them"
            ));
        }
        !ends
    }
}

/// Free bytes of the file system of a folder; 0 if unknown.
fn free(folder: &Path) -> u64 {
    rustix::fs::statvfs(folder).map_or(0, |disk| disk.f_bavail.saturating_mul(disk.f_frsize))
}

#[cfg(test)]
mod tests {
    use gake_engine::Stop;

    use super::*;

    #[test]
    fn the_queue_is_beside_the_run_and_bounded_by_its_disk() {
        let console = Console::new();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("run.hlog");
        let drain = SinkDrain::new(None, Some(&file), &console);
        assert_eq!(drain.spill().folder.as_deref(), Some(folder.path()));
        assert!(drain.spill().bytes <= USUAL_MAX);
        let drain = SinkDrain::new(Some(5), Some(Path::new("run.hlog")), &console);
        assert_eq!(drain.spill().folder.as_deref(), Some(Path::new(".")));
        assert_eq!(drain.spill().bytes, 5);
    }

    #[test]
    fn a_signal_ends_the_delivery_and_after_an_interrupted_run_the_second_does() {
        let goes_on = |drain: &SinkDrain| drain.spill().watch.as_ref().unwrap()("db", 1);
        let drain = || SinkDrain::new(Some(0), None, &Console::new());
        let (completed, interrupt) = (drain(), Interrupt::default());
        completed.obey(&interrupt);
        assert!(goes_on(&completed));
        interrupt.stop(Stop::Drain);
        assert!(!goes_on(&completed));
        let interrupted = drain();
        interrupted.obey(&interrupt);
        assert!(goes_on(&interrupted));
        interrupt.insist();
        assert!(!goes_on(&interrupted));
    }
}
