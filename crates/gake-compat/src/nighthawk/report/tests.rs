//! A result in each format.

use super::*;
use crate::testing::{MS, answered, bless, faulted};
use gake_core::record::Fault;

fn output() -> Output {
    let mut workers = vec![Worker::default(), Worker::default()];
    for n in 0..200u64 {
        let mut outcome = answered(n, n * MS, MS + n * 10_000, if n == 7 { 404 } else { 200 });
        outcome.blocked = if n % 50 == 49 { 300_000 } else { 0 };
        outcome.exchange.connect = (n < 4).then_some(90_000);
        workers[(n % 2) as usize].record(&outcome, false);
    }
    workers[0].record(&faulted(200, 0, MS, Fault::ConnectRefused), false);
    workers[1].record(&faulted(201, 0, MS, Fault::Reset), false);
    workers[0].overflow(3);
    let settings = NighthawkSettings {
        uri: "http://127.0.0.1:10000/".to_owned(),
        rps: 500,
        connections: 200,
        duration: Some(Duration::from_secs(10)),
        timeout: Duration::from_secs(30),
        concurrency: "2".to_owned(),
        method: "GET".to_owned(),
        body_size: 5_000,
        jitter: Duration::from_micros(10),
        failure: vec![("benchmark.http_4xx".to_owned(), 0)],
        labels: vec!["a".to_owned(), "b".to_owned()],
        ..NighthawkSettings::default()
    };
    let execution = Duration::from_micros(10_000_123);
    Output { settings, workers, execution, started_unix_ns: 1_234_567_891_567_000_000 }
}

#[test]
fn each_format_is_as_kept() {
    let output = output();
    bless("nighthawk.txt", &human(&output));
    bless("nighthawk.csv", &csv(&output));
    bless("nighthawk.json", &json(&output));
    bless("nighthawk.fortio.json", &fortio(&output));
}

#[test]
fn the_whole_is_the_workers() {
    let output = output();
    let value: serde_json::Value = serde_json::from_str(&json(&output)).unwrap();
    let results = value["results"].as_array().unwrap();
    let names: Vec<_> = results.iter().map(|result| result["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["worker_0", "worker_1", "global"]);
    let global = output.global();
    for (name, value) in [
        ("benchmark.http_2xx", 199),
        ("benchmark.http_4xx", 1),
        ("benchmark.pool_connection_failure", 1),
        ("benchmark.pool_overflow", 3),
        ("benchmark.stream_resets", 1),
        ("upstream_cx_total", 4),
        ("upstream_rq_total", 201),
    ] {
        assert_eq!(global.counter(name), Some(value), "{name}");
    }
    assert_eq!(global.counter("nothing"), None);
    assert_eq!(global.statistics[BLOCKING].count(), 4);
}

#[test]
fn times_are_as_protocol_buffers_write_them() {
    for (nanos, text) in [
        (0, "0s"),
        (1_000_000_000, "1s"),
        (2_000_000, "0.002s"),
        (816_497, "0.000816497s"),
        (1_234_567_000, "1.234567s"),
    ] {
        assert_eq!(json::duration(nanos), text);
    }
    assert_eq!(shown_time(1_234_567_891.0), "1s 234ms 567us");
}
