//! The figures of a run by the names that the experiments' files use.

use gake_core::record::{Gauge, LatencyMetric, Tally};
use gake_judge::Summary;
use gake_judge::queueing::{self, closed_fixed, erlang_c, mmc_tail};
use gake_judge::stats::per_second;
use gake_text::foreign;

use crate::database;

/// From when on the lab's process has settled, in nanoseconds.
const SETTLED: u64 = 1_500_000_000;

/// For how long a server has to serve what comes until it has recovered, in seconds.
const RECOVERED_FOR: u64 = 2;

/// What MySQL answers when its connections are used up (ER_CON_COUNT_ERROR); its text is in the
/// server's language.
const CONNECTIONS_REFUSED: &str = "1040";

/// What is recorded of a scenario, or of the whole run without one.
pub fn tally(summary: &Summary, subject: Option<usize>) -> &Tally {
    let scenario = subject.and_then(|subject| summary.run.scenarios.get(subject));
    scenario.map_or(&summary.run.tally, |scenario| &scenario.tally)
}

/// Responses that were ok, a second.
pub fn goodput(summary: &Summary) -> f64 {
    per_second(summary.run.tally.counts.ok as f64, summary.run.completing)
}

/// A figure of a run; `None` when it has no such figure. Times are in seconds.
pub fn figure(summary: &Summary, subject: Option<usize>, name: &str) -> Option<f64> {
    let run = &summary.run;
    let tally = tally(summary, subject);
    let (counts, response) = (&tally.counts, tally.latency.response());
    let ok = tally.latency.of(LatencyMetric::OkResponse);
    let quantile = name.strip_prefix('p').and_then(|percent| percent.parse::<f64>().ok());
    Some(match name {
        "ok" => counts.ok as f64,
        "failed" => counts.failed as f64,
        "sent" => counts.sent as f64,
        "due" => counts.due() as f64,
        "opened" => counts.opened as f64,
        "warmup_ok" => run.warmup.ok as f64,
        "responses" => response.count() as f64,
        "mean" => response.mean() / 1e9,
        "max" => response.max() as f64 / 1e9,
        "ok_max" => ok.max() as f64 / 1e9,
        "ok_p99" => ok.quantile(0.99) as f64 / 1e9,
        "goodput" => goodput(summary),
        // Of the time in which requests start: each that starts is answered.
        "answered" => {
            let answered: u64 = run.tally.statuses().iter().map(|status| status.1).sum();
            per_second(answered as f64, run.measured)
        }
        "elapsed" => run.elapsed as f64 / 1e9,
        "completing" => run.completing as f64 / 1e9,
        "peak" => run.peak_connections as f64,
        "open_most" => run.series.points().iter().map(|p| p.open).max().unwrap_or(0) as f64,
        "memory" => run.generator.rss_bytes as f64,
        "tables" => run.plan.tables as f64,
        "process_cores" => process(summary, "cores").and_then(settled).unwrap_or(f64::NAN),
        "process_rss" => process(summary, "rss").and_then(Gauge::max).unwrap_or(f64::NAN),
        "refused_by_mysql" => {
            let bodies = run.bodies.by_count();
            let refused =
                bodies.first().is_some_and(|body| body.text.contains(CONNECTIONS_REFUSED));
            f64::from(refused)
        }
        _ => response.quantile(quantile? / 100.0) as f64 / 1e9,
    })
}

/// A function of a run's figures; `None` when there is no such function.
pub fn function(summary: &Summary, name: &str, arguments: &[f64]) -> Option<f64> {
    let response = summary.run.tally.latency.response();
    Some(match (name, arguments) {
        // Responses that took longer.
        ("over", [time]) => (response.count() - response.count_up_to((time * 1e9) as u64)) as f64,
        ("served", [from, to]) => served(summary, *from as u64, *to as u64),
        // Seconds from the end of a burst until what comes is served again.
        ("recovery", [burst_end, end, rate]) => {
            let recovered = |from: &u64| served(summary, *from, from + RECOVERED_FOR) >= *rate;
            let (from, to) = (*burst_end as u64, *end as u64 - RECOVERED_FOR);
            (from..=to).find(recovered).map_or(f64::INFINITY, |second| (second - from) as f64)
        }
        _ => return None,
    })
}

/// A function that theory needs; `None` when there is no such function.
pub fn theory(name: &str, arguments: &[f64]) -> Option<f64> {
    Some(match (name, arguments) {
        ("known", [value]) => f64::from(!value.is_nan()),
        ("closed_rate", [servers, service, users]) => {
            closed_fixed(*servers as u32, *service, *users as u32).0
        }
        ("closed_response", [servers, service, users]) => {
            closed_fixed(*servers as u32, *service, *users as u32).1
        }
        ("erlang_c", [servers, offered]) => erlang_c(*servers as u32, *offered),
        // The rate up to which M/M/c answers all but a share in time.
        ("mmc_capacity", [servers, service, time, share, most]) => {
            let tail = |rate| mmc_tail(*servers as u32, *service, rate, *time);
            queueing::capacity(tail, *share, 1.0, *most)
        }
        // A number of which all but the first two digits are 0, and no more than it is.
        ("two_digits", [value]) => {
            let digit = 10_f64.powf(value.log10().floor() - 1.0).max(1.0);
            (value / digit).floor() * digit
        }
        ("db_opening", [served, idle]) => database::opening(*served, *idle),
        ("db_held", [rate, served, idle]) => database::held(*rate, *served, *idle),
        ("db_steady", [rate, idle, bound]) => database::steady(*rate, *idle, *bound),
        _ => return None,
    })
}

/// Why no request was ok, in the words of the judge and of the service.
pub fn nothing_ok(summary: &Summary) -> String {
    let cause = summary.verdict.nothing_ok.as_ref().map(|nothing| format!(": {}", nothing.cause));
    let bodies = summary.run.bodies.by_count();
    let body = bodies.first().map(|body| {
        let text = foreign::line(body.text.trim());
        format!("; the most frequent response has status {}: {text}", body.status)
    });
    [cause, body].into_iter().flatten().collect()
}

/// Responses that were ok, a second, in these seconds of the run.
fn served(summary: &Summary, from: u64, to: u64) -> f64 {
    let points = summary.run.series.points().iter();
    let within = points.filter(|point| (from..to).contains(&point.second));
    let (ok, seconds) =
        within.fold((0, 0), |(ok, s), point| (ok + point.counts.ok, s + point.seconds));
    ok as f64 / seconds.max(1) as f64
}

/// A level of the lab's process, if it was read when the load had settled.
fn process<'a>(summary: &'a Summary, name: &'a str) -> Option<&'a Gauge> {
    let is_process =
        |gauge: &&Gauge| ["pid:", "port:"].iter().any(|kind| gauge.source.starts_with(kind));
    let mut gauges = summary.run.watched.named(name).filter(is_process);
    gauges.next().filter(|gauge| settled(gauge).is_some())
}

/// Its mean, the beginning aside.
fn settled(gauge: &Gauge) -> Option<f64> {
    gauge.mean_from(SETTLED)
}
