//! Measuring the clocks of agents.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;

use super::clock_offset::ClockOffset;
use super::clocks::{CandidateAgent, ClockReading};
use super::finder::{Finder, REPLY_MAX};
use crate::FleetError;
use crate::message::{AgentHello, ClockQuestion, ClockReply};

/// Round trips of a measurement.
const ROUNDS: u32 = 9;

/// Time between the two measurements of a clock: on a local network, a drift of 0.2 % then exceeds
/// their errors.
const APART: Duration = Duration::from_millis(250);

impl Finder<'_> {
    /// Selects agents with usable clocks, as many as needed; reasons against others go to
    /// `refusals`.
    pub(super) async fn with_fit_clocks(
        &self,
        there: Vec<AgentHello>,
        refusals: &mut BTreeMap<String, String>,
    ) -> Vec<CandidateAgent> {
        let (mut fit, mut rest) = (Vec::new(), there.into_iter());
        loop {
            let missing = self.settings.agents.saturating_sub(fit.len());
            let next: Vec<_> = rest.by_ref().take(missing).collect();
            if next.is_empty() {
                return fit;
            }
            let measured = next.iter().map(|hello| self.measured_twice(hello));
            let measured = join_all(measured).await;
            for (hello, clock) in next.into_iter().zip(measured) {
                match clock {
                    Ok(clock) => fit.push(CandidateAgent { hello, clock }),
                    Err(why) => _ = refusals.insert(hello.name, why.to_string()),
                }
            }
        }
    }

    /// Measures an agent's clock twice, to detect drift.
    async fn measured_twice(&self, hello: &AgentHello) -> Result<ClockReading, FleetError> {
        let first = self.fitting(hello, None).await?;
        tokio::time::sleep(APART).await;
        self.fitting(hello, Some(first)).await?;
        Ok(first)
    }

    async fn fitting(
        &self,
        hello: &AgentHello,
        earlier: Option<ClockReading>,
    ) -> Result<ClockReading, FleetError> {
        let measured = self.measured(hello).await?;
        match measured.unfit(earlier) {
            None => Ok(measured),
            Some(why) => Err(FleetError::Clock { agent: hello.name.clone(), why }),
        }
    }

    /// The offset of an agent's clock, unless it has drifted since `earlier`.
    pub(super) async fn offset_since(
        &self,
        hello: &AgentHello,
        earlier: ClockReading,
    ) -> Result<ClockOffset, FleetError> {
        Ok(self.fitting(hello, Some(earlier)).await?.offset)
    }

    /// The offset of an agent's clock.
    pub(super) async fn offset(&self, hello: &AgentHello) -> Result<ClockOffset, FleetError> {
        Ok(self.measured(hello).await?.offset)
    }

    /// Measures an agent's clock: the fastest of several round trips counts.
    async fn measured(&self, hello: &AgentHello) -> Result<ClockReading, FleetError> {
        let mut best: Option<ClockReading> = None;
        for round in 0..ROUNDS {
            let question = ClockQuestion { run: self.run.to_owned(), round };
            let purpose = format!("clock-answer {}", self.run);
            let asked = gake_run::monotonic_now();
            let reply: ClockReply =
                self.request(hello, "clock", &question, &purpose, REPLY_MAX).await?;
            let offset = ClockOffset::of_round(asked, reply.now, gake_run::monotonic_now());
            let is_better = best.is_none_or(|best| offset.error < best.offset.error);
            if reply.round == round && is_better {
                best = Some(ClockReading { offset, at: asked });
            }
        }
        best.ok_or_else(|| FleetError::Clock {
            agent: hello.name.clone(),
            why: "has a clock that cannot be read".to_owned(),
        })
    }
}
