//! Whole outputs of wrk and wrk2.

use super::*;
use crate::testing::bless;

/// A thousand latencies of 1.00 to 10.99 ms.
fn latency() -> Histogram {
    let mut latency = Histogram::new();
    (0..1_000).for_each(|n| latency.record(1_000_000 + n * 10_000));
    latency
}

fn rates() -> Histogram {
    let mut rates = Histogram::new();
    [95, 100, 105].into_iter().for_each(|rate| rates.record(rate));
    rates
}

fn figures<'a>(latency: &'a Histogram, rates: &'a Histogram) -> Figures<'a> {
    Figures {
        latency,
        rates,
        distribution: Distribution::None,
        requests: 1_000,
        bytes: 123_456_789,
        runtime: Duration::from_millis(10_020),
        errors: SocketErrors::default(),
        bad_statuses: 0,
    }
}

#[test]
fn output_of_wrk() {
    let (latency, rates) = (latency(), rates());
    let figures = Figures {
        distribution: Distribution::Percentiles,
        errors: SocketErrors { connect: 1, read: 2, write: 3, timeout: 4 },
        bad_statuses: 46,
        ..figures(&latency, &rates)
    };
    let url = "http://127.0.0.1:8080/index.html";
    let text = opening(url, Duration::from_secs(10), 2, 100) + &closing(&figures);
    bless("wrk.txt", &text);
}

#[test]
fn wrk2_adds_the_spectrum() {
    let (latency, rates) = (latency(), rates());
    let mut uncorrected = Histogram::new();
    uncorrected.record_n(900_000, 3);
    let figures = Figures {
        distribution: Distribution::Spectrum(Some(&uncorrected)),
        ..figures(&latency, &rates)
    };
    bless("wrk2.txt", &closing(&figures));
}

#[test]
fn output_without_responses() {
    let nothing = Histogram::new();
    let figures = Figures { requests: 0, bytes: 0, ..figures(&nothing, &nothing) };
    // As wrk 4.1 prints it.
    assert_eq!(
        closing(&figures),
        "  Thread Stats   Avg      Stdev     Max   +/- Stdev\n    \
         Latency     0.00us    0.00us   0.00us    -nan%\n    \
         Req/Sec     0.00      0.00     0.00      -nan%\n  \
         0 requests in 10.02s, 0.00B read\n\
         Requests/sec:      0.00\nTransfer/sec:       0.00B\n"
    );
}
