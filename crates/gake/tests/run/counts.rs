//! The server counts exactly the requests that were sent, in every mode.

use gake_lab::LabConfig;

use crate::support::*;

/// Runs against a lab and compares the counts; every request gets a response.
fn agree(flags: &str, route: &str) -> (Json, gake_lab::Stats) {
    let lab = lab();
    let url = url(&lab, route);
    let json = run(&[words(flags), vec![url.as_str()]].concat());
    let stats = lab.shutdown();
    assert_eq!(json.written(), stats.requests, "{flags}: {}", json.0);
    let answered = json.count("requests.ok") + json.count("requests.failed");
    assert_eq!(answered + json.count("warmup.ok"), stats.responses_total(), "{flags}");
    assert_eq!(json.count("requests.unfinished"), 0, "{flags}");
    assert_eq!(json.0["faults"].as_object().unwrap().len(), 0, "{flags}: {}", json.0);
    (json, stats)
}

#[test]
fn open_loops_send_what_they_are_asked_to() {
    for (flags, sent) in [
        ("-r 400 -d 1s", 400),
        ("-r 400 -d 500ms -t 2", 200),
        ("-r 500 -n 300", 300),
        ("-r 6000/m -n 20", 20),
        ("--stages 100@500ms,100..300@500ms,0@200ms", 50 + 100),
        ("-r 300 -d 500ms -c 1", 150),
        ("-r 300 -d 500ms --no-keepalive", 150),
        ("-r 300 -d 300ms --spin", 90),
    ] {
        let (json, stats) = agree(flags, "/fast");
        assert_eq!(json.count("requests.ok"), sent, "{flags}");
        assert_eq!(stats.requests, sent, "{flags}");
    }
}

#[test]
fn poisson_arrivals_are_as_many_as_their_seed_says() {
    let sent = |flags| agree(flags, "/fast").0.count("requests.ok");
    let first = sent("-r 400 -d 1s --arrivals poisson --seed 3");
    assert_eq!(first, sent("-r 400 -d 1s --arrivals poisson --seed 3 -t 2"));
    // The mean is 400 and the deviation 20.
    assert!((280..520).contains(&first), "{first}");
}

#[test]
fn closed_loops_send_what_they_are_asked_to() {
    for (flags, sent) in [
        ("-n 200 -c 20", 200),
        ("-n 2001 -c 7 -t 2", 2001),
        ("-n 3 -c 50", 3),
        ("-n 300 -c 10 --no-keepalive", 300),
        ("-n 40 -c 10 --think 20ms", 40),
        ("-n 100 -c 10 --connect-rate 50", 100),
    ] {
        let (json, stats) = agree(flags, "/fast");
        assert_eq!(json.count("requests.ok"), sent, "{flags}");
        assert_eq!(stats.requests, sent, "{flags}");
    }
    let (json, _) = agree("-c 10 -d 500ms", "/fast");
    assert!(json.count("requests.ok") > 10);
}

#[test]
fn connections_are_kept_or_not_as_asked() {
    let (json, stats) = agree("-n 200 -c 20", "/fast");
    assert_eq!((json.count("connections.opened"), stats.connections.opened), (20, 20));
    assert!(stats.connections.peak <= 20);
    let (json, stats) = agree("-n 200 -c 20 --no-keepalive", "/fast");
    assert_eq!((json.count("connections.opened"), stats.connections.opened), (200, 200));
    let (json, stats) = agree("-r 300 -d 500ms -c 5", "/delay/5ms");
    assert!(stats.connections.peak <= 5 && json.count("connections.peak") <= 5);
}

#[test]
fn the_warm_up_is_sent_and_not_counted() {
    let (json, stats) = agree("-r 300 -d 500ms --warmup 300ms", "/fast");
    assert_eq!((json.count("warmup.ok"), json.count("requests.ok")), (90, 150));
    assert_eq!(json.count("latency_ns.response.count"), 150);
    assert_eq!(stats.requests, 240);
    let (json, _) = agree("-n 200 -c 4 --warmup 200ms", "/delay/2ms");
    assert_eq!(json.count("requests.ok"), 200);
    assert!(json.count("warmup.ok") > 0);
}

#[test]
fn failures_are_counted_by_status() {
    let (json, stats) = agree("-n 500 -c 10", "/error?rate=0.3&code=503");
    assert_eq!(json.count("requests.failed"), json.count("status.503"));
    assert_eq!(Some(&json.count("status.503")), stats.responses.get(&503));
    assert_eq!(Some(&json.count("status.200")), stats.responses.get(&200));
    let (json, _) = agree("-n 20 -c 2 --expect 2xx,404", "/status/404");
    assert_eq!((json.count("requests.ok"), json.count("status.404")), (20, 20));
}

#[test]
fn bodies_of_any_size_are_read_to_their_end() {
    let (json, stats) = agree("-n 8 -c 2", "/bytes/20000000");
    assert!(json.count("bytes.in") > 160_000_000);
    assert_eq!(json.count("bytes.in"), stats.bytes_out);
    agree("-n 20 -c 4", "/stream/10?every=2ms");
}

#[test]
fn what_overflows_is_dropped_and_counted_when_asked() {
    let (json, stats) = agree("-r 500 -d 600ms -c 2 --overflow drop", "/delay/50ms");
    assert_eq!(json.count("requests.due"), 300);
    assert!(json.count("requests.dropped") >= 300 - 2 * 12, "{}", json.0);
    assert_eq!(stats.requests, json.count("requests.sent"));
}

#[test]
fn five_hundred_users_of_a_slow_server_are_all_answered() {
    let (flags, requests) =
        if full() { ("-n 200000 -c 500", 200_000) } else { ("-n 5000 -c 500", 5_000) };
    let lab = lab_with(LabConfig::default());
    let url = url(&lab, "/slow");
    let mut command = gake(&[&["run", "-o", "json", &url], words(flags).as_slice()].concat());
    let ran = start(&mut command).wait_for(PATIENCE * if full() { 6 } else { 1 });
    let json = ran.done().json();
    let stats = lab.shutdown();
    assert_eq!((json.count("requests.ok"), stats.requests), (requests, requests));
    assert_eq!(json.count("connections.opened"), 500);
    // Delays are even between 100 and 500 ms.
    assert!(json.count("latency_ns.service.min") >= 100_000_000);
    assert!(json.number("latency_ns.service.mean") >= 290e6, "{}", json.0);
}
