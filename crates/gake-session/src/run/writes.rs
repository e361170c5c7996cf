//! `--reconcile` of a script: its requests that write rows.

use gake_core::metric::{SeriesTable, SeriesValue, Tags};
use gake_judge::{Evaluation, WriteCounts};

use super::Reconciliation;

/// The tag that distinguishes requests that write a row.
pub const WRITES_BY: &str = "method";

/// The value of the tag for writes.
const WRITES: &str = "POST";

/// The requests of a run that may have written a row: its POST requests, also in `setup` and
/// `teardown`. An interrupted one counts as failed, as in k6.
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

/// Compares the rows with the POST requests of a run, and names them, since other requests may have
/// succeeded too.
pub fn judge(rows: &Reconciliation, series: &SeriesTable) -> Evaluation {
    let found = rows.judge(writes(series));
    Evaluation { text: format!("{WRITES} requests: {}", found.text), ..found }
}

/// The evaluation as a line below the summary.
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
    fn posts_count_as_writes_and_failed_ones_as_possible_writes() {
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
