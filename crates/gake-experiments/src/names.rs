//! What the names in an experiment's file stand for, in one of its steps.

use std::collections::BTreeMap;

use gake_judge::Summary;

use crate::arithmetic::{Scope, evaluate, fill};
use crate::budget::ConnectionBudget;
use crate::definition::{Cell, Experiment, Note, StepDefinition, Text};
use crate::figures;

/// The values of a step; after its run, with the figures of that.
#[derive(Debug, Clone)]
pub struct StepNames<'a> {
    /// The file.
    pub definition: &'a Experiment,
    /// The step.
    pub step: &'a StepDefinition,
    /// Columns, and what the runner knows.
    pub numbers: BTreeMap<String, f64>,
    /// The same of texts.
    pub texts: BTreeMap<String, String>,
    /// What earlier steps saved.
    pub saved: BTreeMap<String, f64>,
    /// Connections that there can be.
    pub budget: &'a ConnectionBudget,
    /// The run.
    pub summary: Option<&'a Summary>,
}

impl StepNames<'_> {
    /// Whether a condition holds; without one it does.
    pub fn holds(&self, condition: Option<&String>) -> Result<bool, String> {
        condition.map_or(Ok(true), |text| Ok(evaluate(text, self)? != 0.0))
    }

    /// The texts of the notes whose conditions hold.
    pub fn notes(&self, notes: &[Note]) -> Result<Vec<String>, String> {
        let holding = notes.iter().filter_map(|note| match self.holds(note.when.as_ref()) {
            Ok(holds) => holds.then(|| fill(&note.text, self)),
            Err(why) => Some(Err(why)),
        });
        holding.collect()
    }

    /// Fills a value of a spec.
    pub fn filled(&self, value: &toml::Value) -> Result<toml::Value, String> {
        Ok(match value {
            toml::Value::String(template) => toml::Value::String(fill(template, self)?),
            toml::Value::Array(values) => {
                let filled = values.iter().map(|value| self.filled(value));
                toml::Value::Array(filled.collect::<Result<_, _>>()?)
            }
            toml::Value::Table(table) => toml::Value::Table(self.filled_table(table)?),
            other => other.clone(),
        })
    }

    /// Fills a table of a spec.
    pub fn filled_table(&self, table: &toml::Table) -> Result<toml::Table, String> {
        table.iter().map(|(key, value)| Ok((key.clone(), self.filled(value)?))).collect()
    }
}

impl Scope for StepNames<'_> {
    fn number(&self, name: &str) -> Result<f64, String> {
        if let Some(number) = self.numbers.get(name) {
            return Ok(*number);
        }
        let saved = self.saved.get(name).map(|number| Cell::Number(*number));
        let known = self.step.values.get(name).cloned().or(saved);
        match known.as_ref().or_else(|| self.definition.values.get(name)) {
            Some(Cell::Number(number)) => return Ok(*number),
            Some(Cell::Text(text)) => return evaluate(text, self),
            None => {}
        }
        let figure = |summary| figures::figure(summary, self.step.subject, name);
        self.summary.and_then(figure).ok_or_else(|| format!("{name} has no value"))
    }

    fn text(&self, name: &str) -> Result<Option<String>, String> {
        if let Some(text) = self.texts.get(name) {
            return Ok(Some(text.clone()));
        }
        match (self.definition.texts.get(name), self.summary) {
            (Some(Text::Template(template)), _) => fill(template, self).map(Some),
            (Some(Text::Cases(cases)), _) => {
                for case in cases {
                    match case.as_slice() {
                        [template] => return fill(template, self).map(Some),
                        [condition, template] if self.holds(Some(condition))? => {
                            return fill(template, self).map(Some);
                        }
                        _ => {}
                    }
                }
                Err(format!("no case of {name} holds"))
            }
            (None, Some(summary)) if name == "nothing_ok" => Ok(Some(figures::nothing_ok(summary))),
            _ => Ok(None),
        }
    }

    fn call(&self, function: &str, arguments: &[f64]) -> Result<f64, String> {
        if let ("needs_tables", [connections]) = (function, arguments) {
            return Ok(f64::from(self.budget.needs_tables(*connections as u64)));
        }
        let of_run = |summary| figures::function(summary, function, arguments);
        let value = figures::theory(function, arguments).or_else(|| self.summary.and_then(of_run));
        value.ok_or_else(|| format!("{function} is no function of {} numbers", arguments.len()))
    }
}
