//! Outages of NATS as events of a run. Sans-IO.

use std::time::{Duration, Instant};

use gake_core::clock::Nanos;
use gake_core::record::RunEvent;
use gake_text::duration::format_duration;

/// Shorter outages are not reported, since they delay nothing.
const REPORT_AFTER: Duration = Duration::from_secs(1);

/// The current outage of NATS, if there is one.
#[derive(Debug, Default)]
pub(crate) struct Outage {
    /// The start of the outage: on our clock and since the epoch.
    since: Option<(Instant, Nanos)>,
    is_reported: bool,
}

impl Outage {
    /// Updates whether agents can be received at `now`, which is `at` since the epoch. An outage is
    /// reported once it has lasted for a while, and at its end.
    pub(crate) fn look(&mut self, (now, at): (Instant, Nanos), is_heard: bool) -> Option<RunEvent> {
        if is_heard {
            let (_, since) = self.since.take()?;
            let was_reported = std::mem::take(&mut self.is_reported);
            let (from, to) = (shown(since), shown(at));
            let text = format!("NATS could not be reached from {from} to {to}");
            return was_reported.then_some(RunEvent::new(at, &text));
        }
        let (begun, since) = *self.since.get_or_insert((now, at));
        if self.is_reported || now.duration_since(begun) < REPORT_AFTER {
            return None;
        }
        self.is_reported = true;
        let since = shown(since);
        let text =
            format!("NATS cannot be reached since {since}: agents continue, and deliver later");
        Some(RunEvent::new(at, &text))
    }

    /// The length of the current outage at `now`.
    pub(crate) fn length(&self, now: Instant) -> Option<Duration> {
        self.since.map(|(begun, _)| now.duration_since(begun))
    }
}

/// Formats an instant of the run in tenths of a second.
pub(crate) fn shown(at: Nanos) -> String {
    format_duration(Duration::from_millis(at / 100_000_000 * 100))
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn an_outage_is_reported_once_while_it_lasts_and_when_it_is_over() {
        let start = Instant::now();
        let mut outage = Outage::default();
        let mut look = |ms: u64, is_heard| {
            let now = start + Duration::from_millis(ms);
            outage.look((now, ms * 1_000_000), is_heard).map(|event| event.text)
        };
        assert_eq!([look(6_000, true), look(7_000, false), look(7_900, true)], [None, None, None]);
        assert_eq!([look(8_000, false), look(8_900, false)], [None, None], "it may be short");
        expect!["NATS cannot be reached since 8s: agents continue, and deliver later"]
            .assert_eq(&look(9_000, false).unwrap());
        assert_eq!(look(22_000, false), None, "once");
        expect!["NATS could not be reached from 8s to 23.1s"]
            .assert_eq(&look(23_140, true).unwrap());
        assert_eq!(look(24_000, true), None);
    }
}
