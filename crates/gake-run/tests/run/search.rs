//! Searches as a library: with a runner of its own, of requests and of scripts.

use std::io::Write;
use std::sync::Mutex;

use gake_lab::Lab;
use gake_run::search::{
    CapacityOptions, LocalTrials, PreparedTrial, SearchEvent, TrialRunner, Trials, capacity,
};
use gake_run::spec::{Load, RequestSource, RunSpec, ScenarioSpec, ScriptSpec};
use gake_run::{EachSecond, Inputs, RecordedRun, RunError, Stop, TargetWatcher};

use crate::support::{lab, url};

/// An objective that no noise of the machine can miss.
const EASY: &str = "p50<20s";

fn spec(source: RequestSource, objective: &str) -> RunSpec {
    let mut spec = RunSpec::new(ScenarioSpec::new(source, Load::closed(1)));
    spec.objectives = vec![objective.to_owned()];
    spec
}

fn options() -> CapacityOptions {
    let mut options = CapacityOptions::default();
    options.search.highest = Some(20.0);
    options
}

/// Counts trials and seconds.
#[derive(Default)]
struct CountingRunner {
    trials: usize,
    seconds: usize,
    sent: u64,
}

impl TrialRunner for CountingRunner {
    fn run(
        &mut self,
        of: PreparedTrial<'_>,
        watching: &mut TargetWatcher,
        each: &mut EachSecond<'_>,
    ) -> Result<RecordedRun, RunError> {
        assert_eq!((of.trial.seed, of.trial.warmup), (of.spec.seed, of.spec.warmup));
        self.trials += 1;
        let seconds = &mut self.seconds;
        let recorded = LocalTrials.run(of, watching, &mut |update| {
            *seconds += 1;
            each(update)
        })?;
        self.sent += recorded.run.tally.counts.sent + recorded.run.warmup.sent;
        Ok(recorded)
    }
}

#[test]
fn a_runner_gets_every_trial_and_an_interrupt_ends_the_search() {
    let lab = lab();
    let (spec, options) = (spec(url(&lab, "/fast"), EASY), options());
    let mut runner = CountingRunner::default();
    let trials = Trials::new(&spec, &options, Inputs::default(), &mut runner).unwrap();
    let (clauses, seconds) = (Mutex::new(Vec::new()), Mutex::new(0));
    let report = trials.capacity(|event| match event {
        SearchEvent::Begin(all) => *clauses.lock().unwrap() = all.to_vec(),
        SearchEvent::Second(..) => *seconds.lock().unwrap() += 1,
        SearchEvent::Step(_, search) if search.steps().len() == 2 => {
            options.interrupt.stop(Stop::Drain);
        }
        _ => {}
    });
    let report = report.unwrap();
    assert_eq!((report.steps.len(), runner.trials), (2, 2));
    assert_eq!(runner.seconds, seconds.into_inner().unwrap());
    assert_eq!(report.clauses, clauses.into_inner().unwrap());
    assert_eq!(report.result.ended.name(), "interrupted");
    assert_eq!(report.target, format!("http://{}/fast", lab.addr()));
    assert_eq!(lab.shutdown().requests, runner.sent);
}

#[test]
fn unsuitable_objectives_are_refused_before_anything_is_sent() {
    let lab = lab();
    for (objective, expected) in [
        ("max<1s", "p99.9"),
        ("rate>=5/s", "upper bounds"),
        ("login:errors<1%", "no label"),
        ("cpu<80%", "about the target itself"),
    ] {
        let spec = spec(url(&lab, "/fast"), objective);
        let Err(RunError::Spec(error)) = capacity(&spec, &options(), |_| ()) else {
            panic!("{objective} is searched for")
        };
        assert!(error.problem.contains(expected), "{objective}: {error}");
    }
    assert_eq!(lab.shutdown().requests, 0);
}

/// A script whose `setup` and iterations make a request each.
fn script(lab: &Lab) -> tempfile::NamedTempFile {
    let mut file = tempfile::Builder::new().suffix(".js").tempfile().unwrap();
    let url = format!("http://{}", lab.addr());
    let text = format!(
        "import http from 'k6/http';
        export const options = {{ thresholds: {{
            http_reqs: [{{ threshold: 'count<1', abortOnFail: true }}],
        }} }};
        export function setup() {{ http.get('{url}/bytes/1'); }}
        export default function () {{ http.get('{url}/fast'); }}"
    );
    file.write_all(text.as_bytes()).unwrap();
    file
}

#[test]
fn the_iterations_of_a_script_are_trials_and_its_thresholds_do_not_end_them() {
    let lab = lab();
    let file = script(&lab);
    let path = file.path().to_owned();
    let source =
        RequestSource::Script(ScriptSpec { path, function: None, environment: Vec::new() });
    let (spec, options) = (spec(source, EASY), options());
    let mut runner = CountingRunner::default();
    let trials = Trials::new(&spec, &options, Inputs::default(), &mut runner).unwrap();
    let report = trials.capacity(|event| {
        if let SearchEvent::Step(_, search) = event
            && search.steps().len() == 3
        {
            options.interrupt.stop(Stop::Drain);
        }
    });
    let report = report.unwrap();
    assert_eq!((report.steps.len(), runner.trials), (3, 3));
    for step in &report.steps {
        assert!(step.seen.due > 0 && step.seen.due == step.seen.ok, "{step:?}");
    }
    let served = lab.shutdown();
    assert_eq!(served.routes.get("/bytes"), Some(&3), "set up once a trial");
}
