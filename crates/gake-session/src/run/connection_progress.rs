//! Progress of opening connections. Users' connections count once they have brought a response,
//! since a full server's kernel still accepts connections.

use gake_core::plan::Plan;
use gake_core::record::{Fault, LatencyMetric, Phase, Tally};
use gake_judge::advice;
use gake_text::units::count;

/// Fewer connections open too fast for a progress display.
const MANY: u64 = 1_000;

/// Faults that show a limit on the number of connections.
const LIMITS: [Fault; 6] = [
    Fault::NoDescriptors,
    Fault::NoLocalPort,
    Fault::ConnectRefused,
    Fault::ConnectReset,
    Fault::ConnectTimeout,
    Fault::Timeout(Phase::Connect),
];

/// Progress of opening a run's connections.
#[derive(Debug)]
pub(super) struct ConnectionProgress {
    users: u64,
    idle: u64,
    is_over: bool,
    has_limit: bool,
}

impl ConnectionProgress {
    pub(super) fn of(plan: &Plan) -> Self {
        let users = plan.scenarios().iter().map(|plan| plan.kept_connections() as u64).sum();
        let idle = plan.scenarios().iter().map(|plan| plan.idle_connections as u64).sum();
        // Connections that a warm-up opens are not in the tally.
        let warms_up = plan.scenarios().iter().any(|plan| !plan.warmup.is_zero());
        Self { users, idle, is_over: users + idle < MANY || warms_up, has_limit: false }
    }

    /// Progress after a second, until all connections are open; `open` are open now.
    pub(super) fn progress(&mut self, so_far: &Tally, open: u64) -> Option<String> {
        if self.is_over {
            return None;
        }
        let responses = so_far.statuses().iter().map(|(_, count)| count).sum::<u64>();
        let answered =
            so_far.latency.of(LatencyMetric::Connect).count().min(responses).min(self.users);
        // The others that are open are idle ones, or wait for a response.
        let idle = open.saturating_sub(answered).min(self.idle);
        let opened = answered + idle;
        self.is_over = opened >= self.users + self.idle;
        (!self.is_over).then(|| {
            format!("{} of {} connections open", count(opened), count(self.users + self.idle))
        })
    }

    /// The first limit met, once, and the advice for it.
    pub(super) fn limit(&mut self, so_far: &Tally, open: u64) -> Option<String> {
        if self.has_limit || self.progress(so_far, open).is_none() {
            return None;
        }
        let met = |fault: &Fault| so_far.faults().iter().find(|(seen, _)| seen == fault);
        let (fault, failed) = LIMITS.iter().find_map(met)?;
        self.has_limit = true;
        Some(format!(
            "the first limit, with {} connections open: {} ({} requests): {}",
            count(open),
            fault.in_words(),
            count(*failed),
            advice(*fault)
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use gake_core::Load;

    use super::*;
    use expect_test::expect;

    fn plan(users: usize, idle_connections: usize) -> Plan {
        let load = Load::Closed { users, think: Duration::from_secs(60) };
        Plan { idle_connections, ..Plan::new("http://h/", load) }
    }

    fn answered(connections: u64) -> Tally {
        let mut tally = Tally::default();
        tally.add_status(200, connections);
        for _ in 0..connections {
            tally.latency.of_mut(LatencyMetric::Connect).record(1_000);
        }
        tally
    }

    #[test]
    fn connections_of_users_count_once_they_have_a_response() {
        let mut progress = ConnectionProgress::of(&plan(2_000, 0));
        expect!["1,500 of 2,000 connections open"]
            .assert_eq(&progress.progress(&answered(1_500), 2_000).unwrap());
        assert_eq!(progress.progress(&answered(2_000), 2_000), None);
        // Connections that are opened again later are not reported.
        assert_eq!(progress.progress(&answered(1_500), 1_500), None);
        let mut progress = ConnectionProgress::of(&plan(1_000, 3_000));
        expect!["2,500 of 4,000 connections open"]
            .assert_eq(&progress.progress(&answered(1_000), 2_500).unwrap());
        assert_eq!(ConnectionProgress::of(&plan(50, 0)).progress(&answered(0), 0), None);
    }

    #[test]
    fn the_first_limit_is_reported_once() {
        let mut progress = ConnectionProgress::of(&plan(30_000, 0));
        let mut tally = answered(20);
        assert_eq!(progress.limit(&tally, 20), None);
        tally.add_fault(Fault::NoLocalPort, 12);
        let text = progress.limit(&tally, 28_232).unwrap();
        assert!(
            text.contains("28,232 connections open: no free local port (12 requests)"),
            "{text}"
        );
        assert_eq!(progress.limit(&tally, 28_232), None);
    }
}
