//! `users-db`: an application, its pool, and a database that bounds its connections.

use std::time::Duration;

use gake_core::plan::Stage;
use gake_core::schedule::Process;
use gake_judge::Summary;
use gake_report::experiment::Expectation;
use gake_run::spec::{BodySpec, Load, RunSpec};
use gake_text::units::count;

use super::bench::{Bench, Stopped, goodput, load_on};
use super::server::Server;
use super::users_calibration::{ASKED, Taken, USERS, calibrate, name as calibration};
use super::{theory, users_real};

/// How long the database takes to connect, and for a statement.
const CONNECT: Duration = Duration::from_millis(600);
const STATEMENT: Duration = Duration::from_millis(50);
/// Terms of a sum that are looked at: of more idle connections none is opened anew.
const IDLE_TERMS: u64 = 1_000;
/// Until connections come and go evenly.
const SETTLING: Duration = Duration::from_secs(2);
/// The bound of a MySQL that nobody has configured, and one that somebody has.
const SERVER_MAX: u64 = 151;
const SERVER_MAXES: [u64; 2] = [SERVER_MAX, 1_000];
/// Connections that are kept idle: what Go's `database/sql` does by default, and the cures that come
/// to mind.
const IDLE: [u64; 3] = [2, 1_000, 10_000];
/// The cure: as many as the work needs and the database allows.
const POOL: u64 = 100;
/// What an ORM would send for one row.
const BODY: &[u8] = br#"{"name":"Ada","mail":"ada@example.com"}"#;

/// A pool and the load on it.
#[derive(Clone, Copy, PartialEq)]
struct Setting {
    /// Requests a second.
    rate: u32,
    /// Connections kept idle.
    idle: u64,
    /// Connections opened at most; 0 is no bound.
    open: u64,
    /// Connections that the database allows.
    server_max: u64,
}

/// Runs the steps.
pub fn run(bench: &mut Bench<'_>) -> Result<(), Stopped> {
    if bench.is_own() {
        return own(bench);
    }
    if let Some((written, store)) = bench.database()? {
        return users_real::run(bench, &written, &store);
    }
    let matrix = matrix(bench.quick());
    let names: Vec<_> = matrix.iter().map(|setting| setting.name()).collect();
    if !names.iter().chain([&calibration(USERS)]).any(|name| bench.wants(name)) {
        return Ok(());
    }
    let taken = model_rate(bench)?;
    let mut last = None;
    for asked in matrix {
        let setting = Setting { rate: taken.in_force(asked.rate), ..asked };
        // Two rates that cannot be reached are one step.
        if last != Some(setting) && bench.wants(&asked.name()) {
            step(bench, setting)?;
            last = Some(setting);
        }
    }
    Ok(())
}

/// The steps, with the rates that are asked for when they can be reached: every rate with every
/// number of idle connections and every bound, and the cure; those that show something new when it is
/// to be quick.
fn matrix(quick: bool) -> Vec<Setting> {
    // As many as the work needs and the database allows, all kept.
    let cure = Setting { rate: ASKED[2], idle: POOL, open: POOL, server_max: SERVER_MAX };
    let mut all = Vec::new();
    for rate in ASKED {
        for idle in IDLE {
            all.extend(SERVER_MAXES.map(|server_max| Setting { rate, idle, open: 0, server_max }));
        }
    }
    if quick {
        let busiest = |setting: &Setting| setting.rate == ASKED[2];
        all.retain(|setting| {
            let by_default = setting.server_max == SERVER_MAX;
            by_default && (setting.idle == IDLE[0] || busiest(setting))
                || setting.idle == IDLE[0] && busiest(setting)
        });
    }
    all.push(cure);
    all
}

/// What the service takes with the cure: its pool is the limit, or else this machine.
fn model_rate(bench: &mut Bench<'_>) -> Result<Taken, Stopped> {
    let cured = Setting { rate: 0, idle: POOL, open: POOL, server_max: SERVER_MAX };
    let server = bench.server(&cured.flags())?;
    calibrate(bench, &server, USERS, |summary| {
        let most = POOL as f64 / STATEMENT.as_secs_f64();
        let (seen, mean) = (goodput(summary), summary.run.tally.latency.response().mean());
        let response = f64::from(USERS) / seen;
        let at = |factor: f64| Duration::from_secs_f64((response * factor).clamp(0.0, 1e6));
        let text = format!(
            "at most {POOL} / {} ms = {most:.0}/s; what this machine makes of it sets the rates",
            STATEMENT.as_millis()
        );
        let little = format!("{USERS} / {seen:.0}/s = {:.0} ms (Little)", response * 1e3);
        Ok(vec![
            theory::rate("rate", seen, 0.0..=1.05 * most, text),
            theory::time("mean", mean, at(0.9)..=at(1.1), little),
            rows(summary, 0, Ok(server.number("/users/count", "count")?)),
        ])
    })
}

/// The same requests to a server whose pool and database are its own.
fn own(bench: &mut Bench<'_>) -> Result<(), Stopped> {
    let name = |rate: u32| format!("{}/s", count(rate.into()));
    let names = ASKED.map(name);
    if !names.iter().chain([&calibration(USERS)]).any(|name| bench.wants(name)) {
        return Ok(());
    }
    let server = bench.server("")?;
    let taken = calibrate(bench, &server, USERS, |_| Ok(Vec::new()))?;
    let wants = |rate: &u32| {
        ASKED.iter().any(|asked| taken.in_force(*asked) == *rate && bench.wants(&name(*asked)))
    };
    let rates: Vec<_> = taken.rates().into_iter().filter(wants).collect();
    for rate in rates {
        let summary = bench.fire(&posts(&server, rate, bench.seconds(10.0, 4.0)))?;
        bench.step(name(rate), &server, summary, Vec::new());
    }
    Ok(())
}

impl Setting {
    fn name(self) -> String {
        let open = match self.open {
            0 => String::new(),
            open => format!(", a pool of {open}"),
        };
        let (rate, idle) = (count(self.rate.into()), count(self.idle));
        format!("{rate}/s, idle {idle}{open}, bound {}", count(self.server_max))
    }

    fn flags(self) -> String {
        format!(
            "--db model:{}ms,{}ms --db-server-max {} --db-max-open {} --db-max-idle {}",
            CONNECT.as_millis(),
            STATEMENT.as_millis(),
            self.server_max,
            self.open,
            self.idle
        )
    }

    /// Whether connections are kept rather than closed after each request.
    fn keeps(self) -> bool {
        self.idle >= self.server_max || self.open > 0 && self.idle >= self.open
    }

    /// The share of the requests that find no idle connection, of which the served are `served`: the
    /// number idle goes up with each answer and down with each request, between 0 and I. With r up
    /// for one down, it is 0 for 1 / (1 + r + ... + r^I) of the time.
    fn opening(self, served: f64) -> f64 {
        1.0 / (0..=self.idle.min(IDLE_TERMS)).map(|k| served.powi(k as i32)).sum::<f64>()
    }

    /// Connections held at once: λ · (served · statement + opened · connect), where those that find
    /// none idle and are not refused open one.
    fn held(self, served: f64) -> f64 {
        let opened = (self.opening(served) - (1.0 - served)).max(0.0);
        let (statement, connect) = (STATEMENT.as_secs_f64(), CONNECT.as_secs_f64());
        f64::from(self.rate) * (served * statement + opened * connect)
    }

    /// The share of the requests that is served once connections come and go evenly: as many as
    /// hold all that the database allows.
    fn steady(self) -> f64 {
        let bound = self.server_max as f64;
        if self.held(1.0) <= bound {
            return 1.0;
        }
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..50 {
            let middle = f64::midpoint(low, high);
            if self.held(middle) > bound { high = middle } else { low = middle }
        }
        low
    }

    /// Requests that come before the first connection is free, and find no room for one.
    fn refused_first(self) -> f64 {
        let first = (CONNECT + STATEMENT).as_secs_f64();
        f64::from(self.rate) * first - self.server_max as f64
    }

    /// The share of `requests` that is served, and why.
    fn served(self, requests: f64) -> (f64, String) {
        let (rate, bound) = (count(self.rate.into()), self.server_max);
        if self.open > 0 {
            let text = format!("all: {} connections × 20/s, kept, and the rest waits", self.open);
            return (1.0, text);
        }
        if self.keeps() {
            let first = (CONNECT + STATEMENT).as_secs_f64();
            let refused = self.refused_first();
            if refused <= 0.0 {
                let text = format!(
                    "all: {rate}/s × {:.0} ms that come before the first connection is free are \
                     fewer than the {bound} allowed",
                    first * 1e3
                );
                return (1.0, text);
            }
            let text = format!(
                "all but {refused:.0}: of the {rate}/s × {:.0} ms that come before the first \
                 connection is free, {bound} get one",
                first * 1e3
            );
            return (1.0 - refused / requests, text);
        }
        let served = self.steady();
        let text = format!(
            "{:.0} %: one in {:.1} finds none of {} idle and opens one, for {} ms and {} ms: {:.0} \
             held at once, {bound} allowed",
            100.0 * served,
            1.0 / self.opening(served),
            self.idle,
            CONNECT.as_millis(),
            STATEMENT.as_millis(),
            self.held(served)
        );
        (served, text)
    }
}

fn step(bench: &mut Bench<'_>, setting: Setting) -> Result<(), Stopped> {
    let server = bench.server(&setting.flags())?;
    let duration = bench.seconds(10.0, 4.0);
    let mut spec = posts(&server, setting.rate, duration);
    if !setting.keeps() {
        spec.warmup = SETTLING;
    }
    let summary = bench.fire(&spec)?;
    let mut expectations = served(setting, &summary, duration);
    expectations.push(rows(&summary, 0, Ok(server.number("/users/count", "count")?)));
    expectations.extend(named(setting, &summary));
    bench.step(setting.name(), &server, summary, expectations);
    Ok(())
}

/// As many rows as answers that were ok, with those of the warm-up. A request that failed or did not
/// finish may have written one before its answer was lost.
pub fn rows(summary: &Summary, before: u64, after: Result<u64, String>) -> Expectation {
    let (counts, early) = (&summary.run.tally.counts, &summary.run.warmup);
    let ok = counts.ok + early.ok;
    let others = [counts.failed, counts.unfinished, early.failed, early.unfinished];
    let most = ok + others.iter().sum::<u64>();
    let with_early = match early.ok {
        0 => String::new(),
        early => format!(", {} of them in the warm-up, which is in no other figure", count(early)),
    };
    let more = match most - ok {
        0 => String::new(),
        more => format!("; of {} that failed or did not finish each may have one", count(more)),
    };
    let theory = format!("{}: a row for each 200{with_early}{more}", count(ok));
    let added = after.map(|after| after.checked_sub(before));
    let met = matches!(added, Ok(Some(added)) if (ok..=most).contains(&added));
    let seen = match added {
        Ok(Some(added)) if met && added > ok => {
            let explained = count(added - ok);
            format!(
                "{}: explained, {explained} of requests that failed or did not finish",
                count(added)
            )
        }
        Ok(Some(added)) => count(added),
        Ok(None) => "fewer rows than before".to_owned(),
        Err(why) => format!("cannot be counted: {why}"),
    };
    Expectation { what: "rows", theory, seen, met }
}

/// A row a request, at random instants: evenly spaced requests would find what the last one gave
/// back, and hide the cliff.
pub fn posts(server: &Server, rate: u32, duration: Duration) -> RunSpec {
    let stages = vec![Stage::step(rate.into(), duration)];
    posting(server, Load::Open { stages, process: Process::Poisson })
}

/// A row a request of this load.
pub fn posting(server: &Server, load: Load) -> RunSpec {
    let mut spec = load_on(server, "/users", load);
    let request = &mut spec.scenarios[0].request;
    request.method = Some("POST".to_owned());
    request.headers.push(("Content-Type".to_owned(), "application/json".to_owned()));
    request.body = Some(BodySpec::Bytes(BODY.into()));
    spec.scenarios[0].body_errors = true;
    spec
}

fn served(setting: Setting, summary: &Summary, duration: Duration) -> Vec<Expectation> {
    let counts = summary.run.tally.counts;
    let requests = f64::from(setting.rate) * duration.as_secs_f64();
    let (share, text) = setting.served(requests);
    let seen = counts.ok as f64 / counts.due().max(1) as f64;
    // Requests do not come as evenly as the formula has them.
    let (low, high) = if share == 1.0 { (1.0, 1.0) } else { (0.85 * share, 1.12 * share) };
    vec![theory::share("ok", seen, low..=high.min(1.0), text)]
}

/// What limits it: the database's bound; else that connections are opened and closed again.
fn named(setting: Setting, summary: &Summary) -> Option<Expectation> {
    Some(if setting.open > 0 || setting.rate <= ASKED[0] {
        theory::no_cause(summary)
    } else if setting.keeps() {
        if setting.refused_first() <= 0.0 {
            return None;
        }
        theory::first_cause(summary, &["db_connections_refused"])
    } else if setting.steady() < 1.0 {
        theory::cause(summary, "db_connections_refused", &["db_pool_churn"])
    } else if setting.rate >= ASKED[1] {
        theory::cause(summary, "db_pool_churn", &[])
    } else {
        // Few connections come and go: they may or may not be enough to be named.
        return None;
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GO: Setting = Setting { rate: 1_000, idle: 2, open: 0, server_max: 151 };

    #[test]
    fn a_third_of_the_requests_opens_a_connection_when_two_are_kept() {
        let roomy = Setting { server_max: 1_000, ..GO };
        assert_eq!(roomy.steady(), 1.0);
        assert!((roomy.opening(1.0) - 1.0 / 3.0).abs() < 1e-9);
        assert!((roomy.held(1.0) - 1_000.0 * (0.05 + 0.2)).abs() < 1e-9);
    }

    #[test]
    fn what_is_served_holds_all_connections_that_there_are() {
        let served = GO.steady();
        assert!((0.7..0.8).contains(&served), "{served}");
        assert!((GO.held(served) - 151.0).abs() < 1e-3);
    }

    #[test]
    fn theory_follows_the_rate_in_force() {
        // At a fifth of the rate the database has room for all that is held at once.
        let less = Setting { rate: 200, ..GO };
        assert_eq!(less.served(800.0).0, 1.0);
        let kept = Setting { idle: 1_000, ..less };
        assert!(kept.keeps() && kept.refused_first() < 0.0);
        assert_eq!(kept.served(800.0).0, 1.0);
        assert!(
            (Setting { idle: 1_000, ..GO }.served(4_000.0).0 - (1.0 - 499.0 / 4_000.0)).abs()
                < 1e-9
        );
    }

    #[test]
    fn the_matrix_has_every_name_once() {
        for (quick, steps) in [(true, 7), (false, 19)] {
            let mut names: Vec<_> = matrix(quick).into_iter().map(Setting::name).collect();
            names.sort();
            names.dedup();
            assert_eq!((names.len(), matrix(quick).len()), (steps, steps), "{names:?}");
        }
    }
}
