//! Other dimensions of a capacity: connections at once, connections a second, the version of HTTP.

use std::time::Duration;

use gake_run::spec::HttpVersion;
use gake_text::units;

use super::bench::{Bench, Stopped, closed, goodput, limited};
use super::theory;

/// Connections that the server takes, its backlog, and users on either side.
const PLACES: u64 = 200;
const BACKLOG: u64 = 10;
const FEW: usize = 150;
const MANY: usize = 400;

/// A machine that others use adds some milliseconds to each request of 20 ms.
const BUSY: f64 = 0.6;

/// Users who open connections.
const USERS: usize = 20;

/// A pool that HTTP/2 fills from few connections.
const POOL: f64 = 16.0;
const POOL_SERVICE: f64 = 0.02;
const FEW_CONNECTIONS: usize = 4;
const STREAMS: usize = 8;

/// Runs the steps.
pub fn run(bench: &mut Bench<'_>) -> Result<(), Stopped> {
    connections(bench, FEW)?;
    connections(bench, MANY)?;
    connection_rate(bench)?;
    http(bench, HttpVersion::Http11, 1)?;
    http(bench, HttpVersion::Http2, STREAMS)
}

/// Connections that are kept: at most as many as there are places, whatever is asked.
fn connections(bench: &mut Bench<'_>, users: usize) -> Result<(), Stopped> {
    let name = format!("{users} connections, {PLACES} places");
    if !bench.takes(&name, users as u64) {
        return Ok(());
    }
    let server = bench.server(&format!(
        "--threads 50 --service const:20ms --max-connections {PLACES} --accept-count {BACKLOG}"
    ))?;
    let duration = bench.seconds(6.0, 3.0);
    // Nobody gives up while the step lasts: whoever has no place waits.
    let mut spec = limited(closed(&server, "/fast", users, duration), 2 * duration);
    spec.scenarios[0].graceful_stop = Duration::from_millis(500);
    spec.connection.connect_rate = Some(500.0);
    let summary = bench.fire(&spec)?;
    // When users leave, others have their places.
    let open = summary.run.series.points().iter().map(|point| point.open).max().unwrap_or(0);
    let expectations = if users as u64 <= PLACES {
        let all = users as u64;
        let text = "50 / 20 ms = 2,500/s".to_owned();
        let range = BUSY * 2_500.0..=1.05 * 2_500.0;
        vec![
            theory::number("connected", open, all..=all, format!("all {all}")),
            theory::rate("rate", goodput(&summary), range, text),
        ]
    } else {
        // One place is the sampler's.
        let all = PLACES + BACKLOG;
        let text = format!(
            "{PLACES} − 1 + {BACKLOG} + 1 = {all}: the sampler has one, and the kernel's backlog \
             holds one more than asked"
        );
        vec![
            theory::number("connected", open, all - 1..=all + 1, text),
            theory::cause(&summary, "target_connections", &["target_pool", "target_overflows"]),
        ]
    };
    bench.step(name, &server, summary, expectations);
    Ok(())
}

/// A connection for each request, against connections that are kept.
fn connection_rate(bench: &mut Bench<'_>) -> Result<(), Stopped> {
    let mut fresh = None;
    for keepalive in [false, true] {
        let name = if keepalive { "connections kept" } else { "a connection each" }.to_owned();
        if !bench.wants(&name) {
            continue;
        }
        let server = bench.server("--service const:0ms")?;
        let mut spec = closed(&server, "/fast", USERS, bench.seconds(5.0, 2.0));
        spec.connection.keepalive = keepalive;
        let summary = bench.fire(&spec)?;
        let counts = summary.run.tally.counts;
        let rate = goodput(&summary);
        let (expected, text) = match keepalive {
            true => (USERS as u64, format!("{USERS}: one for each user")),
            false => (counts.sent, format!("{}: one for each request", units::count(counts.sent))),
        };
        let mut expectations =
            vec![theory::number("opened", counts.opened, expected..=expected, text)];
        if let Some(fresh) = fresh {
            let text = format!("more than {}, with a connection each", units::rate(fresh));
            expectations.push(theory::rate("rate", rate, fresh..=f64::INFINITY, text));
        }
        fresh = Some(rate);
        bench.step(name, &server, summary, expectations);
    }
    Ok(())
}

/// A connection has one request in flight in HTTP/1.1, and one for each stream in HTTP/2.
fn http(bench: &mut Bench<'_>, http: HttpVersion, each: usize) -> Result<(), Stopped> {
    let version = if http == HttpVersion::Http2 { "HTTP/2" } else { "HTTP/1.1" };
    let name = format!("{version}, {FEW_CONNECTIONS} connections");
    if !bench.wants(&name) {
        return Ok(());
    }
    let server = bench.server("--threads 16 --service const:20ms")?;
    let users = FEW_CONNECTIONS * each;
    let mut spec = closed(&server, "/fast", users, bench.seconds(5.0, 2.0));
    spec.scenarios[0].connections = FEW_CONNECTIONS;
    spec.connection.http = http;
    spec.connection.streams = http.is_multiplexed().then_some(STREAMS);
    let summary = bench.fire(&spec)?;
    let busy = (users as f64).min(POOL);
    let expected = busy / POOL_SERVICE;
    let text =
        format!("min({FEW_CONNECTIONS} × {each}, {POOL}) / 20 ms = {}", units::rate(expected));
    let range = BUSY * expected..=1.05 * expected;
    let opened = summary.run.tally.counts.opened;
    let few = FEW_CONNECTIONS as u64;
    let expectations = vec![
        theory::number("opened", opened, few..=few, format!("{few}")),
        theory::rate("rate", goodput(&summary), range, text),
    ];
    bench.step(name, &server, summary, expectations);
    Ok(())
}
