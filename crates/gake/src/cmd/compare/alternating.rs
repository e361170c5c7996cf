//! Alternating runs of two sides: A B, B A, A B ... in one process, so that disturbances hit both.
//! Neighbours make a pair.

use std::path::Path;
use std::time::Duration;

use gake_core::clock::nanos;
use gake_core::metric::SeriesTable;
use gake_core::plan::Plan;
use gake_core::record::{Histogram, LatencyMetric, Run, Tally};
use gake_judge::compare::{CompareOptions, Comparison, FigureSelection, RunMetrics, compare_pairs};
use gake_judge::stats::span;
use gake_lab::Lab;
use gake_report::merge_runs;
use gake_run::{ResolvedRun, RunOptions};
use gake_text::redact::Redactor;

use crate::cli::{CompareArgs, run_of};
use crate::spec::{self, CommandSpec};
use gake_session::Console;
use gake_session::Failure;
use gake_session::Signals;
use gake_session::files::is_script;
use gake_session::origin::origin;
use gake_session::{comparison, descriptors};

/// The default warm-up of a run, in which connections open.
const WARMUP: Duration = Duration::from_millis(200);

/// The result of the alternating runs.
pub struct AlternatingRuns {
    /// The runs of A and B, pair by pair.
    pairs: Vec<(Run, Run)>,
    /// All runs of A, and all of B.
    pub wholes: [Run; 2],
    /// Whether a signal ended them early.
    pub interrupted: bool,
    figures: FigureSelection,
}

impl AlternatingRuns {
    /// Compares both.
    pub fn compare(&self, question: &CompareOptions) -> Comparison {
        compare_pairs(self.wholes.each_ref(), &self.pairs, &self.figures, question)
    }
}

/// A side that is ready to run.
struct Side {
    command: CommandSpec,
    prepared: ResolvedRun,
    redactor: Redactor,
    /// Stopped with the side.
    _lab: Option<Lab>,
}

/// Runs both sides alternately.
///
/// # Errors
/// When a command line cannot be read, a figure is not one of these runs', or a run cannot be done.
pub fn run(
    args: &CompareArgs,
    question: &CompareOptions,
    redactor: &Redactor,
    console: &Console,
) -> Result<AlternatingRuns, Failure> {
    let descriptors = descriptors::raise();
    let sides = [
        side(&args.a, args.slice, redactor, console)?,
        side(&args.b, args.slice, redactor, console)?,
    ];
    // Plain requests have no metrics of their own.
    let own = SeriesTable::default();
    let known = sides.each_ref().map(|side| RunMetrics { plan: &side.prepared.plan, series: &own });
    let figures = comparison::figures(question, known)?;
    if !args.quiet {
        for side in &sides {
            gake_session::announce::announce(
                &side.prepared,
                &side.command.spec,
                Some(descriptors),
                console,
            );
        }
    }
    let signals = Signals::watch().map_err(Failure::signals)?;
    let mut pairs = Vec::new();
    for number in 0..args.slices {
        if !args.quiet {
            console.note(&format!("slice {} of {}", number + 1, args.slices));
        }
        let seed = u64::from(number);
        let (a, b) = if number % 2 == 0 {
            let a = slice(&sides[0], seed, &signals)?;
            (a, slice(&sides[1], seed, &signals)?)
        } else {
            let b = slice(&sides[1], seed, &signals)?;
            (slice(&sides[0], seed, &signals)?, b)
        };
        if signals.came() {
            break;
        }
        pairs.push((a, b));
    }
    let mut wholes = [
        whole(&sides[0].prepared.plan, pairs.iter().map(|pair| &pair.0)),
        whole(&sides[1].prepared.plan, pairs.iter().map(|pair| &pair.1)),
    ];
    for whole in wholes.iter_mut().flatten() {
        whole.origin = origin(&[], redactor);
    }
    let [Some(a), Some(b)] = wholes else {
        return Err(Failure::could_not("interrupted before both sides had a run"));
    };
    Ok(AlternatingRuns { pairs, wholes: [a, b], interrupted: signals.came(), figures })
}

/// Reads a side's command line.
fn side(
    line: &str,
    slice: Duration,
    redactor: &Redactor,
    console: &Console,
) -> Result<Side, Failure> {
    let mut args = run_of(line)?;
    let (load, output) = (&args.load, &args.output);
    for (given, flag) in [
        (load.duration.is_some(), "-d"),
        (load.requests.is_some(), "-n"),
        (load.stages.is_some(), "--stages"),
        (output.out.is_some(), "--out"),
        (output.log.is_some(), "--log"),
        (args.connection.tls.key_log.is_some(), "--key-log"),
        (!output.sinks.sink.is_empty(), "--sink"),
        (!output.sinks.annotate.is_empty(), "--annotate"),
        (args.fleet.agents.is_some(), "--agents"),
        (args.fleet.local.is_some(), "--local"),
        (args.web.address().is_some(), "--web"),
        (args.history.save, "--save"),
        (args.history.baseline.is_some(), "--baseline"),
        (output.results().next().is_some(), "-o"),
        (!args.judge.slo.is_empty(), "--slo"),
        (args.judge.reconcile.is_some(), "--reconcile"),
        (args.spec.spec.is_some(), "--spec"),
        (args.spec.print_spec.is_some(), "--print-spec"),
    ] {
        if given {
            return Err(Failure::usage(format!(
                "{flag} has no meaning for a side of alternating runs ({line:?}); --slice is the \
                 length of each run"
            )));
        }
    }
    args.load.duration = Some(slice);
    let is_script = args.target.as_deref().is_some_and(|target| is_script(Path::new(target)));
    if !is_script {
        args.load.warmup = args.load.warmup.filter(|warmup| !warmup.is_zero()).or(Some(WARMUP));
    }
    let mut command = spec::of_run(&args, console)?;
    let lab = command.start_demo()?;
    let mut prepared = command.prepare()?;
    prepared.redact(redactor);
    Ok(Side { command, prepared, redactor: redactor.clone(), _lab: lab })
}

impl Side {
    /// The next run: a script runs once, so it is prepared again each time.
    fn next(&self) -> Result<ResolvedRun, Failure> {
        if self.prepared.scripts.is_empty() {
            return Ok(self.prepared.clone());
        }
        let mut prepared = self.command.prepare()?;
        prepared.redact(&self.redactor);
        Ok(prepared)
    }
}

/// One run of a side.
fn slice(side: &Side, number: u64, signals: &Signals) -> Result<Run, Failure> {
    let seed = side.prepared.seed.wrapping_add(number);
    let prepared = ResolvedRun { seed, ..side.next()? };
    let options = RunOptions { interrupt: Some(signals.interrupt()), ..RunOptions::default() };
    let recorded = prepared.run_with(options, &mut |_| None);
    let recorded = recorded.map_err(|error| side.command.failure(error))?;
    for end in recorded.scripts {
        end.into_setup()?;
    }
    let mut run = recorded.run;
    run.tally = slimmed(&run.tally);
    Ok(run)
}

/// The tally without metrics that are neither compared nor judged: hundreds of runs are kept.
fn slimmed(tally: &Tally) -> Tally {
    let mut slim = Tally::new(tally.labels().len());
    slim.merge(tally);
    for metric in [
        LatencyMetric::Connect,
        LatencyMetric::Tls,
        LatencyMetric::FirstByte,
        LatencyMetric::Download,
        LatencyMetric::Rtt,
    ] {
        *slim.latency.of_mut(metric) = Histogram::new();
    }
    slim
}

/// All runs of a side as one, whose time is the sum of theirs.
fn whole<'a>(plan: &Plan, slices: impl Iterator<Item = &'a Run> + Clone) -> Option<Run> {
    let mut run = merge_runs(slices.clone().cloned().collect())?;
    let warmup = nanos(plan.warmup);
    run.elapsed = slices.map(span).sum::<u64>().saturating_add(warmup);
    Some(run)
}
