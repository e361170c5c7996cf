//! `cliff`: more and more users, on a page without work and on a slow one.

use std::time::Duration;

use gake_judge::Summary;
use gake_judge::stats::per_second;
use gake_judge::units::count;

use super::bench::{Bench, Stopped, closed, limited};
use super::theory::{self, span};

/// Users of the last step, as the load tests of five articles would have them.
const DREAM: u64 = 500_000;
/// The mean delay of `/slow`, every one from 100 ms to 500 ms being equally likely.
const SLOW: Duration = Duration::from_millis(300);
/// What limits a server that has no limits of its own.
const CPU: [&str; 4] = ["target_cpu", "target_thread", "generator_cpu", "shared_cores"];
/// How far the figures of a run may be from Little's law: its ends count too.
const LITTLE: f64 = 0.15;

/// Runs the steps.
pub fn run(bench: &mut Bench<'_>) -> Result<(), Stopped> {
    if bench.is_own() {
        let users = if bench.quick() { &[20, 200, 1_000][..] } else { &[20, 200, 2_000, 10_000] };
        return users.iter().try_for_each(|users| fast(bench, *users));
    }
    let slow = if bench.quick() { &[20, 200, 1_000][..] } else { &[20, 200, 1_000, 2_000] };
    slow.iter().try_for_each(|users| self::slow(bench, *users))?;
    let users = if bench.quick() { &[20, 200, 1_000][..] } else { &[20, 200, 2_000, 10_000] };
    users.iter().try_for_each(|users| fast(bench, *users))?;
    if !bench.wants(&format!("/slow, {} users", count(DREAM))) {
        return Ok(());
    }
    match bench.quick() {
        true => {
            bench.note(format!("{} users are left out with --quick", count(DREAM)));
            Ok(())
        }
        false => dream(bench),
    }
}

/// A page that waits: users add throughput until the CPU is used up. X = N / S.
fn slow(bench: &mut Bench<'_>, users: usize) -> Result<(), Stopped> {
    let name = format!("/slow, {} users", count(users as u64));
    if !bench.takes(&name, users as u64) {
        return Ok(());
    }
    let server = bench.server("")?;
    let duration = bench.seconds(10.0, 3.0);
    let mut spec = closed(&server, "/slow", users, duration);
    // The users start together: until their delays have mixed.
    spec.warmup = Duration::from_secs(1);
    let summary = bench.fire(&spec)?;
    let rate = users as f64 / SLOW.as_secs_f64();
    let text = format!("{} / {} = {rate:.0}/s", count(users as u64), span(SLOW));
    let expectations = vec![
        theory::rate("rate", answered(&summary), 0.75 * rate..=1.1 * rate, text),
        little(&summary, users),
    ];
    bench.step(name, &server, summary, expectations);
    Ok(())
}

/// A page without work: one user nearly loads a core, and more only wait.
fn fast(bench: &mut Bench<'_>, users: usize) -> Result<(), Stopped> {
    let name = format!("/fast, {} users", count(users as u64));
    if !bench.takes(&name, users as u64) {
        return Ok(());
    }
    let server = bench.server("")?;
    let duration = bench.seconds(8.0, 3.0);
    let summary = bench.fire(&closed(&server, "/fast", users, duration))?;
    let mut expectations = vec![little(&summary, users)];
    if users >= 200 {
        expectations.push(theory::first_cause(&summary, &CPU));
    }
    bench.step(name, &server, summary, expectations);
    Ok(())
}

/// As many users as this machine allows, and what does not allow more.
fn dream(bench: &mut Bench<'_>) -> Result<(), Stopped> {
    let name = format!("/slow, {} users", count(DREAM));
    if !bench.wants(&name) {
        return Ok(());
    }
    let most = bench.connections_max();
    let users = most.clamp(1, DREAM);
    if users < DREAM {
        bench.note(format!(
            "{} users need a file descriptor each, and {} has {} for them: {} run (raise \
             `ulimit -Hn`)",
            count(DREAM),
            bench.generator(),
            count(most),
            count(users)
        ));
    }
    let server = bench.server("")?;
    let users = usize::try_from(users).unwrap_or(usize::MAX);
    let spec = closed(&server, "/slow", users, Duration::from_secs(20));
    let summary = bench.fire(&limited(spec, Duration::from_secs(20)))?;
    let expectations = vec![theory::first_cause(&summary, &CPU)];
    bench.step(format!("/slow, {} users", count(users as u64)), &server, summary, expectations);
    Ok(())
}

/// Little's law holds for every server: N = X · R.
fn little(summary: &Summary, users: usize) -> gake_report::experiment::Expectation {
    let response = summary.run.tally.latency.response().mean() / 1e9;
    let seen = answered(summary) * response;
    let n = users as f64;
    let text = format!("{}: N = X · R, Little's law", count(users as u64));
    let range = ((1.0 - LITTLE) * n) as u64..=((1.0 + LITTLE) * n) as u64;
    theory::number("users", seen.round() as u64, range, text)
}

/// Answers a second of the time in which requests start; each that starts is answered.
fn answered(summary: &Summary) -> f64 {
    let run = &summary.run;
    let answers: u64 = run.tally.statuses().iter().map(|status| status.1).sum();
    per_second(answers as f64, run.measured)
}
