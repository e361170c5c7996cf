//! What ab shows of all requests, collected while the run is in progress.

use super::report::{AbSample, AbTimes};
use gake_core::record::{ExchangeEnd, Outcome};

use crate::outcome_stats::Phases;

/// What is shown. Only samples, which `-g` asks for, grow with the requests.
#[derive(Debug, Default)]
pub struct AbStats {
    /// The phases of the responses.
    pub times: AbTimes,
    /// Bytes of the first response's body.
    pub document: Option<u64>,
    /// Responses of another length.
    pub other_lengths: u64,
    /// `Server` of the first response.
    pub server: Option<String>,
    /// Every response, when asked for; started since the run did, until they are dated.
    pub samples: Vec<AbSample>,
    /// Whether they are asked for.
    pub wants_samples: bool,
}

impl AbStats {
    /// Adds an outcome.
    pub fn record(&mut self, outcome: &Outcome) {
        let exchange = &outcome.exchange;
        let ExchangeEnd::Response(answer) = exchange.end else { return };
        if self.server.is_none()
            && let Some(kept) = &exchange.captured
        {
            let mut headers = kept.headers.iter();
            let server = headers.find(|(name, _)| name.eq_ignore_ascii_case("server"));
            self.server = server.map(|(_, value)| value.clone());
        }
        let document = *self.document.get_or_insert(answer.body_bytes);
        self.other_lengths += u64::from(answer.body_bytes != document);
        let phases = Phases::of(outcome);
        let connect = phases.dial.unwrap_or(0);
        self.times.connect.record(connect);
        self.times.processing.record(phases.total.saturating_sub(connect));
        self.times.waiting.record(phases.wait);
        self.times.total.record(phases.total);
        if self.wants_samples {
            self.samples.push(AbSample {
                started_unix_ns: outcome.fired,
                connect,
                total: phases.total,
                waiting: phases.wait,
            });
        }
    }

    /// Turns the samples' starts since the run did into dates.
    pub fn date(&mut self, run_started_unix_ns: u64) {
        for sample in &mut self.samples {
            sample.started_unix_ns += run_started_unix_ns;
        }
    }
}
