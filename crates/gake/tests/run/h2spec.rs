//! What h2spec checks of clients of HTTP/2.

use std::net::TcpListener;
use std::process::Command;

use crate::support::*;

/// Cases of h2spec 2.2.1, each with a port of its own.
const CASES: u16 = 57;

/// The first of so many ports in a row that are free, or were a moment ago.
fn free_row(count: u16) -> u16 {
    // Below the ports that systems give to clients.
    let mut rows = (0..200_u16).map(|n| 10_000 + (std::process::id() as u16 % 97 + n) % 200 * 100);
    let is_free = |first: &u16| {
        let mut row = *first..*first + count;
        row.all(|port| TcpListener::bind(("127.0.0.1", port)).is_ok())
    };
    rows.find(is_free).unwrap()
}

#[test]
fn every_case_of_h2spec_for_clients_passes() {
    let program = go_program("h2spec");
    // One request, and the connection stays for a moment: some cases ask for a word more.
    let gake = format!(
        "{} run --http2 -r 2 -d 400ms -c 1 --timeout 1s --drain 500ms --quiet",
        env!("CARGO_BIN_EXE_gake")
    );
    let judge = || {
        let first = free_row(CASES).to_string();
        start(Command::new(&program).args([&first, &gake])).wait()
    };
    // h2spec gives up when a case takes more than three seconds, as on a busy machine.
    let judged = (0..4).map(|_| judge()).find(|ran| !ran.stdout.contains("Error: Timeout"));
    let ran = judged.unwrap_or_else(judge);
    let summary = format!("{CASES} tests, {CASES} passed, 0 skipped, 0 failed");
    assert!(ran.stdout.contains(&summary), "{}{}", ran.stdout, ran.stderr);
}
