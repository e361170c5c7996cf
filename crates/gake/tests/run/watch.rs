//! The target watched: by `gake watch`, and beside a run.

use serde_json::Value;

use crate::support::*;

/// The lab is in this process, so it is this process that is watched.
fn sources(lab: &gake_lab::Lab) -> (String, String) {
    let address = lab.addr();
    (format!("port:{}", address.port()), format!("prometheus:http://{address}/metrics"))
}

fn gauge<'a>(json: &'a Value, source: &str, name: &str) -> &'a Value {
    let gauges = json["target"]["gauges"].as_array().unwrap();
    let found = gauges.iter().find(|gauge| gauge["source"] == source && gauge["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} of {source}: {gauges:?}"))
}

#[test]
fn the_target_is_in_the_result_the_run_file_and_the_objectives() {
    let lab = lab();
    let (port, metrics) = sources(&lab);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("run.hlog");
    let file = file.to_str().unwrap();
    let url = url(&lab, "/fast");
    let mut args = vec!["run", &url, "-r", "100", "-d", "6s", "-c", "7", "-o", "json"];
    args.extend(["--watch", &port, "--watch", &metrics, "--out", file]);
    args.extend(["--slo", "rss<100GB", "--slo", "established<1"]);
    let run = ran(&args);
    // 3 when the machine was too busy for the figures to be believed.
    assert!(matches!(run.code, Some(3 | 99)), "{run:?}");
    let json = run.json().0;
    let rss = gauge(&json, &port, "rss");
    assert!(rss["max"].as_f64().unwrap() > 1e6, "{rss}");
    assert!(gauge(&json, &port, "cpu")["samples"].as_array().unwrap().len() >= 2);
    let connected = gauge(&json, &metrics, "established")["max"].as_f64().unwrap();
    // The load's connections, and the one over which the metrics are asked for.
    assert!((1.0..=8.0).contains(&connected), "{connected}");
    let met: Vec<_> = json["objectives"].as_array().unwrap().iter().map(|o| &o["met"]).collect();
    assert_eq!(met, [true, false]);

    let again = ran(&["report", file, "-o", "json", "--slo", "rss<100GB"]).json().0;
    assert_eq!(again["target"], json["target"]);
    let text = ran(&["report", file]);
    assert!(text.stdout.contains(&format!("target        {port}")), "{}", text.stdout);
}

#[test]
fn samples_are_lines() {
    let lab = lab();
    let (port, _) = sources(&lab);
    let ran = ran(&["watch", &port, "--every", "250ms", "-d", "2s", "-o", "json"]).done();
    let lines: Vec<Value> =
        ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.len() >= 2, "{ran:?}");
    assert!(lines.iter().all(|line| line["source"] == port.as_str()));
    assert!(lines[1]["levels"]["cpu"].is_number() && lines[0]["levels"]["rss"].is_number());
}

#[test]
fn an_unwatchable_source_is_refused_before_the_first_request() {
    let lab = lab();
    let url = url(&lab, "/fast");
    for (args, code, said) in [
        (vec!["--watch", "pid:2147483647"], 1, "no process"),
        (vec!["--watch", "8080"], 2, "is not a valid source"),
        (vec!["--slo", "cpu<80%"], 2, "--watch"),
    ] {
        let ran = ran(&[&["run", &url, "-n", "5"], &*args].concat());
        assert_eq!(ran.code, Some(code), "{ran:?}");
        assert!(ran.stderr.contains(said) && ran.stdout.is_empty(), "{ran:?}");
    }
    assert_eq!(lab.stats().responses_total(), 0);
}
