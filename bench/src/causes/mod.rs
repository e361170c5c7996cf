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

/// The table in docs/causes.md is between these.
const MARKS: (&str, &str) = ("<!-- cargo xtask causes -->\n", "<!-- end -->");

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
    if runs == 0 {
        bail!("--runs takes a number from 1 up");
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
    let measured = command::run_with("cargo", &test, &env);
    // What was measured before a cell broke off is shown all the same.
    let text = fs::read_to_string(&file).with_context(|| format!("{path} was not written"))?;
    let matrix = Matrix::of(&text);
    if matrix.is_empty() {
        bail!("no cause has {only:?} in its name; without --only all are run and named");
    }
    println!("{}\n{}", matrix.table(), matrix.confusion());
    println!("what was found each time: {path}");
    measured?;
    if only.is_empty() {
        document(&workspace::root().join("docs/causes.md"), &matrix.table())?;
    }
    Ok(())
}

/// Puts the table into the page.
fn document(page: &Path, table: &str) -> Result<()> {
    let text = fs::read_to_string(page)?;
    let (begin, end) = MARKS;
    let parts = text.split_once(begin).and_then(|(before, rest)| {
        rest.split_once(end).map(|(_, after)| format!("{before}{begin}{table}{end}{after}"))
    });
    let text = parts.with_context(|| {
        format!("{} has no {} ... {end} for the table", page.display(), begin.trim())
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
        let text = format!("# Causes\n\n{}old\n{}\n\nmore\n", MARKS.0, MARKS.1);
        fs::write(&folder, text).unwrap();
        document(&folder, "new\n").unwrap();
        let text = fs::read_to_string(&folder).unwrap();
        fs::remove_file(&folder).unwrap();
        assert_eq!(text, format!("# Causes\n\n{}new\n{}\n\nmore\n", MARKS.0, MARKS.1));
        let page = workspace::root().join("docs/causes.md");
        let page = fs::read_to_string(page).unwrap();
        assert!(page.contains(MARKS.0) && page.contains(MARKS.1));
    }
}
