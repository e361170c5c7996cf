//! When the connections of a run were open.

use gake_core::clock::{Nanos, SECOND};
use gake_core::plan::Plan;
use gake_core::record::{Run, SeriesPoint};

/// When all connections were open that users keep or that are held idle, since the start: the end of
/// the first tenth of a second, in a run of more than a minute of the first second, at whose end they
/// were. `None` when they never were, or the load keeps no certain number.
pub(super) fn all_open(run: &Run) -> Option<Nanos> {
    let each = |plan: &Plan| plan.kept_connections().saturating_add(plan.idle_connections) as u64;
    let kept: u64 = run.plan.scenarios().iter().map(each).sum();
    let (points, unit) = match run.series.tenths() {
        [] => (run.series.points(), SECOND),
        tenths => (tenths, SECOND / 10),
    };
    let has_all = |point: &&SeriesPoint| kept > 0 && point.open >= kept;
    let point = points.iter().find(has_all)?;
    Some(point.second.saturating_add(point.seconds).saturating_mul(unit))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use gake_core::Load;
    use gake_core::record::Series;
    use gake_core::schedule::Process;

    use super::*;
    use crate::testing;

    #[test]
    fn users_and_idle_connections_are_open_together() {
        let run = |users, idle_connections, opened: &[u64]| {
            let load = Load::Closed { users, think: Duration::from_secs(60) };
            let plan =
                Plan { idle_connections, connections: users, ..Plan::new("http://h/", load) };
            let mut run = Run { series: Series::default(), ..testing::run(plan, &[]) };
            for (second, open) in (0..).zip(opened) {
                run.series.push(SeriesPoint {
                    second,
                    seconds: 1,
                    open: *open,
                    ..SeriesPoint::default()
                });
            }
            run
        };
        assert_eq!(all_open(&run(300, 200, &[100, 400, 500, 499])), Some(3 * SECOND));
        assert_eq!(all_open(&run(300, 201, &[100, 400, 500, 499])), None);
        let mut tenths = run(2, 0, &[2]);
        for (second, open) in (0..).zip([0, 1, 2]) {
            tenths.series.push_tenth(SeriesPoint {
                second,
                seconds: 1,
                open,
                ..SeriesPoint::default()
            });
        }
        assert_eq!(all_open(&tenths), Some(300_000_000));
        let rate = Load::Open { stages: Vec::new(), process: Process::Uniform };
        let open = Run { plan: Plan::new("http://h/", rate), ..run(2, 0, &[2]) };
        assert_eq!(all_open(&open), None, "an open loop has as many as it needs");
    }
}
