//! What gake does beside k6's outputs: the live page, the history, comparisons by metric and tag.

use std::path::Path;

use crate::common::{Ran, gake, start};

const SCRIPT: &str = "
import http from 'k6/http';
import { group } from 'k6';
import { Counter, Trend } from 'k6/metrics';
const items = new Counter('items');
const took = new Trend('took', true);
export const options = { vus: 1, iterations: 20, thresholds: { 'took{group:::cart}': ['max>=0'] } };
export default () => {
  http.get(__ENV.URL);
  group('cart', () => { items.add(2); took.add(5); });
};
";

fn ran(args: &[&str], folder: &Path) -> Ran {
    let mut command = gake(args);
    for name in ["GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"] {
        command.env_remove(name);
    }
    start(command.current_dir(folder)).wait()
}

#[test]
fn script_runs_are_shown_kept_and_compared() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("s.js"), SCRIPT).unwrap();
    let lab = gake_lab::Lab::start(gake_lab::LabConfig::default()).unwrap();
    let url = format!("URL=http://{}/fast", lab.addr());
    let run = |more: &[&str]| ran(&[&["run", "s.js", "-q", "-e", &url], more].concat(), folder);
    let first = run(&["--save", "--web=127.0.0.1:0", "--out", "a.hlog"]);
    assert_eq!(first.code, Some(0), "{first:?}");
    assert!(first.stderr.contains("live page: http://127.0.0.1:"), "{first:?}");
    assert!(first.stderr.contains("saved as run 1 "), "{first:?}");
    let k6 = ["as", "k6", "run", "s.js", "-q", "--address", "", "-e", &url];
    let own = ["--baseline", "1", "--gake-out", "b.hlog"];
    let second = ran(&[&k6[..], &own].concat(), folder);
    assert!(second.stdout.contains("iterations...") && second.stdout.contains("goodput"));
    assert!(second.stderr.contains("saved as run 2 "), "{second:?}");
    // Runs of less than a second decide nothing, and their metrics are compared all the same.
    let figures = "items,took{group:::cart}:p95,http_req_duration:p99";
    let compared = ran(&["compare", "a.hlog", "b.hlog", "--figures", figures], folder);
    assert_eq!(compared.code, Some(3), "{compared:?}");
    for name in ["items", "took{group:::cart}", "http_req_duration"] {
        assert!(compared.stdout.contains(name), "{name}: {compared:?}");
    }
    let usual = ran(&["compare", "a.hlog", "b.hlog"], folder);
    assert!(usual.stdout.contains("took") && usual.stdout.contains("items"), "{usual:?}");
    for (flag, exit, part) in [
        ("--baseline=9", 1, "no run \"9\""),
        ("--web=a:b:c", 2, "it is not an address"),
        ("--annotate=statsd=a:1", 2, "--sink"),
    ] {
        let refused = run(&[flag]);
        assert!(refused.code == Some(exit) && refused.stderr.contains(part), "{flag}: {refused:?}");
    }
    lab.shutdown();
}
