//! The steps of an experiment, one per row of `each`.

use std::collections::BTreeMap;

use crate::arithmetic::fill;
use crate::budget::ConnectionBudget;
use crate::definition::{CellValue, Columns, Experiment, StepDefinition};
use crate::names::StepNames;
use crate::settings::ExperimentSettings;

/// A step that is part of an experiment.
#[derive(Debug, Clone)]
pub struct PlannedStep<'a> {
    pub step: &'a StepDefinition,
    /// The values known before the first run.
    pub names: StepNames<'a>,
    /// `None` if it depends on a run.
    pub name: Option<String>,
    /// Why it is not run, if so.
    pub left_out: Option<String>,
}

type Row<'a> = BTreeMap<&'a str, &'a CellValue>;

/// The steps, in order.
pub fn plan<'a>(
    definition: &'a Experiment,
    settings: &ExperimentSettings,
    budget: &'a ConnectionBudget,
) -> Result<Vec<PlannedStep<'a>>, String> {
    let is_mysql = settings.database.as_ref().is_some_and(|(_, store)| store.is_mysql());
    let known = [
        ("quick", f64::from(settings.quick)),
        ("own", f64::from(settings.target.is_some())),
        ("is_mysql", f64::from(is_mysql)),
        ("somaxconn", somaxconn()),
    ];
    let mut all = Vec::new();
    for step in definition.step.iter().filter(|step| settings.has(step.on)) {
        for row in rows(&step.each) {
            let mut names = StepNames {
                definition,
                step,
                numbers: known.map(|(name, number)| (name.to_owned(), number)).into(),
                texts: BTreeMap::new(),
                saved: BTreeMap::new(),
                budget,
                summary: None,
            };
            for (name, cell) in row {
                match cell {
                    CellValue::Number(number) => _ = names.numbers.insert(name.to_owned(), *number),
                    CellValue::Text(text) => _ = names.texts.insert(name.to_owned(), text.clone()),
                }
            }
            if names.holds(step.when.as_ref())? {
                let name = fill(&step.name, &names).ok();
                let left_out = names.notes(&step.left_out)?.into_iter().next();
                all.push(PlannedStep { step, names, name, left_out });
            }
        }
    }
    Ok(all)
}

/// Every row of one table of columns with every row of the others.
fn rows(each: &[Columns]) -> Vec<Row<'_>> {
    let mut all = vec![Row::new()];
    for columns in each {
        let length = columns.values().map(Vec::len).min().unwrap_or(0);
        let mut longer = Vec::new();
        for before in &all {
            for at in 0..length {
                let mut row = before.clone();
                row.extend(columns.iter().map(|(name, cells)| (name.as_str(), &cells[at])));
                longer.push(row);
            }
        }
        all = longer;
    }
    all
}

/// The kernel's limit on a backlog.
fn somaxconn() -> f64 {
    let text = std::fs::read_to_string("/proc/sys/net/core/somaxconn").ok();
    text.and_then(|text| text.trim().parse().ok()).unwrap_or(f64::INFINITY)
}
