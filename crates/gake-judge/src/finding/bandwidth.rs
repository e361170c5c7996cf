//! Bodies that take most of the time: a full link, or a server that limits its rate.

use gake_core::record::LatencyMetric;
use gake_text::units;

use super::Finding;
use super::facts::RunFacts;
use crate::stats::per_second;

/// Responses needed to judge their times.
const DOWNLOADS_MIN: u64 = 20;
/// Share of the service time spent on reading the body.
const DOWNLOAD_SHARE: f64 = 0.6;
/// A first byte waits in the network when a round trip takes this share of that time ...
const ROUND_TRIP_SHARE: f64 = 0.5;
/// ... and this many times as long as when connections were opened. The kernel acknowledges without
/// the server, so no queue inside the server lengthens a round trip.
const ROUND_TRIP_GROWTH: f64 = 3.0;
/// A kernel delays an acknowledgement by 40 ms, which a round trip on top of it exceeds little.
const ACK_DELAY: f64 = 50e6;
/// Samples of the round trip needed.
const ROUND_TRIPS_MIN: u64 = 3;
/// Smaller responses do not fill a link.
const DOWNLOAD_BYTES_MIN: f64 = 65_536.0;

/// Whether the first byte waits behind other bytes in the network, not inside the server.
pub(super) fn waits_in_network(facts: &RunFacts<'_>) -> bool {
    let (trips, first) =
        (facts.latency(LatencyMetric::Rtt), facts.latency(LatencyMetric::FirstByte));
    let trip = trips.quantile(0.5) as f64;
    // A server that takes longer than that acknowledges the request alone, late: such round trips
    // are no queue in the network, which large responses make.
    let size = facts.counts().bytes_in as f64 / facts.responses().max(1) as f64;
    let is_delayed_ack = trip <= ACK_DELAY && size < DOWNLOAD_BYTES_MIN;
    trips.count() >= ROUND_TRIPS_MIN
        && !is_delayed_ack
        && trip >= ROUND_TRIP_SHARE * first.quantile(0.5) as f64
        && trip >= ROUND_TRIP_GROWTH * facts.latency(LatencyMetric::Connect).min() as f64
}

/// Most of the time goes to reading bodies, or to waiting for the link.
pub(super) fn bandwidth(facts: &RunFacts<'_>) -> Option<Finding> {
    let download = facts.latency(LatencyMetric::Download);
    let service = facts.latency(LatencyMetric::Service);
    if download.count() < DOWNLOADS_MIN || facts.generator_is_busy() {
        return None;
    }
    let part = download.mean() / service.mean();
    let size = facts.counts().bytes_in as f64 / facts.responses() as f64;
    let queued = waits_in_network(facts);
    if (part < DOWNLOAD_SHARE && !queued) || size < DOWNLOAD_BYTES_MIN {
        return None;
    }
    let rate = per_second(facts.counts().bytes_in as f64, facts.run.measured);
    let each = match queued {
        true => String::new(),
        false => format!(", {}/s each", units::bytes(size * 1e9 / download.mean())),
    };
    let mut evidence = format!(
        "reading the body takes {} of the service time{each}; {}/s ({:.0} Mbit/s) were received",
        units::percent(part),
        units::bytes(rate),
        rate * 8.0 / 1e6
    );
    if queued {
        evidence.push_str(&format!(
            "; a round trip takes {} under the load, and took {} when connections were opened",
            units::duration(facts.latency(LatencyMetric::Rtt).quantile(0.5) as f64),
            units::duration(facts.latency(LatencyMetric::Connect).min() as f64)
        ));
    }
    // The loopback interface has no rate to exceed.
    let (advice, check) = match facts.is_loopback() && !queued {
        true => (
            "look for a limit on its rate (limit_rate, a shaper), or slow production",
            "curl -o /dev/null -w '%{speed_download}\\n' URL, without load",
        ),
        false => (
            "compare with the link's capacity; compress, or send less",
            "sar -n DEV 1 on both machines; ethtool for the link's speed",
        ),
    };
    Some(Finding::new("bandwidth", evidence, advice, check))
}
