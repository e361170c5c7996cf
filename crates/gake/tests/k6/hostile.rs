//! Scripts that harm themselves, and interrupted runs: other users continue, and the counts match the
//! server's.

use std::fs;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::common::{Ran, Started, eventually, gake, start};
use crate::lab;

/// Six executors that go on for long.
const LONG: &str = "
import http from 'k6/http';
const plain = { duration: '60s', exec: 'one', gracefulStop: '1s' };
const stages = [{ duration: '60s', target: 20 }];
export const options = { scenarios: {
  a: { executor: 'constant-vus', vus: 2, ...plain },
  b: { executor: 'ramping-vus', startVUs: 1, stages, exec: 'one' },
  c: { executor: 'constant-arrival-rate', rate: 20, preAllocatedVUs: 5, ...plain },
  d: { executor: 'ramping-arrival-rate', startRate: 10, exec: 'one', preAllocatedVUs: 5, stages },
  e: { executor: 'shared-iterations', vus: 3, iterations: 70000, exec: 'one' },
  f: { executor: 'per-vu-iterations', vus: 3, iterations: 20000, exec: 'one' },
} };
export function one() { http.get(`${__ENV.URL}/delay/20ms`); }
";

/// Ends with a teardown that would take a minute.
const SLOW_END: &str = "
import http from 'k6/http';
import { sleep } from 'k6';
export const options = { vus: 2, duration: '60s' };
export default () => { http.get(`${__ENV.URL}/delay/20ms`); };
export function teardown() { console.log('teardown began'); sleep(50); }
";

/// Its iterations take a minute.
const SLEEPERS: &str = "
import http from 'k6/http';
import { sleep } from 'k6';
export const options = { vus: 2, duration: '60s' };
export default () => { http.get(`${__ENV.URL}/fast`); sleep(60); };
export function teardown() { console.log('teardown began'); }
";

/// Begins with a setup that takes a minute, and would send a request at its end.
const SLOW_START: &str = "
import http from 'k6/http';
import { sleep } from 'k6';
export function setup() { http.get(`${__ENV.URL}/fast`); sleep(50); }
export default () => { http.get(`${__ENV.URL}/fast`); };
export function teardown() { http.get(`${__ENV.URL}/fast`); }
";

/// One user never waits, one recurses without end, one eats all memory; the others work.
const HARMFUL: &str = "
import http from 'k6/http';
import { Counter } from 'k6/metrics';
import exec from 'k6/execution';
const good = new Counter('good');
const harms = [
  () => { for (;;) { /* never waits */ } },
  () => { const down = () => down() + 1; down(); },
  () => { const all = []; for (;;) all.push(new Uint8Array(1 << 24).fill(1)); },
];
export const options = { scenarios: {
  all: { executor: 'constant-vus', vus: 6, duration: '8s', gracefulStop: '0s' },
} };
export default () => {
  const harm = harms[exec.vu.idInTest - 1];
  if (harm) harm();
  http.get(`${__ENV.URL}/fast`);
  good.add(1);
};
";

/// Each user keeps a body of 5 MB, or gets an error that there is no room for it; and waits until all
/// have asked, since a user that is done frees everything.
const HOARDERS: &str = "
import http from 'k6/http';
import exec from 'k6/execution';
import { sleep } from 'k6';
import { Counter } from 'k6/metrics';
const kept = new Counter('kept');
const refused = new Counter('refused');
export const options = {
  scenarios: { all: { executor: 'per-vu-iterations', vus: 20, iterations: 2 } },
};
let hoard;
export default () => {
  if (exec.vu.iterationInScenario > 0) {
    while (exec.instance.iterationsCompleted < 20) sleep(0.02);
    return;
  }
  hoard = http.get(`${__ENV.URL}/bytes/5000000`);
  const { status, error } = hoard;
  if (status === 200) kept.add(1);
  if (status === 0 && hoard.body === null && error.includes('--body-memory')) refused.add(1);
};
";

/// Leaves responses behind that only a collection of garbage finds: 250 MB in all.
const LITTERING: &str = "
import http from 'k6/http';
import { check } from 'k6';
export const options = { iterations: 50, thresholds: { checks: ['rate==1'] } };
export default () => {
  const ring = { response: http.get(`${__ENV.URL}/bytes/5000000`) };
  ring.ring = ring;
  check(ring.response, { whole: (r) => r.status === 200 && r.body.length === 5000000 });
};
";

fn summary(folder: &tempfile::TempDir) -> Value {
    serde_json::from_slice(&fs::read(folder.path().join("summary.json")).unwrap()).unwrap()
}

fn count(summary: &Value, metric: &str) -> u64 {
    summary["metrics"][metric]["count"].as_u64().unwrap_or_else(|| panic!("{metric}: {summary}"))
}

/// A script in a folder, and gake that is to run it.
fn script(text: &str, lab: &gake_lab::Lab) -> (tempfile::TempDir, std::process::Command) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("s.js"), text).unwrap();
    let url = format!("URL=http://{}", lab.addr());
    let mut command = gake(&["as", "k6", "run", "-q", "-e", &url, "--address", ""]);
    command.args(["--summary-export", "summary.json", "s.js"]).current_dir(folder.path());
    (folder, command)
}

/// What a run leaves that a signal ends, all of it in less than `limit`.
fn ended_by(signal: Signal, run: Started, limit: Duration) -> Ran {
    run.signal(signal);
    let ran = run.wait();
    assert_eq!(ran.code, Some(105), "{ran:?}");
    assert!(ran.took < limit, "{ran:?}");
    ran
}

#[test]
fn after_an_interrupt_the_counts_are_the_servers() {
    let lab = lab();
    let (folder, mut command) = script(LONG, &lab);
    let run = start(&mut command);
    eventually("all users are at work", || lab.stats().requests > 300);
    run.signal(Signal::INT);
    let ran = run.wait();
    assert_eq!(ran.code, Some(105), "{ran:?}");
    let summary = summary(&folder);
    let requests = lab.shutdown().requests;
    assert_eq!(count(&summary, "http_reqs"), requests, "{summary}");
}

#[test]
fn an_interrupt_ends_iterations_wherever_they_are() {
    let lab = lab();
    let (folder, mut command) = script(SLEEPERS, &lab);
    let run = start(&mut command);
    eventually("both users sleep", || lab.stats().requests == 2);
    let ran = ended_by(Signal::TERM, run, Duration::from_secs(20));
    for expected in ["teardown began", "received a 'terminated' signal"] {
        assert!(ran.stderr.contains(expected), "{expected}: {ran:?}");
    }
    let summary = summary(&folder);
    assert!(summary["metrics"].get("iterations").is_none(), "{summary}");
    assert_eq!(count(&summary, "http_reqs"), 2);
    lab.shutdown();
}

#[test]
fn a_second_interrupt_ends_what_the_first_one_waits_for() {
    let lab = lab();
    let (_folder, mut command) = script(SLOW_END, &lab);
    let run = start(&mut command);
    eventually("the users are at work", || lab.stats().requests > 10);
    run.signal(Signal::INT);
    eventually("teardown has begun", || run.stderr().contains("teardown began"));
    ended_by(Signal::INT, run, Duration::from_secs(40));
    lab.shutdown();
}

#[test]
fn an_interrupt_ends_a_long_setup() {
    let lab = lab();
    let (_folder, mut command) = script(SLOW_START, &lab);
    let run = start(&mut command);
    eventually("setup has begun", || lab.stats().requests == 1);
    ended_by(Signal::INT, run, Duration::from_secs(40));
    // As with k6, no user has begun then, nor has teardown.
    assert_eq!(lab.shutdown().requests, 1);
}

#[test]
fn what_a_script_does_to_itself_it_does_to_no_other_user() {
    let lab = lab();
    let (folder, mut command) = script(HARMFUL, &lab);
    let ran = start(&mut command).wait();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    // The loop without end is cut as the scenario wants it, not after the usual 30 s.
    assert!(ran.took < Duration::from_secs(20), "{:?}", ran.took);
    let summary = summary(&folder);
    // An iteration is cut at the end wherever it is.
    let (good, requests) = (count(&summary, "good"), lab.shutdown().requests);
    assert!(good > 100 && (good..=good + 3).contains(&requests), "{good}: {summary}");
    assert_eq!(count(&summary, "http_reqs"), requests, "{summary}");
    for expected in ["stack", "memory"] {
        assert!(
            ran.stderr.contains(expected),
            "{expected}: {}",
            &ran.stderr[..ran.stderr.len().min(4_000)]
        );
    }
}

#[test]
fn bodies_that_all_users_hold_are_bounded() {
    let lab = lab();
    let (folder, mut command) = script(HOARDERS, &lab);
    command.args(["--body-memory", "50MB", "--gake-format", "json", "--gake-out", "run.json"]);
    let ran = start(&mut command).wait();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let counts = summary(&folder);
    let (kept, refused) = (count(&counts, "kept"), count(&counts, "refused"));
    // A body is 5 MB and at most a quarter more, of which 64 KiB are each user's own; the last one
    // refused found no room while it held less than a whole one.
    assert!((8..=10).contains(&kept), "{kept} kept, {refused} refused: {counts}");
    assert_eq!(kept + refused, 20, "{counts}");
    assert_eq!((count(&counts, "http_reqs"), lab.shutdown().requests), (20, 20));
    let run = fs::read(folder.path().join("run.json")).unwrap();
    let run: Value = serde_json::from_slice(&run).unwrap();
    assert_eq!(run["faults"]["no_memory"], refused, "{run}");
}

#[test]
fn bodies_in_garbage_are_let_go() {
    let lab = lab();
    let (_folder, mut command) = script(LITTERING, &lab);
    command.args(["--body-memory", "50MB"]);
    let ran = start(&mut command).wait();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(lab.shutdown().requests, 50);
}
