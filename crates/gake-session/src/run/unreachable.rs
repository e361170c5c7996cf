//! Ends a run whose every request was refused: a wrong port will not become right.

use gake_core::plan::Plan;
use gake_core::record::{Fault, Tally};
use gake_run::SecondUpdate;
use gake_text::units;

/// Why the run ends after this second, if every request so far was refused.
/// Scripts decide on their own what a failure means.
pub(super) fn reason(plan: &Plan, update: &SecondUpdate<'_>) -> Option<String> {
    let is_warming_up = update.second.warmup.due() > 0;
    if plan.fires_iterations() || is_warming_up {
        return None;
    }
    refused(update.so_far.tally(), update.second.second)
}

/// `1 s: connection refused, 100 of 100 requests`: what follows "stopped at".
fn refused(so_far: &Tally, second: u64) -> Option<String> {
    let is_refusal =
        |fault: Fault| matches!(fault, Fault::ConnectRefused | Fault::Dns | Fault::Proxy(_));
    let refused = so_far.faults_where(is_refusal);
    if refused == 0 || refused < so_far.counts.completed() || so_far.counts.ok > 0 {
        return None;
    }
    let (fault, _) = so_far.faults().iter().max_by_key(|fault| fault.1)?;
    let requests = units::plural(refused, "request");
    Some(format!("{second} s: {}, all of {requests} so far", fault.in_words()))
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
        let of = |faults: &[_], ok| refused(&tally(faults, ok), 1);
        assert_eq!(
            of(&[(Fault::ConnectRefused, 100)], 0).as_deref(),
            Some("1 s: connection refused, all of 100 requests so far")
        );
        assert_eq!(of(&[(Fault::ConnectRefused, 100)], 1), None);
        assert_eq!(of(&[(Fault::ConnectRefused, 100), (Fault::Reset, 1)], 0), None);
        assert_eq!(of(&[(Fault::ConnectTimeout, 3)], 0), None, "the server may be overloaded");
        assert_eq!(of(&[], 0), None, "nothing has ended yet");
    }
}
