//! `--out json=FILE` and `--out csv=FILE`: every sample, written on a thread of its own.

use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use flate2::Compression;
use flate2::write::GzEncoder;
use gake_k6::options::Options;
use gake_k6::out::{CsvLines, JsonLines, SamplePoint, TimeFormat};
use gake_k6::test::{SampleTap, WrittenSample};

/// Batches that may wait for the disk. What comes then is lost, and counted.
const BATCHES: usize = 4_096;

/// Outputs that are being written.
pub struct Outputs {
    /// Takes the samples.
    pub tap: SampleTap,
    senders: Vec<SyncSender<Option<Batch>>>,
    threads: Vec<(String, JoinHandle<io::Result<()>>)>,
    lost: Arc<AtomicU64>,
}

enum Form {
    Json(JsonLines),
    Csv(CsvLines),
}

/// Creates the outputs of `--out`; none without any.
///
/// # Errors
/// When one is of a kind that gake does not have, or its file cannot be created.
pub fn start(
    asked: &[String],
    options: &Options,
    csv_times: Option<&str>,
) -> Result<Option<Outputs>, String> {
    let mut threads = Vec::new();
    let mut senders = Vec::new();
    for out in asked {
        let (kind, path) = out.split_once('=').unwrap_or((out, ""));
        let tags = options.system_tags.clone().unwrap_or_default();
        let form = match kind {
            "json" => {
                Form::Json(JsonLines::new(options.thresholds.clone().unwrap_or_default(), &tags))
            }
            "csv" => {
                let times = TimeFormat::parse(csv_times.unwrap_or_default());
                let times = times.ok_or("K6_CSV_TIME_FORMAT names no format of time")?;
                Form::Csv(CsvLines::new(&tags, times))
            }
            _ => {
                return Err(format!(
                    "invalid output type '{kind}', available types are: csv, json"
                ));
            }
        };
        let path = match (path, kind) {
            ("", "csv") => "file.csv",
            ("", _) => return Err(format!("--out {kind} needs a file: {kind}=FILE")),
            (path, _) => path,
        };
        let file = gake_files::create(Path::new(path), gake_files::Access::Mask)
            .map_err(|error| format!("{path}: {error}"))?;
        let file = BufWriter::new(file);
        let writer: Box<dyn Write + Send> = match path.ends_with(".gz") {
            true => Box::new(GzEncoder::new(file, Compression::fast())),
            false => Box::new(file),
        };
        let (sender, receiver) = sync_channel(BATCHES);
        senders.push(sender);
        let write = move || write(form, writer, &receiver);
        let thread = gake_engine::in_background(|| {
            std::thread::Builder::new().name("gake-out".to_owned()).spawn(write)
        });
        threads.push((path.to_owned(), thread.map_err(|error| error.to_string())?));
    }
    if threads.is_empty() {
        return Ok(None);
    }
    let lost = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&lost);
    let to = senders.clone();
    let tap = Arc::new(move |samples: Vec<WrittenSample>| give(&to, samples, &counted));
    Ok(Some(Outputs { tap, senders, threads, lost }))
}

impl Outputs {
    /// Writes what is left. Returns what went wrong, in sentences.
    pub fn finish(self) -> Vec<String> {
        for sender in &self.senders {
            // A writer that failed is gone; its thread says why.
            let _ = sender.send(None);
        }
        let mut wrong = Vec::new();
        for (path, thread) in self.threads {
            match thread.join() {
                Ok(Ok(())) => {}
                Ok(Err(error)) => wrong.push(format!("{path} cannot be written: {error}")),
                Err(_) => wrong.push(format!("{path}: its writer ended unexpectedly")),
            }
        }
        let lost = self.lost.load(Relaxed);
        if lost > 0 {
            wrong.push(format!("{lost} samples were not written: the disk was too slow"));
        }
        wrong
    }
}

type Batch = Arc<Vec<WrittenSample>>;

fn give(senders: &[SyncSender<Option<Batch>>], samples: Vec<WrittenSample>, lost: &AtomicU64) {
    let samples = Arc::new(samples);
    for sender in senders {
        if let Err(TrySendError::Full(_)) = sender.try_send(Some(Arc::clone(&samples))) {
            lost.fetch_add(samples.len() as u64, Relaxed);
        }
    }
}

fn write(
    mut form: Form,
    mut out: Box<dyn Write + Send>,
    batches: &Receiver<Option<Batch>>,
) -> io::Result<()> {
    if let Form::Csv(lines) = &mut form {
        lines.begin(&mut out)?;
    }
    while let Ok(Some(batch)) = batches.recv() {
        for sample in batch.iter() {
            let WrittenSample { metric, tags, value, unix_ns } = sample;
            let point =
                SamplePoint { metric, tags, metadata: &[], value: *value, unix_ns: *unix_ns };
            match &mut form {
                Form::Json(lines) => lines.write(&mut out, &point)?,
                Form::Csv(lines) => lines.write(&mut out, &point)?,
            }
        }
    }
    out.flush()
}
