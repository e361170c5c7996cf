//! What ab shows of every request, gathered while the run goes on.

use super::report::{AbSample, AbTimes};
use gake_core::record::{End, Outcome};

use crate::outcome_stats::Parts;

/// What is shown. Only samples, which `-g` asks for, grow with the requests.
#[derive(Debug, Default)]
pub struct Tallied {
    /// The parts of the answered requests.
    pub times: AbTimes,
    /// Bytes of the first answer's body.
    pub document: Option<u64>,
    /// Answers of another length.
    pub other_lengths: u64,
    /// `Server` of the first answer.
    pub server: Option<String>,
    /// Every answer, when asked for; started since the run did, until they are dated.
    pub samples: Vec<AbSample>,
    /// Whether they are asked for.
    pub wants_samples: bool,
}

impl Tallied {
    /// Adds an outcome.
    pub fn take(&mut self, outcome: &Outcome) {
        let exchange = &outcome.exchange;
        let End::Answered(answer) = exchange.end else { return };
        if self.server.is_none()
            && let Some(kept) = &exchange.kept
        {
            let mut headers = kept.headers.iter();
            let server = headers.find(|(name, _)| name.eq_ignore_ascii_case("server"));
            self.server = server.map(|(_, value)| value.clone());
        }
        let document = *self.document.get_or_insert(answer.body_bytes);
        self.other_lengths += u64::from(answer.body_bytes != document);
        let parts = Parts::of(outcome);
        let connect = parts.dial.unwrap_or(0);
        self.times.connect.record(connect);
        self.times.processing.record(parts.total.saturating_sub(connect));
        self.times.waiting.record(parts.wait);
        self.times.total.record(parts.total);
        if self.wants_samples {
            self.samples.push(AbSample {
                started_unix_ns: outcome.fired,
                connect,
                total: parts.total,
                waiting: parts.wait,
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
