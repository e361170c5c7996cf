//! What the lab served: a snapshot and its summary lines.

mod counters;
mod prometheus;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

pub(crate) use counters::{ConnectionCounters, WorkerCounters};
pub(crate) use prometheus::render as render_prometheus;

/// What the lab has served so far.
///
/// A request counts once its head has been read, and ends in exactly one way:
/// `requests = sum of responses + aborted + cut + unfinished + in_flight` (exact when idle; a
/// snapshot under load is taken counter by counter). `/metrics`, `/config` and `/stall` count only
/// in `control_requests`.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// Requests whose head was read.
    pub requests: u64,
    /// Requests by route, such as `/fast`; `other` matched no route. Routes without requests are
    /// absent.
    pub routes: BTreeMap<&'static str, u64>,
    /// Requests to `/metrics`, `/config` and `/stall`.
    pub control_requests: u64,
    /// Responses handed over whole, by status.
    pub responses: BTreeMap<u16, u64>,
    /// Requests whose client disconnected before the response was whole.
    pub aborted: u64,
    /// Responses aborted on purpose: `/reset`, `/close`.
    pub cut: u64,
    /// Requests in flight when the lab stopped.
    pub unfinished: u64,
    /// Connections that sent something other than HTTP.
    pub malformed: u64,
    /// Requests read and not yet ended.
    pub in_flight: u64,
    /// Requests that wait for a worker, abandoned ones included.
    pub waiting: u64,
    /// Workers that hold a request, abandoned ones included. Without a pool: requests being
    /// served.
    pub threads_busy: u64,
    /// Connections.
    pub connections: ConnectionStats,
    /// Bytes read from sockets, heads included.
    pub bytes_in: u64,
    /// Bytes written to sockets, heads included.
    pub bytes_out: u64,
    /// The actual service times.
    pub service: ServiceStats,
    /// Total time for which the whole server was stalled.
    pub stalled: Duration,
    /// How long the lab has run.
    pub elapsed: Duration,
}

/// Connections, TCP and Unix together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectionStats {
    /// Accepted since the start.
    pub opened: u64,
    /// Accepted and not yet closed.
    pub open: u64,
    /// The most that were open at the same time.
    pub peak: u64,
    /// Closed by the connection timeout.
    pub timed_out: u64,
    /// Accepts that failed, usually for lack of descriptors.
    pub accept_errors: u64,
}

/// How long requests held their worker: the measured service time plus the delay of `/slow` and
/// `/delay`, including the timer's lateness. Requests with neither do not count.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[non_exhaustive]
pub struct ServiceStats {
    /// Number of samples.
    pub count: u64,
    /// Their sum, in seconds.
    pub sum_s: f64,
    /// The sum of their squares, in seconds squared.
    pub sum_squares_s2: f64,
}

impl ServiceStats {
    /// The mean; zero without samples.
    pub fn mean(&self) -> Duration {
        if self.count == 0 {
            return Duration::ZERO;
        }
        Duration::try_from_secs_f64(self.sum_s / self.count as f64).unwrap_or_default()
    }

    /// The population standard deviation; zero without samples.
    pub fn stddev(&self) -> Duration {
        if self.count == 0 {
            return Duration::ZERO;
        }
        let n = self.count as f64;
        let mean = self.sum_s / n;
        let variance = (self.sum_squares_s2 / n - mean * mean).max(0.0);
        Duration::try_from_secs_f64(variance.sqrt()).unwrap_or_default()
    }
}

impl Stats {
    /// Responses handed over whole, of any status.
    pub fn responses_total(&self) -> u64 {
        self.responses.values().sum()
    }
}

/// The summary that a server prints at its end, without a final newline.
impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "requests     {}", self.requests)?;
        list(f, self.routes.iter())?;
        write!(f, "\nresponses    {}", self.responses_total())?;
        list(f, self.responses.iter())?;
        write!(
            f,
            "\nunanswered   aborted {}, cut {}, unfinished {}, in flight {}, malformed {}",
            self.aborted, self.cut, self.unfinished, self.in_flight, self.malformed
        )?;
        let c = &self.connections;
        write!(f, "\nconnections  opened {}, peak {}, open {}", c.opened, c.peak, c.open)?;
        if c.timed_out > 0 {
            write!(f, ", timed out {}", c.timed_out)?;
        }
        if c.accept_errors > 0 {
            write!(f, ", accept errors {}", c.accept_errors)?;
        }
        write!(f, "\nbytes        in {}, out {}", self.bytes_in, self.bytes_out)?;
        if self.service.count > 0 {
            let ms = |d: Duration| d.as_secs_f64() * 1e3;
            let (mean, sd) = (ms(self.service.mean()), ms(self.service.stddev()));
            let n = self.service.count;
            write!(f, "\nservice      mean {mean:.3} ms, deviation {sd:.3} ms, {n} times")?;
        }
        Ok(())
    }
}

/// ` (a 1, b 2)`, or nothing.
fn list<K: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    items: impl Iterator<Item = (K, impl fmt::Display)>,
) -> fmt::Result {
    let mut open = false;
    for (key, value) in items {
        write!(f, "{}{key} {value}", if open { ", " } else { "  (" })?;
        open = true;
    }
    if open { f.write_str(")") } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn the_summary() {
        let stats = Stats {
            requests: 4,
            routes: BTreeMap::from([("/fast", 3), ("other", 1)]),
            responses: BTreeMap::from([(200, 3), (404, 1)]),
            service: ServiceStats { count: 2, sum_s: 0.04, sum_squares_s2: 0.001 },
            ..Stats::default()
        };
        expect![[r#"
            requests     4  (/fast 3, other 1)
            responses    4  (200 3, 404 1)
            unanswered   aborted 0, cut 0, unfinished 0, in flight 0, malformed 0
            connections  opened 0, peak 0, open 0
            bytes        in 0, out 0
            service      mean 20.000 ms, deviation 10.000 ms, 2 times"#]]
        .assert_eq(&stats.to_string());
    }
}
