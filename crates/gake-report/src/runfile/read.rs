//! Reading a run file.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gake_core::clock::Nanos;
use gake_core::record::{
    Counts, Histogram, Provenance, Run, RunEvent, SeriesPoint, Tally, WatchRecord,
};
use gake_core::work::Gauges;

use super::body::{Body, Head};
use super::detect;
use super::lines::{EndLine, Exact, FORMAT, Line, PREFIX, RunLine, SecondLine};
use super::tag::{self, Tag};
use super::write::Second;
use super::{end, hdr};
use crate::forms::plan::checked;
use crate::vegeta;

/// Longest line that is read: a label's histogram is a few kilobytes.
const LINE_MAX: u64 = 16 << 20;

/// Warnings that are kept of one file.
const WARNINGS_MAX: usize = 1_000;

/// Something in the file was left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// The number of the line, from 1; 0 when the text says where.
    pub line: u64,
    /// What is wrong there.
    pub text: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.text),
            line => write!(f, "line {line}: {}", self.text),
        }
    }
}

/// Why a file gives no run.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It cannot be opened or read.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    /// It is something else, which its first bytes tell.
    #[error("is not a run file of gake but {0}")]
    Foreign(&'static str),
    /// It has no head of ours.
    #[error(
        "is not a run file of gake: it has no \"#gake\" line with the plan; nor does it hold \
         results of Vegeta"
    )]
    NotARunFile,
    /// It was written by a version whose format is another.
    #[error("has the format {0:?}, which this version does not know")]
    Version(String),
    /// Its plan makes no sense.
    #[error("line {0}: the plan is invalid: {1}")]
    Plan(u64, String),
    /// It holds results of Vegeta, or should, and these cannot be read.
    #[error(transparent)]
    Vegeta(vegeta::RecordError),
    /// A line has no end.
    #[error("line {0} is longer than 16 MiB")]
    LongLine(u64),
}

/// Reads a run file, or results of Vegeta, and what was left out of it.
///
/// # Errors
/// When it cannot be read or is neither.
pub fn read_run(path: &Path) -> Result<(Run, Vec<Warning>), ReadError> {
    let mut input = BufReader::new(File::open(path)?);
    let first = input.fill_buf()?;
    if vegeta::Encoding::of(first).is_none() {
        return read(input);
    }
    // What looks like results by its first bytes may be something else all the same.
    let foreign = detect::foreign(first).map_or(ReadError::NotARunFile, ReadError::Foreign);
    let results = vegeta::Reader::detect(input).and_then(vegeta::read_run);
    let (run, warnings) = results.map_err(|error| match error {
        vegeta::RecordError::Foreign => foreign,
        error => ReadError::Vegeta(error),
    })?;
    Ok((run, warnings.into_iter().map(|text| Warning { line: 0, text }).collect()))
}

/// Reads a run file from `input`, and what was left out of it.
///
/// # Errors
/// When it cannot be read or is not a run file.
pub fn read(input: impl BufRead) -> Result<(Run, Vec<Warning>), ReadError> {
    let mut seconds = RunSeconds::new(input)?;
    let mut body = Body::default();
    while let Some(second) = seconds.next_second()? {
        body.add(&second.view());
    }
    seconds.reading.run(body)
}

/// A second of a run file.
#[derive(Debug)]
pub struct ReadSecond {
    /// Where it starts, in seconds since the start of the run.
    pub at: u64,
    /// Arrivals the plan asked for in it; `None` in a closed loop.
    pub asked: Option<f64>,
    /// What was recorded in it, after the warm-up.
    pub tally: Tally,
    /// What each scenario recorded in it, when the run has several.
    pub scenarios: Vec<Tally>,
    /// The counts of the warm-up in it.
    pub warmup: Counts,
    /// Levels.
    pub gauges: Gauges,
    /// CPU time of the workers in it.
    pub cpu: Nanos,
    /// Its tenths; empty when they are not known.
    pub tenths: Vec<SeriesPoint>,
}

/// The whole seconds of a run file, one after the other, in the memory of one.
pub struct RunSeconds<R> {
    input: R,
    line: Vec<u8>,
    reading: Reading,
}

impl RunSeconds<BufReader<File>> {
    /// Opens a run file.
    ///
    /// # Errors
    /// When it cannot be read or is something else.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        Self::new(BufReader::new(File::open(path)?))
    }
}

impl<R: BufRead> RunSeconds<R> {
    /// The seconds of `input`.
    ///
    /// # Errors
    /// When it cannot be read or is something else.
    pub fn new(mut input: R) -> Result<Self, ReadError> {
        if let Some(what) = detect::foreign(input.fill_buf()?) {
            return Err(ReadError::Foreign(what));
        }
        Ok(Self { input, line: Vec::new(), reading: Reading::default() })
    }

    /// The next whole second, `None` at the end. What is broken on the way is left out.
    ///
    /// # Errors
    /// When the file cannot be read further or has a head of another kind.
    pub fn next_second(&mut self) -> Result<Option<ReadSecond>, ReadError> {
        loop {
            self.line.clear();
            self.input.by_ref().take(LINE_MAX).read_until(b'\n', &mut self.line)?;
            if self.line.is_empty() {
                return Ok(None);
            }
            self.reading.number += 1;
            if self.line.pop() != Some(b'\n') {
                if self.line.len() as u64 + 1 >= LINE_MAX {
                    return Err(ReadError::LongLine(self.reading.number));
                }
                self.reading.warn("the last line is cut off and was left out");
                return Ok(None);
            }
            let Ok(text) = std::str::from_utf8(&self.line) else {
                self.reading.warn("is not UTF-8 and was left out");
                continue;
            };
            if let Some(second) = self.reading.line(text.trim_end_matches('\r'))? {
                return Ok(Some(second));
            }
        }
    }
}

/// A file read so far.
#[derive(Default)]
struct Reading {
    number: u64,
    warnings: Vec<Warning>,
    head: Option<Head>,
    /// Histograms whose second is not complete.
    pending: HashMap<String, hdrhistogram::Histogram<u64>>,
    events: Vec<RunEvent>,
    watched: WatchRecord,
    origin: Provenance,
    end: Option<EndLine>,
}

impl ReadSecond {
    /// The second as a writer takes it.
    pub(super) fn view(&self) -> Second<'_> {
        Second {
            at: self.at,
            asked: self.asked,
            tally: &self.tally,
            scenarios: &self.scenarios,
            warmup: &self.warmup,
            gauges: self.gauges,
            cpu: self.cpu,
            tenths: &self.tenths,
        }
    }
}

impl Reading {
    fn warn(&mut self, text: impl Into<String>) {
        if self.warnings.len() == WARNINGS_MAX {
            let text = "more lines were left out; they are not listed".to_owned();
            self.warnings.push(Warning { line: self.number, text });
        }
        if self.warnings.len() > WARNINGS_MAX {
            return;
        }
        self.warnings.push(Warning { line: self.number, text: text.into() });
    }

    /// Takes a line in; a second when it is the last line of one.
    fn line(&mut self, text: &str) -> Result<Option<ReadSecond>, ReadError> {
        if let Some(json) = text.strip_prefix(PREFIX) {
            match serde_json::from_str(json) {
                Ok(Line::Run(run)) => self.head(*run)?,
                Ok(Line::Origin(origin)) => self.origin.absorb(&origin.into()),
                Ok(Line::Second(second)) => return Ok(self.second(*second)),
                Ok(Line::Event(event)) => self.events.push(event.into()),
                Ok(Line::Watched(levels)) => {
                    self.watched.add(levels.at_ns, &levels.readings());
                }
                Ok(Line::Settings(settings)) => {
                    self.watched.settings.extend(settings.into_iter().map(Into::into));
                }
                Ok(Line::End(end)) => self.end = Some(*end),
                Err(error)
                    if self.head.is_none() && error.is_data() && json.starts_with("{\"run\":") =>
                {
                    return Err(ReadError::Plan(self.number, error.to_string()));
                }
                Err(error) => self.warn(format!("is not understood and was left out: {error}")),
            }
        } else if !(text.is_empty() || text.starts_with(['#', '"'])) {
            match histogram(text) {
                Some((tag, buckets))
                    if self.head.as_ref().is_some_and(|h| h.tags.contains_key(tag)) =>
                {
                    self.pending.insert(tag.to_owned(), buckets);
                }
                Some(_) => self.warn("is a histogram of nothing in the run, and was left out"),
                None => self.warn("is not a histogram and was left out"),
            }
        }
        Ok(None)
    }

    fn head(&mut self, line: RunLine) -> Result<(), ReadError> {
        if line.format != FORMAT {
            return Err(ReadError::Version(line.format));
        }
        if self.head.is_some() {
            self.warn("is a second head and was left out");
            return Ok(());
        }
        let plan = checked(line.plan).map_err(|why| ReadError::Plan(self.number, why))?;
        let tags = tag::all(&plan.labels).map(|tag| (tag.text(&plan.labels), tag)).collect();
        self.head = Some(Head { plan, started_unix_ns: line.started_unix_ns, tags });
        Ok(())
    }

    fn second(&mut self, mut line: SecondLine) -> Option<ReadSecond> {
        let pending = std::mem::take(&mut self.pending);
        let scenarios = std::mem::take(&mut line.scenarios);
        let mut tenths = std::mem::take(&mut line.tenths);
        if !add_up(&tenths, &line) {
            self.warn(format!("the tenths of second {} do not add up to it", line.at));
            tenths.clear();
        }
        let head = self.head.as_ref()?;
        match tally(&mut line, &pending, head) {
            Ok(_) if scenarios.len() > head.plan.scenarios().len() => {
                self.warn(format!("second {} was left out: it has unknown scenarios", line.at));
                None
            }
            Ok(tally) => Some(ReadSecond {
                at: line.at,
                asked: line.asked,
                tally,
                scenarios,
                warmup: line.warmup,
                gauges: Gauges { open: line.open, peak: line.peak },
                cpu: line.cpu_ns,
                tenths,
            }),
            Err(why) => {
                self.warn(format!("second {} was left out: {why}", line.at));
                None
            }
        }
    }

    fn run(mut self, mut body: Body) -> Result<(Run, Vec<Warning>), ReadError> {
        let mut head = self.head.take().ok_or(ReadError::NotARunFile)?;
        if let Some(changed) = self.end.as_mut().and_then(|end| end.plan.take()) {
            match checked(changed) {
                Ok(plan) if plan.scenarios().len() == head.plan.scenarios().len() => {
                    head.plan.load = plan.load;
                }
                Ok(_) => self.warn("its plan is that of another run and was left out"),
                Err(why) => self.warn(format!("its plan is invalid and was left out: {why}")),
            }
        }
        body.grow_labels(&head.plan);
        body.events = std::mem::take(&mut self.events);
        body.watched = std::mem::take(&mut self.watched);
        body.origin = std::mem::take(&mut self.origin);
        let counts = &body.tally.counts;
        match &self.end {
            None => self.warn("the run has no end: it holds the whole seconds before"),
            Some(end) if (end.sent, end.dropped) != (counts.sent, counts.dropped) => {
                let text = format!(
                    "{} requests were sent, but the file holds {}: seconds are missing",
                    end.sent, counts.sent
                );
                self.warn(text);
            }
            Some(_) => {}
        }
        let run = match self.end {
            Some(end) => end::ended(head, body, end),
            None => end::cut_off(head, body),
        };
        Ok((run, self.warnings))
    }
}

/// Whether the tenths of a second, if there are any, hold what it holds, and end with it.
fn add_up(tenths: &[SeriesPoint], line: &SecondLine) -> bool {
    let mut counts = Counts::default();
    for tenth in tenths {
        // Sums of what a file says may not overflow.
        if !tenth.is_in_order() || !tenth.counts.add_up() {
            return false;
        }
        counts.merge(&tenth.counts);
    }
    let end = line.at.saturating_add(1).saturating_mul(10);
    let inside = |tenth: &SeriesPoint| tenth.second.saturating_add(tenth.seconds) <= end;
    tenths.is_empty() || (tenths.len() <= 10 && counts == line.counts && tenths.iter().all(inside))
}

/// The tally of a second, or why it cannot be read.
fn tally(
    line: &mut SecondLine,
    pending: &HashMap<String, hdrhistogram::Histogram<u64>>,
    head: &Head,
) -> Result<Tally, String> {
    let mut tally = Tally::new(head.plan.labels.len());
    tally.counts = line.counts;
    tally.series = std::mem::take(&mut line.series);
    tally.in_flight_ns =
        line.in_flight_ns.parse().map_err(|_| "in_flight_ns is not a number".to_owned())?;
    tally.fired = line.fired.unwrap_or(tally.counts.sent);
    for &(status, count) in &line.statuses {
        tally.add_status(status, count);
    }
    for form in &line.faults {
        let fault = form.fault().ok_or("it has a fault that this version does not know")?;
        tally.add_fault(fault, form.count);
    }
    for (number, counts) in (0u16..).zip(&line.labels) {
        let label = tally.label_mut(number).ok_or("it has more labels than the plan")?;
        label.counts = *counts;
    }
    for exact in &line.exact {
        let tag = head.tags.get(&exact.tag).ok_or_else(|| format!("what is {:?}?", exact.tag))?;
        let missing = || format!("its histogram {:?} is missing or broken", exact.tag);
        let buckets = pending.get(&exact.tag).ok_or_else(missing)?;
        let histogram = exact_histogram(buckets, exact).ok_or_else(missing)?;
        match *tag {
            Tag::Metric(metric) => *tally.latency.of_mut(metric) = histogram,
            Tag::LabelResponse(n) => {
                tally.label_mut(n).ok_or_else(missing)?.response = histogram;
            }
            Tag::LabelService(n) => tally.label_mut(n).ok_or_else(missing)?.service = histogram,
        }
    }
    Ok(tally)
}

fn exact_histogram(buckets: &hdrhistogram::Histogram<u64>, exact: &Exact) -> Option<Histogram> {
    let sum = exact.sum.parse().ok()?;
    if buckets.len() != exact.count || exact.min > exact.max {
        return None;
    }
    Some(hdr::to_histogram(buckets, (exact.min, exact.max, sum)))
}

/// The tag and buckets of `Tag=name,start,length,max,histogram`; without a tag it is "".
fn histogram(line: &str) -> Option<(&str, hdrhistogram::Histogram<u64>)> {
    let (tag, rest) = match line.strip_prefix("Tag=") {
        Some(rest) => rest.split_once(',')?,
        None => ("", line),
    };
    let encoded = rest.splitn(4, ',').nth(3)?;
    let bytes = STANDARD.decode(encoded).ok()?;
    Some((tag, hdr::decode(&bytes)?))
}
