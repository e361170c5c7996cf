//! A Go server that computes: its limit is the CPU, and nothing about pools is said.

use std::process::Command;

use crate::support::*;

#[test]
fn a_handler_that_computes_is_limited_by_the_cpu() {
    let peer = Peer::start(&mut Command::new(go_program("go")));
    let port = format!("port:{}", peer.url.rsplit_once(':').unwrap().1);
    // Tens of milliseconds for each, so that the generator needs next to nothing.
    let url = format!("{}/?work=100000", peer.url);
    let json = run(&[&[url.as_str(), "--watch", &port], &*words("-c 16 -d 5s")].concat());
    let gauges = json.at("target.gauges").as_array().unwrap();
    let cpu = gauges.iter().find(|gauge| gauge["name"] == "cpu").unwrap();
    let mean = cpu["mean"].as_f64().unwrap();
    // What other programs take of the machine is not the server's, and then they are named.
    assert!(mean > 0.02, "{cpu}");
    let expected: &[&str] =
        if mean >= 0.6 { &["target_cpu"] } else { &["target_cpu", "run_delay"] };
    assert!(expected.contains(&json.findings()[0]), "{}", json.at("verdict"));
    assert!(!json.findings().contains(&"pool_queueing"), "{}", json.at("verdict"));
    // Without the work there is no such limit.
    let json = run(&[&[peer.url.as_str(), "--watch", &port], &*words("-r 50 -d 3s")].concat());
    assert!(!json.findings().contains(&"target_cpu"), "{}", json.at("verdict"));
}
