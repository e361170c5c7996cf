//! What a search loads: requests, or the iterations of a script.

use std::borrow::Cow;
use std::sync::Arc;

use gake_core::metric::SeriesValue;
use gake_core::record::{Counts, Metric, Run, Tally};
use gake_core::spec::RunSpec;
use gake_judge::Objective;
use gake_run::{Beside, LoadedRequests, Moment, Prepared, Recorded, RunError};
use gake_wire::Wire;

use gake_session::Console;
use gake_session::Failure;
use gake_session::fleet::FleetMaker;
use gake_session::script::journey::{Journey, Shown, journey};

/// The metric of a script's iterations.
const ITERATIONS: &str = "iteration_duration";

/// What every trial fires.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "a search has one")]
pub enum Target {
    /// Requests.
    Requests(LoadedRequests),
    /// Iterations of a script.
    Script(ScriptTarget),
}

/// A script, which is loaded anew for each trial: it can be run once.
#[derive(Debug)]
pub struct ScriptTarget {
    path: String,
    console: Console,
    shown: Shown,
    /// Tags by which the objectives select.
    keys: Vec<String>,
}

/// A trial that is ready to start.
pub struct Ready {
    /// The run.
    pub prepared: Prepared,
    /// What it was prepared from.
    spec: RunSpec,
    journey: Option<Box<Journey>>,
}

impl Target {
    /// What the user named.
    pub fn name(&self) -> &str {
        match self {
            Self::Requests(requests) => requests.name(),
            Self::Script(script) => &script.path,
        }
    }

    /// Notes for the user about what was read, in sentences.
    pub fn notes(&self) -> Vec<&str> {
        match self {
            Self::Requests(requests) => requests.notes().collect(),
            Self::Script(_) => Vec::new(),
        }
    }

    /// A run of `spec` as agents are given it.
    pub fn inlined(&self, spec: &RunSpec) -> RunSpec {
        match self {
            Self::Requests(requests) => requests.inlined(spec),
            Self::Script(_) => spec.clone(),
        }
    }

    /// Whether it is a script.
    pub fn is_script(&self) -> bool {
        matches!(self, Self::Script(_))
    }

    /// A run of `spec`, over the wires of an earlier one when they are given.
    ///
    /// # Errors
    /// When it cannot be prepared.
    pub fn prepare(&self, spec: &RunSpec, wires: Option<&[Arc<Wire>]>) -> Result<Ready, Failure> {
        let script = match self {
            Self::Script(script) => script,
            Self::Requests(requests) => {
                let prepared = match wires {
                    Some(wires) => requests.prepare_over(spec, wires.to_vec()),
                    None => requests.prepare(spec),
                };
                let prepared =
                    prepared.map_err(|error| gake_session::spec_error::failure(&error))?;
                return Ok(Ready { prepared, spec: spec.clone(), journey: None });
            }
        };
        let mut journey = journey(&script.path, &script.console, &script.shown)?;
        let run = &mut journey.loaded.run;
        let (source, tags) = match run.spec.scenarios.as_slice() {
            [only, ..] => (only.source.clone(), only.tags.clone()),
            [] => return Err(Failure::could_not(format!("{} has no scenario", script.path))),
        };
        // The connections are those that the script's options describe.
        let (connection, tls) = (run.spec.connection.clone(), run.spec.tls.clone());
        run.spec = RunSpec { connection, tls, ..spec.clone() };
        for scenario in &mut run.spec.scenarios {
            (scenario.source, scenario.tags) = (source.clone(), tags.clone());
        }
        run.keys.extend(script.keys.iter().cloned());
        let prepared = journey
            .loaded
            .script
            .prepare(run)
            .map_err(|error| gake_session::spec_error::failure(&error))?;
        let spec = run.spec.clone();
        Ok(Ready { prepared, spec, journey: Some(Box::new(journey)) })
    }
}

impl ScriptTarget {
    /// The script at `path` with its objectives: those given, or else its thresholds; what a
    /// search cannot bound of these is told.
    ///
    /// # Errors
    /// When it cannot be loaded, agents are to run it and cannot, or an objective is not about what
    /// a script records.
    pub fn load(
        path: &str,
        given: &[Objective],
        on_agents: bool,
        console: &Console,
    ) -> Result<(Self, Vec<Objective>), Failure> {
        let shown = Shown::default();
        let journey = journey(path, console, &shown)?;
        if let Some(why) = journey.cannot_on_agents().filter(|_| on_agents) {
            return Err(Failure::usage(format!("{path}: {why}")));
        }
        let objectives = match given {
            [] => thresholds(&journey.loaded.threshold_texts(), console),
            given => given
                .iter()
                .map(|objective| objective.clone().of_script())
                .collect::<Result<_, _>>()
                .map_err(Failure::usage)?,
        };
        let keys = objectives.iter().flat_map(Objective::tag_keys).collect();
        Ok((Self { path: path.to_owned(), console: *console, shown, keys }, objectives))
    }
}

/// The thresholds that a search can bound.
fn thresholds(texts: &[String], console: &Console) -> Vec<Objective> {
    let read = |text: &String| {
        let objective = text.parse::<Objective>().map_err(|error| error.to_string());
        let objective = objective.and_then(Objective::of_script);
        match objective.and_then(|objective| objective.clause().map(|_| objective)) {
            Ok(objective) => Some(objective),
            Err(why) => {
                console.note(&format!("the threshold {text} is left out: {why}"));
                None
            }
        }
    };
    texts.iter().filter_map(read).collect()
}

impl Ready {
    /// Runs it, on agents when there are some.
    ///
    /// # Errors
    /// When it cannot be run, or the script's setup failed.
    pub fn record(
        &self,
        target: &Target,
        agents: Option<&FleetMaker>,
        beside: Beside<'_>,
        each: impl FnMut(&Moment<'_>) -> Option<String> + Send,
    ) -> Result<Recorded, RunError> {
        let prepared = &self.prepared;
        let Some(journey) = &self.journey else {
            return match agents {
                Some(agents) => agents.run(&target.inlined(&self.spec), prepared, beside, each),
                None => prepared.run_beside(beside, each),
            };
        };
        let recorded = match agents {
            Some(agents) => journey.run_on_agents(agents, prepared, beside, each),
            None => prepared.run_beside(beside, each),
        };
        let mut recorded = recorded?;
        for end in std::mem::take(&mut recorded.scripts) {
            end.setup.map_err(RunError::cannot)?;
        }
        if let Some(abort) = journey.loaded.script.test.aborted() {
            return Err(RunError::cannot(format!("the script ended the test: {}", abort.reason)));
        }
        Ok(recorded)
    }

    /// What a search judges of what was recorded: requests, or iterations as if each were one.
    pub fn judged<'t>(&self, tally: &'t Tally) -> Cow<'t, Tally> {
        match self.journey {
            Some(_) => Cow::Owned(of_iterations(tally)),
            None => Cow::Borrowed(tally),
        }
    }

    /// The same of a whole run.
    pub fn judged_run<'r>(&self, run: &'r Run) -> Cow<'r, Run> {
        match self.judged(&run.tally) {
            Cow::Owned(tally) => Cow::Owned(Run { tally, ..run.clone() }),
            Cow::Borrowed(_) => Cow::Borrowed(run),
        }
    }
}

/// A tally in which an iteration is what a request is elsewhere: it is ok when it ended, and its
/// response time is from its start to its end. The metrics stay as they are.
fn of_iterations(tally: &Tally) -> Tally {
    let Counts { started, interrupted, dropped, .. } = tally.counts;
    let counts = Counts {
        started,
        interrupted,
        dropped,
        sent: started,
        written: started,
        ok: started - interrupted,
        unfinished: interrupted,
        ..Counts::default()
    };
    let mut judged = Tally::default();
    for metric in [Metric::Lateness, Metric::Blocked] {
        judged.latency.of_mut(metric).merge(tally.latency.of(metric));
    }
    for (key, value) in tally.series.series() {
        if let (ITERATIONS, SeriesValue::Trend(times)) = (key.metric.name.as_str(), value) {
            judged.latency.of_mut(Metric::OkResponse).merge(times);
            judged.latency.of_mut(Metric::Service).merge(times);
        }
    }
    (judged.counts, judged.series) = (counts, tally.series.clone());
    (judged.in_flight_ns, judged.fired) = (tally.in_flight_ns, tally.fired);
    judged
}
