//! The example of the documentation runs.

#[path = "../../examples/two_loads.rs"]
#[allow(dead_code, clippy::print_stdout, reason = "its main is that of a program")]
mod two_loads;

use crate::support::lab;

#[test]
fn the_example_measures_a_server() {
    let lab = lab();
    let said = two_loads::measured(&format!("http://{}/fast", lab.addr())).unwrap();
    let lines: Vec<_> = said.lines().collect();
    assert!(lines[0].starts_with("users: 200 ok, 0 failed, p99 "), "{said}");
    assert!(lines[1].starts_with("rate: 100 ok, 0 failed, p99 "), "{said}");
    assert_eq!(lab.shutdown().requests, 300);
}
