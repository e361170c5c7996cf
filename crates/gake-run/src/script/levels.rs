//! The levels of a script's run: its users.

use std::sync::Arc;

use gake_core::clock::Nanos;
use gake_core::metric::{Definition, SeriesKey, SeriesTable, SeriesValue};
use gake_k6::metrics::Builtin;
use gake_k6::of_no_user::series_of_no_user;
use gake_k6::test::Test;
use gake_k6::user::book::Book;

/// The gauges `vus` and `vus_max`, seen once a second.
#[derive(Debug)]
pub(super) struct Levels {
    users: SeriesKey,
    users_max: SeriesKey,
    seen: SeriesTable,
}

impl Levels {
    /// Nothing was seen yet.
    pub(super) fn new(test: &Test, book: &Book, metrics: &[Arc<Definition>]) -> Self {
        let series = |builtin: Builtin| {
            let metric = &metrics[usize::from(builtin.number())];
            series_of_no_user(test, book, None, Arc::clone(metric))
        };
        let (users, users_max) = (series(Builtin::Vus), series(Builtin::VusMax));
        Self { users, users_max, seen: SeriesTable::default() }
    }

    /// Sees them at an instant of the run; `is_over` tells that no scenario goes on.
    pub(super) fn see(&mut self, test: &Test, at: Nanos, is_over: bool) {
        let now = test.active(at) as f64;
        let all = test.levels.ready() as f64;
        // The last moment of a run comes when nobody is left.
        if now == 0.0 && is_over {
            return;
        }
        for (series, level) in [(&self.users, now), (&self.users_max, all)] {
            let fresh = SeriesValue::Gauge { last: level, at, min: level, max: level, samples: 1 };
            self.seen.add_value(series.clone(), &fresh);
            test.write_samples(&series.metric, None, level, 1);
        }
    }

    /// What was seen.
    pub(super) fn seen(&self) -> &SeriesTable {
        &self.seen
    }
}
