//! `cargo xtask causes`: what gake says first of each true cause, as a matrix.
//!
//! The servers and their limits are `crates/gake/tests/real/causes.rs`; here they are measured
//! several times each, and counted.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result, bail};

use crate::{command, workspace};

const RUNS: u32 = 3;

/// What was said first of one cause, and how often.
#[derive(Default)]
struct Cell {
    said: BTreeMap<String, u32>,
    right: u32,
    runs: u32,
}

/// The task: how many runs of each cell, and a part of the names of those that are measured.
pub fn main(args: &[String]) -> Result<()> {
    let (mut runs, mut only) = (RUNS, "");
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match (arg.as_str(), args.next()) {
            ("--runs", Some(number)) => runs = number.parse().context("--runs takes a number")?,
            ("--only", Some(part)) => only = part,
            _ => bail!("usage: cargo xtask causes [--runs N] [--only PART]"),
        }
    }
    let file = workspace::root().join("target/causes.tsv");
    if file.exists() {
        fs::remove_file(&file)?;
    }
    let path = file.display().to_string();
    let runs = runs.to_string();
    let test = ["test", "-p", "gake", "--test", "real", "--", "--ignored", "--exact"];
    let test = [&test[..], &["causes::matrix"]].concat();
    let env =
        [("GAKE_CAUSES", path.as_str()), ("GAKE_CAUSES_RUNS", &runs), ("GAKE_CAUSES_ONLY", only)];
    command::run_with("cargo", &test, &env)?;
    let text = fs::read_to_string(&file).with_context(|| format!("{path} was not written"))?;
    if text.trim().is_empty() {
        bail!("no cause has {only:?} in its name; without --only all are run and named");
    }
    print!("{}", table(&text));
    println!("\nwhat was found each time: {path}");
    Ok(())
}

/// Lines of the true cause, what was said first, and whether that is right, as Markdown.
fn table(lines: &str) -> String {
    let mut cells: Vec<(String, Cell)> = Vec::new();
    for line in lines.lines() {
        let mut fields = line.split('\t').map(str::to_owned);
        let (Some(cause), Some(first), Some(right)) = (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let at = cells.iter().position(|(known, _)| *known == cause).unwrap_or_else(|| {
            cells.push((cause, Cell::default()));
            cells.len() - 1
        });
        let cell = &mut cells[at].1;
        *cell.said.entry(first).or_default() += 1;
        cell.right += u32::from(right == "true");
        cell.runs += 1;
    }
    let mut text = "| true cause | said first | right |\n| --- | --- | ---: |\n".to_owned();
    let (mut right, mut runs) = (0, 0);
    for (cause, cell) in &cells {
        let mut said: Vec<_> = cell.said.iter().collect();
        said.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let said: Vec<_> = said.iter().map(|(id, count)| format!("`{id}` × {count}")).collect();
        let part = format!("{} of {}", cell.right, cell.runs);
        text.push_str(&format!("| {cause} | {} | {part} |\n", said.join(", ")));
        right += cell.right;
        runs += cell.runs;
    }
    text.push_str(&format!("| all | | {right} of {runs} |\n"));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_is_counted_by_cause() {
        let lines = "CPU\ttarget_cpu\ttrue\t{}\nnone\tnone\ttrue\t{}\nCPU\trun_delay\tfalse\t{}\n\
                     CPU\ttarget_cpu\ttrue\t{}\n";
        let expected = "| true cause | said first | right |\n| --- | --- | ---: |\n\
            | CPU | `target_cpu` × 2, `run_delay` × 1 | 2 of 3 |\n\
            | none | `none` × 1 | 1 of 1 |\n\
            | all | | 3 of 4 |\n";
        assert_eq!(table(lines), expected);
    }
}
