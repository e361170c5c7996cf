//! Several run files as one, second by second, in the memory of a second of each.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;

use gake_core::clock::SECOND;
use gake_core::plan::Plan;
use gake_core::record::{Counts, GaugeReading, Run, Tally};
use gake_core::work::Gauges;

use super::merge::add;
use super::read::{ReadError, ReadSecond, RunSeconds};
use super::write::{RunFileWriter, Second};
use crate::vegeta;

/// One of the files, with its next second.
struct Source {
    seconds: Kind,
    plan: Plan,
    /// When it starts on the clock of the whole.
    offset: u64,
    /// Where its series ends, in its own seconds: an idle second after it is not shown.
    end: u64,
    next: Option<ReadSecond>,
}

impl Source {
    fn advance(&mut self) -> Result<(), ReadError> {
        self.next = match &mut self.seconds {
            Kind::RunFile(seconds) => seconds.next_second()?,
            Kind::Vegeta(seconds) => seconds.next_second().map_err(ReadError::Vegeta)?,
        };
        let is_idle = |second: &ReadSecond| second.at >= self.end && second.tally.is_empty();
        if self.next.as_ref().is_some_and(is_idle) {
            // Nothing comes after it.
            self.next = None;
        }
        Ok(())
    }

    fn at(&self) -> Option<u64> {
        self.next.as_ref().map(|second| second.at.saturating_add(self.offset))
    }
}

/// What a file may be.
enum Kind {
    RunFile(Box<RunSeconds<BufReader<File>>>),
    Vegeta(Box<vegeta::RecordSeconds<BufReader<File>>>),
}

impl Kind {
    fn open(path: &Path, run: &Run) -> Result<Self, ReadError> {
        let mut input = BufReader::new(File::open(path)?);
        if vegeta::Encoding::of(input.fill_buf()?).is_none() {
            return Ok(Self::RunFile(Box::new(RunSeconds::new(input)?)));
        }
        let reader = vegeta::Reader::detect(input).map_err(ReadError::Vegeta)?;
        Ok(Self::Vegeta(Box::new(vegeta::RecordSeconds::new(reader, run))))
    }
}

/// Writes the run file of `whole`, which [`super::merge_runs`] has made of the runs in `files`.
/// What it holds is theirs exactly: every count and histogram of a second is the sum.
///
/// # Errors
/// When a file cannot be read again, or `out` not be written.
pub fn join_files(whole: &Run, files: &[(&Path, &Run)], out: impl Write) -> Result<(), ReadError> {
    let mut sources = Vec::with_capacity(files.len());
    for (path, run) in files {
        let offset = run.started_unix_ns.saturating_sub(whole.started_unix_ns) / SECOND;
        let seconds = Kind::open(path, run)?;
        let end = run.series.points().last().map_or(0, |last| last.second + last.seconds);
        let mut source = Source { seconds, plan: run.plan.clone(), offset, end, next: None };
        source.advance()?;
        sources.push(source);
    }
    let labels = &whole.plan.labels;
    let mut writer = RunFileWriter::new(out, &whole.plan, whole.started_unix_ns)?;
    writer.origin(&whole.origin)?;
    while let Some(at) = sources.iter().filter_map(Source::at).min() {
        let mut tally = Tally::new(labels.len());
        let (mut warmup, mut gauges, mut cpu) = (Counts::default(), Gauges::default(), 0);
        let mut asked = Some(0.0);
        let mut scenarios = match whole.scenarios.len() {
            0 => Vec::new(),
            several => vec![Tally::new(labels.len()); several],
        };
        for source in &mut sources {
            if source.at() != Some(at) {
                continue;
            }
            if let Some(second) = &source.next {
                add(&mut tally, &source.plan, &second.tally, labels);
                add_scenarios(&mut scenarios, &source.plan, second, &whole.plan);
                warmup.merge(&second.warmup);
                gauges = gauges.plus(second.gauges);
                cpu += second.cpu;
                asked = asked.zip(second.asked).map(|(sum, asked)| sum + asked);
            }
            source.advance()?;
        }
        let (tally, scenarios, warmup) = (&tally, &scenarios, &warmup);
        // Runs start anywhere in a tenth of a second: joined, they are shown by the second.
        let tenths = &[];
        writer.second(&Second { at, asked, tally, scenarios, warmup, gauges, cpu, tenths })?;
    }
    watched(&mut writer, whole)?;
    writer.finish(whole)?;
    Ok(())
}

/// Adds what a second of one file holds of each scenario to those of the whole, by name.
fn add_scenarios(sums: &mut [Tally], plan: &Plan, second: &ReadSecond, whole: &Plan) {
    let names: Vec<&str> = whole.scenarios().iter().map(|plan| plan.name.as_str()).collect();
    let mut add_one = |part: &Plan, tally: &Tally| {
        let place = names.iter().position(|name| *name == part.name);
        if let Some(sum) = place.and_then(|place| sums.get_mut(place)) {
            add(sum, part, tally, &whole.labels);
        }
    };
    match plan.scenarios() {
        [only] => add_one(only, &second.tally),
        several => {
            several.iter().zip(&second.scenarios).for_each(|(part, tally)| add_one(part, tally));
        }
    }
}

/// What the target said, gauge by gauge.
fn watched(writer: &mut RunFileWriter<impl Write>, whole: &Run) -> Result<(), ReadError> {
    writer.settings(&whole.watched.settings)?;
    for gauge in whole.watched.gauges() {
        for sample in gauge.samples() {
            let reading = GaugeReading {
                source: gauge.source.clone(),
                name: gauge.name.clone(),
                unit: gauge.unit,
                value: sample.mean,
            };
            writer.watched(sample.at, &[reading])?;
        }
    }
    Ok(())
}
