//! Scripts of k6, by gake and the real k6 alternately: CPU of an iteration, memory of a user, the
//! time until all users are there, and work in JavaScript.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use super::Bench;
use super::compute;
use super::memory::peak;
use super::nginx::Nginx;
use super::peers::Tool;
use super::process::{Ended, Launch};
use super::real_k6;
use super::report::Report;
use super::stats::{median, range, rotated};

/// An iteration of the part about CPU.
const GET: &str = "import http from 'k6/http';
import { check } from 'k6';
export default () => { check(http.get(__ENV.URL), { 'is 200': (r) => r.status === 200 }); };
";

/// An iteration of the part about memory.
const GET_AND_SLEEP: &str = "import http from 'k6/http';
import { sleep } from 'k6';
export default () => { http.get(__ENV.URL); sleep(1); };
";

/// An iteration that leaves the users' creation as the only work.
const NOTHING: &str = "export default () => {};\n";

/// Users of the part about CPU.
const USERS: usize = 50;

const LOOK_EVERY: Duration = Duration::from_millis(50);
const LIMIT: Duration = Duration::from_secs(600);

/// Who runs the scripts: its name, its file, and what comes before its arguments.
struct Runner {
    name: &'static str,
    path: PathBuf,
    before: &'static [&'static str],
}

/// One run.
struct Sample {
    ended: Ended,
    served: u64,
    peak_kb: u64,
}

/// The part.
pub fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let gake = bench.peers.path(Tool::Gake).context("gake is not available")?;
    let runners = [
        Runner { name: "gake", path: gake.to_owned(), before: &["as", "k6"] },
        Runner { name: "k6", path: real_k6::peer()?.into(), before: &[] },
    ];
    report.line(format!("tool     k6: {}", real_k6::version(&runners[1].path)));
    let nginx = Nginx::start(&bench.dir, bench.server_core)?;
    let parts = Parts { bench, nginx: &nginx, runners: &runners };
    parts.cpu(report)?;
    parts.memory(report)?;
    parts.init(report)?;
    parts.compute(report)
}

struct Parts<'a> {
    bench: &'a Bench,
    nginx: &'a Nginx,
    runners: &'a [Runner; 2],
}

impl Parts<'_> {
    fn cpu(&self, report: &mut Report) -> Result<()> {
        let duration = format!("{}s", self.bench.pick(10, 5, 2));
        report.heading(format!(
            "k6: http.get and check, {USERS} users, {duration} a run on one core, requests counted \
             by nginx"
        ));
        let script = self.script("get.js", GET)?;
        let users = USERS.to_string();
        let rounds =
            self.rounds(report, &["-u", &users, "-d", &duration], &script, Some(self.core()));
        let rows = (0..self.runners.len()).map(|at| {
            let each = |time: fn(&Ended) -> Duration| {
                of(&rounds, at, |sample| {
                    time(&sample.ended).as_secs_f64() * 1e6 / sample.served as f64
                })
            };
            let rate =
                of(&rounds, at, |sample| sample.served as f64 / sample.ended.wall.as_secs_f64());
            let ratios = against_k6(&rounds, at, |sample| {
                sample.ended.cpu().as_secs_f64() / sample.served as f64
            });
            let (least, most) = range(&ratios);
            vec![
                self.runners[at].name.to_owned(),
                format!("{:.1}", median(&each(Ended::cpu))),
                format!("{:.1}", median(&each(|ended| ended.user))),
                format!("{:.0}", median(&rate)),
                format!("{:.2}", median(&ratios)),
                format!("({least:.2}–{most:.2})"),
            ]
        });
        let head = ["tool", "µs/iteration", "of it user", "iterations/s", "CPU × k6", "(min–max)"];
        report.table(&head, &rows.collect::<Vec<_>>());
        Ok(())
    }

    fn memory(&self, report: &mut Report) -> Result<()> {
        let users: usize = self.bench.pick(2_000, 2_000, 200);
        let duration = format!("{}s", self.bench.pick(15, 6, 3));
        report.heading(format!(
            "k6: peak resident set of {users} users with http.get and sleep(1), {duration} a run"
        ));
        let script = self.script("sleep.js", GET_AND_SLEEP)?;
        let number = users.to_string();
        let core = Some(self.core());
        let one = self.rounds(report, &["-u", "1", "-d", "2s"], &script, core);
        let all = self.rounds(report, &["-u", &number, "-d", &duration], &script, core);
        let rows = (0..self.runners.len()).map(|at| {
            let kilobytes = |rounds| median(&of(rounds, at, |sample| sample.peak_kb as f64));
            let (one, all) = (kilobytes(&one), kilobytes(&all));
            vec![
                self.runners[at].name.to_owned(),
                format!("{:.1}", one / 1024.0),
                format!("{:.1}", all / 1024.0),
                format!("{:.1}", (all - one) / (users - 1) as f64),
            ]
        });
        report
            .table(&["tool", "MB of 1 user", "MB of all", "KB a user"], &rows.collect::<Vec<_>>());
        Ok(())
    }

    fn init(&self, report: &mut Report) -> Result<()> {
        let users: usize = self.bench.pick(10_000, 10_000, 1_000);
        report.heading(format!(
            "k6: from start to end of {users} users with one empty iteration each, on all cores"
        ));
        let script = self.script("nothing.js", NOTHING)?;
        let number = users.to_string();
        let rounds = self.rounds(report, &["-u", &number, "-i", &number], &script, None);
        let rows = (0..self.runners.len()).map(|at| {
            let walls = of(&rounds, at, |sample| sample.ended.wall.as_secs_f64());
            let cpu = of(&rounds, at, |sample| sample.ended.cpu().as_secs_f64());
            let peak = of(&rounds, at, |sample| sample.peak_kb as f64 / 1024.0);
            vec![
                self.runners[at].name.to_owned(),
                format!("{:.2}", median(&walls)),
                format!("{:.2}", median(&cpu)),
                format!("{:.0}", median(&peak)),
            ]
        });
        report.table(&["tool", "seconds", "CPU seconds", "peak MB"], &rows.collect::<Vec<_>>());
        Ok(())
    }

    /// CPU of an iteration that computes, without that of an empty one.
    fn compute(&self, report: &mut Report) -> Result<()> {
        report.heading("k6 compute: CPU of an iteration of one user that computes");
        let empty = self.script("empty.js", NOTHING)?;
        let load = ["-u", "1", "-i", "1"];
        let core = Some(self.core());
        let seconds = |sample: &Sample| sample.ended.cpu().as_secs_f64();
        let empty = self.rounds(report, &load, &empty, core);
        let empty = [0, 1].map(|at| median(&of(&empty, at, seconds)));
        let mut rows = Vec::new();
        for (name, before, body) in compute::KINDS {
            let script = self.script("compute.js", &compute::script(before, body))?;
            let rounds = self.rounds(report, &load, &script, core);
            let [own, k6] = [0, 1].map(|at| median(&of(&rounds, at, seconds)) - empty[at]);
            let milliseconds = |seconds: f64| format!("{:.0}", seconds * 1e3);
            let ratio = format!("{:.2}", own / k6);
            rows.push(vec![name.to_owned(), milliseconds(own), milliseconds(k6), ratio]);
        }
        report.table(&["work", "gake ms", "k6 ms", "CPU × k6"], &rows);
        Ok(())
    }

    fn core(&self) -> usize {
        self.bench.client_core
    }

    fn script(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.bench.dir.join(name);
        fs::write(&path, text).with_context(|| path.display().to_string())?;
        Ok(path)
    }

    /// A sample of each runner in each round; none where it failed, which is said.
    fn rounds(
        &self,
        report: &mut Report,
        load: &[&str],
        script: &Path,
        core: Option<usize>,
    ) -> Vec<[Option<Sample>; 2]> {
        let round = |round: usize| {
            let mut samples = [None, None];
            for (at, runner) in rotated(self.runners, round) {
                match self.measure(runner, load, script, core) {
                    Ok(sample) => samples[at] = Some(sample),
                    Err(error) => {
                        report.line(format!("  round {}: {}: {error:#}", round + 1, runner.name));
                    }
                }
            }
            samples
        };
        (0..self.bench.options.rounds).map(round).collect()
    }

    fn measure(
        &self,
        runner: &Runner,
        load: &[&str],
        script: &Path,
        core: Option<usize>,
    ) -> Result<Sample> {
        let url = format!("URL={}", self.nginx.url());
        let script = script.display().to_string();
        let quiet = ["run", "--quiet", "--summary-mode=disabled", "--no-usage-report", "-e"];
        let args: Vec<String> = (runner.before.iter().chain(&quiet).copied())
            .chain([url.as_str()])
            .chain(load.iter().copied())
            .chain([script.as_str()])
            .map(str::to_owned)
            .collect();
        let before = self.nginx.served()?;
        let mut peak_kb = 0;
        let launch = Launch { program: &runner.path, args: &args, stdin: None, core, limit: LIMIT };
        let running = launch.start()?;
        let ended = running
            .wait_watching(LOOK_EVERY, |pid| peak_kb = peak(pid).unwrap_or(0).max(peak_kb))?
            .accept(runner.name, &[0])?;
        // The second question counts itself too.
        let served = self.nginx.served()? - before - 1;
        Ok(Sample { ended, served, peak_kb })
    }
}

/// A figure of a runner in every round that it completed.
fn of(rounds: &[[Option<Sample>; 2]], at: usize, value: impl Fn(&Sample) -> f64) -> Vec<f64> {
    rounds.iter().filter_map(|round| round[at].as_ref().map(&value)).collect()
}

/// A figure of a runner by k6's in the same round.
fn against_k6(
    rounds: &[[Option<Sample>; 2]],
    at: usize,
    value: impl Fn(&Sample) -> f64,
) -> Vec<f64> {
    let pairs = rounds.iter().filter_map(|round| Some((round[at].as_ref()?, round[1].as_ref()?)));
    pairs.map(|(own, k6)| value(own) / value(k6)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(cpu_ms: u64, served: u64) -> Option<Sample> {
        let ended = Ended {
            code: Some(0),
            user: Duration::from_millis(cpu_ms),
            system: Duration::ZERO,
            wall: Duration::from_secs(1),
            stdout: Vec::new(),
            stderr: Vec::new(),
        };
        Some(Sample { ended, served, peak_kb: 0 })
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        let rounds = vec![[sample(10, 10), sample(50, 10)], [sample(30, 10), None]];
        let each = |sample: &Sample| sample.ended.cpu().as_secs_f64() / sample.served as f64;
        let ratios = against_k6(&rounds, 0, each);
        assert_eq!(ratios.len(), 1, "a round without k6 has none");
        assert!((ratios[0] - 0.2).abs() < 1e-9);
        assert_eq!(of(&rounds, 0, each).len(), 2);
    }
}
