//! Commands of k6 other than `run`. What k6 2.2 printed is in `commands/`.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crate::common::{Ran, gake, serve_requests, start};

fn k6(args: &[&str], folder: &Path) -> Ran {
    start(gake(&[&["as", "k6"], args].concat()).current_dir(folder)).wait()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/k6/commands")
}

#[test]
fn inspect_prints_what_k6_prints() {
    let read = |name: &str| std::fs::read_to_string(folder().join(name)).unwrap();
    let own = k6(&["inspect", "inspected.js"], &folder());
    assert_eq!((own.code, own.stdout.as_str()), (Some(0), read("own.json").as_str()), "{own:?}");
    let required = k6(&["inspect", "--execution-requirements", "inspected.js"], &folder());
    assert_eq!((required.code, required.stdout), (Some(0), read("required.json")));
    let missing = k6(&["inspect", "missing.js"], &folder());
    assert_eq!(missing.code, Some(255), "{missing:?}");
    assert!(missing.stderr.contains("missing.js"), "{missing:?}");
}

#[test]
fn the_version_of_k6_is_chosen() {
    let here = tempfile::tempdir().unwrap();
    let script = "export default function () {}";
    std::fs::write(here.path().join("s.js"), script).unwrap();
    let outcome = |line: &str| {
        let args: Vec<&str> = line.split_whitespace().collect();
        let ran = k6(&args, here.path());
        (ran.code, ran.stdout + &ran.stderr)
    };
    for (line, code, part) in [
        ("version", 0, "(as k6 2.3; --k6-version 1.8"),
        ("--k6-version 1.8 version", 0, "(as k6 1.8; --k6-version 2.3"),
        ("version --k6-version=3", 255, "is neither 1.8 nor 2.3"),
        ("status", 255, "unknown command \"status\" for \"k6\""),
        ("run --no-summary s.js", 255, "unknown flag: --no-summary"),
        ("run --summary-mode=legacy s.js", 255, "invalid summary mode"),
        ("run --no-summary s.js --k6-version 1.8", 0, "--no-summary has been deprecated"),
        ("run --once -u 2 s.js", 255, "--once cannot be combined with --vus"),
        ("run --scenario other s.js", 104, "not found; available: default"),
        ("features", 0, "freeze-env             Experimental   Freeze __ENV object"),
    ] {
        let (found, printed) = outcome(line);
        assert!(found == Some(code) && printed.contains(part), "{line}: {found:?} {printed}");
    }
    let chosen = start(gake(&["as", "k6", "version"]).env("GAKE_K6_VERSION", "1.8")).wait();
    assert!(chosen.stdout.contains("as k6 1.8"), "{chosen:?}");
}

#[test]
fn new_scripts_run() {
    let folder = tempfile::tempdir().unwrap();
    for (args, name) in
        [(&["new"][..], "script.js"), (&["new", "--template", "protocol", "p.js"], "p.js")]
    {
        let made = k6(args, folder.path());
        assert_eq!(made.code, Some(0), "{made:?}");
        assert!(made.stdout.starts_with(&format!("New script created: {name} (")), "{made:?}");
        let again = k6(args, folder.path());
        assert!(again.code == Some(255) && again.stderr.contains("--force"), "{again:?}");
        let forced = k6(&[args, &["-f"]].concat(), folder.path());
        assert_eq!(forced.code, Some(0), "{forced:?}");
    }
    let lab = gake_lab::Lab::start(gake_lab::LabConfig::default()).unwrap();
    let url = format!("URL=http://{}/", lab.addr());
    let flags = ["run", "-e", &url, "-i", "1", "-u", "1"];
    for name in ["script.js", "p.js"] {
        let ran = k6(&[&flags[..], &[name]].concat(), folder.path());
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    for (args, part) in [
        (&["new", "--template", "nope", "x.js"][..], "invalid template type"),
        (&["new", "a.js", "b.js"], "received 2"),
    ] {
        let refused = k6(args, folder.path());
        assert!(refused.code == Some(255) && refused.stderr.contains(part), "{refused:?}");
    }
}

/// Whether a run printed this line twice, once for each iteration.
fn says_twice(ran: &Ran, line: &str) -> bool {
    ran.code == Some(0) && ran.stderr.matches(line).count() == 2
}

#[test]
fn archives_run_wherever_they_are() {
    // Written by k6 1.8.1.
    let theirs = k6(&["run", "--quiet", "archived.tar"], &folder());
    assert!(says_twice(&theirs, "msg=\"hello 4 1\""), "{theirs:?}");
    let there = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(there.path().join(name), text).unwrap();
    write("double.js", "exports.twice = (n) => 2 * n;");
    write("data.txt", "hello");
    write(
        "journey.js",
        "import { twice } from './double.js';
        const text = open('data.txt');
        export const options = { vus: 2, iterations: 2 };
        export default function () { console.log(text, twice(2), __ENV.A); }",
    );
    let here = tempfile::tempdir().unwrap();
    let archive = here.path().join("a.tar");
    let archive = archive.to_str().unwrap();
    let made = k6(&["archive", "-e", "A=1", "-O", archive, "journey.js"], there.path());
    assert_eq!((made.code, made.stdout.as_str()), (Some(0), ""), "{made:?}");
    drop(there);
    let ours = start(gake(&["run", archive]).current_dir(here.path())).wait();
    assert!(says_twice(&ours, "msg=\"hello 4 1\""), "{ours:?}");
    let other = k6(&["run", "--quiet", "-e", "A=2", archive], here.path());
    assert!(says_twice(&other, "msg=\"hello 4 2\""), "{other:?}");
}

#[test]
fn a_paused_run_is_resumed_and_scaled_through_the_api() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("s.js");
    std::fs::write(
        &script,
        "import { check, sleep } from 'k6';
        export const options = { scenarios: { a: {
            executor: 'externally-controlled', vus: 1, maxVUs: 3, duration: '100s',
        } } };
        export default function () { check(1, { one: (x) => x === 1 }); sleep(0.01); }",
    )
    .unwrap();
    // An address of its own: connections of other tests take ports of 127.0.0.1.
    let port = TcpListener::bind("127.65.65.1:0").unwrap().local_addr().unwrap().port();
    let address = format!("127.65.65.1:{port}");
    let version = ["--k6-version", "1.8", "--address", &address];
    let ask = |args: &[&str]| k6(&[args, &version].concat(), folder.path());
    let unserved = ask(&["status"]);
    assert!(unserved.stderr.contains("connection refused; start one"), "{unserved:?}");
    let args = ["as", "k6", "run", "--paused", "--address", &address, script.to_str().unwrap()];
    let run = start(gake(&args).env("GAKE_K6_VERSION", "1.8"));
    let until = |wanted: &str, args: &[&str]| {
        for _ in 0..3_000 {
            let answer = ask(args);
            if answer.stdout.contains(wanted) {
                return answer;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        panic!("{wanted} never comes: {:?}", ask(args));
    };
    until("paused: \"true\"", &["status"]);
    let again = ask(&["pause"]);
    assert!(again.code == Some(255) && again.stderr.contains("paused already"), "{again:?}");
    assert_eq!(ask(&["resume"]).code, Some(0));
    until("running: true", &["status"]);
    // The scheduling policy is field 41 (proc_pid_stat(5)), after the name in parentheses.
    let tasks = std::fs::read_dir(format!("/proc/{}/task", run.pid())).unwrap();
    let policies: Vec<_> = tasks
        .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("stat")).ok())
        .filter_map(|stat| Some(stat.split_once("(gake-api) ")?.1.split(' ').nth(38)?.to_owned()))
        .collect();
    assert_eq!(policies, ["5"], "the API is of the lowest class, and delays no request");
    let scaled = until("vus: \"3\"", &["scale", "--vus", "3"]);
    assert_eq!(scaled.code, Some(0), "{scaled:?}");
    let many = ask(&["scale", "--vus", "9"]);
    assert!(many.stderr.contains("must be less than or equal to the number of maxVUs (3)"));
    until("vus: \"3\"", &["status"]);
    let most = ask(&["scale", "--max", "4"]);
    assert!(most.stderr.contains("3 users of maxVUs"), "{most:?}");
    let stats = until("name: checks", &["stats"]);
    assert!(stats.stdout.contains("    rate: 1\n"), "{stats:?}");
    let stop = "{\"data\":{\"attributes\":{\"stopped\":true}}}";
    let answer = patched(&address, stop);
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let ended = run.wait();
    assert_eq!(ended.code, Some(103), "{ended:?}");
    assert!(ended.stderr.contains("stopped from REST API"), "{ended:?}");
}

/// The API's response to a change.
fn patched(address: &str, body: &str) -> String {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let length = body.len();
    let head = format!(
        "PATCH /v1/status HTTP/1.1\r\nHost: {address}\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn deps_lists_what_a_script_imports() {
    let folder = tempfile::tempdir().unwrap();
    // As k6 2.2 prints it, but that no build is needed.
    let here = folder.path().canonicalize().unwrap().display().to_string();
    std::fs::write(folder.path().join("lib.js"), "export { check } from 'k6';").unwrap();
    let script = "\"use k6 > 1.0\";
        import http from 'k6/http';
        import dns from 'k6/x/dns';
        import { check } from './lib.js';
        const metrics = require('k6/metrics');
        export default function () {}";
    std::fs::write(folder.path().join("s.js"), script).unwrap();
    let text = k6(&["deps", "s.js"], folder.path().canonicalize().unwrap().as_path());
    let expected = format!(
        "Build Dependencies:\n  k6: >1.0\n  k6/x/dns: *\n\nImports:\n  file://{here}/lib.js\n  \
        file://{here}/s.js\n  k6\n  k6/http\n  k6/x/dns\n\nCustom Build Required: no\n"
    );
    assert_eq!((text.code, text.stdout), (Some(0), expected));
    let json = k6(&["deps", "--json", "s.js"], folder.path());
    let start = "{\n  \"buildDependencies\": {\n    \"k6\": \">1.0\",";
    assert!(json.stdout.starts_with(start), "{json:?}");
    assert!(json.stdout.ends_with("\n  \"customBuildRequired\": false\n}\n"), "{json:?}");
    let missing = k6(&["deps", "none.js"], folder.path());
    assert!(missing.code == Some(255) && missing.stderr.contains("none.js"), "{missing:?}");
}

#[test]
fn a_lock_is_written_and_verified() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let modules = cache.join("gake/modules");
    std::fs::create_dir_all(&modules).unwrap();
    // The cache of https://a.test/x.js, as after an earlier run with a network.
    let name = "9f73badbd648a18f09f3e3421596304fb04e29a7d066cb60626e3ac0053b2e36.js";
    let url = "https://a.test/x.js";
    let cached = modules.join(name);
    std::fs::write(&cached, "export const x = 1;").unwrap();
    let script = format!("import {{ x }} from '{url}'; export default () => console.log(x);");
    std::fs::write(folder.path().join("s.js"), script).unwrap();
    let run = |args: &[&str]| {
        let args = [&["as", "k6"], args].concat();
        start(gake(&args).current_dir(folder.path()).env("XDG_CACHE_HOME", &cache)).wait()
    };
    let locked = run(&["deps", "--lock", "s.js"]);
    assert!(locked.code == Some(0) && locked.stderr.contains("has 1 modules"), "{locked:?}");
    let lock = std::fs::read_to_string(folder.path().join("s.js.lock")).unwrap();
    assert!(lock.ends_with(&format!("  {url}\n")), "{lock}");
    assert_eq!(run(&["run", "--quiet", "s.js"]).code, Some(0));
    std::fs::write(folder.path().join("s.js.lock"), "# none\n").unwrap();
    let unlocked = run(&["run", "--quiet", "s.js"]);
    assert!(unlocked.stderr.contains("is not in s.js.lock"), "{unlocked:?}");
}

/// The heads and bodies of requests.
type TakenRequests = Arc<Mutex<Vec<(String, Vec<u8>)>>>;

/// A collector that takes everything, and its port.
fn collector() -> (u16, TakenRequests) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let requests = TakenRequests::default();
    let taken = Arc::clone(&requests);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let taken = Arc::clone(&taken);
            std::thread::spawn(move || {
                serve_requests(stream, |head, body| {
                    taken.lock().unwrap().push((head.to_lowercase(), body));
                    "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_owned()
                });
            });
        }
    });
    (port, requests)
}

#[test]
fn metrics_go_to_a_collector_of_opentelemetry() {
    let (port, requests) = collector();
    let folder = tempfile::tempdir().unwrap();
    let script = "import { check } from 'k6';
        export default function () { check(1, { ok: () => true, no: () => false }); }";
    std::fs::write(folder.path().join("s.js"), script).unwrap();
    let args = ["as", "k6", "run", "--quiet", "--out", "opentelemetry", "s.js"];
    let run = |protocol: &str| {
        let mut command = gake(&args);
        command
            .current_dir(folder.path())
            .env("K6_OTEL_EXPORTER_PROTOCOL", protocol)
            .env("K6_OTEL_HTTP_EXPORTER_INSECURE", "true")
            .env("K6_OTEL_HTTP_EXPORTER_ENDPOINT", format!("127.0.0.1:{port}"))
            .env("K6_OTEL_METRIC_PREFIX", "own_")
            .env("K6_OTEL_HEADERS", "X-A=b%20c");
        start(&mut command).wait()
    };
    assert_eq!(run("http/protobuf").code, Some(0));
    let requests = requests.lock().unwrap();
    let (head, body) = requests.last().unwrap();
    assert!(head.starts_with("post /v1/metrics http/1.1") && head.contains("x-a: b c"), "{head}");
    assert!(head.contains("content-type: application/x-protobuf"), "{head}");
    let body = String::from_utf8_lossy(body);
    for part in ["own_iterations", "own_checks.total", "nonzero", "service.name"] {
        assert!(body.contains(part), "{part}: {body}");
    }
    let refused = run("http/json");
    assert!(refused.stderr.contains("only \\\"grpc\\\" and"), "{refused:?}");
}

#[test]
fn log_times_have_nanoseconds_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let script = "export default () => console.log('x')";
    std::fs::write(folder.path().join("s.js"), script).unwrap();
    let times = |args: &[&str], variable: &str| {
        let args = [&["as", "k6", "run", "--quiet", "s.js"], args].concat();
        let mut command = gake(&args);
        start(command.current_dir(folder.path()).env("K6_LOG_NS_TIMESTAMPS", variable))
            .wait()
            .stderr
    };
    let seconds = "time=\"2026-01-01T00:00:00".len();
    for (args, variable, next) in
        [(&[][..], "", 'Z'), (&["--log-ns-timestamps"], "", '.'), (&[], "true", '.')]
    {
        let log = times(args, variable);
        assert_eq!(log[seconds..].chars().next(), Some(next), "{log}");
    }
}
