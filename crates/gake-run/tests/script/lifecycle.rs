//! The life cycle of a script: loading, `setup`, iterations, their end, `teardown`.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gake_engine::Stop;
use gake_k6::files::ScriptFiles;
use gake_k6::secrets::Secrets;
use gake_k6::test::{LogLevel, LogLine, ScriptLog, UserSettings};
use gake_run::Interrupt;
use gake_run::script::{LoadedScript, ScriptRunError};
use gake_run::spec::Load;
use gake_text::redact::Redactor;

use crate::support::{Metric, ScriptCase, lab};

#[test]
fn setup_gives_each_user_its_own_data() {
    let lab = lab();
    let mut case = ScriptCase::of(
        "import http from 'k6/http';
         export function setup() { http.get('BASE/fast'); return { n: 1, at: new Date(0) }; }
         export default function (data) { data.n += 1; console.log(__VU, __ITER, data.n, data.at); }
         export function teardown(data) { http.get('BASE/fast'); console.log('end', data.n); }",
    );
    case.load = Load::PerUser { users: 2, iterations: 2 };
    let ran = case.run(Some(&lab));
    let mut lines = ran.messages(LogLevel::Info);
    assert_eq!(lines.pop(), Some("end 1"));
    lines.sort_unstable();
    let at = "1970-01-01T00:00:00Z";
    assert_eq!(lines, ["1 0 2", "1 1 3", "2 0 2", "2 1 3"].map(|line| format!("{line} {at}")));
    assert_eq!(ran.metric("http_reqs", [("group", "::setup")]).samples, 1);
    assert_eq!(ran.metric("http_reqs", [("group", "::teardown")]).samples, 1);
    assert_eq!(ran.run().tally.counts.sent, 2);
    assert_eq!(lab.shutdown().requests, 2);
}

#[test]
fn what_an_iteration_throws_is_logged_with_its_place() {
    let mut case = ScriptCase::of(
        "import { group } from 'k6';
         function deep() { group('g', () => { throw new Error('boo') }) }
         export default function () { deep() }",
    );
    case.load = Load::Shared { users: 1, iterations: 3 };
    let ran = case.run(None);
    let errors = ran.messages(LogLevel::Error);
    assert_eq!(errors.len(), 3);
    let first = errors[0];
    assert!(first.starts_with("Error: boo\n\tat "), "{first}");
    for place in ["script.js:2:", "at deep (file://", "script.js:3:"] {
        assert!(first.contains(place), "{place}: {first}");
    }
    assert_eq!(ran.metric("iterations", []).samples, 3, "an exception is an end");
    assert_eq!(ran.run().tally.counts.started, 3);
}

#[test]
fn bad_scripts_say_where() {
    for (text, expected) in [
        ("export default function () {\n  let x = ;\n}", "script.js:2:"),
        (
            "import x from 'k6/experimental/redis'; export default () => 1",
            "k6/experimental/redis has been removed",
        ),
        ("import x from 'k6/nothing'; export default () => 1", "unknown modules [\"k6/nothing\"]"),
        ("import x from 'lodash'; export default () => 1", "\"lodash\""),
        ("import x from './no.js'; export default () => 1", "./no.js"),
        ("throw new TypeError('early')", "TypeError: early"),
    ] {
        let ran = ScriptCase::of(text).run(None);
        let Err(ScriptRunError::Load(error)) = ran.result else { panic!("{text}") };
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[test]
fn setup_that_throws_ends_the_test() {
    let ran = ScriptCase::of(
        "export function setup() { throw new Error('no') }
         export default () => console.log('ran')",
    )
    .run(None);
    let end = ran.end();
    assert!(matches!(end.setup, Err(ScriptRunError::Thrown { .. })), "{end:?}");
    assert_eq!(ran.run().tally.counts.started, 0);
    assert_eq!(ran.messages(LogLevel::Info), [""; 0]);
}

#[test]
fn an_endless_iteration_delays_no_other_user_and_ends_with_the_test() {
    let lab = lab();
    let mut case = ScriptCase::of(
        "import http from 'k6/http';
         export default function () { if (__VU === 1) { for (;;) {} } http.get('BASE/fast'); }",
    );
    case.load = Load::closed(8);
    case.duration = Some(Duration::from_secs(1));
    case.graceful_stop = Duration::from_millis(300);
    let start = Instant::now();
    let ran = case.run(Some(&lab));
    assert!(start.elapsed() < Duration::from_secs(20));
    let counts = ran.run().tally.counts;
    assert!(counts.sent > 50, "the others go on: {}", counts.sent);
    assert_eq!(counts.sent, lab.shutdown().requests);
    assert_eq!(ran.metric("http_reqs", []).samples, counts.sent);
    assert!(ran.run().tally.counts.started > counts.sent, "user 1 began and was cut short");
}

#[test]
fn requests_under_way_at_the_end_are_counted() {
    let lab = lab();
    let interrupt = Interrupt::default();
    let mut case = ScriptCase::new("http.get('BASE/delay/20ms'); http.get('BASE/hang');");
    case.load = Load::closed(6);
    case.duration = Some(Duration::from_secs(60));
    case.interrupt = Some(interrupt.clone());
    let stopper = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(700));
        interrupt.stop(Stop::Now);
    });
    let ran = case.run(Some(&lab));
    stopper.join().unwrap();
    let counts = ran.run().tally.counts;
    assert_eq!((counts.sent, counts.unfinished), (12, 6), "{counts:?}");
    assert_eq!(ran.metric("http_reqs", []), Metric { samples: 12, sum: 12.0 });
    assert_eq!(ran.metric("iterations", []).samples, 0);
}

#[test]
fn iterations_cut_short_leave_nothing_behind() {
    let lab = lab();
    // Dropping a runtime while script values are alive aborts the process.
    for body in [
        "await http.asyncRequest('GET', 'BASE/hang')",
        "await Promise.all([1, 2].map(() => http.asyncRequest('GET', 'BASE/hang')))",
        "await new Promise((resolve) => setTimeout(resolve, 1e6))",
        "setInterval(() => {}, 5); await new Promise(() => {})",
        "for (const x of (function* () { for (;;) { http.get('BASE/hang'); yield 1 } })()) x()",
        "[3, 1, 2].sort(() => http.get('BASE/hang').status)",
        "JSON.stringify({ toJSON: () => http.get('BASE/hang').body })",
        "'abc'.replace(/b/g, () => http.get('BASE/hang').body)",
        "http.batch(['BASE/hang', 'BASE/hang'])",
        "try { group('a', () => http.get('BASE/hang')) } finally { http.get('BASE/hang') }",
        "class A { static #x = 1; get y() { return http.get('BASE/hang') } } new A().y",
    ] {
        let mut case = ScriptCase::of(&format!(
            "import http from 'k6/http'; import {{ group }} from 'k6';
             export default async function () {{ {body} }}"
        ));
        case.load = Load::closed(2);
        case.duration = Some(Duration::from_millis(50));
        case.graceful_stop = Duration::from_millis(50);
        let ran = case.run(Some(&lab));
        let counts = ran.run().tally.counts;
        assert_eq!(counts.sent, counts.unfinished, "{body}");
        assert_eq!(ran.metric("iterations", []).samples, 0, "{body}");
        assert_eq!(ran.messages(LogLevel::Error), [""; 0], "{body}");
    }
}

#[test]
fn a_script_ends_the_test() {
    let mut case = ScriptCase::of(
        "import exec from 'k6/execution';
         export default function () {
           if (exec.scenario.iterationInTest === 3) {
             try { exec.test.abort('enough') } catch (e) { console.log('caught') }
           }
         }
         export function teardown() { console.log('end') }",
    );
    case.load = Load::Shared { users: 1, iterations: 100_000_000 };
    let interrupt = Interrupt::default();
    case.interrupt = Some(interrupt);
    let ran = case.run(None);
    assert_eq!(ran.messages(LogLevel::Info), ["end"], "nothing catches an abort");
    assert!(ran.metric("iterations", []).samples >= 3);
}

#[test]
fn files_are_modules_of_either_kind() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [
        (
            "esm.js",
            "import { inner } from './lib/inner.js'; export const a = inner + 1; export default 5",
        ),
        (
            "cjs.js",
            "const http = require('k6/http'); module.exports = { b: typeof http.get, default: 7 }",
        ),
        ("data.json", "{ \"c\": [1, 2] }"),
        ("plain.txt", "text"),
    ] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    std::fs::create_dir(folder.path().join("lib")).unwrap();
    std::fs::write(folder.path().join("lib/inner.js"), "export const inner = 2").unwrap();
    let ran = ScriptCase::of(
        "import five, { a } from './esm.js'; import seven, { b } from './cjs.js';
         import data from './data.json'; import { SharedArray } from 'k6/data';
         const text = open('./plain.txt'); const bytes = open('plain.txt', 'b').byteLength;
         const required = require('./cjs.js').default;
         const shared = new SharedArray('s', () => [{ x: 1 }, { x: 2 }]);
         export default function () {
           console.log(a, five, b, seven, data.c.length, text, bytes, required);
           console.log(shared.length, shared[1].x, shared.map((e) => e.x).join(), [...shared].length);
           try { shared[0] = 1 } catch (e) { console.log(e.name) }
           try { open('./plain.txt') } catch (e) { console.log('no open') }
           try { require('./cjs.js') } catch (e) { console.log('no require') }
         }",
    )
    .run_in(None, folder.path());
    assert_eq!(
        ran.messages(LogLevel::Info),
        ["3 5 function 7 2 text 4 7", "2 2 1,2 2", "TypeError", "no open", "no require"],
        "{:?}",
        ran.result
    );
}

#[test]
fn metrics_of_a_script_are_recorded() {
    let ran = ScriptCase::of(
        "import { Counter, Gauge, Rate, Trend } from 'k6/metrics';
         const counter = new Counter('my_counter'), gauge = new Gauge('my_gauge');
         const rate = new Rate('my_rate'), trend = new Trend('my_trend', true);
         export default function () {
           counter.add(2); counter.add(3, { group: 'x' }); gauge.add(7); gauge.add(5);
           rate.add(true); rate.add(0); rate.add(1); trend.add(1.5);
           counter.add('no number');
         }",
    )
    .run(None);
    assert_eq!(ran.metric("my_counter", []), Metric { samples: 2, sum: 5.0 });
    assert_eq!(ran.metric("my_counter", [("group", "x")]).sum, 3.0);
    assert_eq!(ran.metric("my_gauge", []), Metric { samples: 2, sum: 5.0 });
    assert_eq!(ran.metric("my_rate", []), Metric { samples: 3, sum: 2.0 });
    assert_eq!(ran.metric("my_trend", []).sum, 1.5e6, "times are nanoseconds");
    assert_eq!(ran.messages(LogLevel::Warning).len(), 1);
}

#[test]
fn a_module_from_the_network_reads_no_local_file() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("data.txt"), "mine").unwrap();
    std::fs::write(at("local.js"), "export const x = 1").unwrap();
    let main = "import { x } from 'https://a.test/m.js'; const own = open('./data.txt'); \
                export default function () {}";
    let load = |module: &str| {
        let module = module.replace("FOLDER", folder.path().to_str().unwrap());
        let path = at("script.js");
        let files = ScriptFiles::on_disk(None)
            .with(&path, main.as_bytes().to_vec())
            .with(Path::new("https://a.test/m.js"), module.into_bytes());
        let log: ScriptLog = Arc::new(|_: &LogLine| ());
        let early = UserSettings { redactor: Redactor::off(), ..UserSettings::default() };
        let loaded = LoadedScript::load(&path, files, early, Secrets::none(), log);
        loaded.map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(load("export const x = 1"), Ok(()), "the script itself may");
    for module in [
        "export const x = open('FOLDER/data.txt')",
        "export const x = open('file://FOLDER/data.txt')",
        "export const x = ['FOLDER/data.txt'].map((path) => open(path))",
        "export const x = new Function('path', 'return open(path)')('FOLDER/data.txt')",
        "export { x } from 'file://FOLDER/local.js'",
        "export const x = require('file://FOLDER/local.js').x",
        "import fs from 'k6/experimental/fs'; export const x = await fs.open('FOLDER/data.txt')",
        "import grpc from 'k6/net/grpc'; new grpc.Client().load(null, 'data.txt'); export const x = 1",
    ] {
        let refused = load(module).unwrap_err();
        assert!(refused.contains("not allowed to load local file"), "{module}: {refused}");
    }
}
