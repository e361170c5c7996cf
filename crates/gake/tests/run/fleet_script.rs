//! Scripts of `gake as k6` on agents at a real NATS server: one test, as on one machine.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;

use gake_lab::Lab;
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use crate::fleet::{HERE, Nats, TOKEN, agents, end, with};
use crate::support::*;

/// What an agent needs to run scripts against this machine.
const SCRIPTS: &[&str] = &["--allow", "127.0.0.1", "--cores", "1", "--scripts"];

/// A run of k6 without its API.
const K6: &[&str] = &["as", "k6", "run", "--address", ""];

/// The end of every script of these tests: k6's figures as JSON.
const SUMMARY: &str =
    "export function handleSummary(data) { return { stdout: JSON.stringify(data.metrics) }; }\n";

/// A folder with a script and the files that it reads.
struct Scripts(TempDir);

impl Scripts {
    fn new(text: &str) -> Self {
        let scripts = Self(tempfile::tempdir().unwrap());
        scripts.with("script.js", &format!("{text}\n{SUMMARY}"))
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("script.js")
    }

    fn with(self, name: &str, text: &str) -> Self {
        std::fs::write(self.0.path().join(name), text).unwrap();
        self
    }

    /// A run of the script, on the agents if the flags say so.
    fn run(&self, nats: &Nats, lab: &Lab, flags: &str) -> Command {
        let path = self.path();
        let base = format!("BASE=http://{}", lab.addr());
        let mut args = [K6, &[path.to_str().unwrap(), "-e", &base]].concat();
        args.extend(words(flags));
        if flags.contains("--agents") {
            args.extend(["--agents-wait", "60s"]);
        }
        with(nats, TOKEN, &args)
    }
}

fn metrics(ran: &Ran) -> Value {
    // The other lines say how far the run is.
    let line = ran.stdout.lines().find(|line| line.starts_with('{')).unwrap_or_default();
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

fn count(metrics: &Value, name: &str) -> u64 {
    metrics[name]["values"]["count"].as_f64().unwrap_or(0.0) as u64
}

/// Three executors, a file, a module, data of setup, a metric of its own. There are as many users as
/// arrivals, so that a busy machine drops none.
const WHOLE: &str = "
import http from 'k6/http';
import exec from 'k6/execution';
import { check } from 'k6';
import { Counter } from 'k6/metrics';
import { SharedArray } from 'k6/data';
import { greeting } from './lib.js';

const rows = new SharedArray('rows', () => JSON.parse(open('./rows.json')));
const own = new Counter('own');

export const options = {
  scenarios: {
    rate: { executor: 'constant-arrival-rate', rate: 30, duration: '2s', preAllocatedVUs: 60,
            exec: 'rate' },
    shared: { executor: 'shared-iterations', vus: 3, iterations: 31, exec: 'shared' },
    users: { executor: 'per-vu-iterations', vus: 5, iterations: 4, exec: 'users' },
  },
  thresholds: {
    own: [`count==${__ENV.WANTED}`],
    'own{kind:users}': ['count==20'],
    'http_req_duration{scenario:rate}': ['p(95)>0'],
    checks: ['rate==1'],
  },
};

export function setup() {
  http.get(`${__ENV.BASE}/bytes/1`);
  return { secret: 'of setup' };
}

export function teardown(data) {
  if (data.secret !== 'of setup') throw new Error('no data');
  http.get(`${__ENV.BASE}/bytes/1`);
}

function iterate(kind, data) {
  const answer = http.get(`${__ENV.BASE}/fast`);
  check(null, {
    'answered': () => answer.status === 200,
    'data of setup': () => data.secret === 'of setup',
    'file and module': () => rows.length === 3 && greeting === 'hello',
    'no variable of gake': () => __ENV.GAKE_FLEET_TOKEN === undefined,
    'options': () => exec.test.options.scenarios.shared.iterations === 31,
  });
  own.add(1, { kind });
  const { iterationInTest, iterationInInstance } = exec.scenario;
  const { idInTest, idInInstance } = exec.vu;
  console.log(`${kind} ${idInTest} ${idInInstance} ${iterationInTest} ${iterationInInstance}`);
}

export function users(data) { iterate('users', data); }
export function shared(data) { iterate('shared', data); }
export function rate(data) { iterate('rate', data); }
";

/// An iteration as the script wrote it to the log.
#[derive(Debug)]
struct Iteration {
    agent: String,
    kind: String,
    user: u64,
    user_there: u64,
    number: u64,
    number_there: u64,
}

fn iterations(ran: &Ran) -> Vec<Iteration> {
    let field = |line: &str, name: &str| {
        let (_, rest) = line.split_once(&format!(" {name}="))?;
        let rest = rest.strip_prefix('"').unwrap_or(rest);
        Some(rest.split(['"']).next()?.split(" source").next()?.to_owned())
    };
    let read = |line: &str| {
        let (message, agent) = (field(line, "msg")?, field(line, "agent")?);
        let parts = words(&message);
        let [kind, numbers @ ..] = parts.as_slice() else { return None };
        let numbers: Vec<u64> = numbers.iter().map(|n| n.parse().ok()).collect::<Option<_>>()?;
        let [user, user_there, number, number_there] = numbers[..] else { return None };
        let kind = (*kind).to_owned();
        Some(Iteration { agent, kind, user, user_there, number, number_there })
    };
    ran.stderr.lines().filter_map(read).collect()
}

#[test]
fn a_script_on_agents_is_one_test() {
    let (nats, lab) = (Nats::start(), lab());
    let three = agents(&nats, &["a", "b", "c"], SCRIPTS);
    let script = Scripts::new(WHOLE)
        .with("lib.js", "export const greeting = 'hello';")
        .with("rows.json", "[1, 2, 3]");
    let ran = start(&mut script.run(&nats, &lab, "-e WANTED=111 --agents 3")).wait();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let routes = lab.stats().routes;
    assert_eq!((routes["/fast"], routes["/bytes"]), (111, 2), "setup and teardown ran once");
    let figures = metrics(&ran);
    assert_eq!((count(&figures, "own"), count(&figures, "iterations")), (111, 111));
    assert_eq!(count(&figures, "http_reqs"), 113);
    assert_eq!(figures["checks"]["values"]["passes"], 5 * 111);
    assert_eq!(figures["vus_max"]["values"]["value"], 68);
    assert!(figures["dropped_iterations"].is_null(), "{figures}");
    // Users and iterations have numbers of their own over all agents, and on each.
    let done = iterations(&ran);
    assert_eq!(done.len(), 111, "{ran:?}");
    for (kind, users, total) in
        [("rate", 1..=60, 60), ("shared", 61..=63, 31), ("users", 64..=68, 20)]
    {
        let of: Vec<_> = done.iter().filter(|one| one.kind == kind).collect();
        let numbers: BTreeSet<_> = of.iter().map(|one| one.number).collect();
        assert_eq!((of.len(), numbers.len()), (total, total), "{kind}");
        assert!(of.iter().all(|one| users.contains(&one.user)), "{of:?}");
        let there: BTreeSet<_> = of.iter().map(|one| (&one.agent, one.number_there)).collect();
        assert_eq!(there.len(), total, "{of:?}");
    }
    let mut each_user = BTreeMap::<u64, BTreeSet<(&str, u64)>>::new();
    for one in &done {
        each_user.entry(one.user).or_default().insert((&one.agent, one.user_there));
    }
    assert!(each_user.values().all(|places| places.len() == 1), "{each_user:?}");
    assert!((64..=68).all(|user| each_user.contains_key(&user)), "{each_user:?}");
    let on: BTreeSet<_> = done.iter().map(|one| one.agent.as_str()).collect();
    assert_eq!(on, ["a", "b", "c"].into());
    // One machine makes the same of it.
    let mut alone = script.run(&nats, &lab, "-e WANTED=111");
    let here = start(alone.env_remove("GAKE_FLEET_TOKEN")).wait();
    let alone = metrics(&here);
    for path in ["/own/values/count", "/own{kind:users}/values/count", "/iterations/values/count"] {
        assert_eq!(figures.pointer(path), alone.pointer(path), "{path}");
    }
    assert_eq!(figures["checks"], alone["checks"]);
    assert_eq!(here.code, Some(0), "{here:?}");
    // A threshold on the figures of all decides the exit code.
    let missed = start(&mut script.run(&nats, &lab, "-e WANTED=112 --agents 2 -q")).wait();
    assert_eq!(missed.code, Some(99), "{missed:?}");
    assert!(missed.stderr.contains("thresholds on metrics 'own' have been crossed"), "{missed:?}");
    assert_eq!(lab.stats().routes["/fast"], 333);
    end(three);
}

#[test]
fn an_agent_has_as_much_of_a_script_as_it_weighs() {
    let (nats, lab) = (Nats::start(), lab());
    let mut two = agents(&nats, &["a"], &[SCRIPTS, &["--weight", "3"]].concat());
    two.extend(agents(&nats, &["b"], SCRIPTS));
    let script = Scripts::new(
        "
import http from 'k6/http';
import exec from 'k6/execution';

export const options = {
  scenarios: {
    rate: { executor: 'constant-arrival-rate', rate: 20, duration: '2s', preAllocatedVUs: 40 },
  },
};

export default function () {
  http.get(`${__ENV.BASE}/fast`);
  const { iterationInTest, iterationInInstance } = exec.scenario;
  const { idInTest, idInInstance } = exec.vu;
  console.log(`rate ${idInTest} ${idInInstance} ${iterationInTest} ${iterationInInstance}`);
}",
    );
    let ran = start(&mut script.run(&nats, &lab, "--agents 2")).wait();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let done = iterations(&ran);
    let of = |name: &str| done.iter().filter(|one| one.agent == name).collect::<Vec<_>>();
    for (name, total) in [("a", 30), ("b", 10)] {
        let own = of(name);
        let there: BTreeSet<_> = own.iter().map(|one| one.number_there).collect();
        assert_eq!((own.len(), there.len()), (total, total), "{own:?}");
        // Users are numbered from 1 on each agent.
        assert!(own.iter().all(|one| (1..=total as u64).contains(&one.user_there)), "{own:?}");
    }
    let numbers: BTreeSet<_> = done.iter().map(|one| one.number).collect();
    assert_eq!(numbers, (0..40).collect());
    end(two);
}

#[test]
fn a_script_connects_only_to_what_its_agent_allows() {
    let (nats, lab) = (Nats::start(), lab());
    let flags = [SCRIPTS, &["--max-connections", "2"]].concat();
    let one = agents(&nats, &["one"], &flags);
    // A server that must not be reached, and one that redirects there.
    let other = TcpListener::bind("127.0.0.2:0").unwrap();
    other.set_nonblocking(true).unwrap();
    let target = other.local_addr().unwrap();
    let redirecting = TcpListener::bind("127.0.0.1:0").unwrap();
    let redirect = redirecting.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = redirecting.accept().unwrap();
        let _ = stream.read(&mut [0; 4096]);
        let head = "HTTP/1.1 302 Found\r\nContent-Length: 0\r\nConnection: close";
        write!(stream, "{head}\r\nLocation: http://{target}/\r\n\r\n").unwrap();
    });
    let script = Scripts::new(
        "
import http from 'k6/http';
import ws from 'k6/ws';
import grpc from 'k6/net/grpc';
import { check } from 'k6';

export default function () {
  const is_refused = (answer) => answer.error_code === 1110 && answer.error.includes('--allow');
  const error_of = (call) => { try { return `${call().error}` } catch (error) { return `${error}` } };
  check(null, {
    request: () => is_refused(http.get(`http://${__ENV.OTHER}/`)),
    redirect: () => is_refused(http.get(`http://${__ENV.REDIRECT}/`)),
    ws: () => error_of(() => ws.connect(`ws://${__ENV.OTHER}/`, {}, () => {})).includes('not_allowed'),
    grpc: () => {
      const client = new grpc.Client();
      const refused = error_of(() => client.connect(__ENV.OTHER, { plaintext: true }));
      return refused.includes('not_allowed');
    },
    allowed: () => http.get(`${__ENV.BASE}/fast`).status === 200,
    connections: () => {
      const url = `${__ENV.BASE}/delay/300ms`;
      const answers = http.batch([url, url, url, url].map((url) => ['GET', url]));
      const beyond = answers.filter((answer) => answer.status === 0);
      return beyond.length === 2
        && beyond.every((answer) => answer.error.includes('--max-connections'));
    },
  });
}
",
    );
    let flags = format!("--agents 1 -e OTHER={target} -e REDIRECT={redirect}");
    let ran = start(&mut script.run(&nats, &lab, &flags)).wait();
    let figures = metrics(&ran);
    let checks = &figures["checks"]["values"];
    assert_eq!(
        (checks["passes"].as_u64(), checks["fails"].as_u64()),
        (Some(6), Some(0)),
        "{ran:?}"
    );
    let connection = other.accept().map_err(|error| error.kind());
    assert!(matches!(connection, Err(ErrorKind::WouldBlock)), "{connection:?}");
    let stats = lab.stats();
    assert_eq!((stats.routes["/fast"], stats.routes["/delay"]), (1, 2));
    // Files of the agent's machine are not there, whatever the script asks for there.
    let reading = Scripts::new(
        "
if (__VU > 0) open('/etc/hostname');
export default function () {}
",
    );
    let ran = start(&mut reading.run(&nats, &lab, "--agents 1")).wait();
    assert_eq!(ran.code, Some(255), "{ran:?}");
    assert!(
        ran.stderr.contains("agent one refuses the run: user 1 could not be loaded"),
        "{ran:?}"
    );
    end(one);
    // Scripts must be wanted, and have no rate that a limit could bound.
    let one = agents(&nats, &["plain"], HERE);
    let short = &["-e", "OTHER=x", "--agents", "1", "--agents-wait", "1500ms"];
    let path = script.path();
    let line = [K6, &[path.to_str().unwrap()], short].concat();
    let ran = start(&mut with(&nats, TOKEN, &line)).wait();
    assert!(ran.stderr.contains("agent plain runs no scripts: start it with --scripts"), "{ran:?}");
    assert_eq!(ran.code, Some(255));
    end(one);
    let one = agents(&nats, &["bounded"], &[SCRIPTS, &["--max-rate", "100"]].concat());
    let ran = start(&mut script.run(&nats, &lab, "-e OTHER=x --agents 1")).wait();
    assert!(ran.stderr.contains("no rate that --max-rate could limit"), "{ran:?}");
    assert_eq!(ran.code, Some(255));
    end(one);
}

#[test]
fn a_killed_agent_leaves_a_test_that_says_so() {
    let (nats, lab) = (Nats::start(), lab());
    let mut two = agents(&nats, &["dies", "lives"], SCRIPTS);
    let script = Scripts::new(
        "
import http from 'k6/http';
export const options = { scenarios: { rate: {
  executor: 'constant-arrival-rate', rate: 50, duration: __ENV.LONG ? '6s' : '3s',
  preAllocatedVUs: 300,
} } };
export function setup() { http.get(`${__ENV.BASE}/bytes/1`) }
export function teardown() { http.get(`${__ENV.BASE}/bytes/1`) }
export default function () { http.get(`${__ENV.BASE}/fast`) }
",
    );
    let run = start(&mut script.run(&nats, &lab, "--agents 2"));
    eventually("some requests are there", || lab.stats().requests > 20);
    two.remove(0).signal(Signal::KILL);
    let ran = run.wait();
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.stderr.contains("agents were lost"), "{ran:?}");
    assert!(!ran.stderr.contains("Insufficient VUs"), "{ran:?}");
    let figures = metrics(&ran);
    let (made, dropped) = (count(&figures, "iterations"), count(&figures, "dropped_iterations"));
    assert_eq!(made + dropped, 150, "{figures}");
    assert!(dropped > 0 && made >= 75, "the other made all of its own: {figures}");
    assert_eq!(lab.stats().routes["/bytes"], 2, "teardown ran");
    assert_eq!(count(&figures, "http_reqs"), made + 2);
    assert!(lab.stats().routes["/fast"] >= made, "it may have made more than it reported");
    // Other agents take over a leaving agent's iterations from the next second on.
    let third = agents(&nats, &["quits"], SCRIPTS);
    let seen = lab.stats().routes["/fast"];
    let run = start(&mut script.run(&nats, &lab, "--agents 2 --on-loss redistribute -e LONG=1"));
    eventually("some requests are there", || lab.stats().routes["/fast"] > seen + 20);
    end(third);
    let figures = metrics(&run.wait());
    let (made, dropped) = (count(&figures, "iterations"), count(&figures, "dropped_iterations"));
    assert_eq!(made + dropped, 300, "{figures}");
    assert!(made > 150, "the other made more than its own: {figures}");
    end(two);
}

#[test]
fn a_script_ends_the_test_on_all_agents() {
    let (nats, lab) = (Nats::start(), lab());
    let two = agents(&nats, &["a", "b"], SCRIPTS);
    let script = Scripts::new(
        "
import http from 'k6/http';
import exec from 'k6/execution';
export const options = { vus: 4, duration: '100s', gracefulStop: '0s' };
export function teardown() { http.get(`${__ENV.BASE}/bytes/1`) }
export default function () {
  http.get(`${__ENV.BASE}/delay/20ms`);
  if (__ENV.HOW === 'fail') { exec.test.fail('not good'); }
  if (exec.vu.idInTest === 2 && exec.vu.iterationInScenario === 3) exec.test.abort('enough');
}
",
    );
    let ran = start(&mut script.run(&nats, &lab, "--agents 2")).wait();
    assert_eq!(ran.code, Some(108), "{ran:?}");
    assert!(ran.stderr.contains("test aborted: enough"), "{ran:?}");
    assert!(ran.took.as_secs() < 60, "{ran:?}");
    assert_eq!(lab.stats().routes["/bytes"], 1, "teardown ran");
    let figures = metrics(&ran);
    assert!(count(&figures, "iterations") >= 4, "{figures}");
    let failing = "--agents 2 -e HOW=fail --duration 1s";
    let ran = start(&mut script.run(&nats, &lab, failing)).wait();
    assert!(ran.stderr.contains("test marked as failed: not good"), "{ran:?}");
    assert_eq!(ran.code, Some(108), "{ran:?}");
    let failing = "--agents 2 -e HOW=fail -u 1 -i 2";
    let ran = start(&mut script.run(&nats, &lab, failing)).wait();
    assert_eq!(ran.code, Some(110), "{ran:?}");
    end(two);
}

#[test]
fn what_agents_cannot_do_of_a_script_is_refused_by_name() {
    let lab = lab();
    let script = Scripts::new(
        "
import http from 'k6/http';
export function setup() { if (__ENV.THROWS) throw new Error('no start'); }
export default function () { http.get(`${__ENV.BASE}/fast`) }
",
    );
    let path = script.path();
    let base = format!("BASE=http://{}", lab.addr());
    let local = |flags: &str| {
        let mut args = [K6, &[path.to_str().unwrap(), "-e", &base, "--local", "2"]].concat();
        args.extend(words(flags));
        start(&mut gake(&args)).wait()
    };
    for (flags, why) in [
        ("--out json=x.json", "agents do not support --out"),
        ("--secret-source mock=a=b", "agents do not support --secret-source"),
        ("--script-profile", "agents do not support --script-profile"),
        ("--body-memory 1GB", "agents do not support --body-memory"),
        ("--local-ips 127.0.0.1", "agents do not support --local-ips"),
        ("--execution-segment 0:1/2", "agents do not support --execution-segment"),
        ("--attach-within 5m", "the agents of --local end with this process"),
    ] {
        let ran = local(flags);
        assert!(ran.stderr.contains(why), "{flags}: {ran:?}");
        assert!(!matches!(ran.code, Some(0)), "{flags}: {ran:?}");
    }
    // If `setup` fails, no agent starts.
    let ran = local("-e THROWS=1");
    assert!(ran.stderr.contains("no start") && !ran.stderr.contains("local-1"), "{ran:?}");
    assert_eq!((ran.code, lab.stats().requests), (Some(107), 0));
    let ran = local("-u 3 -i 20");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!((lab.stats().requests, count(&metrics(&ran), "http_reqs")), (20, 20));
}

#[test]
fn agents_log_every_request_of_a_script() {
    let (nats, lab) = (Nats::start(), lab());
    let script = Scripts::new(
        "import http from 'k6/http';
         export const options = { vus: 4, iterations: 60 };
         export default () => {
             http.get(`${__ENV.BASE}/fast`);
             http.get(`${__ENV.BASE}/status/404`);
         };",
    );
    let logs = ["a", "b"].map(|name| script.0.path().join(format!("{name}.csv")));
    let two = ["a", "b"].iter().zip(&logs).flat_map(|(name, log)| {
        agents(&nats, &[name], &[SCRIPTS, &["--log", log.to_str().unwrap()]].concat())
    });
    let two: Vec<_> = two.collect();
    let ran = start(&mut script.run(&nats, &lab, "--agents 2")).wait();
    assert_eq!(count(&metrics(&ran), "http_reqs"), 120, "{ran:?}");
    end(two);
    let texts = logs.each_ref().map(|log| std::fs::read_to_string(log).unwrap());
    let column = texts[0].lines().next().unwrap().split(',').position(|name| name == "status");
    let column = column.unwrap();
    let statuses = texts.iter().flat_map(|text| text.lines().skip(1));
    let of = |status: &str| {
        let rows = statuses.clone().filter(|row| row.split(',').nth(column) == Some(status));
        rows.count()
    };
    assert_eq!((of("200"), of("404")), (60, 60), "{texts:?}");
    assert!(texts.iter().all(|text| text.lines().count() > 1), "both had a part: {texts:?}");
}
