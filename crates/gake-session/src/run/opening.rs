//! How far the connections of a run are: those of users count when they have brought an answer,
//! since a full server's kernel opens connections too.

use gake_core::plan::Plan;
use gake_core::record::{Fault, LatencyMetric, Phase, Tally};
use gake_judge::advice;
use gake_text::units::count;

/// Fewer connections are open before there is anything to show.
const MANY: u64 = 1_000;

/// Faults that tell what bounds the number of connections.
const LIMITS: [Fault; 6] = [
    Fault::NoDescriptors,
    Fault::NoLocalPort,
    Fault::ConnectRefused,
    Fault::ConnectReset,
    Fault::ConnectTimeout,
    Fault::Timeout(Phase::Connect),
];

/// The opening of a run's connections.
#[derive(Debug)]
pub(super) struct Opening {
    /// Connections of users.
    users: u64,
    idle: u64,
    is_over: bool,
    has_limit: bool,
}

impl Opening {
    pub(super) fn of(plan: &Plan) -> Self {
        let users = plan.scenarios().iter().map(|plan| plan.kept_connections() as u64).sum();
        let idle = plan.scenarios().iter().map(|plan| plan.idle_connections as u64).sum();
        // Connections that a warm-up opens are in no tally.
        let warms_up = plan.scenarios().iter().any(|plan| !plan.warmup.is_zero());
        Self { users, idle, is_over: users + idle < MANY || warms_up, has_limit: false }
    }

    /// How far it is after a second, as long as connections are missing: `open` are open now.
    pub(super) fn progress(&mut self, so_far: &Tally, open: u64) -> Option<String> {
        if self.is_over {
            return None;
        }
        let answers = so_far.statuses().iter().map(|(_, count)| count).sum::<u64>();
        let answered =
            so_far.latency.of(LatencyMetric::Connect).count().min(answers).min(self.users);
        // What is open beside those that were answered may be idle ones or still be waiting.
        let idle = open.saturating_sub(answered).min(self.idle);
        let opened = answered + idle;
        self.is_over = opened >= self.users + self.idle;
        (!self.is_over).then(|| {
            format!("{} of {} connections open", count(opened), count(self.users + self.idle))
        })
    }

    /// The first limit that it meets, and what to do about it.
    pub(super) fn limit(&mut self, so_far: &Tally, open: u64) -> Option<String> {
        if self.has_limit || self.progress(so_far, open).is_none() {
            return None;
        }
        let met = |fault: &Fault| so_far.faults().iter().find(|(seen, _)| seen == fault);
        let (fault, failed) = LIMITS.iter().find_map(met)?;
        self.has_limit = true;
        Some(format!(
            "the first limit, with {} connections open: {fault} ({} requests): {}",
            count(open),
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
    fn connections_of_users_count_when_they_were_answered() {
        let mut opening = Opening::of(&plan(2_000, 0));
        let progress = opening.progress(&answered(1_500), 2_000);
        assert_eq!(progress.as_deref(), Some("1,500 of 2,000 connections open"));
        assert_eq!(opening.progress(&answered(2_000), 2_000), None);
        // What is opened again later is not told.
        assert_eq!(opening.progress(&answered(1_500), 1_500), None);
        let mut opening = Opening::of(&plan(1_000, 3_000));
        let progress = opening.progress(&answered(1_000), 2_500);
        assert_eq!(progress.as_deref(), Some("2,500 of 4,000 connections open"));
        assert_eq!(Opening::of(&plan(50, 0)).progress(&answered(0), 0), None);
    }

    #[test]
    fn the_first_limit_is_told_once() {
        let mut opening = Opening::of(&plan(30_000, 0));
        let mut tally = answered(20);
        assert_eq!(opening.limit(&tally, 20), None);
        tally.add_fault(Fault::NoLocalPort, 12);
        let told = opening.limit(&tally, 28_232).unwrap();
        assert!(told.contains("28,232 connections open: no_local_port (12 requests)"), "{told}");
        assert_eq!(opening.limit(&tally, 28_232), None);
    }
}
