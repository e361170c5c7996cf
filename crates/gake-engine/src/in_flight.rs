//! The number of arrivals in flight, integrated over the measured time.

use std::cell::Cell;

use gake_core::clock::Nanos;

/// The integral of the number in flight over a window. Independent of latencies, so that Little's
/// law can be checked.
#[derive(Debug)]
pub(crate) struct InFlight {
    level: Cell<u64>,
    entered: Cell<u64>,
    since: Cell<Nanos>,
    area: Cell<u128>,
    from: Nanos,
    to: Cell<Nanos>,
}

impl InFlight {
    /// An open window from `from` on.
    pub(crate) fn new(from: Nanos) -> Self {
        Self {
            level: Cell::new(0),
            entered: Cell::new(0),
            since: Cell::new(0),
            area: Cell::new(0),
            from,
            to: Cell::new(Nanos::MAX),
        }
    }

    #[inline]
    pub(crate) fn enter(&self, now: Nanos) {
        self.advance(now);
        self.level.set(self.level.get() + 1);
        self.entered.set(self.entered.get() + u64::from(now >= self.from));
    }

    #[inline]
    pub(crate) fn leave(&self, now: Nanos) {
        self.advance(now);
        self.level.set(self.level.get() - 1);
    }

    /// One leaves and another enters at `now`.
    #[inline]
    pub(crate) fn replace(&self, now: Nanos) {
        self.advance(now);
        self.entered.set(self.entered.get() + u64::from(now >= self.from));
    }

    /// Undoes an `enter` at `at` that was not an arrival.
    pub(crate) fn retract(&self, at: Nanos) {
        self.leave(at);
        self.entered.set(self.entered.get() - u64::from(at >= self.from));
    }

    pub(crate) fn level(&self) -> u64 {
        self.level.get()
    }

    /// Closes the window at `now`.
    pub(crate) fn close(&self, now: Nanos) {
        self.advance(now);
        self.to.set(self.to.get().min(now));
    }

    /// Takes the integral up to `now`.
    pub(crate) fn take(&self, now: Nanos) -> u128 {
        self.advance(now);
        self.area.replace(0)
    }

    /// Takes the number of entries within the window.
    pub(crate) fn take_entered(&self) -> u64 {
        self.entered.replace(0)
    }

    #[inline]
    fn advance(&self, now: Nanos) {
        let from = self.since.get().max(self.from);
        let to = now.min(self.to.get());
        if to > from {
            let area = u128::from(self.level.get()) * u128::from(to - from);
            self.area.set(self.area.get() + area);
        }
        // Instants of different lanes may be recorded slightly out of order.
        self.since.set(self.since.get().max(now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_area_is_level_times_time_within_the_window() {
        let flight = InFlight::new(10);
        flight.enter(0);
        flight.enter(20);
        flight.leave(30);
        assert_eq!(flight.take(40), 10 + 2 * 10 + 10);
        flight.close(50);
        flight.leave(90);
        assert_eq!(flight.take(100), 10);
        assert_eq!(flight.level(), 0);
        assert_eq!([flight.take_entered(), flight.take_entered()], [1, 0]);
    }
}
