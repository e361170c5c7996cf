//! `shadow`: production and sandbox behind the shadow proxy. What the proxy costs, whether a client
//! waits for a shadow, and what the comparison finds.

use std::time::Duration;

use gake_judge::Summary;
use gake_judge::stats::per_second;
use gake_report::experiment::Expectation;
use gake_run::spec::Load;
use gake_shadow::compare::judge::{FieldVerdict, Pace};
use gake_text::units::{count, percent, rate};

use super::bench::{Bench, Stopped, closed, load_on};
use super::proxy::{Mirrored, ProxyProcess};
use super::server::Server;
use super::theory::{self, span};

/// The backends: a users service whose database costs nothing.
const BACKEND: &str = "--db model:0s,0s";
/// What production takes for a request when the comparison is shown.
const SERVICE: Duration = Duration::from_millis(5);
/// What the slow shadow takes.
const SLOW: Duration = Duration::from_millis(500);
/// The request, of the same user everywhere.
const PATH: &str = "/users/1";
/// Runs of each kind when the proxy is compared with none.
const TURNS: usize = 10;
/// Users who ask for as much as they get.
const USERS: usize = 100;
/// Requests a second when the comparison is shown.
const RATE: f64 = 200.0;
/// Copies to the slow shadow at once, and waiting.
const CONNECTIONS: u64 = 8;
const QUEUE: u64 = 20;
/// Failures after which a dead shadow gets no more copies for some time.
const BREAKER: u64 = 20;
/// What a machine that others use may add to a median, and to the 99th percentile.
const SLACK: Duration = Duration::from_millis(25);

/// Runs the steps.
pub fn run(bench: &mut Bench<'_>) -> Result<(), Stopped> {
    in_turns(bench)?;
    same(bench)?;
    slow(bench)?;
    dead(bench)?;
    different(bench)
}

/// Ten runs on production and ten through the proxy, in turns, so that a noisy machine affects both
/// alike.
fn in_turns(bench: &mut Bench<'_>) -> Result<(), Stopped> {
    let names = ["direct", "through the proxy"].map(|name| format!("{name}, {TURNS} times"));
    if !names.iter().any(|name| bench.wants(name)) {
        return Ok(());
    }
    let (production, sandbox) = (backend("", "Ada")?, backend("", "Ada")?);
    let proxy = ProxyProcess::start(&production, sandbox.url(), None, "")?;
    let duration = bench.seconds(2.0, 0.4);
    let mut runs = [Vec::new(), Vec::new()];
    for _ in 0..TURNS {
        for (runs, server) in runs.iter_mut().zip([&production, proxy.server()]) {
            runs.push(bench.fire(&closed(server, PATH, USERS, duration))?);
        }
    }
    let rates = |runs: &Vec<Summary>| runs.iter().map(goodput).collect::<Vec<f64>>();
    let [direct, through] = runs.each_ref().map(rates);
    let shares: Vec<f64> = std::iter::zip(&through, &direct).map(|(a, b)| a / b).collect();
    let (mirrored, server) = proxy.end()?;
    let [direct_runs, proxy_runs] = runs;
    let (ok, expected) = (all_ok(&direct_runs), vec![spread(&direct)]);
    bench.step(names[0].clone(), &production, median(direct_runs), [vec![ok], expected].concat());
    let sent: u64 = proxy_runs.iter().map(|run| run.run.tally.counts.sent).sum();
    let ok = all_ok(&proxy_runs);
    let expectations = vec![ok, spread(&through), share(&shares), counted(&mirrored, sent)];
    bench.step(names[1].clone(), &server, median(proxy_runs), expectations);
    Ok(())
}

/// A shadow that is as fast as production and answers alike.
fn same(bench: &mut Bench<'_>) -> Result<(), Stopped> {
    let Some(seen) = mirrored(bench, "a shadow that is the same", Some(("Ada", SERVICE)), "")?
    else {
        return Ok(());
    };
    let ok = seen.counts().ok;
    let copies = theory::number(
        "copies",
        seen.mirrored.copies(&["ok"]),
        ok * 9 / 10..=ok,
        format!("{}: one of each request", count(ok)),
    );
    let found = found(&seen.mirrored, &[], None, "nothing: `mail` differs between any two");
    seen.step(bench, vec![copies, found])
}

/// A shadow that is a hundred times slower: its queue is full, and nobody waits for it.
fn slow(bench: &mut Bench<'_>) -> Result<(), Stopped> {
    let name = "a slow shadow";
    // Connections and queue are divided between threads.
    let flags = format!("--threads 1 --shadow-connections {CONNECTIONS} --shadow-queue {QUEUE}");
    let Some(seen) = mirrored(bench, name, Some(("Ada", SLOW)), &flags)? else {
        return Ok(());
    };
    let seconds = seen.duration.as_secs_f64();
    let expected = CONNECTIONS as f64 * seconds / SLOW.as_secs_f64() + QUEUE as f64;
    let text = format!(
        "{CONNECTIONS} × {} / {} + {QUEUE} waiting at the end = {expected:.0}; the rest is shed",
        span(seen.duration),
        span(SLOW)
    );
    let range = (0.6 * expected) as u64..=(1.3 * expected) as u64;
    let copies = theory::number("copies", seen.mirrored.copies(&["ok"]), range, text);
    let found = found(&seen.mirrored, &[], Some(Pace::Slower), "slower, and no other difference");
    seen.step(bench, vec![copies, found])
}

/// A shadow that is not there: after some failures it gets no copies.
fn dead(bench: &mut Bench<'_>) -> Result<(), Stopped> {
    let Some(seen) = mirrored(bench, "a dead shadow", None, "")? else { return Ok(()) };
    let failed = seen.mirrored.copies(&["conn_err"]);
    // Each thread of the proxy has some copies under way when the breaker opens.
    let range = BREAKER..=10 * BREAKER;
    let text = format!("{BREAKER} in a row open the breaker; the rest is shed");
    let failed = theory::number("failed", failed, range, text);
    let ok = theory::number("copies", seen.mirrored.copies(&["ok"]), 0..=0, "none".to_owned());
    let found = found(&seen.mirrored, &["status"], None, "no answer where production has one");
    seen.step(bench, vec![ok, failed, found])
}

/// A shadow whose answers differ in one field.
fn different(bench: &mut Bench<'_>) -> Result<(), Stopped> {
    let name = "a shadow that differs";
    let Some(seen) = mirrored(bench, name, Some(("Grace", SERVICE)), "")? else { return Ok(()) };
    let found = found(&seen.mirrored, &["$.name"], None, "`name`; `mail` is noise");
    seen.step(bench, vec![found])
}

/// An open loop through the proxy, and what came of it.
struct Seen {
    name: String,
    server: Server,
    summary: Summary,
    mirrored: Mirrored,
    duration: Duration,
}

/// Loads production through a proxy whose shadow has a user of this name and takes this long;
/// without a shadow nothing listens at its address. `None` when the step is not asked for.
fn mirrored(
    bench: &mut Bench<'_>,
    name: &str,
    shadow: Option<(&str, Duration)>,
    flags: &str,
) -> Result<Option<Seen>, Stopped> {
    if !bench.wants(name) {
        return Ok(None);
    }
    let timed = |time: Duration| format!("--service const:{}ms", time.as_millis());
    let (production, second) = (backend(&timed(SERVICE), "Ada")?, backend(&timed(SERVICE), "Ada")?);
    let sandbox = shadow.map(|(user, time)| backend(&timed(time), user)).transpose()?;
    // The discard service's port: whatever is there is no HTTP server.
    let url = sandbox.as_ref().map_or("http://127.0.0.1:9", Server::url);
    let proxy = ProxyProcess::start(&production, url, Some(&second), flags)?;
    let duration = bench.seconds(8.0, 2.0);
    let summary = bench.fire(&load_on(proxy.server(), PATH, Load::rate(RATE, duration)))?;
    let (mirrored, server) = proxy.end()?;
    Ok(Some(Seen { name: name.to_owned(), server, summary, mirrored, duration }))
}

impl Seen {
    fn counts(&self) -> gake_core::record::Counts {
        self.summary.run.tally.counts
    }

    /// What holds whatever the shadow does: every request is answered, as fast as production
    /// answers, and has its line in the ledger.
    fn step(self, bench: &mut Bench<'_>, more: Vec<Expectation>) -> Result<(), Stopped> {
        let counts = self.counts();
        let p50 = self.summary.run.tally.latency.response().quantile(0.5) as f64;
        let text = format!("{}: nobody waits for a shadow", span(SERVICE));
        let mut expectations = vec![
            theory::number("ok", counts.ok, counts.due()..=counts.due(), "all".to_owned()),
            theory::time("p50", p50, SERVICE..=SERVICE + SLACK, text),
            counted(&self.mirrored, counts.sent),
        ];
        expectations.extend(more);
        bench.step(self.name, &self.server, self.summary, expectations);
        Ok(())
    }
}

/// A users service with one user, whose mail is the instance's own.
fn backend(flags: &str, name: &str) -> Result<Server, Stopped> {
    let server = Server::lab(format!("{BACKEND} {flags}").trim_end())?;
    let mail = server.address();
    server.post("/users", &format!("{{\"name\":\"{name}\",\"mail\":\"me@{mail}\"}}"))?;
    Ok(server)
}

fn goodput(summary: &Summary) -> f64 {
    per_second(summary.run.tally.counts.ok as f64, summary.run.completing)
}

/// The run whose rate is in the middle.
fn median(mut runs: Vec<Summary>) -> Summary {
    runs.sort_by(|a, b| goodput(a).total_cmp(&goodput(b)));
    runs.swap_remove(runs.len() / 2)
}

/// That no run had a request that was not ok.
fn all_ok(runs: &[Summary]) -> Expectation {
    let due: u64 = runs.iter().map(|run| run.run.tally.counts.due()).sum();
    let ok = runs.iter().map(|run| run.run.tally.counts.ok).sum();
    theory::number("ok", ok, due..=due, format!("all {}", count(due)))
}

/// The mean and the standard deviation.
fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (squares / (n - 1.0).max(1.0)).sqrt())
}

/// The mean rate of the runs and its deviation; a machine on which it is large compares nothing.
fn spread(rates: &[f64]) -> Expectation {
    let (mean, deviation) = moments(rates);
    let part = deviation / mean;
    Expectation {
        what: "rate",
        theory: format!("a deviation below 50 % over {} runs", rates.len()),
        seen: format!("{} ± {} (deviation)", rate(mean), percent(part)),
        met: part < 0.5,
    }
}

/// The share of the direct rate that is left: the proxy's work comes on top of the backend's.
fn share(shares: &[f64]) -> Expectation {
    let (mean, deviation) = moments(shares);
    Expectation {
        what: "share",
        theory: "5 % to 105 % of direct; nginx's mirror: 9 % (docs/shadow.md)".to_owned(),
        seen: format!("{} ± {} of direct", percent(mean), percent(deviation)),
        met: (0.05..1.05).contains(&mean),
    }
}

/// Every request is in the sandbox's ledger exactly once.
fn counted(mirrored: &Mirrored, sent: u64) -> Expectation {
    let text = format!("{}: each request once", count(sent));
    theory::number("ledger", mirrored.copies(&["received"]), sent..=sent, text)
}

/// The fields in which the comparison proves a difference, and the pace.
fn found(
    mirrored: &Mirrored,
    fields: &[&str],
    pace: Option<Pace>,
    theory: &'static str,
) -> Expectation {
    let report = &mirrored.report;
    let mut real: Vec<_> = report.of(FieldVerdict::Real).map(|real| real.path.clone()).collect();
    let slower = report.paced(Pace::Slower).next();
    let met = real == fields && slower.is_some() == (pace == Some(Pace::Slower));
    if let Some(endpoint) = slower {
        let ratio = endpoint.latency.ratio.as_ref().map_or(f64::NAN, |ratio| ratio.middle);
        real.push(format!("{ratio:.1} times slower"));
    }
    let compared = count(report.exchanges);
    let seen = if real.is_empty() { "nothing".to_owned() } else { real.join(", ") };
    let seen = format!("{seen} in {compared} pairs of answers");
    Expectation { what: "found", theory: theory.to_owned(), seen, met }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deviation_is_that_of_a_sample() {
        let (mean, deviation) = moments(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
        assert_eq!(mean, 5.0);
        assert!((deviation - (32.0_f64 / 7.0).sqrt()).abs() < 1e-12);
        assert_eq!(moments(&[3.0]), (3.0, 0.0));
    }
}
