//! The levels of a script's run: its users.

use std::sync::Arc;

use gake_core::clock::Nanos;
use gake_core::metric::{Definition, SeriesKey, SeriesTable, SeriesValue};
use gake_k6::metrics::Builtin;
use gake_k6::of_no_user::series_of_no_user;
use gake_k6::test::Test;
use gake_k6::user::book::Book;

/// The gauges `vus` and `vus_max`, recorded once a second.
#[derive(Debug)]
pub(super) struct Levels {
    test: Arc<Test>,
    users: SeriesKey,
    users_max: SeriesKey,
}

impl Levels {
    /// Those of a script.
    pub(super) fn new(test: &Arc<Test>, book: &Book, metrics: &[Arc<Definition>]) -> Self {
        let series = |builtin: Builtin| {
            let metric = &metrics[usize::from(builtin.number())];
            series_of_no_user(test, book, None, Arc::clone(metric))
        };
        let (users, users_max) = (series(Builtin::Vus), series(Builtin::VusMax));
        Self { test: Arc::clone(test), users, users_max }
    }

    /// Adds the active users and all of them, at an instant of the run, to `seen`.
    pub(super) fn see(&self, (active, all): (f64, f64), at: Nanos, seen: &mut SeriesTable) {
        for (series, level) in [(&self.users, active), (&self.users_max, all)] {
            let fresh = SeriesValue::Gauge { last: level, at, min: level, max: level, samples: 1 };
            seen.add_value(series.clone(), &fresh);
            self.test.write_samples(&series.metric, None, level, 1);
        }
    }
}
