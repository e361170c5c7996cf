//! `cargo xtask k6 --fuzz MINUTES`: random scripts, run by a real k6 and by gake. Of each difference
//! the smallest script that still has it is kept.

mod outcome;
mod script;
mod tables;

// The tests of recorded scripts leave the same out.
#[allow(clippy::unwrap_used)]
#[path = "../../../crates/gake/tests/k6/normal.rs"]
mod normal;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::soak;
use outcome::{differences, observe};
use script::{Choices, Script};
use xtask::{command, workspace};

/// Both tools, and where they run.
struct Pair {
    k6: PathBuf,
    gake: PathBuf,
    url: String,
    folder: PathBuf,
}

/// The task: for how many minutes, from which seed, with which binary.
pub fn main(args: &[String], k6: &str) -> Result<()> {
    let (mut minutes, mut seed, mut gake) = (None, 0_u64, None);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--seed" => seed = args.next().context("--seed needs a number")?.parse()?,
            "--gake" => {
                gake = Some(std::path::absolute(args.next().context("--gake needs a path")?)?)
            }
            number => minutes = Some(number.parse::<f64>().context("--fuzz needs minutes")?),
        }
    }
    let Some(minutes) = minutes.filter(|minutes| (0.0..1e6).contains(minutes)) else {
        bail!("usage: GAKE_K6=PATH cargo xtask k6 --fuzz MINUTES [--seed N] [--gake PATH]");
    };
    let gake = match gake {
        Some(path) => path,
        None => {
            command::run("cargo", &["build", "-p", "gake"])?;
            workspace::target_dir()?.join("debug/gake")
        }
    };
    let (_server, url) = soak::serve(&gake)?;
    let url = url.trim_end_matches('/').to_owned();
    let folder = workspace::target_dir()?.join("k6-fuzz");
    fs::create_dir_all(&folder)?;
    let pair = Pair { k6: std::path::absolute(k6)?, gake, url, folder };
    run(&pair, Duration::from_secs_f64(minutes * 60.0), seed)
}

fn run(pair: &Pair, limit: Duration, first: u64) -> Result<()> {
    let started = Instant::now();
    let mut kinds = BTreeSet::new();
    let mut seed = first;
    while started.elapsed() < limit {
        let script = Choices(seed).script();
        let found = pair.steady(&script)?;
        for (field, _) in found {
            let small = pair.minimized(&script, field)?;
            let Some((_, text)) = pair.compare(&small)?.into_iter().find(|one| one.0 == field)
            else {
                continue;
            };
            if kinds.insert(text.clone()) {
                let path = pair.folder.join(format!("{seed}-{field}.js"));
                fs::write(&path, small.text())?;
                println!("seed {seed}: {field} differs ({})\n{text}", path.display());
            }
        }
        seed += 1;
    }
    println!("{} scripts, {} differences", seed - first, kinds.len());
    Ok(())
}

impl Pair {
    /// The fields in which the tools differ.
    fn compare(&self, script: &Script) -> Result<Vec<(&'static str, String)>> {
        // Of its own: another fuzz may be running.
        let folder = self.folder.join(format!("run-{}", std::process::id()));
        fs::create_dir_all(&folder)?;
        let path = folder.join("s.js");
        fs::write(&path, script.text())?;
        let run = |program: &Path, first: &[&str]| observe(program, first, &path, &self.url);
        Ok(differences(&run(&self.k6, &[])?, &run(&self.gake, &["as", "k6"])?))
    }

    /// The differences that are there twice: others are a matter of time.
    fn steady(&self, script: &Script) -> Result<Vec<(&'static str, String)>> {
        let mut found = self.compare(script)?;
        if !found.is_empty() {
            let again = self.compare(script)?;
            found.retain(|(field, _)| again.iter().any(|one| one.0 == *field));
        }
        Ok(found)
    }

    /// The script without the parts that a difference in `field` does not need.
    fn minimized(&self, script: &Script, field: &str) -> Result<Script> {
        let mut small = script.clone();
        for part in (0..script.len()).rev() {
            let less = small.without(part);
            if self.compare(&less)?.iter().any(|one| one.0 == field) {
                small = less;
            }
        }
        Ok(small)
    }
}
