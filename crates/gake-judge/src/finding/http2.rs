//! Limits of HTTP/2: streams per connection, and the flow-control window.

use gake_core::record::LatencyMetric;
use gake_text::units;

use super::Finding;
use super::facts::RunFacts;

/// Share of the requests that waited for a stream.
const WAITS_SHARE_MIN: f64 = 0.01;
/// The window is the limit when bodies waited for it for this share of all service time.
const WINDOW_SHARE_MIN: f64 = 0.25;

pub(super) fn streams(facts: &RunFacts<'_>) -> Option<Finding> {
    let counts = facts.counts();
    let part = facts.of_sent(counts.stream_waits);
    if counts.stream_waits == 0 || part < WAITS_SHARE_MIN {
        return None;
    }
    let allowed = counts.streams_allowed as f64 / counts.stream_waits as f64;
    let mut evidence = format!(
        "{} ({}) waited for a stream: {} had as many as the server allows, {} each",
        units::plural(counts.stream_waits, "request"),
        units::percent(part.min(1.0)),
        units::plural(facts.run.peak_connections, "open connection"),
        units::number(allowed)
    );
    let waits = facts.latency(LatencyMetric::Blocked);
    if !waits.is_empty() {
        let p99 = units::duration(waits.quantile(0.99) as f64);
        evidence.push_str(&format!("; they waited up to {p99} (p99)"));
    }
    let advice = "raise the server's limit on streams, or use more connections (-c)";
    let check = "nghttp -nv URL shows SETTINGS_MAX_CONCURRENT_STREAMS";
    Some(Finding::new("stream_limit", evidence, advice, check))
}

pub(super) fn window(facts: &RunFacts<'_>) -> Option<Finding> {
    let counts = facts.counts();
    let service = facts.latency(LatencyMetric::Service);
    let all = service.mean() * service.count() as f64;
    let part = counts.window_wait_time as f64 / all;
    if counts.window_waits == 0 || !part.is_finite() || part < WINDOW_SHARE_MIN {
        return None;
    }
    let evidence = format!(
        "the bodies of {} waited for the server's flow-control window, {} each on average: {} of \
         the service time",
        units::plural(counts.window_waits, "request"),
        units::duration(counts.window_wait_time as f64 / counts.window_waits as f64),
        units::percent(part.min(1.0))
    );
    let advice = "give the server larger windows, or let it read bodies faster";
    let check = "nghttp -nv -d FILE URL shows when its WINDOW_UPDATE frames come";
    Some(Finding::new("flow_control_window", evidence, advice, check))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use gake_core::clock::SECOND;

    use super::super::find;
    use crate::testing::RunBuilder;

    /// The findings of 10,000 responses of 5 ms on two connections, with these HTTP/2 counts.
    fn findings(stream_waits: u64, window: (u64, u64)) -> Vec<(&'static str, String)> {
        let mut run = RunBuilder::of(10_000, SECOND / 200).run();
        run.peak_connections = 2;
        let counts = &mut run.tally.counts;
        counts.streams = 10_000;
        (counts.stream_waits, counts.streams_allowed) = (stream_waits, stream_waits * 3);
        (counts.window_waits, counts.window_wait_time) = window;
        find(&run, &[]).into_iter().map(|finding| (finding.id, finding.evidence)).collect()
    }

    #[test]
    fn requests_that_wait_for_a_stream_are_a_limit() {
        let findings = |waits| findings(waits, (0, 0));
        assert!(findings(99).is_empty());
        let limit = &findings(100)[0];
        assert_eq!(limit.0, "stream_limit");
        expect!["100 requests (1.0 %) waited for a stream: 2 open connections had as many as the server allows, 3 each"].assert_eq(&limit.1);
    }

    #[test]
    fn bodies_that_wait_for_the_window_are_a_limit_when_that_takes_the_time() {
        // All responses together took 50 s.
        assert!(findings(0, (5_000, 12 * SECOND)).is_empty());
        let limit = &findings(0, (5_000, 13 * SECOND))[0];
        assert_eq!(limit.0, "flow_control_window");
        expect!["the bodies of 5,000 requests waited for the server's flow-control window, 2.60 ms each on average: 26 % of the service time"].assert_eq(&limit.1);
    }
}
