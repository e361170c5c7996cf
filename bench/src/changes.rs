//! `cargo xtask bench changes`: what got worse, or better, from one kept report to the next.
//!
//! Reports are of different days and hosts. What gake's figures changed by is therefore divided by
//! what the figures of its peers in the same column changed by.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use xtask::workspace;

use super::stats::median;

/// Smaller changes are chance.
const CHANCE: f64 = 0.10;

/// Parts of the names of columns whose larger figures are better.
const MORE_IS_BETTER: [&str; 4] = ["/s", "rate", "of direct", "mirror"];

/// Columns that are no figures of merit.
const NO_MERIT: [&str; 7] =
    ["off", "errors", "stolen", "arrived", "min ms", "max ms", "requests by"];

/// A table of a report.
#[derive(Debug, PartialEq)]
struct Table {
    heading: String,
    columns: Vec<String>,
    rows: Vec<(String, Vec<Option<f64>>)>,
}

/// A figure of gake in two reports.
struct Change {
    row: String,
    column: String,
    old: f64,
    new: f64,
    /// What the peers' figures changed by.
    host: f64,
    /// Above 1 it is worse.
    factor: f64,
}

/// The task: two reports, or each heading's last two in the folder of the bench.
pub fn main(args: &[String]) -> Result<()> {
    match args {
        [] => {
            let mut reports = kept()?;
            let newest = reports.pop().context("bench/ has no report")?;
            reports.reverse();
            compare(&newest, &reports)
        }
        [old, new] => compare(Path::new(new), &[PathBuf::from(old)]),
        _ => bail!("usage: cargo xtask bench changes [OLD NEW]"),
    }
}

/// Prints the changes in each table of a report since the first of `earlier` with that table.
fn compare(newest: &Path, earlier: &[PathBuf]) -> Result<()> {
    println!("{}", newest.display());
    let mut old = Vec::new();
    for path in earlier {
        old.extend(tables(&read(path)?).into_iter().map(|table| (path, table)));
    }
    let mut unmatched = Vec::new();
    for table in tables(&read(newest)?) {
        let same = |old: &&(&PathBuf, Table)| old.1.heading == table.heading;
        match old.iter().find(same) {
            Some((path, old)) => print(&table, old, path),
            None => unmatched.push(table.heading),
        }
    }
    for heading in unmatched {
        println!("\n{heading}\n  no earlier report has it");
    }
    Ok(())
}

fn print(new: &Table, old: &Table, path: &Path) {
    let mut changes = changes(old, new);
    changes.sort_by(|a, b| b.factor.total_cmp(&a.factor));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    println!("\n{}\n  since {name}: {} figures", new.heading, changes.len());
    let is_change = |change: &&Change| (change.factor - 1.0).abs() > CHANCE;
    let mut seen = false;
    for change in changes.iter().filter(is_change) {
        seen = true;
        let (percent, word) = match change.factor > 1.0 {
            true => (change.factor - 1.0, "worse"),
            false => (1.0 - change.factor, "better"),
        };
        let Change { row, column, old, new, host, .. } = change;
        let percent = percent * 100.0;
        println!(
            "  {word:6} by {percent:3.0} %  {row}, {column}: {old} -> {new} (peers × {host:.2})"
        );
    }
    if !seen {
        println!("  none changed by more than {:.0} %", CHANCE * 100.0);
    }
}

/// The figures of gake in both tables. A table without a row of gake compares it with a peer in each
/// row, in the columns with `×`.
fn changes(old: &Table, new: &Table) -> Vec<Change> {
    let mut changes = Vec::new();
    let has_rows = new.rows.iter().any(|(row, _)| is_gake(row));
    for (column, name) in new.columns.iter().enumerate() {
        let Some(old_column) = old.columns.iter().position(|old| old == name) else { continue };
        let counts = !NO_MERIT.iter().any(|part| name.contains(part));
        if !counts || (!has_rows && !name.contains('×')) {
            continue;
        }
        let ratio = |row: &str| {
            let (old, new) = (value(old, row, old_column)?, value(new, row, column)?);
            (old > 0.0 && new > 0.0).then_some((old, new))
        };
        let peers = new.rows.iter().filter(|(row, _)| has_rows && !is_gake(row));
        let peers = peers.filter_map(|(row, _)| ratio(row)).map(|(old, new)| new / old);
        let peers: Vec<f64> = peers.collect();
        let host = if peers.is_empty() { 1.0 } else { median(&peers) };
        for (row, _) in new.rows.iter().filter(|(row, _)| !has_rows || is_gake(row)) {
            let Some((old, new_value)) = ratio(row) else { continue };
            let factor = new_value / old / host;
            let more_is_better = MORE_IS_BETTER.iter().any(|part| name.contains(part));
            changes.push(Change {
                row: row.clone(),
                column: name.clone(),
                old,
                new: new_value,
                host,
                factor: if more_is_better { 1.0 / factor } else { factor },
            });
        }
    }
    changes
}

fn is_gake(row: &str) -> bool {
    row == "gake" || row.starts_with("gake ")
}

fn value(table: &Table, row: &str, column: usize) -> Option<f64> {
    let (_, values) = table.rows.iter().find(|(name, _)| name == row)?;
    *values.get(column)?
}

/// The tables of a report. A heading has a colon and no indentation, cells are two blanks apart.
fn tables(text: &str) -> Vec<Table> {
    let mut tables = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let is_heading = !line.starts_with(' ') && line.contains(": ");
        let Some(head) = lines.next_if(|next| is_heading && next.starts_with("  ")) else {
            continue;
        };
        let columns = cells(head).skip(1).map(str::to_owned).collect::<Vec<_>>();
        let mut rows = Vec::new();
        while let Some(row) = lines.next_if(|next| next.starts_with("  ")) {
            let mut cells = cells(row);
            let name = cells.next().unwrap_or_default().to_owned();
            let values: Vec<_> = cells.map(number).collect();
            // Remarks below a table have no cells.
            if values.len() == columns.len() {
                rows.push((name, values));
            }
        }
        if !columns.is_empty() {
            tables.push(Table { heading: line.to_owned(), columns, rows });
        }
    }
    tables
}

fn cells(line: &str) -> impl Iterator<Item = &str> {
    line.split("  ").map(str::trim).filter(|cell| !cell.is_empty())
}

/// The first number of a cell; a range is none.
fn number(cell: &str) -> Option<f64> {
    cell.replace(',', "").parse().ok()
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| path.display().to_string())
}

/// The reports of the repository, the oldest first: their names begin with the day.
fn kept() -> Result<Vec<PathBuf>> {
    let folder = workspace::root().join("bench");
    let entries = fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
    let mut reports: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .collect();
    reports.sort();
    Ok(reports)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(gake: f64, wrk: f64, rate: f64) -> String {
        format!(
            "gake bench\ndate     today\n\ncpu: closed loop, 50 connections\n  tool  µs/request  \
             CPU × wrk    (min–max)  rate × wrk\n  gake        {gake}       0.9  (0.8–1.1)        \
             {rate}\n  wrk         {wrk}       1.00  (1.00–1.00)        1.00\n  a remark\n\nstart: \
             not asked for\n"
        )
    }

    fn changed(old: &str, new: &str) -> Vec<(String, f64)> {
        let changes = changes(&tables(old)[0], &tables(new)[0]);
        changes.into_iter().map(|change| (change.column, change.factor)).collect()
    }

    #[test]
    fn a_slower_host_is_no_change() {
        let changes = changed(&report(10.0, 10.0, 1.0), &report(20.0, 20.0, 1.0));
        assert_eq!(changes.len(), 3);
        assert!(changes.iter().all(|(_, factor)| (factor - 1.0).abs() < 1e-9), "{changes:?}");
    }

    #[test]
    fn more_time_and_a_lower_rate_are_worse() {
        let changes = changed(&report(10.0, 10.0, 1.0), &report(15.0, 10.0, 0.5));
        let factors: Vec<_> = changes.iter().map(|(_, factor)| *factor).collect();
        assert_eq!(factors, [1.5, 1.0, 2.0]);
    }

    #[test]
    fn rows_that_compare_with_a_peer_are_compared_as_they_are() {
        let of = |ratio| {
            format!(
                "http2: by shape\n  server  gake µs  CPU × h2load    (min–max)\n  nginx     40.26  \
                 {ratio}  (0.83–0.93)\n"
            )
        };
        assert_eq!(changed(&of("0.8"), &of("1.0")), [("CPU × h2load".to_owned(), 1.25)]);
    }

    #[test]
    fn the_kept_reports_have_tables() {
        for path in kept().unwrap() {
            assert!(!tables(&read(&path).unwrap()).is_empty(), "{}", path.display());
        }
    }
}
