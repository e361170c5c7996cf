//! `cargo xtask k6 --soak MINUTES`: 200 users of a script that throws, times out and is cancelled.
//! Fails when memory or open files keep growing.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use xtask::{command, workspace};

/// Growth of the resident set, from the first fifth of the run to the last, that chance explains.
const GROWTH_MAX: f64 = 1.1;
/// The same in KiB, for a short run.
const GROWTH_KIB: f64 = 8_192.0;
/// Open files that come and go with the connections of the moment.
const FILES_MAX: f64 = 150.0;

const LOOK_EVERY: Duration = Duration::from_millis(500);

/// One look at the process.
struct Look {
    resident_kib: f64,
    files: f64,
}

/// A child that is ended with its owner.
pub struct Owned(pub Child);

impl Drop for Owned {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The task: how many minutes, and which binary.
pub fn main(args: &[String]) -> Result<()> {
    let (minutes, gake) = match args {
        [minutes] => (minutes, None),
        [minutes, flag, path] if flag == "--gake" => (minutes, Some(std::path::absolute(path)?)),
        _ => bail!("usage: cargo xtask k6 --soak MINUTES [--gake PATH]"),
    };
    run(minutes.parse().context("--soak needs a number of minutes")?, gake)
}

/// Runs it with the binary at `gake`, or with one that is built.
fn run(minutes: f64, gake: Option<PathBuf>) -> Result<()> {
    ensure!(minutes >= 5.0, "--soak needs 5 minutes or more: heaps grow until they are collected");
    let gake = match gake {
        Some(path) => path,
        None => {
            command::run("cargo", &["build", "--release", "-p", "gake"])?;
            workspace::target_dir()?.join("release/gake")
        }
    };
    let (_server, url) = serve(&gake)?;
    let seconds = (minutes * 60.0) as u64;
    let script = workspace::root().join("bench/src/soak.js");
    let mut run = Command::new(&gake);
    run.args(["as", "k6", "run", "--quiet", "--no-summary", "--log-output", "none"])
        .args(["-e", &format!("URL={url}"), "-e", &format!("SECONDS={seconds}")])
        .arg(script);
    let mut run = Owned(run.spawn().context("gake could not be started")?);
    println!("200 users for {seconds} s");
    let looks = watch(&mut run.0, Duration::from_secs(seconds + 60))?;
    judge(&looks)
}

/// A server, and its URL.
pub fn serve(gake: &Path) -> Result<(Owned, String)> {
    let mut server = Command::new(gake);
    server.args(["serve", "--listen", "127.0.0.1:0", "--quiet"]).stdout(Stdio::piped());
    let mut server = Owned(server.spawn().context("the server could not be started")?);
    let output = server.0.stdout.take().context("the server has no output")?;
    let mut url = String::new();
    BufReader::new(output).read_line(&mut url)?;
    let url = url.trim();
    ensure!(url.starts_with("http"), "the server said {url:?} instead of its URL");
    Ok((server, format!("{}/", url.trim_end_matches('/'))))
}

/// Looks at the run until it ends.
fn watch(run: &mut Child, limit: Duration) -> Result<Vec<Look>> {
    let started = Instant::now();
    let mut looks = Vec::new();
    loop {
        if let Some(status) = run.try_wait()? {
            ensure!(status.success(), "the run ended with {status}");
            return Ok(looks);
        }
        if started.elapsed() > limit {
            bail!("the run did not end within {limit:?}");
        }
        looks.extend(look(run.id()));
        std::thread::sleep(LOOK_EVERY);
    }
}

fn look(pid: u32) -> Option<Look> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let resident_kib = line.split_whitespace().next()?.parse().ok()?;
    let files = fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count() as f64;
    Some(Look { resident_kib, files })
}

/// Compares the second fifth of the looks, when every user has run, with the last.
fn judge(looks: &[Look]) -> Result<()> {
    let fifth = looks.len() / 5;
    ensure!(fifth > 0, "the run was too short to be looked at");
    let most = |looks: &[Look], of: fn(&Look) -> f64| looks.iter().map(of).fold(0.0, f64::max);
    let (early, late) = (&looks[fifth..2 * fifth], &looks[looks.len() - fifth..]);
    let resident = [early, late].map(|looks| most(looks, |look| look.resident_kib));
    let files = [early, late].map(|looks| most(looks, |look| look.files));
    println!(
        "resident size: {:.1} MB early, {:.1} MB late",
        resident[0] / 1024.0,
        resident[1] / 1024.0
    );
    println!("open files: {} early, {} late", files[0], files[1]);
    let bound = (resident[0] * GROWTH_MAX).max(resident[0] + GROWTH_KIB);
    ensure!(resident[1] <= bound, "the resident size grows");
    ensure!(files[1] <= files[0] + FILES_MAX, "open files grow");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_seen() {
        let looks = |step: f64| -> Vec<Look> {
            let look = |n: u32| {
                let grown = step * f64::from(n);
                Look { resident_kib: 100_000.0 + grown, files: 50.0 + grown / 100.0 }
            };
            (0..100).map(look).collect()
        };
        assert!(judge(&looks(0.0)).is_ok() && judge(&looks(100.0)).is_ok());
        assert!(judge(&looks(1_000.0)).unwrap_err().to_string().contains("resident"));
        assert!(judge(&[]).is_err());
    }
}
