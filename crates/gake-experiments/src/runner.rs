//! Runs the steps of an experiment.

use std::collections::BTreeMap;
use std::thread;

use gake_judge::Summary;
use gake_report::experiment::ExperimentReport;
use gake_session::Failure;

use crate::arithmetic::{ExpressionScope, evaluate, fill};
use crate::bench::{Bench, StepError};
use crate::budget::ConnectionBudget;
use crate::definition::{Experiment, StepDefinition, StepKind};
use crate::names::StepNames;
use crate::plan::{PlannedStep, plan};
use crate::real_database::{CLOSING, DatabaseGuard};
use crate::settings::ExperimentSettings;
use crate::step_servers::StepServers;
use crate::throughput::{CurveStep, end_of_throughput};
use crate::{alternate, figures};

/// Users of the first and, at most, of the last closed loop of a saturation.
const SATURATING: u32 = 24;
const SATURATING_MAX: u32 = 3_072;
/// Users are doubled again as long as that increases the rate by this factor.
const GROWS: f64 = 1.1;

#[derive(Debug)]
pub struct Runner<'a> {
    bench: Bench<'a>,
    settings: &'a ExperimentSettings,
    budget: &'a ConnectionBudget,
    plan: Vec<PlannedStep<'a>>,
    /// The index of the current step in the plan.
    at: usize,
    saved: BTreeMap<String, f64>,
    curve: Vec<CurveStep>,
}

impl<'a> Runner<'a> {
    pub fn new(
        definition: &'a Experiment,
        settings: &'a ExperimentSettings,
        budget: &'a ConnectionBudget,
        bench: Bench<'a>,
    ) -> Result<Self, Failure> {
        let plan = plan(definition, settings, budget).map_err(Failure::could_not)?;
        let (saved, curve) = (BTreeMap::new(), Vec::new());
        Ok(Self { bench, settings, budget, plan, at: 0, saved, curve })
    }

    /// Runs every requested step.
    pub fn run(&mut self) -> Result<(), StepError> {
        let Some((written, store)) = &self.settings.database else { return self.steps(None) };
        if !(0..self.plan.len()).any(|at| self.is_asked(at)) {
            return Ok(());
        }
        let database = DatabaseGuard::new(written, store, self.bench.interrupt())?;
        let ended = self.steps(Some(&database));
        // Also after Ctrl-C: the rows serve no other purpose.
        thread::sleep(CLOSING);
        if let Err(why) = database.restore() {
            self.bench.note(format!("the rows of this experiment are left in the database: {why}"));
        }
        ended
    }

    fn steps(&mut self, database: Option<&DatabaseGuard<'_>>) -> Result<(), StepError> {
        for at in 0..self.plan.len() {
            let planned = self.plan[at].clone();
            let names = StepNames { saved: self.saved.clone(), ..planned.names.clone() };
            let name = fill(&planned.step.name, &names)?;
            // Equal values result in the same step.
            let is_again = self.bench.report.steps.last().is_some_and(|last| last.name == name);
            let is_named = || planned.name.is_none() && self.settings.names(&name);
            let is_asked = self.is_asked(at) || is_named();
            if !is_asked || is_again && planned.step.kind == StepKind::Load {
                continue;
            }
            self.at = at;
            match self.step(&planned, names, name.clone(), database) {
                Ok(true) => {}
                Ok(false) => break,
                Err(StepError::Failed(why)) if database.is_some() && !planned.step.calibrates => {
                    self.bench.report.is_complete = false;
                    self.bench.note(format!("\"{name}\" is missing: {why}"));
                }
                Err(stopped) => return Err(stopped),
            }
        }
        Ok(())
    }

    /// Whether a step of the plan is requested, or needed by a later one.
    fn is_asked(&self, at: usize) -> bool {
        let is_named = |planned: &PlannedStep<'_>, unknown: bool| {
            planned.name.as_ref().map_or(unknown, |name| self.settings.names(name))
        };
        let planned = &self.plan[at];
        let mut later = self.plan[at + 1..].iter().filter(|planned| planned.left_out.is_none());
        is_named(planned, false)
            || planned.step.kind == StepKind::Throughput
            || planned.step.calibrates && later.any(|planned| is_named(planned, true))
    }

    /// Runs a step; returns whether the experiment continues.
    fn step(
        &mut self,
        planned: &PlannedStep<'a>,
        mut names: StepNames<'a>,
        name: String,
        database: Option<&DatabaseGuard<'_>>,
    ) -> Result<bool, StepError> {
        let step = planned.step;
        if step.kind == StepKind::Throughput {
            let text = end_of_throughput(&self.curve);
            text.into_iter().for_each(|text| self.bench.note(text));
            return Ok(true);
        }
        if let Some(why) = &planned.left_out {
            self.leave_out(why);
            return Ok(true);
        }
        if !self.fits(step, &name, &mut names)? {
            return Ok(true);
        }
        names.notes(&step.note)?.into_iter().for_each(|text| self.bench.note(text));
        match step.kind {
            StepKind::Alternate => return self.alternate(step, names).map(|()| true),
            StepKind::Saturate => return self.saturate(step, names),
            _ => {}
        }
        if let Some(why) = self.probes(step, &mut names)? {
            self.bench.note(format!("\"{name}\" is left out: {why}"));
            return Ok(true);
        }
        let mut loaded = StepServers::start(self.settings, step, &mut names, database)?;
        let summary = self.bench.fire(&loaded.spec(self.settings, step, &names)?)?;
        loaded.end(&mut names)?;
        self.judge(step, &names, &loaded, summary)
    }

    /// Shows the step of a run, and applies the file's conditions; returns whether the experiment
    /// continues.
    fn judge(
        &mut self,
        step: &'a StepDefinition,
        names: &StepNames<'a>,
        loaded: &StepServers<'_>,
        summary: Summary,
    ) -> Result<bool, StepError> {
        let mut names = StepNames { summary: Some(&summary), ..names.clone() };
        self.save(&step.save, &names)?;
        names.saved.clone_from(&self.saved);
        if step.in_curve {
            self.curve.push(CurveStep::new(&summary, names.number("users")? as u64));
        }
        let expectations = loaded.expectations(step, &names, &summary)?;
        let name = fill(&step.name, &names)?;
        let fails = names.notes(&step.fail)?.into_iter().next();
        let stops = names.notes(&step.stop)?;
        let goes_on = stops.is_empty();
        let notes = if goes_on { names.notes(&step.note_after)? } else { stops };
        let command = loaded.server().command.clone();
        self.bench.add(name, command, summary, step.subject, expectations);
        if let Some(why) = fails {
            return Err(StepError::Failed(Failure::could_not(why)));
        }
        notes.into_iter().for_each(|text| self.bench.note(text));
        Ok(goes_on)
    }

    fn save(
        &mut self,
        figures: &BTreeMap<String, String>,
        names: &StepNames<'_>,
    ) -> Result<(), String> {
        for (name, expression) in figures {
            self.saved.insert(name.clone(), evaluate(expression, names)?);
        }
        Ok(())
    }

    /// Adds a note about all steps that are left out for the same reason.
    fn leave_out(&mut self, why: &str) {
        let same = self.plan.iter().filter(|planned| planned.left_out.as_deref() == Some(why));
        let names = same.filter_map(|planned| planned.name.as_ref());
        let names = names.filter(|name| self.settings.names(name));
        let names: Vec<_> = names.map(|name| format!("\"{name}\"")).collect();
        let text = format!("left out: {}; {why}", names.join(", "));
        if !self.bench.report.notes.contains(&text) {
            self.bench.note(text);
        }
    }

    /// Whether there can be a connection for each user of a step; adds a note if not.
    fn fits(
        &mut self,
        step: &StepDefinition,
        name: &str,
        names: &mut StepNames<'a>,
    ) -> Result<bool, StepError> {
        let Some(connections) = &step.connections else { return Ok(true) };
        let connections = evaluate(connections, names)? as u64;
        let fits = self.budget.fits(connections);
        if fits.connections >= connections {
            return Ok(true);
        }
        if !step.shrinks {
            self.bench.note(format!("\"{name}\" is left out: {}", fits.why));
            return Ok(false);
        }
        names.numbers.insert("users".to_owned(), fits.connections.max(1) as f64);
        names.texts.insert("bound".to_owned(), fits.why);
        Ok(true)
    }

    /// Runs the probes of a step; returns why the step cannot run after them.
    fn probes(
        &mut self,
        step: &'a StepDefinition,
        names: &mut StepNames<'a>,
    ) -> Result<Option<String>, StepError> {
        for probe in &step.probe {
            let mut probed = names.clone();
            probed.numbers.extend(probe.values.clone());
            let loaded = StepServers::start(self.settings, step, &mut probed, None)?;
            let summary = self.bench.fire(&loaded.spec(self.settings, step, &probed)?)?;
            let probed = StepNames { summary: Some(&summary), ..probed };
            self.save(&probe.save, &probed)?;
        }
        names.saved.clone_from(&self.saved);
        Ok(names.notes(&step.lacking)?.into_iter().next())
    }

    /// Doubles the users of a closed loop until throughput stops growing, and shows the loop that
    /// counts as the capacity.
    fn saturate(
        &mut self,
        step: &'a StepDefinition,
        mut names: StepNames<'a>,
    ) -> Result<bool, StepError> {
        let loaded = StepServers::start(self.settings, step, &mut names, None)?;
        let mut best: Option<(u32, Summary)> = None;
        let mut users = SATURATING;
        while users <= SATURATING_MAX && self.budget.fits(users.into()).connections >= users.into()
        {
            names.numbers.insert("users".to_owned(), users.into());
            let summary = self.bench.fire(&loaded.spec(self.settings, step, &names)?)?;
            let rate = figures::goodput;
            if best.as_ref().is_some_and(|(_, best)| rate(&summary) <= GROWS * rate(best)) {
                break;
            }
            best = Some((users, summary));
            users *= 2;
        }
        let Some((users, summary)) = best else { return Ok(false) };
        names.numbers.remove("users");
        self.saved.insert("users".to_owned(), users.into());
        self.saved.insert("capacity".to_owned(), figures::goodput(&summary));
        self.judge(step, &names, &loaded, summary)
    }

    /// Runs production and proxy alternately; both are rows of the same step.
    fn alternate(
        &mut self,
        step: &'a StepDefinition,
        names: StepNames<'a>,
    ) -> Result<(), StepError> {
        let is_same = |planned: &&PlannedStep<'_>| std::ptr::eq(planned.step, step);
        let rows = self.plan.iter().filter(is_same);
        let both: Vec<String> = rows.filter_map(|planned| planned.name.clone()).collect();
        let has_run = |name: &String| self.bench.report.steps.iter().any(|one| one.name == *name);
        if both.iter().any(has_run) {
            return Ok(());
        }
        alternate::run(&mut self.bench, self.settings, step, names, both)
    }

    /// The report of the completed steps, and why there are no others.
    pub fn finish(mut self, ended: Result<(), StepError>) -> (ExperimentReport, Option<StepError>) {
        let stopped = ended.err();
        self.bench.report.is_complete &= stopped.is_none();
        match &stopped {
            None => {}
            Some(StepError::Interrupted) => {
                self.bench.report.notes.push("interrupted: these are the steps so far".to_owned());
            }
            Some(StepError::Failed(why)) => {
                let missing = match self.missing().as_slice() {
                    [] => String::new(),
                    names => format!("; missing: {}", names.join(", ")),
                };
                self.bench.report.notes.push(format!("the experiment failed: {why}{missing}"));
            }
        }
        (self.bench.finish(), stopped)
    }

    /// The names of the steps from the current one on, without the completed ones.
    fn missing(&self) -> Vec<String> {
        let later = self.plan[self.at..].iter().filter(|planned| planned.left_out.is_none());
        let mut missing: Vec<String> = Vec::new();
        for name in later.filter_map(|planned| planned.name.as_ref()) {
            let quoted = format!("\"{name}\"");
            let has_ended = self.bench.report.steps.iter().any(|step| step.name == *name);
            if self.settings.names(name) && !has_ended && !missing.contains(&quoted) {
                missing.push(quoted);
            }
        }
        missing
    }
}
