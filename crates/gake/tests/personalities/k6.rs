//! k6: scripts from the command line to the exit code. The codes are k6 1.8.1's.

use std::fs;
use std::path::Path;

use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use crate::common::*;

fn folder(script: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("s.js"), script).unwrap();
    folder
}

fn as_k6(folder: &Path, flags: &str) -> Ran {
    let script = folder.join("s.js");
    let script = script.to_str().unwrap();
    let flags = flags.replace("DIR", folder.to_str().unwrap());
    ran(&[vec!["as", "k6", "run"], words(&flags), vec![script]].concat())
}

#[test]
fn exit_codes_are_k6s() {
    for (script, flags, code, said) in [
        ("export default () => 1", "", 0, ""),
        ("export default () => { throw new Error('boo') }", "", 0, "boo"),
        ("export const x = 1", "", 255, "s.js': no exported functions in script"),
        (
            "export const options = { duration: 'undefineds' }; export default () => 1",
            "",
            104,
            "s.js': time: invalid duration",
        ),
        (
            "import http from 'k6/http'; http.put('/'); export default () => 1",
            "",
            107,
            "getMethodClosure.func5 (native)\\n\\tat file://",
        ),
        (
            "import { check } from 'k6'; export default () => check(1, { 'a::b': 1 })",
            "",
            0,
            "k6.(*K6).Check-fm (native)\\n\\tat default (file://",
        ),
        (
            "import grpc from 'k6/net/grpc'; const client = new grpc.Client();
             export default () => client.connect('127.0.0.1:1', { plaintext: true })",
            "",
            0,
            "\\n\\tat reflect.methodValueCall (native)\\n\\tat default (file://",
        ),
        ("export function x() {}", "", 104, "function 'default' not found in exports"),
        ("export default function () {\n  let x = ;\n}", "", 107, "s.js: Line 2:"),
        ("throw new Error('early'); export default () => 1", "", 107, "early"),
        ("export function setup() { throw 1 } export default () => 1", "", 107, "1"),
        ("export function teardown() { throw 2 } export default () => 1", "", 107, "2"),
        ("import x from 'k6/browser'; export default () => 1", "", 0, ""),
        ("import x from 'k6/experimental/grpc'; export default () => 1", "", 107, "graduated"),
        (
            "import exec from 'k6/execution'; export default () => exec.test.abort('why')",
            "",
            108,
            "test aborted: why",
        ),
        ("import exec from 'k6/execution'; export default () => exec.test.fail('x')", "", 110, "x"),
        (
            "export const options = { thresholds: { iterations: ['count>5'] } };
             export default () => 1",
            "",
            99,
            "thresholds on metrics 'iterations' have been crossed",
        ),
        (
            "export const options = { thresholds: { iterations: ['count>5'] } };
             export default () => 1",
            "-i 6",
            0,
            "",
        ),
        (
            "export const options = { thresholds: { nothing: ['count>5'] } };
             export default () => 1",
            "",
            104,
            "nothing",
        ),
        (
            "import { sleep } from 'k6';
             export const options = { setupTimeout: '100ms' };
             export function setup() { sleep(20) } export default () => 1",
            "",
            100,
            "setup() execution timed out after 0 seconds",
        ),
        ("export default () => 1", "--rps 5", 0, ""),
        (
            "export const options = { tlsAuth: [{ cert: 'c', key: 'k' }] }; export default () => 1",
            "",
            104,
            "tlsAuth",
        ),
        ("export default () => 1", "--no-such-flag", 255, "--no-such-flag"),
        ("export default () => 1", "-o nothing=x", 255, "invalid output type 'nothing'"),
    ] {
        let folder = folder(script);
        let ran = as_k6(folder.path(), flags);
        assert_eq!(ran.code, Some(code), "{script}\n{ran:?}");
        assert!(ran.stderr.contains(said), "{said}: {ran:?}");
    }
    let ran = ran(&["as", "k6", "run", "/nothing/there.js"]);
    assert_eq!(ran.code, Some(255), "{ran:?}");
}

#[test]
fn every_executor_runs_and_counts_what_the_server_counts() {
    let lab = lab();
    let folder = folder(
        "import http from 'k6/http'; import { sleep } from 'k6';
         const plain = { duration: '1s', exec: 'one' };
         export const options = { scenarios: {
           a: { executor: 'constant-vus', vus: 2, ...plain },
           b: { executor: 'ramping-vus', startVUs: 1, stages: [{ duration: '1s', target: 3 }],
                exec: 'one' },
           c: { executor: 'constant-arrival-rate', rate: 20, preAllocatedVUs: 5, ...plain },
           d: { executor: 'ramping-arrival-rate', startRate: 10, exec: 'one', preAllocatedVUs: 5,
                stages: [{ duration: '1s', target: 30 }] },
           e: { executor: 'shared-iterations', vus: 3, iterations: 7, exec: 'one' },
           f: { executor: 'per-vu-iterations', vus: 3, iterations: 2, exec: 'one' },
         } };
         export function one() { http.get(`${__ENV.BASE}/fast`); sleep(0.02); }",
    );
    let flags = format!("-e BASE={} --summary-export DIR/sum.json", url(&lab, ""));
    let ran = as_k6(folder.path(), &flags);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let text = fs::read(folder.path().join("sum.json")).unwrap();
    let summary: Value = serde_json::from_slice(&text).unwrap();
    let count = |metric: &str| summary["metrics"][metric]["count"].as_u64().unwrap();
    assert_eq!(count("http_reqs"), lab.shutdown().requests);
    assert_eq!(count("http_reqs"), count("iterations"));
    // 7 and 6 by count, 20 ± 1 at each rate, and the users'.
    assert!(count("iterations") > 60, "{summary}");
}

#[test]
fn samples_go_to_files_one_by_one() {
    let lab = lab();
    let folder = folder(
        "import http from 'k6/http'; import { check } from 'k6';
         export const options = { iterations: 3, tags: { run: 'r' } };
         export default () => { check(http.get(`${__ENV.BASE}/fast`), { ok: (r) => r.status === 200 }) }",
    );
    let flags = format!(
        "-e BASE={} -o json=DIR/o.json -o csv=DIR/o.csv -o csv=DIR/z.csv.zst",
        url(&lab, "")
    );
    let ran = as_k6(folder.path(), &flags);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    // What is about to run, as k6 tells it, and nothing else.
    assert_eq!(ran.stderr, "");
    let head = ran.stdout.split_once("     execution: local\n").expect("a description").1;
    let printed: Vec<_> = head.lines().filter(|line| !line.is_empty()).take(4).collect();
    assert!(
        printed[3]
            .ends_with("3 iterations shared among 1 VUs (maxDuration: 10m0s, gracefulStop: 30s)")
    );
    let text = fs::read_to_string(folder.path().join("o.json")).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let points = |metric: &str| -> Vec<&Value> {
        let is = |line: &&Value| line["type"] == "Point" && line["metric"] == metric;
        lines.iter().filter(is).map(|line| &line["data"]).collect()
    };
    assert_eq!((points("http_reqs").len(), points("checks").len()), (3, 3));
    let tags = &points("http_req_duration")[0]["tags"];
    for (key, value) in
        [("method", "GET"), ("status", "200"), ("run", "r"), ("scenario", "default")]
    {
        assert_eq!(tags[key], value, "{tags}");
    }
    assert_eq!(tags["url"], url(&lab, "/fast"));
    assert_eq!(points("checks")[0]["tags"]["check"], "ok");
    let csv = fs::read_to_string(folder.path().join("o.csv")).unwrap();
    assert_eq!(csv.lines().filter(|line| line.starts_with("http_reqs,")).count(), 3);
    let packed = fs::File::open(folder.path().join("z.csv.zst")).unwrap();
    let unpacked = command("zstd").args(["-dcq"]).stdin(packed).output().unwrap();
    assert_eq!(String::from_utf8(unpacked.stdout).unwrap(), csv);
}

#[test]
fn samples_without_a_file_go_to_standard_output() {
    let folder = folder("export default () => 1");
    let ran = as_k6(folder.path(), "-q -i 2 --summary-mode=disabled -o json");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let lines: Vec<Value> =
        ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let is_point = |line: &&Value| line["type"] == "Point" && line["metric"] == "iterations";
    assert_eq!(lines.iter().filter(is_point).count(), 2, "{ran:?}");
}

#[test]
fn a_summary_that_cannot_be_saved_is_a_warning() {
    let folder = folder("export default () => 1");
    let ran = as_k6(folder.path(), "--summary-export DIR/absent/sum.json");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("could not open") && ran.stderr.contains("absent"), "{ran:?}");
    assert!(ran.stdout.contains("iterations"), "{ran:?}");
}

#[test]
fn a_run_lingers_until_it_is_interrupted() {
    let folder = folder("export default () => 1");
    let script = folder.path().join("s.js");
    let flags = ["as", "k6", "run", "--linger", "--address", ""];
    let run = start(gake(&flags).arg(script));
    eventually("the run is over and waits", || run.stderr().contains("waits for Ctrl+C"));
    run.signal(Signal::INT);
    let ran = run.wait();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("iterations"), "{ran:?}");
}

#[test]
fn the_version_is_read_by_people_and_by_programs() {
    let version = |args: &[&str]| ran(&[&["as", "k6", "version"], args].concat()).stdout;
    let printed: Value = serde_json::from_str(&version(&["--json"])).unwrap();
    let number = printed["version"].as_str().unwrap();
    let shown = version(&[]);
    assert!(shown.starts_with(&format!("k6 {number} (as k6 2.3; ")), "{shown}");
    assert_eq!(printed["k6"], "2.3");
}

#[test]
fn the_summary_is_the_scripts_own() {
    let folder = folder(
        "export function setup() { return { a: 1 } }
         export default () => 1;
         export function handleSummary(data) {
           return { stdout: `n=${data.metrics.iterations.values.count} a=${data.setup_data.a}\\n`,
                    stderr: 'to stderr', [`${__ENV.OUT}/x.txt`]: 'text' };
         }",
    );
    let ran = as_k6(folder.path(), "-q -i 2 -e OUT=DIR");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "n=2 a=1\n"), "{ran:?}");
    assert!(ran.stderr.contains("to stderr"));
    assert_eq!(fs::read_to_string(folder.path().join("x.txt")).unwrap(), "text");
}
