//! A queue inside the server, and the evidence of it in words.

use gake_text::units;

use super::Finding;
use crate::together::Together;
use crate::unloaded::Unloaded;

/// Range of the slots of a server that serves one request at a time: the rate and the fastest
/// response are known to some tenths.
pub(super) const SERIAL: (f64, f64) = (0.8, 1.5);
/// On a machine without a core to spare a request among others takes up to this many times as long
/// as alone.
pub(super) const FULL_MACHINE: f64 = 1.3;

pub(super) const AT_ONCE: &str = "served at once";

/// Requests that wait inside the server, whether for a pool, a lock or the CPU.
pub(super) struct ServerQueue {
    /// Of the first byte, in nanoseconds.
    pub(super) median: f64,
    pub(super) fastest: f64,
    pub(super) in_flight: f64,
    pub(super) rate: f64,
    /// The number served at once, m = X·S (operational analysis, the utilization law), where S is
    /// the mean time of requests sent one at a time, or else the fastest response; `None` unless
    /// that was a request that did not wait.
    pub(super) at_once: Option<f64>,
    /// Requests sent one at a time.
    pub(super) unloaded: Option<Unloaded>,
    /// Requests sent at the same moment, when they took turns: one is served at a time, for a part
    /// of its time.
    pub(super) turns: Option<Together>,
    /// Whether requests complete at even intervals while nothing serves them.
    pub(super) is_even: bool,
    /// The 95th percentile of the first byte, where most requests do not wait: some connections are
    /// served again while others wait.
    pub(super) left_waiting: Option<f64>,
    /// Whether the machine of target and generator has no core to spare.
    pub(super) is_on_full_machine: bool,
    /// The mean number of the target's threads that waited for a core.
    pub(super) waited: f64,
}

impl ServerQueue {
    /// A limiter that delays requests instead of refusing them.
    pub(super) fn shaper(&self) -> Finding {
        let evidence = format!(
            "responses come at an even {}, with {} in flight, though a request alone takes {} (median {}): a limiter delays them",
            units::rate(self.rate),
            units::number(self.in_flight),
            units::duration(self.fastest),
            units::duration(self.median),
        );
        let advice = "look for a limiter that queues (limit_req), or a full buffer (log pipe)";
        let check = "another load, of twice as many users: the same rate";
        Finding::new("rate_limit", evidence, advice, check)
    }

    /// Whether rate × time is no exact number of places.
    pub(super) fn is_uncertain(&self) -> bool {
        self.is_on_full_machine || self.at_once.is_none()
    }

    pub(super) fn text(&self) -> String {
        if let (Some(together), Some(unloaded)) = (&self.turns, &self.unloaded) {
            return self.turns_text(together, unloaded);
        }
        let (rate, median) = (units::rate(self.rate), units::duration(self.median));
        let (without, service, product, range) = match &self.unloaded {
            Some(unloaded) => {
                let places = unloaded.places(self.rate);
                let (mean, low, high) = (unloaded.mean(), places.low, places.high);
                let range = match self.is_on_full_machine {
                    true if is_serial(self.at_once) => String::new(),
                    true => ", more with free cores".to_owned(),
                    false if low.round() == high.round() => String::new(),
                    false => format!(", {} to {}", hundredths(low), hundredths(high)),
                };
                let without =
                    format!("{} when sent one at a time after the load", units::duration(mean));
                // On a busy machine the number is not just the product.
                let service = places.number / self.rate * 1e9;
                (without, service, places.number, range)
            }
            None => {
                let fastest = format!("the fastest {}", units::duration(self.fastest));
                (fastest, self.fastest, self.rate * self.fastest / 1e9, String::new())
            }
        };
        let served = match self.at_once {
            Some(served) => {
                let how = match is_serial(self.at_once) {
                    true => "requests are served one after another".to_owned(),
                    false => format!("{} are {AT_ONCE}", self.number(served)),
                };
                let (product, service) = (hundredths(product), units::duration(service));
                format!("{how} ({rate} × {service} = {product}{range})")
            }
            None => format!("requests wait inside the server, at {rate}"),
        };
        let first = match self.left_waiting {
            Some(long) => format!(
                "some connections are served again while others wait: the first byte takes {median} \
                 (median) to {} (p95)",
                units::duration(long)
            ),
            None => format!("the median first byte takes {median}"),
        };
        format!("{served}: {first}, {without}, with {} in flight", units::number(self.in_flight))
    }

    /// The evidence that requests take turns for a part of their time.
    fn turns_text(&self, together: &Together, unloaded: &Unloaded) -> String {
        format!(
            "requests are served one after another, each for {} of the {} that one takes alone ({}): \
             {} sent at once take up to {}; the median first byte takes {}, with {} in flight",
            units::duration(1e9 / self.rate),
            units::duration(unloaded.mean()),
            units::rate(self.rate),
            together.size,
            units::duration(together.median()),
            units::duration(self.median),
            units::number(self.in_flight),
        )
    }

    /// The evidence of a number of places that were counted: `what` holds them.
    pub(super) fn held(&self, places: u64, what: &str) -> String {
        format!(
            "{places} {} {AT_ONCE}: {what} all the time, with {} in flight; the median first byte \
             takes {}, the fastest {}",
            if places == 1 { "is" } else { "are" },
            units::number(self.in_flight),
            units::duration(self.median),
            units::duration(self.fastest),
        )
    }

    /// `about 4`, or `about 4 to 6`: where times vary so much that their mean is uncertain, or where a
    /// request takes longer among others for lack of a core, at most by the time for which the
    /// target's threads waited for one.
    fn number(&self, served: f64) -> String {
        let places = self.unloaded.as_ref().map(|one| one.places(self.rate));
        let (low, high) = match places {
            _ if self.is_on_full_machine => {
                (places.map_or(served, |one| one.low.min(served)), served * FULL_MACHINE)
            }
            Some(places) if places.high > WIDE * places.low => (places.low, places.high),
            _ => (served, served + self.waited.min((FULL_MACHINE - 1.0) * served)),
        };
        // Some places may be idle at times, and no more are busy than there are.
        let high = if served > OVER * served.floor() { high.max(served.ceil()) } else { high };
        match high.round() > low.round() {
            true => format!("about {} to {}", low.round().max(1.0), high.round()),
            false => format!("about {}", served.round()),
        }
    }
}

/// Rate × time exceeds the number of places by no more than this factor, by which the time of a
/// request sent alone may be too long.
const OVER: f64 = 1.1;

/// Ratio of the ends of an interval from which on no number in it is the likely one.
const WIDE: f64 = 1.6;

fn hundredths(number: f64) -> String {
    units::number((number * 100.0).round() / 100.0)
}

/// Whether so many are one at a time.
pub(super) fn is_serial(served: Option<f64>) -> bool {
    served.is_some_and(|served| (SERIAL.0..SERIAL.1).contains(&served))
}
