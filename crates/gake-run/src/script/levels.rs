//! The levels of a script's run: its users.

use std::sync::Arc;

use gake_core::clock::Nanos;
use gake_core::metric::{Definition, SeriesValue};
use gake_core::record::Tally;
use gake_k6::metrics::Builtin;
use gake_k6::test::Test;

use super::key;

/// The gauges `vus` and `vus_max`, seen once a second.
#[derive(Default)]
pub(super) struct Levels {
    users: Option<SeriesValue>,
    users_max: Option<SeriesValue>,
}

impl Levels {
    /// Sees them at an instant of the run.
    pub(super) fn see(&mut self, test: &Test, metrics: &[Arc<Definition>], at: Nanos) {
        let now = test.active(at) as f64;
        let all = test.levels.ready() as f64;
        // The last moment of a run comes when nobody is left.
        if now == 0.0 {
            return;
        }
        for (seen, metric, level) in
            [(&mut self.users, Builtin::Vus, now), (&mut self.users_max, Builtin::VusMax, all)]
        {
            let fresh = SeriesValue::Gauge { last: level, at, min: level, max: level, samples: 1 };
            match seen {
                Some(seen) => seen.merge(&fresh),
                None => *seen = Some(fresh),
            }
            test.write_samples(&metrics[usize::from(metric.number())], None, level, 1);
        }
    }

    /// Adds what was seen to the record.
    pub(super) fn add_to(self, tally: &mut Tally, metrics: &[Arc<Definition>]) {
        for (seen, metric) in [(self.users, Builtin::Vus), (self.users_max, Builtin::VusMax)] {
            if let Some(value) = seen {
                tally.series.add_value(key(metrics, metric), &value);
            }
        }
    }
}
