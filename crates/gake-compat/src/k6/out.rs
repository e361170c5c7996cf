//! `--out json=FILE`, `csv=FILE`, `influxdb=URL`, `experimental-prometheus-rw` and `opentelemetry`:
//! samples, or their
//! totals, each written on a thread of its own.

use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use gake_k6::features::Features;
use gake_k6::options::K6Options;
use gake_k6::out::{CsvLines, JsonLines, TimeFormat};
use gake_k6::test::{RawSample, SampleTap};
use gake_k6::values::scaled;
use gake_sinks::{
    InfluxPoint, InfluxPoints, OtelSeries, ScriptSeconds, ScriptSeries, SinkAddress, Spill,
    ZstdFrames,
};

use super::opentelemetry::OtelSettings;
use super::prometheus::PrometheusSettings;
use super::sample_queue::{NextSamples, SampleQueue};
use gake_core::metric::MetricKind;
use gake_session::Console;
use gake_session::run::SinkDrain;

/// Outputs that are being written.
pub struct Outputs {
    /// Receives the samples.
    pub tap: SampleTap,
    /// What databases have not taken.
    pub drain: SinkDrain,
    queues: Vec<Arc<SampleQueue>>,
    threads: Vec<(String, JoinHandle<io::Result<()>>)>,
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

/// Writes samples, on a thread.
type Writer = Box<dyn SampleWriter>;

trait SampleWriter: Send {
    fn add(&mut self, sample: &RawSample) -> io::Result<()>;

    /// Called about once a second.
    fn tick(&mut self) {}

    /// Ends the writing; the error has the number of lost samples.
    fn finish(&mut self) -> io::Result<()>;
}

/// A file of a format; standard output without a path.
fn file(format: FileFormat, path: &str, console: &Console) -> Result<(String, Writer), String> {
    let (path, out): (&str, Box<dyn Write + Send>) = match path {
        "" => ("stdout", console.output()),
        path => (path, created(path).map_err(|error| format!("{path}: {error}"))?),
    };
    let mut file = FileWriter { format, out };
    file.begin().map_err(|error| format!("{path}: {error}"))?;
    Ok((path.to_owned(), Box::new(file)))
}

/// A new file, compressed if its name ends in `.gz` or `.zst`.
fn created(path: &str) -> io::Result<Box<dyn Write + Send>> {
    let file = gake_files::create(Path::new(path), gake_files::Access::Owner)?;
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
fn database(url: &str, spill: &Spill, console: &Console) -> Result<(String, Writer), String> {
    let url = if url.is_empty() { USUAL_DATABASE } else { url };
    let address: SinkAddress =
        format!("influxdb={url}").parse().map_err(|error| format!("--out {error}"))?;
    let warn = |why: String| console.warn(&format!("--out {address}: {why}"));
    if address.is_aggregated() {
        let mut seconds = ScriptSeconds::new(&address, spill);
        seconds.check().unwrap_or_else(warn);
        return Ok((address.to_string(), Box::new(DatabaseWriter(seconds))));
    }
    let mut points = InfluxPoints::new(&address, spill);
    points.check().unwrap_or_else(warn);
    Ok((address.to_string(), Box::new(DatabaseWriter(points))))
}

/// Settings of outputs that come from the environment.
#[derive(Debug, Default)]
pub struct OutSettings {
    /// `K6_CSV_TIME_FORMAT`.
    pub csv_times: Option<String>,
    /// The settings of `experimental-prometheus-rw`.
    pub prometheus: PrometheusSettings,
    /// The settings of `opentelemetry`.
    pub otel: OtelSettings,
}

impl OutSettings {
    pub fn of(environment: &BTreeMap<String, String>, features: Features) -> Self {
        let csv_times = environment.get("K6_CSV_TIME_FORMAT").cloned();
        let prometheus = PrometheusSettings::of(environment);
        let is_native = features.native_histograms;
        let prometheus = if is_native { prometheus.with_native_histograms() } else { prometheus };
        Self { csv_times, prometheus, otel: OtelSettings::of(environment) }
    }
}

/// A Prometheus server, whether it responds or not.
fn prometheus(
    url: &str,
    settings: &PrometheusSettings,
    spill: &Spill,
    console: &Console,
) -> Result<(String, Writer), String> {
    let refused = |why: String| format!("--out experimental-prometheus-rw: {why}");
    let (address, mut series) = settings.series(url, spill).map_err(refused)?;
    let warn = |why: String| console.warn(&format!("--out {address}: {why}"));
    series.check().unwrap_or_else(warn);
    Ok((address.to_string(), Box::new(DatabaseWriter(series))))
}

/// A collector of OpenTelemetry, whether it responds or not.
fn opentelemetry(
    value: &str,
    settings: &OtelSettings,
    spill: &Spill,
    console: &Console,
) -> Result<(String, Writer), String> {
    if !value.is_empty() {
        return Err("--out opentelemetry takes no value: K6_OTEL_HTTP_EXPORTER_ENDPOINT and \
                    K6_OTEL_GRPC_EXPORTER_ENDPOINT name the collector"
            .to_owned());
    }
    let target = settings
        .target()
        .map_err(|why| format!("error validating OpenTelemetry output config: {why}"))?;
    let mut series = OtelSeries::new(&target, spill);
    let name = format!("opentelemetry ({})", target.url);
    let warn = |why: String| console.warn(&format!("--out {name}: {why}"));
    series.check().unwrap_or_else(warn);
    Ok((name, Box::new(DatabaseWriter(series))))
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
    let mut queues = Vec::new();
    let drain = SinkDrain::new(None, None, console);
    let spill = drain.spill();
    for out in specs {
        let (kind, path) = out.split_once('=').unwrap_or((out, ""));
        let tags = options.system_tags.clone().unwrap_or_default();
        let (name, writer): (String, Writer) = match kind {
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
            "influxdb" => database(path, spill, console)?,
            "experimental-prometheus-rw" => prometheus(path, &settings.prometheus, spill, console)?,
            "opentelemetry" => opentelemetry(path, &settings.otel, spill, console)?,
            _ => {
                return Err(format!(
                    "invalid output type '{kind}', available types are: csv, \
                     experimental-prometheus-rw, influxdb, json, opentelemetry"
                ));
            }
        };
        let queue = Arc::<SampleQueue>::default();
        queues.push(Arc::clone(&queue));
        let write = move || write_all(writer, &queue);
        let thread = std::thread::Builder::new().name("gake-out".to_owned()).spawn(write);
        threads.push((name, thread.map_err(|error| error.to_string())?));
    }
    if threads.is_empty() {
        return Ok(None);
    }
    let to = queues.clone();
    let tap = Arc::new(move |samples: Vec<RawSample>| {
        let samples = Arc::new(samples);
        to.iter().for_each(|queue| queue.push(&samples));
    });
    Ok(Some(Outputs { tap, drain, queues, threads }))
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
        self.queues.iter().for_each(|queue| queue.close());
        let mut wrong = Vec::new();
        for (path, thread) in self.threads {
            match thread.join() {
                Ok(Ok(())) => {}
                Ok(Err(error)) => wrong.push(format!("{path}: {error}")),
                Err(_) => wrong.push(format!("{path}: its writer ended unexpectedly")),
            }
        }
        let lost: u64 = self.queues.iter().map(|queue| queue.lost()).sum();
        if lost > 0 {
            wrong.push(format!(
                "{lost} samples were not written: the writer was too slow (disk or CPU)"
            ));
        }
        wrong
    }
}

/// Samples in a file.
struct FileWriter {
    format: FileFormat,
    out: Box<dyn Write + Send>,
}

impl FileWriter {
    fn begin(&mut self) -> io::Result<()> {
        match &mut self.format {
            FileFormat::Json(_) => Ok(()),
            FileFormat::Csv(lines) => lines.begin(&mut self.out),
        }
    }
}

impl SampleWriter for FileWriter {
    fn add(&mut self, sample: &RawSample) -> io::Result<()> {
        match &mut self.format {
            FileFormat::Json(lines) => lines.write(&mut self.out, sample),
            FileFormat::Csv(lines) => lines.write(&mut self.out, sample),
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Writes the samples of a queue to its end: in the lowest scheduling class, and in this thread's
/// once that falls behind, and after the run.
fn write_all(mut writer: Writer, queue: &SampleQueue) -> io::Result<()> {
    let written = gake_engine::in_background(|| write(&mut writer, queue, true))
        .and_then(|()| write(&mut writer, queue, false))
        .and_then(|()| writer.finish());
    if written.is_err() {
        queue.abandon();
    }
    written
}

fn write(writer: &mut Writer, queue: &SampleQueue, in_background: bool) -> io::Result<()> {
    loop {
        match queue.next(TICK, in_background) {
            NextSamples::Batch(batch) => batch.iter().try_for_each(|sample| writer.add(sample))?,
            NextSamples::Idle => {}
            NextSamples::Behind | NextSamples::Closed => return Ok(()),
        }
        writer.tick();
    }
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
            is_figure: sample.metric.kind != MetricKind::Trend,
        });
    }

    fn tick(&mut self) {
        self.tick();
    }

    fn finish(&mut self) -> Option<String> {
        self.finish()
    }
}

/// Databases that take a sample by its metric, tags, value and time.
macro_rules! by_metric {
    ($($database:ty),+) => {$(
        impl SampleDatabase for $database {
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
    )+};
}

by_metric!(ScriptSeconds, ScriptSeries, OtelSeries);

/// Every sample in a database.
struct DatabaseWriter<D>(D);

impl<D: SampleDatabase + Send> SampleWriter for DatabaseWriter<D> {
    fn add(&mut self, sample: &RawSample) -> io::Result<()> {
        self.0.add(sample);
        Ok(())
    }

    fn tick(&mut self) {
        self.0.tick();
    }

    fn finish(&mut self) -> io::Result<()> {
        let Some(lost) = self.0.finish() else { return Ok(()) };
        // The output's name precedes every error.
        let what = lost.split_once(": ").map_or(lost.as_str(), |(_, what)| what);
        Err(io::Error::other(what.to_owned()))
    }
}
