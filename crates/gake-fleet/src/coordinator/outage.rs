//! Times without NATS, as a run's events have them. No network, no clock.

use std::time::{Duration, Instant};

use gake_core::clock::Nanos;
use gake_core::record::RunEvent;
use gake_text::duration::format_duration;

/// An outage that ends before is no event: nothing is late then.
const TOLD_AFTER: Duration = Duration::from_secs(1);

/// Whether NATS can be reached, and since when it cannot.
#[derive(Debug, Default)]
pub(crate) struct Outage {
    /// When the outage began, here and since the epoch.
    since: Option<(Instant, Nanos)>,
    is_told: bool,
}

impl Outage {
    /// Takes note of whether agents can be heard at `now`, which is `at` since the epoch. An outage
    /// is an event when it has gone on for a while, and when it is over.
    pub(crate) fn look(&mut self, (now, at): (Instant, Nanos), is_heard: bool) -> Option<RunEvent> {
        if is_heard {
            let (_, since) = self.since.take()?;
            let was_told = std::mem::take(&mut self.is_told);
            let (from, to) = (shown(since), shown(at));
            let text = format!("NATS could not be reached from {from} to {to}");
            return was_told.then_some(RunEvent { at, text });
        }
        let (begun, since) = *self.since.get_or_insert((now, at));
        if self.is_told || now.duration_since(begun) < TOLD_AFTER {
            return None;
        }
        self.is_told = true;
        let since = shown(since);
        let text = format!("NATS cannot be reached since {since}: agents go on, and deliver later");
        Some(RunEvent { at, text })
    }

    /// How long the outage has lasted at `now`, if there is one.
    pub(crate) fn length(&self, now: Instant) -> Option<Duration> {
        self.since.map(|(begun, _)| now.duration_since(begun))
    }
}

/// An instant of the run, in tenths of a second.
pub(crate) fn shown(at: Nanos) -> String {
    format_duration(Duration::from_millis(at / 100_000_000 * 100))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_is_told_once_while_it_lasts_and_when_it_is_over() {
        let start = Instant::now();
        let mut outage = Outage::default();
        let mut look = |ms: u64, is_heard| {
            let now = start + Duration::from_millis(ms);
            outage.look((now, ms * 1_000_000), is_heard).map(|event| event.text)
        };
        assert_eq!([look(6_000, true), look(7_000, false), look(7_900, true)], [None, None, None]);
        assert_eq!([look(8_000, false), look(8_900, false)], [None, None], "it may be short");
        assert!(look(9_000, false).unwrap().starts_with("NATS cannot be reached since 8s"));
        assert_eq!(look(22_000, false), None, "once");
        assert_eq!(look(23_140, true).unwrap(), "NATS could not be reached from 8s to 23.1s");
        assert_eq!(look(24_000, true), None);
    }
}
