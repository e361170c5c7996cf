//! Resident memory after one million requests and after ten.
//!
//! What is taken is the peak (VmHWM), looked at while the client lives: the
//! kernel's own ru_maxrss would include the bench's pages before exec.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};

use super::Bench;
use super::calls::{self, Call};
use super::nginx::Nginx;
use super::peers::Tool;
use super::report::Report;

const TOOLS: [Tool; 3] = [Tool::Gake, Tool::Wrk, Tool::Hey];
const LOOK_EVERY: Duration = Duration::from_millis(50);
const LIMIT: Duration = Duration::from_secs(1800);

/// The peak of a run and how many requests it made, by the server's count.
struct Sample {
    peak_mb: f64,
    served: u64,
}

/// The part.
pub fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let few: u64 = bench.pick(1_000_000, 100_000, 50_000);
    let many = few * 10;
    report.heading(format!("memory: peak resident set after about {few} and {many} requests, MB"));
    let nginx = Nginx::start(&bench.dir, bench.server_core)?;
    let mut rows = Vec::new();
    for tool in TOOLS.into_iter().filter(|tool| bench.peers.path(*tool).is_some()) {
        let both = measure(bench, &nginx, tool, few)
            .and_then(|first| Ok((first, measure(bench, &nginx, tool, many)?)));
        match both {
            Ok((first, second)) => rows.push(vec![
                tool.name().to_owned(),
                format!("{:.1}", first.peak_mb),
                format!("{:.1}", second.peak_mb),
                format!("{:+.1}", second.peak_mb - first.peak_mb),
                format!("{} / {}", first.served, second.served),
            ]),
            Err(error) => report.line(format!("  {}: {error:#}", tool.name())),
        }
    }
    report.table(&["tool", "after few", "after many", "growth", "requests by nginx"], &rows);
    Ok(())
}

fn measure(bench: &Bench, nginx: &Nginx, tool: Tool, requests: u64) -> Result<Sample> {
    let call = match calls::counted(tool, &nginx.url(), requests, calls::CONNECTIONS) {
        Some(call) => call,
        None => timed(bench, nginx, tool, requests)?,
    };
    let before = nginx.served()?;
    let mut peak_kb = None;
    let running = bench.start(&call, LIMIT)?;
    let ended = running.wait_watching(LOOK_EVERY, |pid| peak_kb = peak(pid).or(peak_kb))?;
    ended.accept(&call.label, call.good_codes())?;
    let served = nginx.served()? - before - 1;
    let peak_kb = peak_kb.context("it ended before its memory could be looked at")?;
    Ok(Sample { peak_mb: peak_kb as f64 / 1024.0, served })
}

/// A tool that cannot count runs for as long as these requests should take it.
fn timed(bench: &Bench, nginx: &Nginx, tool: Tool, requests: u64) -> Result<Call> {
    let before = nginx.served()?;
    let ended = bench.run(&calls::closed_loop(tool, &nginx.url(), calls::CONNECTIONS, 1), LIMIT)?;
    let rate = (nginx.served()? - before) as f64 / ended.wall.as_secs_f64();
    let seconds = (requests as f64 / rate).ceil().max(1.0);
    Ok(calls::closed_loop(tool, &nginx.url(), calls::CONNECTIONS, seconds as u64))
}

/// The peak of a process that lives, in KiB.
pub fn peak(pid: libc::pid_t) -> Option<u64> {
    parse_peak(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?)
}

fn parse_peak(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_read() {
        assert_eq!(parse_peak("VmPeak:\t 9 kB\nVmHWM:\t    1234 kB\nVmRSS: 7 kB\n"), Some(1234));
        assert_eq!(parse_peak("Name: zombie\n"), None);
    }
}
