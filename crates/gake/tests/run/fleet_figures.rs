//! The figures of a fleet's run against the requests that its agents log.

use std::path::PathBuf;

use super::fleet::*;
use crate::support::*;

/// Requests a second, for [`SECONDS`].
const RATE: usize = 300;
const SECONDS: usize = 5;

/// The number of a request, when it was fired and how long the response took, in ns.
type Row = [u64; 3];

fn rows(log: &PathBuf) -> Vec<Row> {
    let text = std::fs::read_to_string(log).unwrap();
    let header: Vec<_> = text.lines().next().unwrap().split(',').collect();
    let columns = ["number", "fired_unix_ns", "response_ns"]
        .map(|name| header.iter().position(|column| *column == name).unwrap());
    let row = |line: &str| -> Row {
        let cells: Vec<_> = line.split(',').collect();
        columns.map(|column| cells[column].parse().unwrap())
    };
    text.lines().skip(1).map(row).collect()
}

#[test]
fn rate_and_percentiles_of_a_fleet_are_those_of_all_its_requests() {
    let (nats, lab) = (Nats::start(), lab());
    let folder = tempfile::tempdir().unwrap();
    let names = ["a", "b", "c", "d"];
    let logs = names.map(|name| folder.path().join(format!("{name}.csv")));
    let four = names.iter().zip(&logs).flat_map(|(name, log)| {
        agents(&nats, &[name], &[HERE, &["--log", log.to_str().unwrap()]].concat())
    });
    let four: Vec<_> = four.collect();
    let url = url(&lab, "/slow?min=1ms&max=20ms");
    let flags = format!("-r {RATE} -d {SECONDS}s -c 400 --agents 4");
    let json = start(&mut run_of(&nats, &url, &flags)).wait().done().json();
    let count = RATE * SECONDS;
    assert_eq!(json.count("requests.ok"), count as u64, "{}", json.0);
    end(four);
    let logs = logs.each_ref().map(rows);
    assert_eq!(logs.each_ref().map(Vec::len), [count / 4; 4]);
    let column = |column: usize| {
        let mut values: Vec<_> = logs.iter().flatten().map(|row| row[column]).collect();
        values.sort_unstable();
        values
    };
    assert_eq!(column(0), (0..count as u64).collect::<Vec<_>>(), "each arrival once");
    // Half the run lies between two requests of a pair; what is fired late now and then does not move
    // the median.
    let fired = column(1);
    let mut halves: Vec<_> = fired.iter().zip(&fired[count / 2..]).map(|(a, b)| b - a).collect();
    halves.sort_unstable();
    let rate = (count / 2) as f64 / (halves[halves.len() / 2] as f64 / 1e9);
    assert!((rate / RATE as f64 - 1.0).abs() < 0.001, "{rate} a second");
    // The percentiles cover all requests, to the precision of the histogram: a thousandth.
    let took = column(2);
    for (name, share) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0)] {
        let exact = took[(share * count as f64).round() as usize - 1] as f64;
        let reported = json.number(&format!("latency_ns.response.{name}"));
        assert!((reported - exact).abs() <= exact * 0.001 + 1.0, "{name}: {reported} for {exact}");
    }
}
