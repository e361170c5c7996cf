//! Ends a run whose every request was refused: a wrong port will not become right.

use gake_core::plan::Plan;
use gake_core::record::{Fault, Tally};
use gake_run::SecondUpdate;
use gake_text::units;

/// The time in which a target may start.
const PATIENCE: u64 = 5;

/// What follows from a second of a run, if every request so far was refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unreachable {
    /// The target may be about to start: a note for the user, once.
    Waiting(String),
    /// Why the run ends.
    GivenUp(String),
}

/// What follows from this second. Scripts decide on their own what a failure means.
pub(super) fn after(plan: &Plan, update: &SecondUpdate<'_>) -> Option<Unreachable> {
    let is_warming_up = update.second.warmup.due() > 0;
    if plan.fires_iterations() || is_warming_up {
        return None;
    }
    refused(update.so_far.tally(), update.second.second)
}

/// The reason is what follows "stopped at": `5 s: connection refused, all of 100 requests so far`.
fn refused(so_far: &Tally, second: u64) -> Option<Unreachable> {
    let is_refusal =
        |fault: Fault| matches!(fault, Fault::ConnectRefused | Fault::Dns | Fault::Proxy(_));
    let refused = so_far.faults_where(is_refusal);
    if refused == 0 || refused < so_far.counts.completed() || so_far.counts.ok > 0 {
        return None;
    }
    let (fault, _) = so_far.faults().iter().max_by_key(|fault| fault.1)?;
    let is_late = second >= PATIENCE || *fault != Fault::ConnectRefused;
    match second {
        _ if is_late => {
            let requests = units::plural(refused, "request");
            let reason = format!("{second} s: {}, all of {requests} so far", fault.in_words());
            Some(Unreachable::GivenUp(reason))
        }
        1 => Some(Unreachable::Waiting(format!(
            "{}: waiting up to {PATIENCE} s for the target to start",
            fault.in_words()
        ))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(faults: &[(Fault, u64)], ok: u64) -> Tally {
        let mut tally = Tally::new(0);
        for &(fault, count) in faults {
            tally.add_fault(fault, count);
            tally.counts.failed += count;
            tally.counts.sent += count;
        }
        (tally.counts.ok, tally.counts.sent) = (ok, tally.counts.sent + ok);
        tally
    }

    #[test]
    fn only_a_run_without_any_other_end_is_stopped() {
        let of = |faults: &[_], ok| refused(&tally(faults, ok), 5);
        let given_up = |reason: &str| Some(Unreachable::GivenUp(reason.to_owned()));
        assert_eq!(
            of(&[(Fault::ConnectRefused, 100)], 0),
            given_up("5 s: connection refused, all of 100 requests so far")
        );
        assert_eq!(of(&[(Fault::ConnectRefused, 100)], 1), None);
        assert_eq!(of(&[(Fault::ConnectRefused, 100), (Fault::Reset, 1)], 0), None);
        assert_eq!(of(&[(Fault::ConnectTimeout, 3)], 0), None, "the server may be overloaded");
        assert_eq!(of(&[], 0), None, "nothing has ended yet");
    }

    #[test]
    fn a_target_may_start_within_five_seconds() {
        let of = |fault, second| refused(&tally(&[(fault, 100)], 0), second);
        assert_eq!(
            of(Fault::ConnectRefused, 1),
            Some(Unreachable::Waiting(
                "connection refused: waiting up to 5 s for the target to start".to_owned()
            ))
        );
        for second in 2..5 {
            assert_eq!(of(Fault::ConnectRefused, second), None, "said once");
        }
        let is_given_up = |fault| matches!(of(fault, 1), Some(Unreachable::GivenUp(_)));
        assert!(is_given_up(Fault::Dns), "a name does not start");
        assert!(is_given_up(Fault::Proxy("it refused the connection")));
    }
}
