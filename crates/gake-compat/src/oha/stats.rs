//! What oha shows of all requests, collected while the run is in progress.

use std::collections::BTreeMap;
use std::io;

use super::report::{DEADLINE, OhaRates, OhaRow};
use crate::spread::Spread;
use gake_core::record::{ExchangeEnd, Fault, Histogram, Outcome, Phase, Tally};

use crate::outcome_stats::Phases;

/// What is shown. Its size does not depend on how many requests there are.
#[derive(Debug, Default)]
pub struct OhaStats {
    /// From start to end of the responses, or from when they were due.
    pub latency: Histogram,
    /// From start to the first byte.
    pub first_byte: Histogram,
    /// The latency of responses 2xx and of all others.
    pub breakdown: [Histogram; 2],
    /// Opening a connection, of the requests that opened one.
    pub dial: Spread,
    /// When responses ended.
    pub rates: OhaRates,
    /// Responses that ended in their body: by a reset, and by a close.
    cut: [u64; 2],
    /// Whether latency counts from when a request was due.
    corrected: bool,
}

impl OhaStats {
    /// No outcomes yet.
    pub fn new(corrected: bool) -> Self {
        Self { corrected, ..Self::default() }
    }

    /// Adds an outcome.
    pub fn record(&mut self, outcome: &Outcome) {
        let exchange = &outcome.exchange;
        let answer = match exchange.end {
            ExchangeEnd::Response(answer) => answer,
            ExchangeEnd::Fault(fault) => {
                let begun = u64::from(exchange.first_byte.is_some());
                match fault {
                    Fault::Reset => self.cut[0] += begun,
                    Fault::ClosedEarly(_) => self.cut[1] += begun,
                    _ => {}
                }
                return;
            }
            _ => return,
        };
        let row = row(outcome, self.corrected, answer.status, answer.body_bytes);
        self.latency.record(row.duration);
        self.first_byte.record(row.first_byte);
        let is_ok = (200..300).contains(&answer.status);
        self.breakdown[usize::from(!is_ok)].record(row.duration);
        if exchange.connect.is_some() {
            self.dial.record(row.dial);
        }
        self.rates.record(exchange.done);
    }

    /// Requests without a response by cause in oha's words, in order of the words.
    pub fn errors(&self, tally: &Tally, interrupted: bool) -> Vec<(String, u64)> {
        const IN_BODY: &str = "error reading a body from connection";
        let mut errors: BTreeMap<String, u64> = BTreeMap::new();
        let mut add = |cause: String, count: u64| {
            if count > 0 {
                *errors.entry(cause).or_default() += count;
            }
        };
        for &(fault, count) in tally.faults() {
            let cut = match fault {
                Fault::Reset => self.cut[0].min(count),
                Fault::ClosedEarly(Phase::Body) => self.cut[1].min(count),
                _ => 0,
            };
            add(IN_BODY.to_owned(), cut);
            add(cause(fault), count - cut);
        }
        // What a signal cuts off oha does not count.
        if !interrupted {
            add(DEADLINE.to_owned(), tally.counts.unfinished);
        }
        errors.into_iter().collect()
    }
}

/// The figures of a response.
pub fn row(outcome: &Outcome, corrected: bool, status: u16, bytes: u64) -> OhaRow {
    let phases = Phases::of(outcome);
    OhaRow {
        start: outcome.fired,
        dial: phases.dial.unwrap_or(0),
        first_byte: phases.total.saturating_sub(phases.read),
        duration: if corrected { outcome.response() } else { phases.total },
        bytes,
        status,
    }
}

/// A fault in the words of oha and of the libraries beneath it.
fn cause(fault: Fault) -> String {
    let os = |errno| io::Error::from_raw_os_error(errno).to_string();
    match fault {
        Fault::ConnectRefused => os(111),
        Fault::NoLocalPort => os(99),
        Fault::NoDescriptors => os(24),
        Fault::ConnectTimeout | Fault::Timeout(_) => "timeout".to_owned(),
        Fault::Reset | Fault::Write => "connection error".to_owned(),
        Fault::ClosedEarly(_) => "connection closed before message completed".to_owned(),
        Fault::TooLarge(_) => "message head is too large".to_owned(),
        Fault::RedirectLimit => "Redirection limit has reached".to_owned(),
        Fault::Other(errno) if errno != 0 => os(errno),
        _ => fault.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_have_ohas_words() {
        for (fault, words) in [
            (Fault::ConnectRefused, "Connection refused (os error 111)"),
            (Fault::NoDescriptors, "Too many open files (os error 24)"),
            (Fault::ConnectTimeout, "timeout"),
            (Fault::RedirectLimit, "Redirection limit has reached"),
        ] {
            assert_eq!(cause(fault), words);
        }
    }
}
