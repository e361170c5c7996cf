//! `nighthawk_client` against the lab.

use std::time::Duration;

use serde_json::Value;

use crate::common::*;

fn as_nighthawk(url: &str, line: &str) -> Ran {
    ran(&[vec!["as", "nighthawk_client", url], words(line)].concat())
}

/// The value and the rate of a counter in the result for people.
fn counter(ran: &Ran, name: &str) -> u64 {
    let line = ran.stdout.lines().find(|line| line.split(' ').next() == Some(name));
    let value = line.unwrap_or_else(|| panic!("no {name} in {ran:?}")).split_whitespace().nth(1);
    value.unwrap().parse().unwrap()
}

fn global(value: &Value) -> &Value {
    let results = value["results"].as_array().unwrap();
    results.iter().find(|result| result["name"] == "global").unwrap()
}

#[test]
fn the_published_command_runs() {
    let lab = lab();
    let line = "--duration 10 --open-loop --no-default-failure-predicates --protocol http1 \
                --request-body-size 5000 --concurrency 2 --rps 500 --connections 200";
    let ran = as_nighthawk(&url(&lab, "/echo"), line);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let stats = lab.shutdown();
    // 2 workers, 500/s, 10 s; what finds 200 busy connections overflows.
    let answered = counter(&ran, "benchmark.http_2xx");
    assert!((9_000..=10_000).contains(&answered), "{ran:?}");
    assert_eq!(counter(&ran, "upstream_rq_total"), stats.requests, "{ran:?}");
    for line in [
        "Nighthawk - A layer 7 protocol benchmarking tool.\n\n",
        "\nRequest start to response end (",
        " samples)\n  min: 0s 00",
        "\n  Percentile  Count       Value          \n  0.5 ",
        "\nInitiation to completion (",
        "\nCounter                                 Value       Per second\n",
    ] {
        assert!(ran.stdout.contains(line), "{line:?} {ran:?}");
    }
    assert!(ran.stderr.contains("Global targets: 400 connections and 1000 calls per second."));
}

#[test]
fn json_has_the_workers_and_the_whole() {
    let lab = lab();
    let line = "--duration 1 --rps 100 --concurrency 2 --request-body-size 10 --request-method \
                POST --request-header x-a:b --label l --output-format json -v error";
    let ran = as_nighthawk(&url(&lab, "/fast"), line);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    let value: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(value["options"]["requests_per_second"], 100);
    assert_eq!(value["options"]["duration"], "1s");
    assert_eq!(value["options"]["request_options"]["request_body_size"], 10);
    let names: Vec<_> =
        value["results"].as_array().unwrap().iter().map(|result| &result["name"]).collect();
    assert_eq!(names, ["worker_0", "worker_1", "global"]);
    let counters = global(&value)["counters"].as_array().unwrap();
    let answered = counters.iter().find(|counter| counter["name"] == "benchmark.http_2xx");
    assert_eq!(answered.unwrap()["value"], "200");
    let statistics = global(&value)["statistics"].as_array().unwrap();
    let whole = statistics.iter().find(|s| s["id"] == "sequencer.callback").unwrap();
    assert_eq!(whole["count"], "200");
    assert_eq!(whole["percentiles"].as_array().unwrap().last().unwrap()["count"], "200");
}

#[test]
fn other_formats_hold_the_same_counts() {
    let lab = lab();
    let url = url(&lab, "/fast");
    let ran = as_nighthawk(&url, "--duration 1 --rps 50 --output-format csv -v error");
    assert!(ran.stdout.contains("\nbenchmark.http_2xx,50,50.00\n"), "{ran:?}");
    let ran = as_nighthawk(&url, "--duration 1 --rps 50 --output-format fortio -v error");
    let value: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(value["DurationHistogram"]["Count"], "50");
    assert_eq!((&value["RequestedQPS"], &value["NumThreads"]), (&50.into(), &100.into()));
    assert_eq!(value["RetCodes"]["200"], "50");
}

#[test]
fn failure_predicates_decide_the_exit_code() {
    let lab = lab();
    let (fast, failing) = (url(&lab, "/fast"), url(&lab, "/status/404"));
    for (url, line, code) in [
        (&fast, "", 0),
        (&failing, "", 1),
        (&failing, "--no-default-failure-predicates", 0),
        (&failing, "--failure-predicate benchmark.http_4xx:1000", 0),
        (&fast, "--failure-predicate benchmark.http_2xx:3", 1),
    ] {
        let ran = as_nighthawk(url, &format!("--duration 1 --rps 20 {line}"));
        assert_eq!(ran.code, Some(code), "{line}: {ran:?}");
        assert!(ran.stdout.contains("upstream_rq_total"), "{ran:?}");
        assert_eq!(ran.stderr.contains("the failure predicate"), code == 1, "{ran:?}");
    }
    let ran = as_nighthawk("http://127.0.0.1:1/", "--duration 1 --rps 20");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("benchmark.pool_connection_failure:0"), "{ran:?}");
}

#[test]
fn a_termination_predicate_ends_the_run() {
    let lab = lab();
    let line = "--no-duration --rps 50 --termination-predicate benchmark.http_2xx:60";
    let ran = as_nighthawk(&url(&lab, "/fast"), line);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    // It is looked at each second; the second one brings the 61st.
    assert!(counter(&ran, "benchmark.http_2xx") > 60, "{ran:?}");
    assert!(ran.took < Duration::from_secs(30), "{ran:?}");
}

#[test]
fn the_open_loop_drops_what_the_closed_one_holds_back() {
    let lab = lab();
    let slow = url(&lab, "/delay/300ms");
    let line = "--duration 1 --rps 40 --connections 2";
    let open = as_nighthawk(&slow, &format!("{line} --open-loop"));
    let queued = as_nighthawk(&slow, &format!("{line} --open-loop --max-pending-requests 5"));
    let closed = as_nighthawk(&slow, line);
    // Two connections start at most 4 responses each in a second; all 40 were due.
    for ran in [&open, &queued] {
        assert_eq!(
            counter(ran, "benchmark.http_2xx") + counter(ran, "benchmark.pool_overflow"),
            40
        );
    }
    assert!(counter(&open, "benchmark.pool_overflow") >= 32, "{open:?}");
    assert!(!open.stdout.contains("Blocking."), "{open:?}");
    let queueing = "Queueing and connection setup latency";
    assert!(queued.stdout.contains(queueing) && !queued.stdout.contains("Blocking."), "{queued:?}");
    assert!(closed.stdout.contains("Blocking. Results are skewed"), "{closed:?}");
    assert!(!closed.stdout.contains("pool_overflow"), "{closed:?}");
}

#[test]
fn bursts_and_jitter_send_as_many() {
    let lab = lab();
    let line = "--duration 1 --rps 60 --concurrency 2 --burst-size 6 --jitter-uniform .01s";
    let ran = as_nighthawk(&url(&lab, "/fast"), line);
    assert_eq!(counter(&ran, "benchmark.http_2xx"), 120, "{ran:?}");
    // 12 at once need more than one connection.
    let ran = as_nighthawk(&url(&lab, "/delay/50ms"), "--duration 1 --rps 60 --burst-size 12");
    assert_eq!(counter(&ran, "benchmark.http_2xx"), 60, "{ran:?}");
    assert!(counter(&ran, "upstream_cx_total") >= 12, "{ran:?}");
}

#[test]
fn http2_has_one_connection_for_many_requests() {
    let lab = lab();
    let slow = url(&lab, "/delay/100ms");
    let line = "--duration 1 --rps 60 --protocol http2";
    let ran = as_nighthawk(&slow, line);
    assert_eq!(counter(&ran, "benchmark.http_2xx"), 60, "{ran:?}");
    assert_eq!(counter(&ran, "upstream_cx_http2_total"), 1, "{ran:?}");
    // Six are in flight at a time.
    let ran = as_nighthawk(&slow, &format!("{line} --max-concurrent-streams 2"));
    assert_eq!(counter(&ran, "benchmark.http_2xx"), 60, "{ran:?}");
    assert!(counter(&ran, "upstream_cx_http2_total") >= 3, "{ran:?}");
    let ran = as_nighthawk(&slow, &format!("{line} --output-format json -v error"));
    let value: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(value["options"]["protocol"]["value"], "HTTP2");
    assert_eq!(value["options"]["max_concurrent_streams"], 2_147_483_647_u32);
}

#[test]
fn what_cannot_be_honoured_is_refused_by_name() {
    for (line, said) in [
        ("-p http4", "--protocol cannot be honoured"),
        ("--output-format yaml", "--output-format \"yaml\" cannot be honoured"),
        ("--prefetch-connections", "--prefetch-connections cannot be honoured"),
        ("--nope", "--nope"),
    ] {
        as_nighthawk("http://127.0.0.1:1/", line).refused(1, said);
    }
}
