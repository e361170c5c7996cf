//! The names in an experiment file, as a step resolves them.

use std::collections::BTreeMap;

use gake_judge::Summary;

use crate::arithmetic::{ExpressionScope, evaluate, fill};
use crate::budget::ConnectionBudget;
use crate::definition::{CellValue, ConditionalText, Experiment, StepDefinition, TextTemplate};
use crate::figures;

/// The values of a step and, after its run, its figures.
#[derive(Debug, Clone)]
pub struct StepNames<'a> {
    pub definition: &'a Experiment,
    pub step: &'a StepDefinition,
    /// Columns, and numbers from the runner.
    pub numbers: BTreeMap<String, f64>,
    /// Columns, and texts from the runner.
    pub texts: BTreeMap<String, String>,
    /// Figures that earlier steps saved.
    pub saved: BTreeMap<String, f64>,
    pub budget: &'a ConnectionBudget,
    /// The run, when it has ended.
    pub summary: Option<&'a Summary>,
}

impl StepNames<'_> {
    /// Whether a condition is true, or absent.
    pub fn holds(&self, condition: Option<&String>) -> Result<bool, String> {
        condition.map_or(Ok(true), |text| Ok(evaluate(text, self)? != 0.0))
    }

    /// The texts whose conditions are true.
    pub fn notes(&self, notes: &[ConditionalText]) -> Result<Vec<String>, String> {
        let holding = notes.iter().filter_map(|note| match self.holds(note.when.as_ref()) {
            Ok(holds) => holds.then(|| fill(&note.text, self)),
            Err(why) => Some(Err(why)),
        });
        holding.collect()
    }

    /// Fills the templates in a value of a spec.
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

    /// Fills the templates in a table of a spec.
    pub fn filled_table(&self, table: &toml::Table) -> Result<toml::Table, String> {
        table.iter().map(|(key, value)| Ok((key.clone(), self.filled(value)?))).collect()
    }
}

impl ExpressionScope for StepNames<'_> {
    fn number(&self, name: &str) -> Result<f64, String> {
        if let Some(number) = self.numbers.get(name) {
            return Ok(*number);
        }
        let saved = self.saved.get(name).map(|number| CellValue::Number(*number));
        let known = self.step.values.get(name).cloned().or(saved);
        match known.as_ref().or_else(|| self.definition.values.get(name)) {
            Some(CellValue::Number(number)) => return Ok(*number),
            Some(CellValue::Text(text)) => return evaluate(text, self),
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
            (Some(TextTemplate::Template(template)), _) => fill(template, self).map(Some),
            (Some(TextTemplate::Cases(cases)), _) => {
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
