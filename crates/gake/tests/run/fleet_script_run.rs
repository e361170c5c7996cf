//! `gake run script.js` on agents: gake's own flags, verdict, objectives and exit codes.

use std::process::Command;

use gake_lab::{Lab, LabConfig};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::fleet::{Nats, TOKEN, agents, end, id_of_run, with};
use crate::support::*;

/// What an agent needs to run scripts against this machine.
const SCRIPTS: &[&str] = &["--allow", "127.0.0.1", "--cores", "1", "--scripts"];

/// Iterations of the script's own options. A closed loop is valid on a busy machine, too.
const ITERATIONS: u64 = 100;

/// It is set up and torn down at a route of its own, and needs for both what `setup` returned.
const SCRIPT: &str = "
import http from 'k6/http';
import { check } from 'k6';
import { Counter } from 'k6/metrics';

const own = new Counter('own');
const get = (path) => http.get(`${__ENV.BASE}${path}`);

export const options = {
  vus: 10,
  iterations: 100,
  thresholds: { own: [`count>=${__ENV.WANTED || 100}`] },
};

export function setup() {
  get('/bytes/1');
  return { secret: 'of setup' };
}

export function teardown(data) {
  if (data.secret !== 'of setup') throw new Error('no data');
  get('/bytes/1');
}

export default function (data) {
  const response = get('/delay/300ms');
  check(response, { ok: () => response.status === 200 && data.secret === 'of setup' });
  own.add(1);
}
";

/// A folder with the script.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("script.js"), SCRIPT).unwrap();
    folder
}

/// The script's run on two agents, as JSON.
fn run(nats: &Nats, base: &str, folder: &TempDir, flags: &str) -> Command {
    let base = format!("BASE={base}");
    let common = "--agents 2 --agents-wait 60s -o json";
    let line = [&["run", "script.js", "-e", &base], &words(common)[..], &words(flags)].concat();
    let mut command = with(nats, TOKEN, &line);
    command.current_dir(folder.path());
    command
}

fn base(lab: &Lab) -> String {
    format!("http://{}", lab.addr())
}

/// The result, in which what `setup` and `teardown` send belongs to no second.
fn json(ran: &Ran) -> Json {
    Json(serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}")))
}

/// The objectives of a run and whether they were met.
fn objectives(result: &Json) -> Vec<(String, bool)> {
    let all = result.at("objectives").as_array().unwrap();
    let one = |one: &serde_json::Value| {
        (one["text"].as_str().unwrap().to_owned(), one["met"].as_bool().unwrap())
    };
    all.iter().map(one).collect()
}

#[test]
fn a_script_on_agents_is_judged_as_any_run() {
    let (nats, lab, folder) = (Nats::start(), lab(), folder());
    let two = agents(&nats, &["a", "b"], SCRIPTS);
    let ran = start(&mut run(&nats, &base(&lab), &folder, "--slo errors<1%")).wait().done();
    let result = json(&ran);
    assert_eq!(result.count("requests.sent"), ITERATIONS + 2, "{ran:?}");
    let met = |text: &str, met| (text.to_owned(), met);
    assert_eq!(
        objectives(&result),
        [met("errors<1%", true), met("own:count>=100", true)],
        "{ran:?}"
    );
    assert_eq!(result.at("agents").as_array().map(Vec::len), Some(2), "{ran:?}");
    let routes = lab.stats().routes;
    assert_eq!((routes["/delay"], routes["/bytes"]), (ITERATIONS, 2), "each once: {ran:?}");
    // A missed threshold on the figures of all.
    let ran = start(&mut run(&nats, &base(&lab), &folder, "-e WANTED=101")).wait();
    assert_eq!(ran.code, Some(99), "{ran:?}");
    assert!(objectives(&json(&ran)).contains(&met("own:count>=101", false)), "{ran:?}");
    // Flags say how much is sent, on agents too.
    let flags = "-r 20 -d 2s -e WANTED=40";
    let ran = start(&mut run(&nats, &base(&lab), &folder, flags)).wait().done();
    assert_eq!(objectives(&json(&ran)), [met("own:count>=40", true)], "{ran:?}");
    assert_eq!(lab.stats().routes["/delay"], 2 * ITERATIONS + 40);
    end(two);
}

#[test]
fn names_and_certificates_of_the_spec_hold_on_agents() {
    let (nats, folder, plain) = (Nats::start(), folder(), lab());
    let two = agents(&nats, &["a", "b"], SCRIPTS);
    let secure = lab_with(LabConfig { tls: true, ..LabConfig::default() });
    let certificate = secure.certificate().unwrap().pem.clone();
    std::fs::write(folder.path().join("ca.pem"), certificate).unwrap();
    let (base, port) = (format!("https://{}", secure.addr()), plain.addr().port());
    let by_name = format!("http://shop.test:{port}");
    for (base, flags) in [
        (base, "--cacert ca.pem".to_owned()),
        (by_name, format!("--resolve shop.test:{port}:127.0.0.1")),
    ] {
        let flags = format!("-r 20 -d 1s -e WANTED=20 {flags}");
        let ran = start(&mut run(&nats, &base, &folder, &flags)).wait().done();
        assert_eq!(json(&ran).count("requests.ok"), 22, "{ran:?}");
    }
    end(two);
}

#[test]
fn several_scripts_and_plain_scenarios_run_beside_each_other() {
    let (nats, lab, folder) = (Nats::start(), lab(), folder());
    let two = agents(&nats, &["a", "b"], SCRIPTS);
    let other = "
        import exec from 'k6/execution';
        import http from 'k6/http';
        export function setup() { return { path: '/status/204' }; }
        export default function (data) {
          http.get(__ENV.BASE + data.path);
          if (__ENV.ABORT) exec.test.abort('the other script has seen enough');
        }
        export function teardown(data) { http.get(`${__ENV.BASE}${data.path}?torn=down`); }";
    std::fs::write(folder.path().join("other.js"), other).unwrap();
    let text = format!(
        "scenario = [
            {{ url = \"http://{}/fast\", rate = 30, duration = \"2s\", name = \"plain\" }},
            {{ script = \"script.js\", rate = 20, duration = \"2s\", name = \"shop\" }},
            {{ script = \"other.js\", users = 3, iterations_per_user = 7, name = \"other\" }},
        ]",
        lab.addr()
    );
    std::fs::write(folder.path().join("mixed.toml"), text).unwrap();
    let base = format!("BASE={}", base(&lab));
    let run = |more: &[&str]| {
        let line = ["run", "--spec", "mixed.toml", "-e", &base, "-e", "WANTED=40"];
        let line = [&line[..], &["--agents", "2", "-o", "json"], more].concat();
        start(with(&nats, TOKEN, &line).current_dir(folder.path())).wait()
    };
    let ran = run(&[]);
    // On a machine too busy for the figures to be believed the run is invalid.
    let is_invalid = json(&ran).at("verdict.validity").as_str() == Some("invalid");
    assert_eq!(ran.code, Some(if is_invalid { 3 } else { 0 }), "{ran:?}");
    let routes = lab.stats().routes;
    let counted = ["/fast", "/delay", "/status"].map(|route| routes[route]);
    // Each `teardown` runs once, here.
    assert_eq!(counted, [60, 40, 3 * 7 + 1], "{ran:?}");
    let result = json(&ran);
    let sent = result.at("scenarios").as_array().unwrap().iter();
    let sent: Vec<_> = sent.map(|one| one["requests"]["sent"].as_u64()).collect();
    assert_eq!(sent, [Some(60), Some(40), Some(21)], "{ran:?}");
    assert_eq!(objectives(&result), [("own:count>=40".to_owned(), true)], "{ran:?}");
    assert!(ran.stderr.contains("a journal holds one script"), "{ran:?}");
    // Either script may end the test.
    let ran = run(&["-e", "ABORT=1"]);
    assert_eq!(json(&ran).at("verdict.ended").as_str(), None, "{ran:?}");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    end(two);
}

#[test]
fn what_agents_cannot_do_is_refused_before_anything_starts() {
    let (lab, folder) = (lab(), folder());
    let base = format!("BASE={}", base(&lab));
    let pages = "export const options = { scenarios: { ui: { executor: 'shared-iterations',
        options: { browser: { type: 'chromium' } } } } };
        export default function () {}";
    std::fs::write(folder.path().join("pages.js"), pages).unwrap();
    for (line, why) in [
        ("pages.js", "agents do not support k6/browser"),
        ("script.js --script-profile", "agents do not support --script-profile"),
        ("script.js --body-errors", "agents do not support --body-errors"),
        ("script.js --body-memory 1GB", "agents do not support --body-memory"),
        ("script.js --interface 127.0.0.1", "agents do not support --interface"),
        ("script.js --reconcile command:true", "agents do not support --reconcile"),
    ] {
        let line = [&["run", "-e", &base, "--local", "2"], &words(line)[..]].concat();
        start(gake(&line).current_dir(folder.path())).wait().refused(2, why);
    }
    assert_eq!(lab.stats().requests, 0);
}

#[test]
fn another_process_takes_over_and_shows_the_verdict() {
    let (nats, lab, folder) = (Nats::start(), lab(), folder());
    let two = agents(&nats, &["a", "b"], SCRIPTS);
    let flags = "--attach-within 600s --slo errors<1% -e WANTED=101";
    let started = start(&mut run(&nats, &base(&lab), &folder, flags));
    eventually("some iterations are there", || lab.stats().requests > 20);
    let id = id_of_run(&nats);
    started.signal(Signal::KILL);
    let first = started.wait();
    assert!(
        first.stderr.contains(&format!("continue the run with `gake fleet attach {id}`")),
        "{first:?}"
    );
    let line = format!("fleet attach {id} -o json");
    let ran = start(&mut with(&nats, TOKEN, &words(&line))).wait();
    let result = json(&ran);
    assert_eq!((ran.code, result.count("requests.sent")), (Some(99), ITERATIONS + 2), "{ran:?}");
    let judged = [("errors<1%".to_owned(), true), ("own:count>=101".to_owned(), false)];
    assert_eq!(objectives(&result), judged, "{ran:?}");
    let routes = lab.stats().routes;
    assert_eq!((routes["/delay"], routes["/bytes"]), (ITERATIONS, 2), "each once: {ran:?}");
    end(two);
}
