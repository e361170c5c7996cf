//! h2spec's checks of HTTP/2 clients.

use std::net::TcpListener;
use std::process::Command;

use crate::support::*;

/// The cases of h2spec 2.2.1, each with a port of its own: parts by sections, whose cases wait for
/// most of their time, and how many each has.
const PARTS: [(&str, u16); 3] = [
    ("client/1 client/4 client/5", 22),
    ("client/6.1 client/6.2 client/6.3 client/6.4 client/6.10", 17),
    ("client/6.5 client/6.7 client/6.8 client/6.9", 18),
];

/// The first of `count` ports in a row that are free, or were a moment ago.
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
    // One request, and the connection stays for a moment: some cases ask for a word more. All of it
    // is over before h2spec loses its patience, after 3 s.
    let gake = format!(
        "{} run --http2 -r 2 -d 400ms -c 1 --timeout 1s --drain 1s --quiet",
        env!("CARGO_BIN_EXE_gake")
    );
    let mut port = free_row(PARTS.iter().map(|(_, cases)| cases).sum());
    let started = PARTS.map(|(sections, cases)| {
        let first = port.to_string();
        port += cases;
        let mut part = Command::new(&program);
        part.args([&first, &gake]).args(words(sections));
        (start(&mut part), part, cases)
    });
    for (started, mut part, cases) in started {
        let mut ran = started.wait();
        // On a busy machine a case takes more than h2spec's 3 s.
        for _ in 0..3 {
            if ran.stdout.contains("Error: Timeout") {
                ran = start(&mut part).wait();
            }
        }
        let summary = format!("{cases} tests, {cases} passed, 0 skipped, 0 failed");
        assert!(ran.stdout.contains(&summary), "{}{}", ran.stdout, ran.stderr);
    }
}
