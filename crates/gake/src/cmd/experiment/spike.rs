//! `spike`: N users at once, one request each, who keep their connections to the end.

use std::time::Duration;

use gake_core::record::Metric;
use gake_judge::Summary;
use gake_report::experiment::Expectation;
use gake_run::spec::{Load, RunSpec};
use gake_text::units::{self, count};

use super::bench::{Bench, Stopped, closed, limited, load_on};
use super::server::Server;
use super::theory::{self, span};

/// A server and the users that come.
#[derive(Clone, Copy)]
struct Spike {
    users: u64,
    threads: u64,
    connections: u64,
    backlog: u64,
}

/// The scale of a whole experiment.
#[derive(Clone, Copy)]
struct Scale {
    /// A request holds its thread for this long.
    service: Duration,
    /// A client waits for this long.
    limit: Duration,
    /// Numbers are divided by this.
    divisor: u64,
}

impl Scale {
    const FULL: Self =
        Self { service: Duration::from_secs(5), limit: Duration::from_secs(60), divisor: 1 };
    const QUICK: Self =
        Self { service: Duration::from_millis(500), limit: Duration::from_secs(6), divisor: 10 };

    fn of(self, number: u64) -> u64 {
        number / self.divisor
    }

    /// Users, threads and connections that are scaled, and a backlog that is not.
    fn spike(self, users: u64, threads: u64, connections: u64, backlog: u64) -> Spike {
        let (users, threads) = (self.of(users), self.of(threads));
        Spike { users, threads, connections: self.of(connections), backlog }
    }
}

/// Users at once on the user's own server.
const OWN: [u64; 7] = [300, 1_000, 2_000, 3_000, 6_000, 10_000, 15_000];
/// Tomcat's defaults.
const CONNECTIONS: u64 = 8_192;
const BACKLOG: u64 = 100;
/// A step that lasts as long shows its pool to the sampler, which looks once a second.
const SAMPLED: Duration = Duration::from_secs(4);
/// Shorter than the second after which a dropped SYN is sent again.
const ONE_TRY: Duration = Duration::from_millis(900);

/// Runs the steps.
pub fn run(bench: &mut Bench<'_>) -> Result<(), Stopped> {
    let scale = if bench.quick() { Scale::QUICK } else { Scale::FULL };
    if bench.is_own() {
        return OWN.iter().try_for_each(|users| own(bench, scale, scale.of(*users)));
    }
    for (users, threads) in [
        (300, 200),
        (1_000, 200),
        (2_000, 200),
        (3_000, 200),
        (3_000, 500),
        (6_000, 500),
        (6_000, 1_000),
    ] {
        waves(bench, scale, scale.spike(users, threads, CONNECTIONS, BACKLOG), "")?;
    }
    // It closes connections that idle, and those that wait for a thread do not.
    let timeout = format!("--connection-timeout {}ms", (scale.limit / 3).as_millis());
    waves(bench, scale, scale.spike(3_000, 200, CONNECTIONS, BACKLOG), &timeout)?;
    turned_away(bench, scale, scale.spike(10_000, 1_000, CONNECTIONS, BACKLOG))?;
    waves(bench, scale, scale.spike(10_000, 1_000, 20_000, BACKLOG), "")?;
    // Users who leave make room: then it is the backlog that decides who waits at the door.
    who_leave(bench, scale, scale.spike(10_000, 1_000, CONNECTIONS, BACKLOG))?;
    who_leave(bench, scale, scale.spike(10_000, 1_000, CONNECTIONS, 4_000))?;
    waves(bench, scale, scale.spike(15_000, 2_000, 50_000, 5_000), "")?;
    ones(bench)
}

impl Spike {
    fn server(self, bench: &mut Bench<'_>, scale: Scale, flag: &str) -> Result<Server, Stopped> {
        let Self { threads, connections, backlog, .. } = self;
        let service = scale.service.as_millis();
        if let Some(bound) = bounded(backlog, somaxconn()) {
            bench.note(format!(
                "net.core.somaxconn bounds the backlog of {} to {} (raise it with `sysctl -w \
                 net.core.somaxconn={backlog}`)",
                count(backlog),
                count(bound)
            ));
        }
        bench.server(
            format!(
                "--threads {threads} --max-connections {connections} --accept-count {backlog} \
                 --service const:{service}ms {flag}"
            )
            .trim_end(),
        )
    }

    /// Connections a second that the server accepts with ease, so that a SYN is lost only when there
    /// is no place: all have come after two thirds of a request, before the first user leaves.
    fn pace(self, scale: Scale) -> f64 {
        1.5 * self.users as f64 / scale.service.as_secs_f64()
    }

    /// The same of users who stay: nobody leaves, so they may take the time of two requests.
    fn calm_pace(self, scale: Scale) -> f64 {
        0.5 * self.users as f64 / scale.service.as_secs_f64()
    }

    /// Each user sends one request and keeps its connection.
    fn once(self, server: &Server, scale: Scale) -> RunSpec {
        let users = usize::try_from(self.users).unwrap_or(usize::MAX);
        let load = Load::PerUser { users, iterations: 1 };
        let mut spec = limited(load_on(server, "/fast", load), scale.limit);
        server.watch_process(&mut spec);
        spec
    }
}

/// `3,000 users, 200 threads, connection-timeout 20s`.
fn wave_name(scale: Scale, spike: Spike, flag: &str) -> String {
    let mut name = format!("{} users, {} threads", count(spike.users), count(spike.threads));
    if spike.connections > scale.of(CONNECTIONS) {
        name.push_str(&format!(", {} connections", count(spike.connections)));
    }
    if !flag.is_empty() {
        name.push_str(&format!(", {}", flag.trim_start_matches("--").replace("000ms", "s")));
    }
    name
}

/// Everybody is let in: waves of T, ⌈N/T⌉ × S, as far as the clients' patience goes.
fn waves(bench: &mut Bench<'_>, scale: Scale, spike: Spike, flag: &str) -> Result<(), Stopped> {
    let name = wave_name(scale, spike, flag);
    if !bench.takes(&name, spike.users) {
        return Ok(());
    }
    let server = spike.server(bench, scale, flag)?;
    let summary = bench.fire(&spike.once(&server, scale))?;
    let expectations = wave_theory(scale, spike, &summary);
    bench.step(name, &server, summary, expectations);
    Ok(())
}

fn wave_theory(scale: Scale, spike: Spike, summary: &Summary) -> Vec<Expectation> {
    let Spike { users, threads, .. } = spike;
    let ok = summary.run.tally.counts.ok;
    // The wave that ends with the patience may end before it or after it.
    let most = scale.limit.as_nanos() / scale.service.as_nanos();
    let most = u64::try_from(most).unwrap_or(u64::MAX);
    let waves = users.div_ceil(threads).min(most);
    let takes = scale.service * u32::try_from(waves).unwrap_or(u32::MAX);
    let (n, t) = (count(users), count(threads));
    let mut expectations = if users < most * threads {
        let text = format!("all {n}: {waves} waves end within {}", span(scale.limit));
        let all = theory::number("ok", ok, users..=users, text);
        // A user who starts after the first one waits that much less; half a wave tells waves apart.
        let low = takes.saturating_sub(scale.service / 2);
        // A crowd at the door, and a busy machine, delay the first wave.
        let range = low..=takes.mul_f64(1.2) + Duration::from_millis(1_500);
        let text = format!("⌈{n}/{t}⌉ × {} = {}", span(scale.service), span(takes));
        let last = summary.run.tally.latency.of(Metric::OkResponse).max() as f64;
        vec![all, theory::time("last", last, range, text)]
    } else {
        let (low, high) = ((most - 1) * threads, most * threads);
        let text = format!(
            "{} to {}: {} or {most} waves of {t} within {}",
            count(low),
            count(high),
            most - 1,
            span(scale.limit)
        );
        vec![theory::number("ok", ok, low..=high, text)]
    };
    if takes >= SAMPLED {
        expectations.push(theory::cause(summary, "target_pool", &["target_overflows"]));
    }
    expectations
}

/// More users than the server lets in and the backlog holds.
fn turned_away(bench: &mut Bench<'_>, scale: Scale, spike: Spike) -> Result<(), Stopped> {
    let Spike { users, connections, backlog, .. } = spike;
    let name = format!("{} users, {} connections", count(users), count(connections));
    if !bench.takes(&name, users) {
        return Ok(());
    }
    let server = spike.server(bench, scale, "")?;
    let mut spec = spike.once(&server, scale);
    // A SYN that is sent again later may find room that the first one did not.
    spec.connection.connect_timeout = ONE_TRY;
    spec.connection.connect_rate = Some(spike.calm_pace(scale));
    let summary = bench.fire(&spec)?;
    let counts = summary.run.tally.counts;
    let (let_in, open) = (connections - 1, connections + backlog);
    let text = format!("{} − 1: the connections, less the sampler's", count(connections));
    let expectations = vec![
        theory::number("ok", counts.ok, let_in - 1..=connections, text),
        theory::number(
            "connected",
            counts.opened,
            open - 1..=open + 1,
            format!(
                "{} − 1 + {backlog} + 1 = {}: the kernel's backlog holds one more than asked",
                count(connections),
                count(open)
            ),
        ),
        theory::cause(&summary, "target_connections", &["target_pool", "target_overflows"]),
    ];
    bench.step(name, &server, summary, expectations);
    Ok(())
}

/// Users who disconnect with their answer, and try to connect once.
fn who_leave(bench: &mut Bench<'_>, scale: Scale, spike: Spike) -> Result<(), Stopped> {
    let Spike { users, connections, backlog, .. } = spike;
    let name = format!("{} users who leave, accept-count {}", count(users), count(backlog));
    if !bench.takes(&name, users) {
        return Ok(());
    }
    let server = spike.server(bench, scale, "")?;
    let all = usize::try_from(users).unwrap_or(usize::MAX);
    let mut spec = limited(closed(&server, "/fast", all, scale.limit), scale.limit);
    server.watch_process(&mut spec);
    spec.scenarios[0].duration = None;
    spec.scenarios[0].requests = Some(spike.users);
    spec.connection.connect_timeout = ONE_TRY;
    spec.connection.connect_rate = Some(spike.pace(scale));
    let summary = bench.fire(&spec)?;
    let backlog = bounded(backlog, somaxconn()).unwrap_or(backlog);
    let fits = connections + backlog;
    let ok = summary.run.tally.counts.ok;
    let mut expectations = Vec::new();
    if fits >= users {
        let text = format!("all: {} + {} places", count(connections), count(backlog));
        expectations.push(theory::number("ok", ok, users..=users, text));
    } else {
        let text = format!("{} + {}: the places", count(connections), count(backlog));
        expectations.push(theory::number("ok", ok, fits - fits / 20..=fits + fits / 20, text));
    }
    bench.step(name, &server, summary, expectations);
    Ok(())
}

/// One thread, one connection, one in the backlog, and ten users who stay.
fn ones(bench: &mut Bench<'_>) -> Result<(), Stopped> {
    let name = "10 users, everything at 1".to_owned();
    if !bench.wants(&name) {
        return Ok(());
    }
    let server = bench.server(
        "--threads 1 --max-connections 1 --accept-count 1 --connection-timeout 4s \
         --service const:200ms",
    )?;
    let mut spec = load_on(&server, "/fast", Load::PerUser { users: 10, iterations: 1 });
    // The sampler would take the only connection.
    spec.watch.clear();
    server.watch_process(&mut spec);
    // One after the other, so that no two handshakes are under way at once.
    spec.connection.connect_rate = Some(20.0);
    spec.connection.connect_timeout = Duration::from_millis(1_500);
    spec.scenarios[0].graceful_stop = Duration::from_secs(30);
    let summary = bench.fire(&spec)?;
    let expectations = vec![
        theory::number(
            "ok",
            summary.run.tally.counts.ok,
            3..=4,
            "3: one is let in and two wait in the backlog (a late handshake lets in one more)"
                .to_owned(),
        ),
        theory::first_cause(&summary, &["target_overflows", "accept_queue", "connection_limit"]),
    ];
    bench.step(name, &server, summary, expectations);
    Ok(())
}

/// The user's own server: what happens, without a theory.
fn own(bench: &mut Bench<'_>, scale: Scale, users: u64) -> Result<(), Stopped> {
    let name = units::plural(users, "user");
    if !bench.takes(&name, users) {
        return Ok(());
    }
    let server = bench.server("")?;
    let spike = Spike { users, threads: 0, connections: 0, backlog: 0 };
    let summary = bench.fire(&spike.once(&server, scale))?;
    bench.step(name, &server, summary, Vec::new());
    Ok(())
}

/// The kernel's bound on a backlog of `asked`, if it has one that is smaller.
fn bounded(asked: u64, somaxconn: Option<u64>) -> Option<u64> {
    somaxconn.filter(|most| *most < asked)
}

fn somaxconn() -> Option<u64> {
    std::fs::read_to_string("/proc/sys/net/core/somaxconn").ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backlog_is_bounded_by_a_smaller_somaxconn_alone() {
        assert_eq!(bounded(5_000, Some(4_096)), Some(4_096));
        assert_eq!(bounded(4_096, Some(4_096)), None);
        assert_eq!(bounded(100, Some(4_096)), None);
        assert_eq!(bounded(100, None), None);
    }

    #[test]
    fn everybody_has_come_before_the_first_one_leaves() {
        for scale in [Scale::FULL, Scale::QUICK] {
            let spike = scale.spike(10_000, 1_000, CONNECTIONS, BACKLOG);
            let comes = spike.users as f64 / spike.pace(scale);
            assert!(comes < 0.7 * scale.service.as_secs_f64(), "{comes}");
        }
    }
}
