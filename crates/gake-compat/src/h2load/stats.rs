//! h2load's statistics of all connections, collected while the run is in progress, and its log of
//! requests.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};

use super::report::record_rate;
use gake_core::clock::{Nanos, SECOND};
use gake_core::record::{ExchangeEnd, Histogram, Outcome};

/// The number of tracked connections in addition to the clients' current ones; older ones have
/// ended.
const DONE_MAX: usize = 4_096;

/// The statistics. Their size does not depend on the number of requests.
#[derive(Debug, Default)]
pub struct H2loadStats {
    /// The time from the start of a connection until it was open.
    pub connect: Histogram,
    /// The time from there to its first byte.
    pub first_byte: Histogram,
    /// Requests a second of each connection.
    rates: Histogram,
    connections: HashMap<(u64, u32), Client>,
    /// The most tracked connections.
    followed_max: usize,
    /// The number of workers, which get arrivals in turn.
    workers: u64,
    /// The end of the warm-up.
    from: Nanos,
}

/// A connection.
#[derive(Debug, Clone, Copy)]
struct Client {
    from: Nanos,
    until: Nanos,
    answers: u64,
}

impl H2loadStats {
    /// Tracks `clients` connections of `workers` workers, from the end of the warm-up on.
    pub fn new(clients: usize, workers: usize, from: Nanos) -> Self {
        let followed_max = clients.saturating_mul(2).saturating_add(DONE_MAX);
        Self { followed_max, workers: workers.max(1) as u64, from, ..Self::default() }
    }

    /// Whether an outcome is in the figures.
    pub fn counts(&self, outcome: &Outcome) -> bool {
        outcome.arrival.due >= self.from
    }

    /// Adds an outcome.
    pub fn record(&mut self, outcome: &Outcome) {
        let exchange = &outcome.exchange;
        if exchange.connection == 0 || !self.counts(outcome) {
            return;
        }
        let dial = exchange.connect.map(|connect| connect + exchange.tls.unwrap_or(0));
        let start = exchange.write.saturating_sub(dial.unwrap_or(0));
        if let Some(dial) = dial {
            self.connect.record(dial);
            if let Some(first) = exchange.first_byte {
                self.first_byte.record(first.saturating_sub(start));
            }
        }
        let key = (outcome.arrival.number % self.workers, exchange.connection);
        let client = self.connections.entry(key);
        let client = client.or_insert(Client { from: start, until: start, answers: 0 });
        client.from = client.from.min(start);
        client.until = client.until.max(exchange.done);
        client.answers += u64::from(matches!(exchange.end, ExchangeEnd::Response(_)));
        if self.connections.len() > self.followed_max {
            self.end_older();
        }
    }

    /// Ends the older half of the connections.
    fn end_older(&mut self) {
        let mut ends: Vec<_> = self.connections.values().map(|client| client.until).collect();
        let middle = ends.len() / 2;
        let (_, &mut middle, _) = ends.select_nth_unstable(middle);
        let rates = &mut self.rates;
        self.connections.retain(|_, client| {
            let continues_after_errors = client.until > middle;
            if !continues_after_errors {
                client.end(rates);
            }
            continues_after_errors
        });
    }

    /// Requests a second of each connection, after the run.
    pub fn rates(&self) -> Histogram {
        let mut rates = self.rates.clone();
        self.connections.values().for_each(|client| client.end(&mut rates));
        rates
    }
}

impl Client {
    fn end(&self, rates: &mut Histogram) {
        let lasted = self.until.saturating_sub(self.from);
        if lasted > 0 {
            record_rate(rates, self.answers as f64 / lasted as f64 * SECOND as f64);
        }
    }
}

/// `--log-file`: start in microseconds of Unix time, status or -1, microseconds to the end.
#[derive(Debug)]
pub struct TimingLog {
    file: BufWriter<File>,
    started_unix_ns: u64,
    text: String,
}

impl TimingLog {
    /// Writes the requests of a run that started at `started_unix_ns` to `file`.
    pub fn new(file: File, started_unix_ns: u64) -> Self {
        Self { file: BufWriter::new(file), started_unix_ns, text: String::new() }
    }

    /// Adds an outcome. As in h2load, requests in flight at the end have no line.
    pub fn add(&mut self, outcome: &Outcome) {
        let exchange = &outcome.exchange;
        let status = match exchange.end {
            ExchangeEnd::Response(answer) => i32::from(answer.status),
            ExchangeEnd::Fault(_) => -1,
            ExchangeEnd::Unfinished => return,
        };
        let start = self.started_unix_ns.saturating_add(exchange.write) / 1_000;
        let took = exchange.service() / 1_000;
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{start}\t{status}\t{took}");
    }

    /// Passes the added lines to the operating system.
    pub fn flush(&mut self) -> io::Result<()> {
        self.file.write_all(self.text.as_bytes())?;
        self.text.clear();
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use gake_core::record::{Exchange, ResponseSummary};
    use gake_core::work::Arrival;

    use super::*;

    fn answered(number: u64, connection: u32, write: Nanos, opens: bool) -> Outcome {
        Outcome {
            arrival: Arrival { number, due: write },
            blocked: 0,
            fired: write,
            exchange: Exchange {
                connection,
                write,
                first_byte: Some(write + 500),
                done: write + 1_000,
                connect: opens.then_some(100),
                end: ExchangeEnd::Response(ResponseSummary { status: 200, body_bytes: 0 }),
                ..Exchange::unfinished(write)
            },
        }
    }

    #[test]
    fn each_connection_has_its_rate() {
        let mut stats = H2loadStats::new(2, 1, 0);
        // Two requests in 2.1 us on one connection, one in 1.1 us on the other.
        stats.record(&answered(0, 1, 1_000, true));
        stats.record(&answered(1, 2, 1_000, true));
        stats.record(&answered(2, 1, 2_000, false));
        let rates = stats.rates();
        assert_eq!((rates.count(), stats.connect.count()), (2, 2));
        assert_eq!((stats.connect.max(), stats.first_byte.max()), (100, 600));
        let expected = [1e15 / 1_100.0, 2e15 / 2_100.0].map(|rate: f64| rate.round() as u64);
        assert_eq!([rates.min(), rates.max()], expected);
    }

    #[test]
    fn memory_is_bounded_by_the_clients() {
        let mut stats = H2loadStats::new(1, 1, 0);
        for number in 0..20_000 {
            stats.record(&answered(number, number as u32 + 1, number * 1_000, true));
        }
        assert!(stats.connections.len() <= DONE_MAX + 2);
        assert_eq!(stats.rates().count(), 20_000);
    }
}
