//! `gake compare`: the same service does not differ from itself, a slower one is found.
//!
//! The means of long answers are compared: a busy machine adds milliseconds to hundreds.

use crate::support::*;

/// Figures that a test looks at, so that only they decide.
const MEAN: [&str; 4] = ["--figures", "service.mean", "--tolerance", "10%"];

fn verdict(json: &str) -> serde_json::Value {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"))
}

#[test]
fn run_files_are_compared() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let lab = lab();
    let sides = [("a", "/delay/200ms"), ("b", "/delay/200ms"), ("slow", "/delay/240ms")];
    // Side by side, so that the machine is the same for all.
    let started = sides.map(|(name, route)| {
        let line =
            format!("run {} -c 20 --think 1ms -d 7s -q --out {}", url(&lab, route), path(name));
        start(&mut gake(&words(&line)))
    });
    started.into_iter().for_each(|run| drop(run.wait().done()));
    let compare = |a: &str, b: &str, more: &[&str]| {
        ran(&[&["compare", &path(a), &path(b)], &MEAN[..], more].concat())
    };
    let same = compare("a", "b", &["-o", "json"]);
    assert_eq!(same.code, Some(0), "{same:?}");
    assert_eq!(verdict(&same.stdout)["outcome"], "no_difference");
    let markdown = format!("markdown={}", path("compare.md"));
    let slower = compare("a", "slow", &["-o", "json", "-o", &markdown]);
    assert_eq!(slower.code, Some(99), "{slower:?}");
    let json = verdict(&slower.stdout);
    assert_eq!((&json["schema"], &json["outcome"]), (&"gake.compare/1".into(), &"worse".into()));
    let change = json["figures"][0]["change"]["estimate"].as_f64().unwrap();
    assert!((0.1..0.3).contains(&change), "{json}");
    assert!(json["warnings"].to_string().contains("the target differs"), "{json}");
    let text = std::fs::read_to_string(path("compare.md")).unwrap();
    assert!(text.starts_with("### ❌ B is worse: service.mean +"), "{text}");
    let faster = compare("slow", "a", &[]);
    assert_eq!(faster.code, Some(0), "{faster:?}");
    assert!(faster.stdout.starts_with("✔ B is better: service.mean −"), "{faster:?}");
    let itself = compare("a", "a", &[]);
    assert!(itself.code == Some(0) && itself.stdout.starts_with("✔ no difference"), "{itself:?}");
}

#[test]
fn two_sides_take_turns() {
    let lab = lab();
    let (a, b) = (url(&lab, "/delay/150ms"), url(&lab, "/delay/180ms"));
    let sides = [format!("run {a} -c 10 --think 1ms"), format!("{b} -c 10 --think '1ms'")];
    let turns = ["--interleave", "--slices", "5", "--slice", "600ms", "-o", "json", "-q"];
    let ran = ran(&[&["compare", &sides[0], &sides[1]], &MEAN[..], &turns].concat());
    assert!(ran.code == Some(99) && ran.stderr.is_empty(), "{ran:?}");
    let json = verdict(&ran.stdout);
    assert_eq!((&json["outcome"], &json["pairs"]), (&"worse".into(), &5.into()));
    let change = json["figures"][0]["change"]["estimate"].as_f64().unwrap();
    assert!((0.1..0.3).contains(&change), "{json}");
    assert_eq!(json["warnings"], serde_json::json!([]));
    let connections = lab.shutdown().connections.opened;
    assert!(connections >= 100, "each of ten turns has its own connections: {connections}");
}

#[test]
fn what_cannot_be_compared_is_told_in_a_sentence() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("notes"), "hello\n").unwrap();
    let lab = lab();
    let (url, short) = (url(&lab, "/fast"), path("short"));
    run(&[&url, "-n", "50", "-c", "5", "--out", &short]);
    ran(&["compare", &short, &path("notes")]).refused(1, "notes: is not a run file");
    ran(&["compare", &path("none"), &short]).refused(1, "none: cannot be read");
    ran(&["compare", &url, &url]).refused(1, "--interleave");
    ran(&["compare", &short]).refused(2, "<B>");
    ran(&["compare", &short, &short, "--figures", "p99"]).refused(2, "response.p99");
    ran(&["compare", &short, &short, "-o", "junit"]).refused(2, "markdown");
    ran(&["compare", &short, &short, "--tolerance", "0"]).refused(2, "5%");
    let bad = format!("{url} -n 5");
    ran(&["compare", "--interleave", &url, &bad]).refused(2, "-n has no meaning");
    ran(&["compare", "--interleave", "'x", &url]).refused(2, "not closed");
    let ran = ran(&["compare", &short, &short]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.stdout.starts_with("? inconclusive: "), "{ran:?}");
    assert!(ran.stdout.contains("whole seconds were measured"), "{ran:?}");
}
