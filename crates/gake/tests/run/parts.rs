//! Responses whose parts arrive over time.

use crate::support::*;

/// What a series holds.
#[derive(Debug)]
pub(crate) struct Series {
    pub(crate) samples: u64,
    pub(crate) sum: f64,
    pub(crate) mean: f64,
}

/// The series `stream_first`, `stream_gap` and `stream_events` of a run.
pub(crate) fn parts(json: &Json) -> [Series; 3] {
    let all = json.at("metrics.series").as_array().unwrap();
    ["stream_first", "stream_gap", "stream_events"].map(|name| {
        let found = all.iter().find(|one| one["metric"] == name).unwrap();
        let number = |key: &str| found[key].as_f64().unwrap_or(f64::NAN);
        let samples = found["samples"].as_u64().unwrap();
        Series { samples, sum: number("sum"), mean: number("mean") }
    })
}

#[test]
fn events_are_timed_as_they_come() {
    let lab = lab();
    let url = url(&lab, "/events?n=5&every=10ms");
    for http in ["1.1", "2"] {
        let json = run(&["-n", "8", "-c", "4", "--http", http, "--stream", &url]);
        assert_eq!(json.count("requests.ok"), 8, "{json:?}");
        let [first, gap, events] = parts(&json);
        assert_eq!((first.samples, gap.samples, events.sum), (8, 32, 40.0), "{json:?}");
        // The last event leaves 40 ms after the first, and a request is due before that.
        let whole = first.mean * 8.0 + gap.mean * 32.0;
        assert!(whole >= 8.0 * 40e6 * 0.999, "{json:?}");
    }
    let json = run(&["-n", "3", "-c", "1", &url]);
    assert!(json.0.get("metrics").is_none(), "{json:?}");
}
