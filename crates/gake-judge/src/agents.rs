//! What each agent of a fleet did, in a record of the run and in a line.

use gake_core::record::{AgentRecord, LatencyMetric, Run};
use gake_text::units;

use crate::validity;

/// The record of the agent `name`, which did `run` by itself and was lost at `lost_ns`, if it was.
#[must_use]
pub fn agent_record(name: String, lost_ns: Option<u64>, run: &Run) -> AgentRecord {
    let (validity, reasons) = validity::check(run);
    AgentRecord {
        name,
        lost_ns,
        validity: validity.name().to_owned(),
        reasons: reasons.into_iter().map(|reason| reason.text).collect(),
        sent: run.tally.counts.sent,
        lateness_p99_ns: run.tally.latency.of(LatencyMetric::Lateness).quantile(0.99),
    }
}

/// A line about each agent: whether its figures can be believed, what it sent, how late. The one
/// with the highest lateness is marked.
pub fn agent_lines(agents: &[AgentRecord]) -> impl Iterator<Item = String> {
    let latest = (0..agents.len()).rev().max_by_key(|at| agents[*at].lateness_p99_ns);
    agents.iter().enumerate().map(move |(number, agent)| {
        let state = match agent.lost_ns {
            Some(at) => format!("lost after {}", units::duration(at as f64)),
            None => agent.validity.clone(),
        };
        let mut line = format!(
            "agent {}: {state}, {} sent, p99 lateness {}",
            agent.name,
            units::count(agent.sent),
            units::duration(agent.lateness_p99_ns as f64)
        );
        if agents.len() > 1 && latest == Some(number) {
            line.push_str(" (the highest)");
        }
        for reason in &agent.reasons {
            line.push_str(&format!("; {reason}"));
        }
        line
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::RunSample;

    #[test]
    fn the_latest_agent_is_marked_and_a_lost_one_is_not_called_valid() {
        let run = RunSample::of(1_000, 1_000_000).run();
        let first = agent_record("a".to_owned(), None, &run);
        assert_eq!((first.validity.as_str(), first.sent), ("valid", 1_000));
        let second =
            AgentRecord { name: "b".to_owned(), lateness_p99_ns: u64::MAX, ..first.clone() };
        let third = AgentRecord { lost_ns: Some(5_300_000_000), ..first.clone() };
        let lines: Vec<_> = agent_lines(&[first, second, third]).collect();
        assert!(lines[0].starts_with("agent a: valid, 1,000 sent, p99 lateness"), "{lines:?}");
        let marked = lines.iter().map(|line| line.contains("(the highest)"));
        assert_eq!(marked.collect::<Vec<_>>(), [false, true, false]);
        assert!(lines[2].starts_with("agent a: lost after 5.3"), "{lines:?}");
    }
}
