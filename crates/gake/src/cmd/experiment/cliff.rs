//! `cliff`: more and more users, on a page without work and on a slow one.

use std::time::Duration;

use gake_judge::stats::per_second;
use gake_judge::{Rank, Summary};
use gake_run::spec::Load;
use gake_text::units::{bytes, count, duration, plural, rate};

use super::bench::{Bench, Stopped, closed, limited, load_on};
use super::theory::{self, span};

/// Users of the last step, as the load tests of five articles would have them.
const DREAM: u64 = 500_000;
/// Connections opened a second towards the last step: both ends are on this machine.
const OPENED_PER_S: f64 = 15_000.0;
/// How long its users wait for an answer beside the time that all take to connect.
const PATIENCE: Duration = Duration::from_secs(60);
/// The mean delay of `/slow`, every one from 100 ms to 500 ms being equally likely.
const SLOW: Duration = Duration::from_millis(300);
/// What limits a server that has no limits of its own.
const CPU: [&str; 4] = ["target_cpu", "target_thread", "generator_cpu", "shared_cores"];
/// How far the figures of a run may be from Little's law: its ends count too.
const LITTLE: f64 = 0.15;

/// More users than those of another step add throughput when it grows by more than this share.
const GROWS: f64 = 0.05;

/// What a number of users got out of a page without work.
#[derive(Debug, Clone, Copy)]
struct Reached {
    users: u64,
    /// Answers a second.
    rate: f64,
    cause: Option<&'static str>,
    /// CPU time of the generator for a request, in nanoseconds; 0 when it is not known.
    each: f64,
    /// Cores that the generator may use.
    cores: usize,
}

/// Runs the steps.
pub fn run(bench: &mut Bench<'_>) -> Result<(), Stopped> {
    if bench.is_own() {
        return all_fast(bench);
    }
    let slow = if bench.quick() { &[20, 200, 1_000][..] } else { &[20, 200, 1_000, 2_000] };
    slow.iter().try_for_each(|users| self::slow(bench, *users))?;
    all_fast(bench)?;
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
    let server = bench.server(&bench.room_for(users as u64))?;
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

/// More and more users on the page without work, and where its throughput stops.
fn all_fast(bench: &mut Bench<'_>) -> Result<(), Stopped> {
    let users = if bench.quick() { &[20, 200, 1_000][..] } else { &[20, 200, 2_000, 10_000] };
    let mut reached = Vec::new();
    for users in users {
        reached.extend(fast(bench, *users)?);
    }
    if let Some(text) = end_of_throughput(&reached) {
        bench.note(text);
    }
    Ok(())
}

/// Where throughput stops, what stops it, and how far the generator itself could go; `None` when
/// fewer than two steps were run.
fn end_of_throughput(reached: &[Reached]) -> Option<String> {
    let most = reached.iter().map(|one| one.rate).fold(0.0, f64::max);
    let (last, others) = reached.split_last()?;
    let first = reached.iter().find(|one| one.rate >= (1.0 - GROWS) * most)?;
    if others.is_empty() || most <= 0.0 {
        return None;
    }
    let stop = match first.users == last.users {
        true => format!(
            "throughput still grows with {}: {}",
            plural(last.users, "user"),
            rate(last.rate)
        ),
        false => format!(
            "throughput stops at {}, {}; {} have {}, and the rest is waiting",
            plural(first.users, "user"),
            rate(first.rate),
            plural(last.users, "user"),
            rate(last.rate)
        ),
    };
    let cause = last.cause.or(first.cause).map(|cause| format!(". What limits it: {cause}"));
    let own = (last.each > 0.0).then(|| {
        format!(
            ". The generator takes {} of CPU time for a request, so that {} of its own allow about \
             {}",
            duration(last.each),
            plural(last.cores as u64, "core"),
            rate(last.cores as f64 * 1e9 / last.each)
        )
    });
    Some([Some(stop), cause, own].into_iter().flatten().collect())
}

/// A page without work: one user nearly loads a core, and more only wait. `None` when the step is
/// not run.
fn fast(bench: &mut Bench<'_>, users: usize) -> Result<Option<Reached>, Stopped> {
    let name = format!("/fast, {} users", count(users as u64));
    if !bench.takes(&name, users as u64) {
        return Ok(None);
    }
    let server = bench.server(&bench.room_for(users as u64))?;
    let duration = bench.seconds(8.0, 3.0);
    let summary = bench.fire(&closed(&server, "/fast", users, duration))?;
    let mut expectations = vec![little(&summary, users)];
    if users >= 200 {
        expectations.push(theory::first_cause(&summary, &CPU));
    }
    let reached = Reached::of(&summary, users as u64);
    bench.step(name, &server, summary, expectations);
    Ok(Some(reached))
}

impl Reached {
    fn of(summary: &Summary, users: u64) -> Self {
        let generator = &summary.run.generator;
        let causes = summary.verdict.findings.iter().filter(|found| found.rank == Rank::Cause);
        Self {
            users,
            rate: answered(summary),
            cause: causes.map(|found| found.id).next(),
            each: generator.cpu as f64 / summary.run.tally.counts.sent.max(1) as f64,
            cores: generator.cores,
        }
    }
}

/// As many users as this machine allows, what allows no more, and how many it held.
fn dream(bench: &mut Bench<'_>) -> Result<(), Stopped> {
    let name = format!("/slow, {} users", count(DREAM));
    if !bench.wants(&name) {
        return Ok(());
    }
    let fits = bench.fits(DREAM);
    let users = fits.connections.max(1);
    if users < DREAM {
        bench.note(format!(
            "{} users are asked for, and {} are run: {}; what the others would do is missing",
            count(DREAM),
            count(users),
            fits.why
        ));
    }
    let server = bench.server(&bench.room_for(users))?;
    // Each asks once and stays: who asks again takes the cores that others need to connect.
    let load = Load::PerUser { users: usize::try_from(users).unwrap_or(usize::MAX), iterations: 1 };
    let opening = Duration::from_secs_f64(users as f64 / OPENED_PER_S);
    let mut spec = limited(load_on(&server, "/slow", load), 3 * opening + PATIENCE);
    spec.connection.connect_rate = Some(OPENED_PER_S);
    let summary = bench.fire(&spec)?;
    let ok = summary.run.tally.counts.ok;
    // Not that all are connected at once: a thread whose users have their answers ends, and its
    // connections with it.
    let expectations =
        vec![theory::number("ok", ok, users..=users, format!("all {}", count(users)))];
    bench.note(held(&summary, users));
    bench.step(format!("/slow, {} users", count(users)), &server, summary, expectations);
    Ok(())
}

/// How many connections the generator held, and in how much memory.
fn held(summary: &Summary, users: u64) -> String {
    let run = &summary.run;
    let (open, memory) = (run.peak_connections, run.generator.rss_bytes);
    let memory = (memory > 0).then(|| format!(" in {}", bytes(memory as f64)));
    let tables = run.plan.tables;
    let tables = (tables > 1).then(|| format!(", with {tables} descriptor tables"));
    let opened = rate(per_second(run.tally.counts.opened as f64, run.completing));
    format!(
        "of {} the generator held {} connections at once{}{}; {opened} were opened",
        plural(users, "user"),
        count(open),
        memory.unwrap_or_default(),
        tables.unwrap_or_default()
    )
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

#[cfg(test)]
mod tests {
    use super::*;

    fn reached(users: u64, rate: f64) -> Reached {
        Reached { users, rate, cause: (users > 20).then_some("target_cpu"), each: 4e3, cores: 2 }
    }

    #[test]
    fn throughput_stops_where_more_users_add_none() {
        let of = |rates: &[(u64, f64)]| {
            let all: Vec<_> = rates.iter().map(|(users, rate)| reached(*users, *rate)).collect();
            end_of_throughput(&all)
        };
        let text = of(&[(20, 40e3), (200, 80e3), (1_000, 82e3)]).unwrap();
        assert!(text.starts_with("throughput stops at 200 users, 80,000/s; 1,000 users"), "{text}");
        assert!(text.contains("What limits it: target_cpu"), "{text}");
        assert!(text.ends_with("2 cores of its own allow about 500,000/s"), "{text}");
        let text = of(&[(20, 40e3), (200, 80e3)]).unwrap();
        assert!(text.starts_with("throughput still grows with 200 users"), "{text}");
        assert_eq!(of(&[(20, 40e3)]), None);
        assert_eq!(of(&[(20, 0.0), (200, 0.0)]), None);
        assert_eq!(of(&[]), None);
    }
}
