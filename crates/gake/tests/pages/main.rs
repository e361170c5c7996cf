//! The HTML pages, opened in a real browser from disk: a script (`ui/test/pages.mjs`) hovers,
//! zooms, toggles, sorts and compares what is shown with the data.
//!
//! With `GAKE_SHOTS=DIR` it leaves pictures of every page in both themes there.

#![allow(clippy::unwrap_used, clippy::expect_used)] // the helpers are tests too

#[path = "../common/mod.rs"]
mod support;

mod hour;
mod live;
mod search;
mod shadow;

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use gake_lab::Lab;
use gake_report::html::TrendRun;
use hour::HOSTILE;
use support::*;

/// Writes the page of `gake run` with flags, and checks that its run file gives the same page.
fn page(directory: &Path, name: &str, target: &str, flags: &str) -> PathBuf {
    let html = directory.join(format!("{name}.html"));
    let again = directory.join(format!("{name}.again.html"));
    let hlog = directory.join(format!("{name}.hlog"));
    let paths = [&html, &again, &hlog].map(|path| path.to_str().unwrap());
    let run = [&["run", target, "--html", paths[0], "--out", paths[2]], &*words(flags)].concat();
    start(&mut gake(&run)).wait();
    start(&mut gake(&["report", paths[2], "--html", paths[1]])).wait();
    let same = fs::read(&html).unwrap() == fs::read(&again).unwrap();
    assert!(same, "the page of the run is not the page of its run file: {name}");
    html
}

/// A script with a group, a check that passes, one that fails, and the threshold that it misses.
const SCRIPT: &str = r#"
import http from 'k6/http';
import { check, group } from 'k6';
export const options = { thresholds: { checks: ['rate>0.99'], http_req_failed: ['rate<0.01'] } };
export default function () {
  group('browse', () => {
    const response = http.get(__ENV.URL);
    check(response, { 'status is 200': (r) => r.status === 200, 'is empty': (r) => r.body === '' });
  });
}
"#;

/// Writes the page of `vegeta plot`.
fn plot(directory: &Path, url: &str) -> PathBuf {
    let [targets, results, html] =
        ["targets.txt", "results.gob", "plot.html"].map(|name| directory.join(name));
    fs::write(&targets, format!("GET {url}\n")).unwrap();
    let [targets, results] = [&targets, &results].map(|path| path.to_str().unwrap());
    let attack = "as vegeta attack -rate=100 -duration=2s -name=slow";
    let files = [format!("-targets={targets}"), format!("-output={results}")];
    let attack = [words(attack), files.iter().map(String::as_str).collect()].concat();
    start(&mut gake(&attack)).wait();
    let plotted = ran(&["as", "vegeta", "plot", "-title=</script>", results]);
    fs::write(&html, plotted.stdout).unwrap();
    html
}

/// Writes the page of `gake shadow report`, which says that there are differences.
fn compared(directory: &Path) -> PathBuf {
    let [diff, html] = ["diff.json", "shadow.html"].map(|name| directory.join(name));
    shadow::write(&diff);
    let paths = [&diff, &html].map(|path| path.to_str().unwrap());
    let ran = start(&mut gake(&["shadow", "report", paths[0], "--html", paths[1]])).wait();
    assert_eq!(ran.code, Some(99), "{ran:?}");
    assert!(ran.stdout.contains("Real differences (2)"), "{}", ran.stdout);
    html
}

/// Writes the page of a run over another one, and of their comparison: seven endpoints, stages,
/// objectives that are met and missed.
fn laid_over(directory: &Path, lab: &Lab) -> [PathBuf; 2] {
    let [targets, before, after, over, compared] =
        ["seven.http", "before.hlog", "after.hlog", "over.html", "compare.html"]
            .map(|name| directory.join(name));
    let routes = ["/fast", "/echo", "/delay/2ms", "/bytes/10", "/status/404", "/stream/2", "/"];
    let list: String = routes.map(|route| format!("GET {}\n\n", url(lab, route))).concat();
    fs::write(&targets, list).unwrap();
    let [targets, before, after] = [&targets, &before, &after].map(|path| path.to_str().unwrap());
    let slo = ["--slo", "p99<1us", "--slo", "errors<50%", "--slo", "goodput>1/s"];
    for (file, stages) in [(before, "40@4s,60@4s"), (after, "40@3s,40..80@3s")] {
        let run = ["run", targets, "--stages", stages, "--out", file];
        start(&mut gake(&[&run, &slo[..]].concat())).wait();
    }
    let html = over.to_str().unwrap();
    let ran = ran(&["report", after, "--html", html, "--over", before]);
    assert!(matches!(ran.code, Some(99 | 3)), "{ran:?}");
    let html = compared.to_str().unwrap();
    start(&mut gake(&["compare", before, after, "--html", html])).wait();
    [over, compared]
}

/// Writes the page of a trend: runs, one without a response, and a search.
fn trend(directory: &Path) -> PathBuf {
    let html = directory.join("trend.html");
    let run = |id: i64| TrendRun {
        id,
        started: format!("2026-11-{id:02} 10:00"),
        commit: format!("abc{id}"),
        verdict: HOSTILE.to_owned(),
        p50_ns: (id != 4).then_some(1_000_000),
        p99_ns: (id != 4).then_some(3_000_000 + 1_000_000 * (id.unsigned_abs() % 7)),
        goodput: Some(500.0 - id as f64),
        errors: Some(0.01),
        capacity: (id == 6).then_some([900.0, 850.0, 1_000.0]),
    };
    let page = gake_report::html::trend("http://shop.example/", (1..=12).map(run).collect());
    fs::write(&html, page).unwrap();
    html
}

/// The folder in which the driver of the browser is installed, as its lock file says.
fn driver() -> PathBuf {
    let room = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pages");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ui/test");
    fs::create_dir_all(&room).unwrap();
    let scripts = ["browser.mjs", "pages.mjs", "live.mjs", "watching.mjs"];
    for name in ["package.json", "package-lock.json"].into_iter().chain(scripts) {
        fs::copy(source.join(name), room.join(name)).unwrap();
    }
    let lock = fs::read(room.join("package-lock.json")).unwrap();
    once(&room.join("installed.json"), &lock, || {
        let flags = ["ci", "--no-audit", "--no-fund", "--prefer-offline", "--loglevel=error"];
        let npm = command("npm").args(flags).current_dir(&room).output().unwrap();
        assert!(npm.status.success(), "npm ci: {npm:?}");
    });
    room
}

#[test]
fn pages_work_in_a_browser() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let lab = lab();
    let (status, slow) = (url(&lab, "/status/503"), url(&lab, "/slow?min=1ms&max=30ms"));
    let script = directory.join("page.js");
    fs::write(&script, SCRIPT).unwrap();
    let (script, variable) =
        (script.to_str().unwrap(), format!("-u 3 -d 2s -e URL={}", url(&lab, "/fast")));
    // Runs wait most of their time: they are beside each other.
    let ([ten, second, failures, mixed, js], plot, [over, compare]) = thread::scope(|scope| {
        let plot = scope.spawn(|| plot(directory, &slow));
        let over = scope.spawn(|| laid_over(directory, &lab));
        let runs = [
            ("ten", "demo", "-r 300 -d 10s --warmup 1s -t 1 --drain 1s --slo p99<10s"),
            ("second", "demo", "-r 200 -d 1s"),
            // Port 1 has no listener.
            ("failures", "http://127.0.0.1:1/", "-r 50 -d 2s"),
            ("status", &status, "-n 500 -c 5"),
            ("script", script, &variable),
        ];
        let runs = runs
            .map(|(name, target, flags)| scope.spawn(move || page(directory, name, target, flags)));
        (runs.map(|run| run.join().unwrap()), plot.join().unwrap(), over.join().unwrap())
    });
    let hlog = directory.join("hour.hlog");
    hour::write(&hlog);
    let hour = directory.join("hour.html");
    let paths = [&hlog, &hour].map(|path| path.to_str().unwrap());
    // It has an hour's seconds, each with its histograms, for a program built without optimization.
    start(&mut gake(&["report", paths[0], "--html", paths[1]])).wait_for(Duration::from_secs(300));
    // A file that ends after its head is a run without figures.
    let text = fs::read_to_string(&hlog).unwrap();
    let head: String = text.split_inclusive('\n').take(4).collect();
    let empty_log = directory.join("empty.hlog");
    fs::write(&empty_log, head).unwrap();
    let empty = directory.join("empty.html");
    let paths = [&empty_log, &empty].map(|path| path.to_str().unwrap());
    start(&mut gake(&["report", paths[0], "--html", paths[1]])).wait();

    let shadow = compared(directory);
    let search = directory.join("find.html");
    fs::write(&search, gake_report::html::find(&search::report())).unwrap();
    let trend = trend(directory);
    let pages = [
        &ten, &second, &failures, &mixed, &js, &hour, &empty, &plot, &shadow, &search, &over,
        &compare, &trend,
    ];

    for path in pages {
        let size = fs::metadata(path).unwrap().len();
        assert!(size < 500_000, "{}: {size} bytes", path.display());
    }
    let room = driver();
    let output = command("node")
        .arg(room.join("pages.mjs"))
        .args(pages)
        .current_dir(&room)
        .output()
        .unwrap();
    let texts = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success(), "{}", texts.join("\n"));
}
