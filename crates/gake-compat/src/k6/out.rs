//! `--out json=FILE`, `csv=FILE`, `influxdb=URL` and `experimental-prometheus-rw`: samples, or their
//! totals, each written on a thread of its own.

use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use gake_k6::options::K6Options;
use gake_k6::out::{CsvLines, JsonLines, TimeFormat};
use gake_k6::test::{RawSample, SampleTap};
use gake_k6::values::scaled;
use gake_sinks::{InfluxPoint, InfluxPoints, ScriptSeconds, ScriptSeries, SinkAddress, ZstdFrames};

use super::prometheus::PrometheusSettings;
use gake_session::Console;

/// The most batches that may wait for the disk. Further ones are lost, and counted.
const BATCHES: usize = 4_096;

/// Outputs that are being written.
pub struct Outputs {
    /// Receives the samples.
    pub tap: SampleTap,
    senders: Vec<SyncSender<Option<Batch>>>,
    threads: Vec<(String, JoinHandle<io::Result<()>>)>,
    lost: Arc<AtomicU64>,
}

enum FileFormat {
    Json(JsonLines),
    Csv(CsvLines),
}

/// The longest wait of samples for a database write when no others arrive.
const TICK: Duration = Duration::from_secs(1);
/// k6's file for `--out csv` without a name.
const USUAL_CSV: &str = "file.csv";
/// k6's URL for `--out influxdb` without one.
const USUAL_DATABASE: &str = "http://localhost:8086/k6";

/// Writes the batches of a channel, on a thread.
type Writer = Box<dyn FnOnce(&Receiver<Option<Batch>>) -> io::Result<()> + Send>;

/// A file of a format; standard output without a path.
fn file(format: FileFormat, path: &str, console: &Console) -> Result<(String, Writer), String> {
    let (path, out): (&str, Box<dyn Write + Send>) = match path {
        "" => ("stdout", console.output()),
        path => (path, created(path).map_err(|error| format!("{path}: {error}"))?),
    };
    Ok((path.to_owned(), Box::new(move |batches| write(format, out, batches))))
}

/// A new file, compressed if its name ends in `.gz` or `.zst`.
fn created(path: &str) -> io::Result<Box<dyn Write + Send>> {
    let file = gake_files::create(Path::new(path), gake_files::Access::Mask)?;
    let file = BufWriter::new(file);
    Ok(if path.ends_with(".gz") {
        Box::new(GzEncoder::new(file, Compression::fast()))
    } else if path.ends_with(".zst") {
        Box::new(ZstdFrames::new(file))
    } else {
        Box::new(file)
    })
}

/// A database. As in k6, the run starts even if it does not respond: it may recover.
fn database(url: &str, console: &Console) -> Result<(String, Writer), String> {
    let url = if url.is_empty() { USUAL_DATABASE } else { url };
    let address: SinkAddress =
        format!("influxdb={url}").parse().map_err(|error| format!("--out {error}"))?;
    let warn = |why: String| console.warn(&format!("--out {address}: {why}"));
    if address.is_aggregated() {
        let mut seconds = ScriptSeconds::new(&address);
        seconds.check().unwrap_or_else(warn);
        return Ok((address.to_string(), Box::new(move |batches| write_samples(seconds, batches))));
    }
    let mut points = InfluxPoints::new(&address);
    points.check().unwrap_or_else(warn);
    Ok((address.to_string(), Box::new(move |batches| write_samples(points, batches))))
}

/// Settings of outputs that come from the environment.
#[derive(Debug, Default)]
pub struct OutSettings {
    /// `K6_CSV_TIME_FORMAT`.
    pub csv_times: Option<String>,
    /// The settings of `experimental-prometheus-rw`.
    pub prometheus: PrometheusSettings,
}

impl OutSettings {
    pub fn of(environment: &BTreeMap<String, String>) -> Self {
        let csv_times = environment.get("K6_CSV_TIME_FORMAT").cloned();
        Self { csv_times, prometheus: PrometheusSettings::of(environment) }
    }
}

/// A Prometheus server, whether it responds or not.
fn prometheus(
    url: &str,
    settings: &PrometheusSettings,
    console: &Console,
) -> Result<(String, Writer), String> {
    let refused = |why: String| format!("--out experimental-prometheus-rw: {why}");
    let (address, mut series) = settings.series(url).map_err(refused)?;
    let warn = |why: String| console.warn(&format!("--out {address}: {why}"));
    series.check().unwrap_or_else(warn);
    Ok((address.to_string(), Box::new(move |batches| write_samples(series, batches))))
}

/// Creates the outputs of `--out`; none without any.
///
/// # Errors
/// When one is of a kind that gake does not have, or its file cannot be created.
pub fn start(
    specs: &[String],
    options: &K6Options,
    settings: &OutSettings,
    console: &Console,
) -> Result<Option<Outputs>, String> {
    let mut threads = Vec::new();
    let mut senders = Vec::new();
    for out in specs {
        let (kind, path) = out.split_once('=').unwrap_or((out, ""));
        let tags = options.system_tags.clone().unwrap_or_default();
        let (name, write): (String, Writer) = match kind {
            "json" => {
                let thresholds = options.thresholds.clone().unwrap_or_default();
                let lines = JsonLines::new(thresholds, &tags);
                file(FileFormat::Json(lines), path, console)?
            }
            "csv" => {
                let times = settings.csv_times.as_deref().unwrap_or_default();
                let times = TimeFormat::parse(times);
                let times = times.ok_or("K6_CSV_TIME_FORMAT names no format of time")?;
                let path = if path.is_empty() { USUAL_CSV } else { path };
                file(FileFormat::Csv(CsvLines::new(&tags, times)), path, console)?
            }
            "influxdb" => database(path, console)?,
            "experimental-prometheus-rw" => prometheus(path, &settings.prometheus, console)?,
            _ => {
                return Err(format!(
                    "invalid output type '{kind}', available types are: csv, \
                     experimental-prometheus-rw, influxdb, json"
                ));
            }
        };
        let (sender, receiver) = sync_channel(BATCHES);
        senders.push(sender);
        let thread = gake_engine::in_background(|| {
            let write = move || write(&receiver);
            std::thread::Builder::new().name("gake-out".to_owned()).spawn(write)
        });
        threads.push((name, thread.map_err(|error| error.to_string())?));
    }
    if threads.is_empty() {
        return Ok(None);
    }
    let lost = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&lost);
    let to = senders.clone();
    let tap = Arc::new(move |samples: Vec<RawSample>| send_batch(&to, samples, &counted));
    Ok(Some(Outputs { tap, senders, threads, lost }))
}

impl Outputs {
    /// Writes the remaining samples, and warns about lost ones.
    pub fn close(outputs: Option<Self>, console: &Console) {
        for wrong in outputs.map(Self::finish).unwrap_or_default() {
            console.warn(&wrong);
        }
    }

    /// Writes the remaining samples. Returns the errors as sentences.
    fn finish(self) -> Vec<String> {
        for sender in &self.senders {
            // A failed writer has closed its channel; its thread returns the error.
            let _ = sender.send(None);
        }
        let mut wrong = Vec::new();
        for (path, thread) in self.threads {
            match thread.join() {
                Ok(Ok(())) => {}
                Ok(Err(error)) => wrong.push(format!("{path}: {error}")),
                Err(_) => wrong.push(format!("{path}: its writer ended unexpectedly")),
            }
        }
        let lost = self.lost.load(Relaxed);
        if lost > 0 {
            wrong.push(format!(
                "{lost} samples were not written: the writer was too slow (disk or CPU)"
            ));
        }
        wrong
    }
}

type Batch = Arc<Vec<RawSample>>;

fn send_batch(senders: &[SyncSender<Option<Batch>>], samples: Vec<RawSample>, lost: &AtomicU64) {
    let samples = Arc::new(samples);
    for sender in senders {
        if let Err(TrySendError::Full(_)) = sender.try_send(Some(Arc::clone(&samples))) {
            lost.fetch_add(samples.len() as u64, Relaxed);
        }
    }
}

fn write(
    mut format: FileFormat,
    mut out: Box<dyn Write + Send>,
    batches: &Receiver<Option<Batch>>,
) -> io::Result<()> {
    if let FileFormat::Csv(lines) = &mut format {
        lines.begin(&mut out)?;
    }
    while let Ok(Some(batch)) = batches.recv() {
        for sample in batch.iter() {
            match &mut format {
                FileFormat::Json(lines) => lines.write(&mut out, sample)?,
                FileFormat::Csv(lines) => lines.write(&mut out, sample)?,
            }
        }
    }
    out.flush()
}

/// A database that takes samples.
trait SampleDatabase {
    fn add(&mut self, sample: &RawSample);
    /// Called about once a second.
    fn tick(&mut self);
    /// Ends the writing; returns a sentence about lost samples, if any.
    fn finish(&mut self) -> Option<String>;
}

impl SampleDatabase for InfluxPoints {
    fn add(&mut self, sample: &RawSample) {
        self.write(&InfluxPoint {
            metric: &sample.metric.name,
            tags: sample.tags.pairs(),
            value: scaled(sample.metric.unit, sample.value),
            unix_ns: sample.unix_ns,
        });
    }

    fn tick(&mut self) {
        self.tick();
    }

    fn finish(&mut self) -> Option<String> {
        self.finish()
    }
}

impl SampleDatabase for ScriptSeconds {
    fn add(&mut self, sample: &RawSample) {
        self.write(&sample.metric, &sample.tags, sample.value, sample.unix_ns);
    }

    fn tick(&mut self) {
        self.tick();
    }

    fn finish(&mut self) -> Option<String> {
        self.finish()
    }
}

impl SampleDatabase for ScriptSeries {
    fn add(&mut self, sample: &RawSample) {
        self.write(&sample.metric, &sample.tags, sample.value, sample.unix_ns);
    }

    fn tick(&mut self) {
        self.tick();
    }

    fn finish(&mut self) -> Option<String> {
        self.finish()
    }
}

/// Writes every sample to a database; the error has the number of lost ones.
fn write_samples(
    mut database: impl SampleDatabase,
    batches: &Receiver<Option<Batch>>,
) -> io::Result<()> {
    loop {
        match batches.recv_timeout(TICK) {
            Ok(Some(batch)) => batch.iter().for_each(|sample| database.add(sample)),
            Ok(None) | Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {}
        }
        database.tick();
    }
    let Some(lost) = database.finish() else { return Ok(()) };
    // The output's name precedes every error.
    let what = lost.split_once(": ").map_or(lost.as_str(), |(_, what)| what);
    Err(io::Error::other(what.to_owned()))
}
