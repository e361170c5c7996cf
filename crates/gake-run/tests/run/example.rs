//! The examples run.

#[path = "../../examples/search.rs"]
#[allow(dead_code, clippy::print_stdout, reason = "its main is that of a program")]
mod search;
#[path = "../../examples/two_loads.rs"]
#[allow(dead_code, clippy::print_stdout, reason = "its main is that of a program")]
mod two_loads;

use crate::support::lab;

#[test]
fn the_example_of_two_loads_measures_a_server() {
    let lab = lab();
    let text = two_loads::measured(&format!("http://{}/fast", lab.addr())).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert!(lines[0].starts_with("users: 200 ok, 0 failed, p99 "), "{text}");
    assert!(lines[1].starts_with("rate: 100 ok, 0 failed, p99 "), "{text}");
    assert_eq!(lab.shutdown().requests, 300);
}

#[test]
fn the_example_of_a_search_finds_what_the_server_can_do() {
    let found = search::found().unwrap();
    // A busy machine shows less, never more.
    let rate = found.split_once("/s").and_then(|(rate, _)| rate.parse::<f64>().ok());
    assert!(rate.is_none_or(|rate| (1.0..110.0).contains(&rate)), "{found}");
}
