//! `--reconcile` of a script: which of its requests write rows.

use gake_core::metric::{SeriesTable, SeriesValue, Tags};
use gake_judge::{Evaluation, WriteCounts};

use super::Reconciliation;

/// The tag that tells requests that write a row from those that do not.
pub const WRITES_BY: &str = "method";

/// Its value of those that write one.
const WRITES: &str = "POST";

/// The requests of a run that may each have written a row: its POST requests, those of `setup` and
/// `teardown` too. One that was cut short counts as failed, as it does for k6.
fn writes(series: &SeriesTable) -> WriteCounts {
    let of = |more: &[(&str, &str)]| {
        let tags = [&[(WRITES_BY, WRITES)], more].concat();
        let tags = Tags::new(tags);
        let found = series.select("http_reqs", &tags).map(|(_, value): (_, &SeriesValue)| value);
        found.map(SeriesValue::samples).sum::<u64>()
    };
    let ok = of(&[("expected_response", "true")]);
    WriteCounts { ok, failed: of(&[]) - ok, unfinished: 0 }
}

/// What the rows say of a run. It names the requests, for others may have been ok too.
pub fn judge(rows: &Reconciliation, series: &SeriesTable) -> Evaluation {
    let found = rows.judge(writes(series));
    Evaluation { text: format!("{WRITES} requests: {}", found.text), ..found }
}

/// The same as a line below the summary.
pub fn line(found: &Evaluation) -> String {
    let mark = if found.met { '✓' } else { '✗' };
    let problem = found.problem.as_ref().map(|why| format!("; {why}")).unwrap_or_default();
    format!("\n  {mark} {}{problem}\n", found.text)
}

#[cfg(test)]
mod tests {
    use gake_core::metric::Registry;
    use gake_k6::metrics::{builtin, registry};

    use super::*;

    #[test]
    fn posts_write_and_those_that_failed_may_have() {
        let metrics: Registry = registry(&builtin());
        let requests = metrics.get("http_reqs").unwrap();
        let mut series = SeriesTable::default();
        for (method, expected, samples) in
            [("POST", "true", 5), ("POST", "false", 2), ("GET", "true", 9), ("PUT", "false", 1)]
        {
            let tags = Tags::new([(WRITES_BY, method), ("expected_response", expected)]);
            let id = series.intern(requests, &tags);
            (0..samples).for_each(|_| series.add(id, 1.0, 0));
        }
        assert_eq!(writes(&series), WriteCounts { ok: 5, failed: 2, unfinished: 0 });
    }
}
