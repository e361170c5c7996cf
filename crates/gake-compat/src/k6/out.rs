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

/// How long samples may wait for a database while no others come.
const TICK: Duration = Duration::from_secs(1);
/// Where k6 writes when `--out csv` names nothing.
const USUAL_CSV: &str = "file.csv";
/// Where k6 writes when `--out influxdb` names nothing.
const USUAL_DATABASE: &str = "http://localhost:8086/k6";

/// What a thread does with the batches that come.
type Writer = Box<dyn FnOnce(&Receiver<Option<Batch>>) -> io::Result<()> + Send>;

/// A file of a form; standard output without a path.
fn file(form: Form, path: &str, console: &Console) -> Result<(String, Writer), String> {
    let (path, out): (&str, Box<dyn Write + Send>) = match path {
        "" => ("stdout", console.output()),
        path => (path, created(path).map_err(|error| format!("{path}: {error}"))?),
    };
    Ok((path.to_owned(), Box::new(move |batches| write(form, out, batches))))
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

/// A database. As in k6 one that does not answer is no reason not to run: it may come back.
fn database(url: &str, console: &Console) -> Result<(String, Writer), String> {
    let url = if url.is_empty() { USUAL_DATABASE } else { url };
    let address: SinkAddress =
        format!("influxdb={url}").parse().map_err(|error| format!("--out {error}"))?;
    let warn = |why: String| console.warn(&format!("--out {address}: {why}"));
    if address.is_aggregated() {
        let mut seconds = ScriptSeconds::new(&address);
        seconds.check().unwrap_or_else(warn);
        return Ok((address.to_string(), Box::new(move |batches| bring(seconds, batches))));
    }
    let mut points = InfluxPoints::new(&address);
    points.check().unwrap_or_else(warn);
    Ok((address.to_string(), Box::new(move |batches| bring(points, batches))))
}

/// Settings of outputs that come from the environment.
#[derive(Debug, Default)]
pub struct OutSettings {
    /// `K6_CSV_TIME_FORMAT`.
    pub csv_times: Option<String>,
    /// Those of `experimental-prometheus-rw`.
    pub prometheus: PrometheusSettings,
}

impl OutSettings {
    /// Those of an environment.
    pub fn of(environment: &BTreeMap<String, String>) -> Self {
        let csv_times = environment.get("K6_CSV_TIME_FORMAT").cloned();
        Self { csv_times, prometheus: PrometheusSettings::of(environment) }
    }
}

/// A Prometheus, whether it answers or not.
fn prometheus(
    url: &str,
    settings: &PrometheusSettings,
    console: &Console,
) -> Result<(String, Writer), String> {
    let refused = |why: String| format!("--out experimental-prometheus-rw: {why}");
    let (address, mut series) = settings.series(url).map_err(refused)?;
    let warn = |why: String| console.warn(&format!("--out {address}: {why}"));
    series.check().unwrap_or_else(warn);
    Ok((address.to_string(), Box::new(move |batches| bring(series, batches))))
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
                file(Form::Json(lines), path, console)?
            }
            "csv" => {
                let times = settings.csv_times.as_deref().unwrap_or_default();
                let times = TimeFormat::parse(times);
                let times = times.ok_or("K6_CSV_TIME_FORMAT names no format of time")?;
                let path = if path.is_empty() { USUAL_CSV } else { path };
                file(Form::Csv(CsvLines::new(&tags, times)), path, console)?
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
    let tap = Arc::new(move |samples: Vec<RawSample>| give(&to, samples, &counted));
    Ok(Some(Outputs { tap, senders, threads, lost }))
}

impl Outputs {
    /// Writes what is left, and warns of what could not be written.
    pub fn close(outputs: Option<Self>, console: &Console) {
        for wrong in outputs.map(Self::finish).unwrap_or_default() {
            console.warn(&wrong);
        }
    }

    /// Writes what is left. Returns what went wrong, in sentences.
    fn finish(self) -> Vec<String> {
        for sender in &self.senders {
            // A writer that failed is gone; its thread has the error.
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

fn give(senders: &[SyncSender<Option<Batch>>], samples: Vec<RawSample>, lost: &AtomicU64) {
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
            match &mut form {
                Form::Json(lines) => lines.write(&mut out, sample)?,
                Form::Csv(lines) => lines.write(&mut out, sample)?,
            }
        }
    }
    out.flush()
}

/// A database that takes samples.
trait SampleDatabase {
    fn take(&mut self, sample: &RawSample);
    /// Called about once a second.
    fn tick(&mut self);
    /// Ends the writing; what was lost, in a sentence.
    fn finish(&mut self) -> Option<String>;
}

impl SampleDatabase for InfluxPoints {
    fn take(&mut self, sample: &RawSample) {
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
    fn take(&mut self, sample: &RawSample) {
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
    fn take(&mut self, sample: &RawSample) {
        self.write(&sample.metric, &sample.tags, sample.value, sample.unix_ns);
    }

    fn tick(&mut self) {
        self.tick();
    }

    fn finish(&mut self) -> Option<String> {
        self.finish()
    }
}

/// Brings every sample to a database; the error counts the lost ones.
fn bring(mut database: impl SampleDatabase, batches: &Receiver<Option<Batch>>) -> io::Result<()> {
    loop {
        match batches.recv_timeout(TICK) {
            Ok(Some(batch)) => batch.iter().for_each(|sample| database.take(sample)),
            Ok(None) | Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {}
        }
        database.tick();
    }
    let Some(lost) = database.finish() else { return Ok(()) };
    // Its name stands before every sentence about an output.
    let what = lost.split_once(": ").map_or(lost.as_str(), |(_, what)| what);
    Err(io::Error::other(what.to_owned()))
}
