//! `cargo xtask causes`: what gake says first of each true cause, as a matrix.
//!
//! The servers and their limits are in `crates/gake/tests/real/causes/`; here they are measured
//! several times each, and counted. When all were, docs/causes.md gets the table.

mod matrix;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use matrix::Matrix;
use xtask::{command, workspace};

const RUNS: u32 = 3;

/// The tests that measure a table each, and its first line in docs/causes.md.
const TABLES: [(&str, &str); 2] = [
    ("matrix", "<!-- cargo xtask causes -->\n"),
    ("limits::matrix", "<!-- cargo xtask causes: nothing exported -->\n"),
];
const END: &str = "<!-- end -->";

/// The task: how many runs of each cell, and a part of the names of those that are measured.
pub fn main(args: &[String]) -> Result<()> {
    let (mut runs, mut only) = (RUNS, "");
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match (arg.as_str(), args.next()) {
            ("--runs", Some(number)) => runs = number.parse().context("--runs takes a number")?,
            ("--only", Some(part)) => only = part,
            _ => bail!("usage: cargo xtask causes [--runs N] [--only TABLE|PART]"),
        }
    }
    if runs == 0 {
        bail!("--runs takes a number from 1 up");
    }
    let one = TABLES.iter().find(|table| table.0 == only);
    let part = if one.is_some() { "" } else { only };
    let mut is_known = false;
    for table in TABLES.iter().filter(|table| one.is_none_or(|one| one == *table)) {
        is_known |= measure(table, runs, part)?;
    }
    if !is_known {
        bail!("no cause has {only:?} in its name; without --only all are run and named");
    }
    Ok(())
}

/// Measures a table, or the cells with `part` in their names; whether there are any.
fn measure(&(test, mark): &(&str, &str), runs: u32, part: &str) -> Result<bool> {
    let file = workspace::root().join("target/causes.tsv");
    fs::write(&file, "")?;
    let path = file.display().to_string();
    let (runs, name) = (runs.to_string(), format!("causes::{test}"));
    let test = ["test", "-p", "gake", "--test", "real", "--", "--ignored", "--exact", &name];
    let env =
        [("GAKE_CAUSES", path.as_str()), ("GAKE_CAUSES_RUNS", &runs), ("GAKE_CAUSES_ONLY", part)];
    let measured = command::run_with("cargo", &test, &env);
    // What was measured before a cell broke off is shown all the same.
    let matrix = Matrix::of(&fs::read_to_string(&file)?);
    if !matrix.is_empty() {
        println!("{}\n{}", matrix.table(), matrix.confusion());
        println!("what was found each time: {path}");
    }
    measured?;
    if part.is_empty() {
        document(&workspace::root().join("docs/causes.md"), mark, &matrix.table())?;
    }
    Ok(!matrix.is_empty())
}

/// Puts the table into the page.
fn document(page: &Path, begin: &str, table: &str) -> Result<()> {
    let text = fs::read_to_string(page)?;
    let parts = text.split_once(begin).and_then(|(before, rest)| {
        rest.split_once(END).map(|(_, after)| format!("{before}{begin}{table}{END}{after}"))
    });
    let text = parts.with_context(|| {
        format!("{} has no {} ... {END} for the table", page.display(), begin.trim())
    })?;
    fs::write(page, text)?;
    println!("the table is in {}", page.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_gets_the_table_between_its_marks() {
        let folder = std::env::temp_dir().join(format!("gake-causes-{}", std::process::id()));
        let text = |table: &str| format!("# Causes\n\n{}{table}\n{END}\n\nmore\n", TABLES[1].1);
        fs::write(&folder, text("old")).unwrap();
        document(&folder, TABLES[1].1, "new\n").unwrap();
        let read = fs::read_to_string(&folder).unwrap();
        fs::remove_file(&folder).unwrap();
        assert_eq!(read, text("new"));
        let page = workspace::root().join("docs/causes.md");
        let page = fs::read_to_string(page).unwrap();
        assert!(TABLES.iter().all(|table| page.contains(table.1)));
    }
}
