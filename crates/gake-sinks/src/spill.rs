//! The queue before a destination: in memory, then in a bounded file beside the run.
//!
//! The file has no name, so that nothing remains of it, whatever happens. It is written in segments,
//! each freed when it was read.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rustix::process::{Resource, getrlimit};

use crate::carrier::{FigureBatch, LostFigures};

/// Maximum bytes of a segment.
const SEGMENT_MAX: u64 = 64 << 20;
/// Bytes before each batch in a segment: its length and its rows.
const HEADER: usize = 16;
/// Memory kept for figures when there is no room for samples.
const RESERVE_MAX: usize = 8 << 20;
/// The reason for losses at a destination that responds.
pub(crate) const TOO_SLOW: &str = "the destination is too slow";

/// Follows the delivery after a run: the destination and the rows that it has not taken. Whether to
/// go on.
pub type DrainWatch = Arc<dyn Fn(&str, u64) -> bool + Send + Sync>;

/// Where data waits that a destination has not taken, beyond a few MiB of memory.
#[derive(Clone, Default)]
pub struct Spill {
    /// The folder of the file; none without.
    pub folder: Option<PathBuf>,
    /// Maximum bytes of the file.
    pub bytes: u64,
    /// Called about once a second while data is delivered after the run.
    pub watch: Option<DrainWatch>,
}

impl Spill {
    /// The delivery of `rows` to `name` continues, unless its watcher ends it.
    pub(crate) fn goes_on(&self, name: &str, rows: u64) -> bool {
        self.watch.as_ref().is_none_or(|watch| watch(name, rows))
    }
}

impl std::fmt::Debug for Spill {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { folder, bytes, .. } = self;
        f.debug_struct("Spill")
            .field("folder", folder)
            .field("bytes", bytes)
            .finish_non_exhaustive()
    }
}

/// What is dropped first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Importance {
    /// Counts, users, checks, figures of a second.
    Figures,
    /// Single samples.
    Samples,
}

/// Batches in order. Only at its bounds is anything lost: the newest samples, counted.
#[derive(Debug, Default)]
pub(crate) struct SpillQueue {
    spill: Spill,
    memory_max: usize,
    /// The oldest batches.
    head: VecDeque<FigureBatch>,
    head_bytes: usize,
    segments: VecDeque<Segment>,
    spilled: u64,
    /// Figures that found no room elsewhere.
    reserve: VecDeque<FigureBatch>,
    reserve_bytes: usize,
    rows: u64,
    pub(crate) lost: LostFigures,
}

#[derive(Debug)]
struct Segment {
    file: File,
    read: u64,
    written: u64,
    /// Rows not yet read.
    rows: u64,
}

impl SpillQueue {
    pub(crate) fn new(memory_max: usize, spill: Spill) -> Self {
        Self { spill, memory_max, ..Self::default() }
    }

    /// Rows that wait.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Adds a batch, or counts it as lost for `why`, unless it is too slow.
    pub(crate) fn push(&mut self, batch: FigureBatch, importance: Importance, why: Option<&str>) {
        if batch.rows == 0 {
            return;
        }
        let rows = batch.rows;
        match self.add(batch, importance) {
            Ok(()) => self.rows += rows,
            Err(full) => {
                let why = why.unwrap_or(TOO_SLOW);
                self.lost.add(
                    rows,
                    full.map_or_else(|| why.into(), |full| format!("{why}, and {full}")),
                );
            }
        }
    }

    /// The error says why the file takes nothing.
    fn add(&mut self, batch: FigureBatch, importance: Importance) -> Result<(), Option<String>> {
        let length = batch.bytes.len();
        if self.segments.is_empty() && self.head_bytes + length <= self.memory_max {
            self.head_bytes += length;
            self.head.push_back(batch);
            return Ok(());
        }
        let full = match self.write(&batch) {
            Ok(true) => return Ok(()),
            Ok(false) if self.spill.bytes == 0 => None,
            Ok(false) => Some(format!(
                "its queue on disk is full ({})",
                gake_text::units::bytes(self.spill.bytes as f64)
            )),
            Err(error) => Some(format!("its queue on disk takes no more: {error}")),
        };
        if importance == Importance::Figures && self.reserve_bytes + length <= RESERVE_MAX {
            self.reserve_bytes += length;
            self.reserve.push_back(batch);
            return Ok(());
        }
        Err(full)
    }

    /// Returns a batch that was not delivered to the front.
    pub(crate) fn put_back(&mut self, batch: FigureBatch) {
        self.rows += batch.rows;
        self.head_bytes += batch.bytes.len();
        self.head.push_front(batch);
    }

    /// The oldest batch.
    pub(crate) fn pop(&mut self) -> Option<FigureBatch> {
        let batch = if let Some(batch) = self.head.pop_front() {
            self.head_bytes -= batch.bytes.len();
            batch
        } else if let Some(batch) = self.read() {
            batch
        } else {
            let batch = self.reserve.pop_front()?;
            self.reserve_bytes -= batch.bytes.len();
            batch
        };
        self.rows -= batch.rows;
        Some(batch)
    }

    /// Drops everything, counted as lost.
    pub(crate) fn lose(&mut self, why: &str) {
        if self.rows > 0 {
            self.lost.add(self.rows, why);
        }
        let (spill, lost) = (std::mem::take(&mut self.spill), std::mem::take(&mut self.lost));
        *self = Self { lost, ..Self::new(self.memory_max, spill) };
    }

    /// Writes a batch to the file; `false` if it is full.
    fn write(&mut self, batch: &FigureBatch) -> io::Result<bool> {
        let length = (HEADER + batch.bytes.len()) as u64;
        if self.spilled + length > self.spill.bytes {
            return Ok(false);
        }
        // A write beyond the process's limit would end the process.
        let limit = getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX);
        if length > limit {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let has_room = |last: &Segment| last.written + length <= SEGMENT_MAX.min(limit);
        if !self.segments.back().is_some_and(has_room) {
            let Some(folder) = &self.spill.folder else { return Ok(false) };
            let file = nameless(folder)?;
            self.segments.push_back(Segment { file, read: 0, written: 0, rows: 0 });
        }
        let Some(segment) = self.segments.back_mut() else { return Ok(false) };
        let written = segment.write(batch);
        if written.is_err() && segment.written == 0 {
            self.segments.pop_back();
        }
        written?;
        self.spilled += length;
        Ok(true)
    }

    fn read(&mut self) -> Option<FigureBatch> {
        loop {
            let segment = self.segments.front_mut()?;
            if segment.read == segment.written {
                self.segments.pop_front();
                continue;
            }
            match segment.read() {
                Ok(batch) => {
                    self.spilled -= (HEADER + batch.bytes.len()) as u64;
                    return Some(batch);
                }
                Err(error) => {
                    let why = format!("its queue on disk cannot be read: {error}");
                    self.lost.add(segment.rows, why);
                    self.rows -= segment.rows;
                    self.spilled -= segment.written - segment.read;
                    self.segments.pop_front();
                }
            }
        }
    }
}

impl Segment {
    fn write(&mut self, batch: &FigureBatch) -> io::Result<()> {
        let mut header = [0; HEADER];
        header[..8].copy_from_slice(&(batch.bytes.len() as u64).to_le_bytes());
        header[8..].copy_from_slice(&batch.rows.to_le_bytes());
        self.file.write_all_at(&header, self.written)?;
        self.file.write_all_at(&batch.bytes, self.written + HEADER as u64)?;
        self.written += (HEADER + batch.bytes.len()) as u64;
        self.rows += batch.rows;
        Ok(())
    }

    fn read(&mut self) -> io::Result<FigureBatch> {
        let number = |at: u64| -> io::Result<u64> {
            let mut bytes = [0; 8];
            self.file.read_exact_at(&mut bytes, at)?;
            Ok(u64::from_le_bytes(bytes))
        };
        let (length, rows) = (number(self.read)?, number(self.read + 8)?);
        if length > self.written - self.read {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut bytes = vec![0; length as usize];
        self.file.read_exact_at(&mut bytes, self.read + HEADER as u64)?;
        self.read += HEADER as u64 + length;
        self.rows -= rows;
        Ok(FigureBatch { bytes, rows })
    }
}

/// A file without a name, which exists as long as it is open.
fn nameless(folder: &std::path::Path) -> io::Result<File> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Relaxed);
    let path = folder.join(format!(".gake-queue-{}-{number}", std::process::id()));
    // A new file only: nothing is followed or overwritten.
    let file =
        OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(number: u64, bytes: usize) -> FigureBatch {
        FigureBatch { bytes: vec![number as u8; bytes], rows: number }
    }

    fn queue(memory: usize, bytes: u64) -> (SpillQueue, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let spill = Spill { folder: Some(folder.path().to_owned()), bytes, watch: None };
        (SpillQueue::new(memory, spill), folder)
    }

    fn popped(queue: &mut SpillQueue) -> Vec<u64> {
        std::iter::from_fn(|| queue.pop()).map(|batch| batch.rows).collect()
    }

    #[test]
    fn batches_beyond_memory_wait_in_a_file_in_order() {
        let (mut queue, folder) = queue(100, 1 << 30);
        for number in 1..=9 {
            queue.push(batch(number, 40), Importance::Samples, None);
        }
        assert_eq!((queue.head.len(), queue.segments.len(), queue.rows()), (2, 1, 45));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "the file has no name");
        let first = queue.pop().unwrap();
        queue.push(batch(10, 40), Importance::Samples, None);
        queue.put_back(first);
        assert_eq!(popped(&mut queue), (1..=10).collect::<Vec<_>>());
        assert!(queue.is_empty() && queue.spilled == 0 && queue.segments.is_empty());
        // Memory is used again once the file is empty.
        queue.push(batch(1, 40), Importance::Samples, None);
        assert_eq!((queue.head.len(), queue.lost.rows), (1, 0));
    }

    #[test]
    fn at_its_bound_the_newest_samples_are_lost_and_figures_are_kept() {
        let (mut queue, _folder) = queue(0, 3 * (HEADER as u64 + 40));
        for number in 1..=5 {
            queue.push(batch(number, 40), Importance::Samples, None);
        }
        queue.push(batch(6, 40), Importance::Figures, None);
        assert_eq!(queue.lost.rows, 4 + 5);
        let why = queue.lost.why.clone().unwrap();
        assert_eq!(why, "the destination is too slow, and its queue on disk is full (168 B)");
        assert_eq!(popped(&mut queue), [1, 2, 3, 6]);
        // Segments that were read make room.
        queue.push(batch(7, 40), Importance::Samples, None);
        queue.lose("the run was interrupted");
        assert_eq!((queue.lost.rows, queue.rows(), queue.pop().is_none()), (16, 0, true));
    }

    #[test]
    fn a_full_disk_is_named_and_used_again_when_it_has_room() {
        let (mut queue, folder) = queue(0, 1 << 30);
        let away = folder.path().join("away");
        let here = queue.spill.folder.replace(away);
        queue.push(batch(1, 40), Importance::Samples, Some("connection refused"));
        queue.push(batch(2, 40), Importance::Figures, None);
        let why = queue.lost.why.clone().unwrap();
        assert!(
            why.starts_with("connection refused, and its queue on disk takes no more: "),
            "{why}"
        );
        queue.spill.folder = here;
        queue.push(batch(3, 40), Importance::Samples, None);
        assert_eq!((queue.lost.rows, popped(&mut queue)), (1, vec![3, 2]));
    }
}
