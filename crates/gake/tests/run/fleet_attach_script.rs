//! Scripts whose coordinator dies: another process continues the test.

use std::process::Command;

use gake_lab::Lab;
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use crate::fleet::{Nats, TOKEN, agents, end, id_of_run, with};
use crate::support::*;

/// What an agent needs to run scripts against this machine.
const SCRIPTS: &[&str] = &["--allow", "127.0.0.1", "--cores", "1", "--scripts"];

/// Iterations of the whole test: 25 a second. There are as many users, so that a busy machine drops
/// none.
const ITERATIONS: u64 = 200;

/// It is set up and torn down at a route of its own, and needs for both what `setup` returned.
const SCRIPT: &str = "
import http from 'k6/http';
import exec from 'k6/execution';
import { sleep } from 'k6';
import { Counter } from 'k6/metrics';

const own = new Counter('own');
const get = (path) => http.get(`${__ENV.BASE}${path}`);

export const options = {
  scenarios: { rate: {
    executor: 'constant-arrival-rate', rate: 25, duration: '8s', preAllocatedVUs: 200,
  } },
  thresholds: { own: ['count==200'] },
};

export function setup() {
  get('/bytes/1');
  return { secret: 'of setup' };
}

export function teardown(data) {
  if (data.secret !== 'of setup') throw new Error('no data');
  get('/bytes/1');
  if (__ENV.HANGS) sleep(50);
}

export default function (data) {
  get('/fast');
  if (data.secret === 'of setup') own.add(1);
  console.log('an iteration');
  if (__ENV.FAILS && exec.scenario.iterationInTest === 0) exec.test.fail('not good');
}

export function handleSummary(data) { return { stdout: JSON.stringify(data.metrics) }; }
";

/// The script's run on two agents.
fn run(nats: &Nats, lab: &Lab, folder: &TempDir, flags: &str) -> Command {
    let path = folder.path().join("script.js");
    std::fs::write(&path, SCRIPT).unwrap();
    let base = format!("BASE=http://{}", lab.addr());
    let common = "--agents 2 --agents-wait 60s --attach-within 600s";
    let line = ["as", "k6", "run", "--address", "", path.to_str().unwrap(), "-e", &base];
    with(nats, TOKEN, &[&line[..], &words(common), &words(flags)].concat())
}

fn attach(nats: &Nats, id: &str, flags: &str) -> Ran {
    let line = format!("fleet attach {id} {flags}");
    start(&mut with(nats, TOKEN, &words(&line))).wait()
}

fn count(ran: &Ran, name: &str) -> u64 {
    // The other lines say how far the run is.
    let line = ran.stdout.lines().find(|line| line.starts_with('{')).unwrap_or_default();
    let metrics: Value =
        serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    metrics[name]["values"]["count"].as_f64().unwrap_or(0.0) as u64
}

#[test]
fn another_process_takes_over_a_script_and_tears_it_down() {
    let (nats, lab, folder) = (Nats::start(), lab(), tempfile::tempdir().unwrap());
    let two = agents(&nats, &["a", "b"], SCRIPTS);
    let started = start(&mut run(&nats, &lab, &folder, ""));
    eventually("some iterations are there", || lab.stats().requests > 30);
    let id = id_of_run(&nats);
    started.signal(Signal::KILL);
    let printed = started.wait();
    assert!(
        printed.stderr.contains(&format!("continue the run with `gake fleet attach {id}`")),
        "{printed:?}"
    );
    attach(&nats, &id, "-o json").refused(2, "has k6's summary");
    let out = folder.path().join("run.hlog");
    let ran = attach(&nats, &id, &format!("--out {}", out.display()));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!((count(&ran, "iterations"), count(&ran, "own")), (ITERATIONS, ITERATIONS));
    assert_eq!(count(&ran, "http_reqs"), ITERATIONS + 2, "with setup's and teardown's");
    let routes = lab.stats().routes;
    assert_eq!((routes["/fast"], routes["/bytes"]), (ITERATIONS, 2), "each once: {ran:?}");
    let report = start(&mut gake(&["report", out.to_str().unwrap(), "-o", "json"])).wait().json();
    assert_eq!(report.count("requests.sent"), ITERATIONS);
    attach(&nats, &id, "").refused(1, "there is no journal");
    end(two);
}

#[test]
fn teardown_that_was_begun_is_not_called_again() {
    let (nats, lab, folder) = (Nats::start(), lab(), tempfile::tempdir().unwrap());
    let two = agents(&nats, &["a", "b"], SCRIPTS);
    let started = start(&mut run(&nats, &lab, &folder, "-e HANGS=1 -e FAILS=1"));
    eventually("some iterations are there", || lab.stats().requests > 30);
    let id = id_of_run(&nats);
    eventually("teardown has begun", || lab.stats().routes["/bytes"] == 2);
    started.signal(Signal::KILL);
    let lines = started.wait().stderr.matches("an iteration").count();
    assert!(lines > 0);
    let ran = attach(&nats, &id, "");
    // Earlier reports of agents count: one of them failed the test.
    assert_eq!(ran.code, Some(110), "{ran:?}");
    assert!(ran.stderr.contains("teardown is not run again"), "{ran:?}");
    assert!(!ran.stderr.contains("an iteration"), "{ran:?}");
    assert_eq!((count(&ran, "iterations"), count(&ran, "own")), (ITERATIONS, ITERATIONS));
    assert_eq!(count(&ran, "http_reqs"), ITERATIONS + 1, "with setup's");
    assert_eq!(lab.stats().routes["/bytes"], 2);
    end(two);
}

#[test]
fn a_stopped_run_ends_as_with_its_first_process() {
    let lab = lab();
    for (is_interrupted, code, torn_down) in [(false, 130, 2), (true, 105, 4)] {
        let (nats, folder) = (Nats::start(), tempfile::tempdir().unwrap());
        let two = agents(&nats, &["a", "b"], SCRIPTS);
        let requests = lab.stats().requests;
        let started = start(&mut run(&nats, &lab, &folder, "-e HANGS=1"));
        eventually("some iterations are there", || lab.stats().requests > requests + 30);
        let id = id_of_run(&nats);
        match is_interrupted {
            true => started.signal(Signal::INT),
            false => {
                let stop = format!("fleet stop {id}");
                let stopped = start(&mut with(&nats, TOKEN, &words(&stop))).wait();
                assert_eq!(stopped.code, Some(0), "{stopped:?}");
            }
        }
        eventually("teardown has begun", || lab.stats().routes["/bytes"] == torn_down);
        started.signal(Signal::KILL);
        started.wait();
        let ran = attach(&nats, &id, "");
        assert!(count(&ran, "own") < ITERATIONS, "its threshold is missed: {ran:?}");
        assert_eq!(ran.code, Some(code), "{ran:?}");
        end(two);
    }
}
