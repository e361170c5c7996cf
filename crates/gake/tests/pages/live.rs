//! The live page in a real browser (`ui/test/live.mjs`): it grows, keeps what the reader chose,
//! stops the run, becomes the report and is saved as the file that `--html` writes.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::driver;
use crate::support::*;

/// A run that ends with the test, also when the test fails.
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        // One that has ended needs nothing.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_live_page_becomes_the_report() {
    let folder = tempfile::tempdir().unwrap();
    let [html, saved] = ["report.html", "saved.html"].map(|name| folder.path().join(name));
    let room = driver();
    let flags = words("demo -r 300 -d 90s --slo p99<10s --web=127.0.0.1:0 --web-control --html");
    let run = [&["run"], &*flags, &[html.to_str().unwrap()]].concat();
    let run = gake(&run).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let mut child = Guard(run.expect("gake starts"));
    let mut lines = BufReader::new(child.0.stderr.take().unwrap()).lines();
    let url = lines.find_map(|line| line.unwrap().strip_prefix("live page: ").map(str::to_owned));
    // What it says further must find room.
    let rest = std::thread::spawn(move || lines.map_while(Result::ok).count());
    let output = command("node")
        .args([room.join("live.mjs").as_os_str(), url.unwrap().as_ref(), saved.as_os_str()])
        .current_dir(&room)
        .output()
        .unwrap();
    let texts = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success(), "{}", texts.join("\n"));
    assert_eq!(child.0.wait().unwrap().code(), Some(130));
    rest.join().unwrap();
    assert!(fs::read(&saved).unwrap() == fs::read(&html).unwrap(), "what was saved is the report");
}

/// `GAKE_VIEWERS=600` is the long form.
#[test]
fn a_page_that_follows_a_run_holds_a_bounded_memory() {
    let seconds =
        std::env::var("GAKE_VIEWERS").map_or(10, |seconds| seconds.parse::<u64>().unwrap());
    let room = driver();
    let duration = format!("{seconds}s");
    let run = ["run", "demo", "-r", "200", "-d", &duration, "--web=127.0.0.1:0", "-q"];
    let run = gake(&run).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let mut child = Guard(run.expect("gake starts"));
    let mut lines = BufReader::new(child.0.stderr.take().unwrap()).lines();
    let url = lines.find_map(|line| line.unwrap().strip_prefix("live page: ").map(str::to_owned));
    let rest = std::thread::spawn(move || lines.map_while(Result::ok).count());
    let limit = (seconds + 60).to_string();
    let output = command("node")
        .args([room.join("watching.mjs").as_os_str(), url.unwrap().as_ref(), limit.as_ref()])
        .current_dir(&room)
        .output()
        .unwrap();
    let texts = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success(), "{}", texts.join("\n"));
    assert!(matches!(child.0.wait().unwrap().code(), Some(0 | 3)));
    rest.join().unwrap();
    let looks: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    // From when all charts are there; the last look may see the report being made.
    let looks = &looks[..looks.len() - 1];
    assert!(looks.len() >= 6, "{looks:?}");
    let half = looks.len() / 2;
    // A point of each chart a second; a chart that is left behind at each event has hundreds of nodes.
    for (name, a_second, noise) in [("heap", 32 << 10, 768 << 10), ("nodes", 4, 100)] {
        // One look may come between a chart and the one that takes its place.
        let median = |looks: &[Value]| {
            let mut held: Vec<_> = looks.iter().map(|look| look[name].as_u64().unwrap()).collect();
            held.sort_unstable();
            held[held.len() / 2]
        };
        let (early, late) = (median(&looks[half / 2..half]), median(&looks[half..]));
        println!("{name}: {early} in the second quarter, {late} after it");
        let bound = early + noise + a_second * seconds / 2;
        assert!(late <= bound, "{name}: {early}, then {late}: {looks:?}");
    }
}
