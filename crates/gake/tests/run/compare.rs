//! `gake compare`: the same service does not differ from itself, a slower one is found.
//!
//! The means of long responses are compared: a busy machine adds milliseconds to hundreds.

use crate::support::*;

/// Figures that a test looks at, so that only they decide.
const MEAN: [&str; 4] = ["--figures", "service.mean", "--tolerance", "10%"];

/// The exit code on a machine whose cores were taken away: nothing is proved.
const INCONCLUSIVE: Option<i32> = Some(3);

/// Measures, up to a few times until there is a conclusion.
fn again_while_inconclusive(mut measure: impl FnMut() -> bool) {
    for _ in 0..4 {
        if !measure() {
            return;
        }
    }
}

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
    let measure = || {
        let started = sides.map(|(name, route)| {
            let url = url(&lab, route);
            let line = format!("run {url} -c 20 --think 1ms -d 7s -q --out {}", path(name));
            start(&mut gake(&words(&line)))
        });
        started.into_iter().for_each(|run| drop(run.wait().done()));
    };
    let compare = |a: &str, b: &str, more: &[&str]| {
        ran(&[&["compare", &path(a), &path(b)], &MEAN[..], more].concat())
    };
    again_while_inconclusive(|| {
        measure();
        [compare("a", "b", &[]).code, compare("a", "slow", &[]).code].contains(&INCONCLUSIVE)
    });
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
fn labels_are_compared_by_themselves() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let lab = lab();
    let sides = [("a", "/delay/200ms"), ("slow", "/delay/240ms")];
    let begin = |(name, route): (&str, &str)| {
        let target = |label: &str, route: &str| {
            let url = url(&lab, route);
            serde_json::json!({ "method": "GET", "url": url, "label": label }).to_string()
        };
        let targets = path(&format!("{name}.json"));
        let lines = [target("home", "/delay/150ms"), target("login", route)].join("\n");
        std::fs::write(&targets, lines).unwrap();
        let line = format!(
            "run {targets} -c 20 --think 1ms -d 7s -q --out {}",
            path(&format!("{name}.hlog"))
        );
        start(&mut gake(&words(&line)))
    };
    let figures = ["--tolerance", "10%", "-o", "json", "--figures"];
    let compare = |names: &str| {
        let files = [path("a.hlog"), path("slow.hlog")];
        ran(&[&["compare", &files[0], &files[1]], &figures[..], &[names]].concat())
    };
    let figures_of_both = "home:service.mean,service{name:login}:avg";
    again_while_inconclusive(|| {
        sides.map(begin).into_iter().for_each(|run| drop(run.wait().done()));
        compare(figures_of_both).code == INCONCLUSIVE
    });
    let both = compare(figures_of_both);
    assert_eq!(both.code, Some(99), "{both:?}");
    let json = verdict(&both.stdout);
    // One in twenty comparisons of equal sides differs significantly, and by little.
    let beyond = |i: usize| json["figures"][i]["beyond_tolerance"].as_bool();
    assert_eq!((beyond(0), beyond(1)), (Some(false), Some(true)), "{json}");
    assert_eq!(json["figures"][1]["verdict"], "worse", "{json}");
    let change = json["figures"][1]["change"]["estimate"].as_f64().unwrap();
    assert!((0.1..0.3).contains(&change), "{json}");
    assert_eq!(compare("home:service.mean").code, Some(0));
    compare("cart:service.mean").refused(2, "\"cart:service.mean\" is not a figure");
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
fn incomparable_runs_are_an_error() {
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
