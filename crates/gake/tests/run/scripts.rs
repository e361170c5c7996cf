//! A script is a target like any other: gake's flags, verdict, objectives and exit codes.

use std::fs;
use std::path::Path;

use gake_core::spec::Syntax;
use gake_core::spec::file::SpecFile;
use gake_lab::{Lab, LabConfig};
use tempfile::TempDir;

use crate::support::*;

/// Two groups with a request each, checks that pass and one that does not, a metric of its own.
const SHOP: &str = "
import http from 'k6/http';
import { check, group, sleep } from 'k6';
import { Counter } from 'k6/metrics';
const orders = new Counter('orders');
export const options = {
  vus: 3, iterations: 30,
  thresholds: { checks: ['rate>0.4'], 'http_req_duration{name:cart}': ['p(95)<60000'] },
};
export default function () {
  group('browse', () => {
    const r = http.get(`${__ENV.BASE}/fast`, { tags: { name: 'home' } });
    check(r, { 'is there': (r) => r.status === 200, 'is large': (r) => r.body.length > 1e6 });
  });
  group('buy', () => {
    http.post(`${__ENV.BASE}/echo`, '{}', { tags: { name: 'cart' } });
    orders.add(1);
  });
  sleep(0.01);
}
";

/// A script in a folder, and a lab.
struct Shop {
    folder: TempDir,
    lab: Lab,
    script: String,
    base: String,
}

impl Shop {
    fn of(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("shop.js");
        fs::write(&script, text).unwrap();
        let lab = Lab::start(LabConfig::default()).unwrap();
        let base = format!("BASE=http://{}", lab.addr());
        Self { folder, lab, script: script.to_str().unwrap().to_owned(), base }
    }

    fn run(&self, flags: &[&str]) -> Ran {
        ran(&[&["run", &self.script, "-e", &self.base], flags].concat())
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }
}

#[test]
fn thresholds_are_objectives_beside_those_of_flags() {
    let shop = Shop::of(SHOP);
    let met = shop.run(&["--slo", "errors<1%"]).done();
    let (first, rest) = met.stdout.split_once('\n').unwrap();
    assert!(first.contains("all 3 objectives met"), "{met:?}");
    for part in [
        "✔ errors<1%",
        "✔ checks:rate>0.4",
        "✔ http_req_duration{name:cart}:p95<60s",
        "30 started",
        "✔ browse: is there",
        "✘ browse: is large",
        "requests by name\n",
        "  home ",
        "  cart ",
        "groups\n",
        "  buy ",
        "orders ",
    ] {
        assert!(rest.contains(part), "{part}: {rest}");
    }
    assert!(!rest.contains("http_req_blocked"), "k6's own series are for programs: {rest}");
    let missed = shop.run(&["--slo", "checks>90%"]);
    assert_eq!(missed.code, Some(99), "{missed:?}");
    assert!(missed.stdout.starts_with("✘ 1 of 3 objectives missed"), "{missed:?}");
    assert_eq!(shop.lab.shutdown().requests, 120);
}

#[test]
fn flags_say_how_much_and_results_go_where_they_do_for_urls() {
    let shop = Shop::of(SHOP);
    let (html, out, log) = (shop.path("a.html"), shop.path("a.hlog"), shop.path("a.csv"));
    let files = ["--html", &html, "--out", &out, "--log", &log, "-o", "json"];
    let json = shop.run(&[&["-u", "2", "-n", "10"][..], &files].concat()).done().json();
    assert_eq!((json.count("iterations.started"), json.count("requests.sent")), (10, 20));
    assert_eq!(json.count("requests.ok"), 20);
    assert!(fs::read_to_string(&html).unwrap().contains("requests by name"));
    assert_eq!(fs::read_to_string(&log).unwrap().lines().count(), 21);
    let report = ran(&["report", &out]).done();
    assert!(report.stdout.contains("✘ browse: is large"), "{report:?}");
    assert!(report.stdout.contains("✔ checks:rate>0.4"), "{report:?}");
    let open = shop.run(&["-r", "50", "-d", "1s", "-o", "json"]).json();
    assert_eq!(open.count("iterations.due"), 50, "{:?}", open.0);
    shop.run(&["-X", "POST"]).refused(2, "--method: a script defines its own requests and");
    shop.lab.shutdown();
}

#[test]
fn a_warm_up_of_a_script_is_left_out_of_its_metrics_too() {
    let shop = Shop::of(SHOP);
    let json = shop.run(&["-r", "20", "-d", "1s", "--warmup", "1s", "-o", "json"]).json();
    assert_eq!(json.count("iterations.due"), 20, "{:?}", json.0);
    assert_eq!((json.count("requests.sent"), json.count("warmup.sent")), (40, 40));
    let series = json.at("metrics.series").as_array().unwrap().clone();
    let samples = |name: &str| {
        let of_name = series.iter().filter(|one| one["metric"] == name);
        of_name.filter_map(|one| one["samples"].as_u64()).sum::<u64>()
    };
    assert_eq!(samples("http_reqs"), 40, "{series:?}");
    assert_eq!(samples("checks"), 40, "{series:?}");
    let counted = shop.run(&["-u", "2", "-n", "10", "--warmup", "300ms", "-o", "json"]).json();
    assert_eq!(counted.count("iterations.started"), 10, "{:?}", counted.0);
    assert!(counted.count("warmup.sent") > 20, "{:?}", counted.0);
    shop.lab.shutdown();
}

#[test]
fn the_printed_spec_of_a_script_runs_it() {
    let shop = Shop::of(SHOP);
    let printed = shop.run(&["--print-spec", "--slo", "errors<1%"]).done().stdout;
    let spec = SpecFile::read("a.toml", printed.as_bytes()).unwrap().spec().unwrap();
    assert_eq!(spec.objectives.len(), 3, "{printed}");
    let again = SpecFile::read("a.toml", spec.draft().write(Syntax::Toml).unwrap().as_bytes());
    assert_eq!(again.unwrap().spec().unwrap(), spec);
    let file = shop.path("a.toml");
    fs::write(&file, printed).unwrap();
    let json = ran(&["run", &file, "-e", &shop.base, "-o", "json"]).done().json();
    assert_eq!(json.count("iterations.started"), 30);
    assert_eq!(json.at("objectives").as_array().unwrap().len(), 3, "{:?}", json.0);
    assert_eq!(shop.lab.shutdown().requests, 60);
}

#[test]
fn scripts_run_beside_plain_scenarios() {
    let shop = Shop::of(SHOP);
    let once = "export default function () {}\nexport const options = { iterations: 7 };";
    fs::write(Path::new(&shop.path("once.js")), once).unwrap();
    let file = shop.path("a.toml");
    let url = shop.base.trim_start_matches("BASE=");
    let spec = format!(
        "objectives = [\"errors{{scenario:plain}}<1%\", \"checks>40%\"]\n\
         [[scenario]]\nname = \"shop\"\nscript = {:?}\n\
         [[scenario]]\nname = \"once\"\nscript = {:?}\n\
         [[scenario]]\nname = \"plain\"\nurl = \"{url}/fast\"\nusers = 2\nrequests = 40\n",
        shop.script,
        shop.path("once.js")
    );
    fs::write(&file, spec).unwrap();
    let json = ran(&["run", &file, "-e", &shop.base, "-o", "json"]).done().json();
    let started = |at: usize| json.at("scenarios")[at]["iterations"]["started"].clone();
    assert_eq!([started(0), started(1), started(2)], [30, 7, 40], "{:?}", json.0);
    assert_eq!(json.count("requests.sent"), 100);
    // What is written in k6's terms is about the scripts' metrics, not about plain requests.
    let objectives = json.at("objectives").to_string();
    for threshold in ["checks:rate>0.4\"", "http_req_duration{name:cart}:p95<60s"] {
        assert!(objectives.contains(threshold), "{threshold}: {objectives}");
    }
    assert_eq!(shop.lab.shutdown().requests, 100);
}

/// The connections of a user that has ended stay open while others run, for which no worker waits.
#[test]
fn users_of_one_script_may_end_before_those_of_another() {
    let shop = Shop::of(
        "import exec from 'k6/execution';
         import http from 'k6/http';
         import { sleep } from 'k6';
         export default function () {
           if (exec.vu.idInTest === 1) sleep(1);
           http.get(`${__ENV.BASE}/fast`);
         }",
    );
    let other = "import http from 'k6/http';
        import { sleep } from 'k6';
        export default function () { http.get(`${__ENV.BASE}/fast`); sleep(0.3); }";
    fs::write(shop.path("other.js"), other).unwrap();
    let text = "threads = 1
        scenario = [
          { script = \"shop.js\", users = 2, iterations_per_user = 1, name = \"shop\" },
          { script = \"other.js\", users = 1, iterations_per_user = 1, name = \"other\" },
        ]";
    fs::write(shop.path("two.toml"), text).unwrap();
    let line = ["run", "--spec", "two.toml", "-e", &shop.base, "-o", "json"];
    let done = start(gake(&line).current_dir(shop.folder.path())).wait().done();
    let result = Json(serde_json::from_str(&done.stdout).unwrap());
    assert_eq!((result.count("requests.ok"), result.count("iterations.finished")), (3, 3));
    assert_eq!(result.at("verdict.reasons").as_array().map(Vec::len), Some(0), "{done:?}");
}

#[test]
fn an_early_end_of_a_script_has_a_reason_and_an_exit_code() {
    let shop = Shop::of(
        "export function setup() { throw new Error('no database'); }\nexport default () => {};",
    );
    let failed = shop.run(&["-q"]);
    assert_eq!(failed.code, Some(1), "{failed:?}");
    assert!(failed.stderr.contains("setup failed, and nothing was run"), "{failed:?}");
    assert!(failed.stderr.contains("no database"), "{failed:?}");
    let aborts = "import exec from 'k6/execution';\nexport const options = { duration: '60s' };\n\
                  export default () => exec.test.abort('enough');";
    fs::write(&shop.script, aborts).unwrap();
    let aborted = shop.run(&["-q"]);
    assert_eq!(aborted.code, Some(1), "{aborted:?}");
    assert!(aborted.stderr.contains("the script ended the test: test aborted: enough"));
    let marks = "import exec from 'k6/execution';\nexport default () => exec.test.fail('bad');";
    fs::write(&shop.script, marks).unwrap();
    assert_eq!(shop.run(&["-q"]).code, Some(99));
    shop.lab.shutdown();
}

#[test]
fn a_script_need_not_send_and_its_log_repeats_little() {
    let shop = Shop::of(
        "export const options = { vus: 2, iterations: 200 };\n\
         export default function () { console.log('seen'); throw new Error('the same'); }",
    );
    let ran = shop.run(&[]).done();
    assert_eq!(ran.stderr.matches("msg=seen").count(), 200, "{ran:?}");
    assert_eq!(ran.stderr.matches("the same").count(), 5, "{ran:?}");
    assert!(ran.stderr.contains("195 more lines of the log repeat"), "{ran:?}");
    shop.lab.shutdown();
}

#[test]
fn scripts_take_turns_in_a_comparison() {
    let shop = Shop::of(SHOP);
    let side = format!("gake run {} -u 2 -e {}", shop.script, shop.base);
    let flags = ["--interleave", "--slices", "5", "--slice", "1s"];
    let compared = ran(&[&["compare", &side, &side][..], &flags].concat());
    // A few seconds of each side decide nothing.
    assert!(matches!(compared.code, Some(0 | 3)), "{compared:?}");
    assert!(compared.stdout.contains("goodput"), "{compared:?}");
    shop.lab.shutdown();
}

/// Users in flight think between their requests: Little's law is of iterations.
#[test]
fn thinking_users_are_a_steady_state() {
    let shop = Shop::of(
        "import http from 'k6/http';\nimport { sleep } from 'k6';\n\
         export const options = { vus: 4, iterations: 200 };\n\
         export default function () { http.get(`${__ENV.BASE}/fast`); sleep(0.02); }",
    );
    let ran = shop.run(&[]);
    assert!(!ran.stdout.contains("steady state"), "{ran:?}");
    shop.lab.shutdown();
}

/// Handshakes of TLS are metrics of every https run, and no user of a script.
#[test]
fn a_plain_run_over_tls_has_connections() {
    let lab = Lab::start(LabConfig { tls: true, ..LabConfig::default() }).unwrap();
    let url = format!("https://{}/delay/100ms", lab.addr());
    let ran = ran(&["run", &url, "-k", "-r", "100", "-d", "2s", "-c", "5"]);
    assert!(ran.stdout.contains("all of 5 connections busy"), "{ran:?}");
    assert!(!ran.stdout.contains("users") && !ran.stdout.contains("maxVUs"), "{ran:?}");
    lab.shutdown();
}
