//! Every file resolves the names of its steps, with the figures of a real run.

use gake_judge::Summary;
use gake_lab::{Lab, LabConfig};
use gake_run::spec::RunDraft;

use super::*;
use crate::arithmetic::{evaluate, fill};
use crate::budget::{ConnectionBudget, LoadTopology};
use crate::expectations;
use crate::plan::{PlannedStep, plan};
use crate::step_servers::spec;

/// On the lab, on a target, on a database; quick or not.
fn all_settings() -> Vec<ExperimentSettings> {
    let mut all = Vec::new();
    for quick in [true, false] {
        let target = Some("http://127.0.0.1:9/".to_owned());
        let database = Some((String::new(), "postgres://h/d".parse().unwrap()));
        all.push(ExperimentSettings { quick, ..ExperimentSettings::default() });
        all.push(ExperimentSettings { quick, target, ..ExperimentSettings::default() });
        all.push(ExperimentSettings { quick, database, ..ExperimentSettings::default() });
    }
    all
}

fn summary() -> Summary {
    let lab = Lab::start(LabConfig::default()).unwrap();
    let url = format!("http://{}/fast", lab.addr());
    let load = format!("scenario = [{{ url = \"{url}\", users = 1, iterations_per_user = 5 }}]");
    let spec = toml::from_str::<RunDraft>(&load).unwrap().decide().unwrap();
    let summary = Summary::new(gake_run::run(&spec).unwrap(), &[]);
    lab.shutdown();
    summary
}

/// Calls `each` with every planned step.
fn every_step(each: impl Fn(&ExperimentSettings, &PlannedStep<'_>)) {
    let budget = ConnectionBudget::new(LoadTopology::Both, 20_000, MachineLimits::default());
    for definition in experiments().unwrap() {
        for settings in all_settings() {
            let planned = plan(&definition, &settings, &budget).unwrap();
            planned.iter().for_each(|planned| each(&settings, planned));
            let mut names: Vec<_> = planned.iter().filter_map(|one| one.name.as_ref()).collect();
            let count = names.len();
            names.sort();
            names.dedup();
            assert!(names.len() == count || settings.database.is_some(), "{names:?}");
        }
    }
}

#[test]
fn every_step_has_what_its_texts_need() {
    let summary = summary();
    every_step(|settings, planned| {
        let step = planned.step;
        let mut names = planned.names.clone();
        let probed = step.probe.iter().flat_map(|probe| &probe.save);
        let by_runner = ["capacity", "taken", "ledger_ok", "ledger_received", "ledger_conn_err"];
        let saved = by_runner.into_iter().chain(probed.map(|(name, _)| name.as_str()));
        names.saved.extend(saved.map(|name| (name.to_owned(), 40.0)));
        for text in ["url", "other", "bound"] {
            names.texts.insert(text.to_owned(), "http://127.0.0.1:9/".to_owned());
        }
        let name = fill(&step.name, &names).unwrap();
        if settings.target.is_none() {
            fill(&step.server, &names).unwrap();
        }
        if !step.load.is_empty() {
            spec(step, &names, Vec::new()).unwrap_or_else(|why| panic!("{name}: {why}"));
        }
        names.notes(&step.note).unwrap();
        names.notes(&step.lacking).unwrap();
        names.summary = Some(&summary);
        for notes in [&step.note_after, &step.stop, &step.fail] {
            names.notes(notes).unwrap();
            notes.iter().for_each(|note| drop(fill(&note.text, &names).unwrap()));
        }
        let probed = step.probe.iter().flat_map(|probe| probe.save.values());
        for expression in step.save.values().chain(probed) {
            evaluate(expression, &names).unwrap();
        }
        for one in step.expect.iter().filter(|_| settings.target.is_none()) {
            names.holds(one.when.as_ref()).unwrap();
            let is_figure = !one.what.is_empty();
            let shown = if is_figure {
                expectations::figure(one, &names).unwrap().theory
            } else {
                fill(&one.theory, &names).unwrap()
            };
            assert!(!is_figure || !shown.is_empty(), "{name}: {one:?}");
        }
    });
}
