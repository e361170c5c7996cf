//! Compares the report with ab's output for the same figures.

use super::*;
use crate::testing::bless;

fn times() -> AbTimes {
    let mut times = AbTimes::default();
    for (connect, waiting, total) in
        [(0_u64, 2_u64, 3_u64), (0, 4, 5), (1, 5, 6), (1, 5, 6), (1, 90, 100)]
    {
        times.connect.record(connect * 1_000_000);
        times.waiting.record(waiting * 1_000_000);
        times.total.record(total * 1_000_000);
        times.processing.record((total - connect) * 1_000_000);
    }
    times
}

fn ab(times: &AbTimes) -> Ab<'_> {
    Ab {
        server: "nginx/1.22.1",
        host: "127.0.0.1",
        port: 8080,
        tls: None,
        path: "/a?b<c",
        document: Some(20),
        concurrency: 2,
        taken: 60_000_000,
        complete: 6,
        failed: FailureCounts { length: 1, receive: 1, ..FailureCounts::default() },
        non_2xx: 1,
        keep_alive: Some(4),
        transferred: 1_024,
        sent: Some(512),
        body_bytes: 100,
        times,
    }
}

#[test]
fn the_text_is_abs() {
    let times = times();
    let text = text(&ab(&times), HiddenParts::default());
    bless("ab.txt", &text);
}

#[test]
fn parts_are_left_out_on_request() {
    let times = times();
    let text = text(&ab(&times), HiddenParts { percentages: true, confidence: true });
    assert!(text.ends_with(
        "              min   avg   max\nConnect:        0     1    1\nProcessing:     3    23   99\n\
         Waiting:        2    21   90\nTotal:          3    24  100\n"
    ));
}

#[test]
fn mean_and_median_that_part_are_a_doubt() {
    for (values, expected) in [
        ([1_000_000, 1_000_000, 1_000_000], ""),
        // Mean 0.6 ms is 1, median 0.4 ms is 0, and the deviation is 0.4 or 0.6.
        ([400_000, 400_000, 1_000_000], "ERROR"),
        ([100_000, 400_000, 1_300_000], "WARNING"),
    ] {
        let mut total = Histogram::new();
        values.iter().for_each(|value| total.record(*value));
        let mut out = String::new();
        table::times(&mut out, &AbTimes { total, ..AbTimes::default() }, false).unwrap();
        let line = out.lines().find(|line| line.contains("The median and mean"));
        let words = line.map_or("", |line| line.split(':').next().unwrap());
        assert_eq!(words, expected, "{out}");
    }
}

#[test]
fn the_table_is_html() {
    let times = times();
    let html = html(&ab(&times), Attributes { table: "border=1", ..Attributes::default() });
    bless("ab.html", &html);
}

#[test]
fn percentages_and_samples_are_files() {
    let csv = csv(&times().total);
    let lines: Vec<_> = csv.lines().collect();
    assert_eq!((lines.len(), lines[0], lines[1]), (102, "Percentage served,Time in ms", "0,3.000"));
    assert_eq!(lines[101], "100,100.000");
    let sample = |total| AbSample {
        started_unix_ns: 1_700_000_000_000_000_000,
        connect: 1_000_000,
        total,
        waiting: 2_000_000,
    };
    let mut out = Vec::new();
    gnuplot(&mut [sample(9_400_000), sample(5_000_000)], &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    let rows: Vec<Vec<_>> = text.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(rows[0], ["starttime", "seconds", "ctime", "dtime", "ttime", "wait"]);
    assert_eq!(rows[1][1..], ["1700000000", "1", "4", "5", "2"]);
    assert_eq!(rows[2][1..], ["1700000000", "1", "8", "9", "2"]);
    // Tue Nov 14 22:13:20 2023 in UTC; the zone is the machine's.
    assert_eq!((rows[1][0].len(), &rows[1][0][20..]), (24, "2023"));
}
