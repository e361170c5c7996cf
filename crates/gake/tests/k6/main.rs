//! Small scripts, each run by gake and compared with what k6 2.2 made of it; of those that name
//! another version (`GAKE_K6_VERSION`), with what k6 1.8.1 made of it.
//!
//! `cases/` has the scripts, `recorded/` what k6 did, `ledger.toml` every difference and why there
//! is one. `cargo xtask k6 --record` runs the real k6 again and writes `recorded/`;
//! `cargo xtask k6 --live` compares with the real one instead of with what is recorded.

#![allow(clippy::unwrap_used, clippy::expect_used)] // the helpers are tests too

mod beside;
mod case;
mod commands;
#[path = "../common/mod.rs"]
mod common;
mod convert;
mod extensions;
mod hostile;
mod ledger;
mod normal;
mod ntlm;
mod observe;
mod points;
mod stdout;
mod wire;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use case::Case;
use common::{gake, start};
use gake_lab::{Lab, LabConfig};
use ledger::Ledger;
use observe::{Observed, Tool};

/// Scripts that run at once; most of them wait.
const AT_ONCE: usize = 4;

/// The real k6, when one is to be asked, and whether what it does is to be written down.
fn real_k6() -> Option<(PathBuf, bool)> {
    let path = |variable| std::env::var_os(variable).map(PathBuf::from);
    path("GAKE_K6_RECORD").map(|k6| (k6, true)).or_else(|| Some((path("GAKE_K6_LIVE")?, false)))
}

fn lab() -> Lab {
    Lab::start(LabConfig { cores: 2, ..LabConfig::default() }).unwrap()
}

fn tls_lab() -> Lab {
    Lab::start(LabConfig { cores: 1, tls: true, ..LabConfig::default() }).unwrap()
}

/// What `make` makes of each case, several at once.
fn of_each<T: Send>(cases: &[Case], make: impl Fn(&Case) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let mut made: Vec<(usize, T)> = thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE)
            .map(|_| {
                scope.spawn(|| {
                    let mut made = Vec::new();
                    loop {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        let Some(case) = cases.get(at) else { return made };
                        made.push((at, make(case)));
                    }
                })
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    made.sort_by_key(|one| one.0);
    made.into_iter().map(|one| one.1).collect()
}

/// Every script of `examples/k6` against a healthy server, with each minute shortened to milliseconds.
#[test]
fn examples_run() {
    let lab = lab();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/k6");
    let mut scripts: Vec<PathBuf> =
        std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    scripts.sort();
    let names: Vec<_> = scripts.iter().map(|path| path.file_stem().unwrap().to_owned()).collect();
    assert_eq!(names, ["breakpoint", "crowd", "load", "smoke", "soak", "spike", "stress"]);
    for script in scripts {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_gake"))
            .args([
                "as",
                "k6",
                "run",
                "--address",
                "",
                "--quiet",
                "-e",
                "MINUTE_MS=25",
                "-e",
                "USERS=4",
                "-e",
                "RATE=20",
                "-e",
            ])
            .arg(format!("URL=http://{}/fast?from=", lab.addr()))
            .arg(&script)
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{}: {printed}", script.display());
        let summary = String::from_utf8_lossy(&output.stdout);
        assert!(summary.contains("100.00%"), "{}: {summary}", script.display());
    }
}

/// A crowd on a pool of threads: the script serves as many users as the command without one, in
/// waves of as many as there are threads.
#[test]
fn a_crowd_comes_in_waves() {
    const USERS: &str = "60";
    let lab = common::Peer::lab(&["--threads", "4", "--service", "const:500ms"]);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/k6/crowd.js");
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_gake"))
        .args([
            "as",
            "k6",
            "run",
            "--address",
            "",
            "--quiet",
            "-e",
            "MINUTE_MS=3000",
            "-e",
            &format!("USERS={USERS}"),
            "-e",
        ])
        .arg(format!("URL={}/fast?from=", lab.url))
        .arg(&script)
        .output()
        .unwrap();
    let summary = String::from_utf8_lossy(&output.stdout);
    let line = summary.lines().find(|line| line.contains("checks_succeeded")).expect("checks");
    let (ok, all) = line.split_once(" out of ").expect("a part of all");
    assert_eq!(all.trim(), USERS, "{summary}");
    let ok: u64 = ok.split_whitespace().next_back().unwrap().parse().unwrap();
    // Those who gave up are still served: the next crowd needs a server of its own.
    let lab = common::Peer::lab(&["--threads", "4", "--service", "const:500ms"]);
    let url = format!("{}/fast", lab.url);
    let once =
        common::ran(&["run", &url, "-c", USERS, "--once", "--timeout", "3s", "-o", "json"]).json();
    // Five or six waves of 500 ms end within 3 s; on a busy machine four.
    for served in [ok, once.count("requests.ok")] {
        assert!((16..=24).contains(&served), "{served} of {USERS}");
    }
}

/// What `gake as k6 run` writes of a script, on both streams.
fn ran(script: &str, args: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("script.js");
    std::fs::write(&path, script).unwrap();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_gake"))
        .args(["as", "k6", "run", "--address", "", "--quiet"])
        .args(args)
        .arg(&path)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

#[test]
fn the_default_function_runs_as_an_open_loop() {
    let script = "function busy(n) { let s = 0; for (let i = 0; i < n; i++) s += i; return s; }
        export default function () { busy(9000); }";
    let flags = ["--rate", "40", "-d", "1s", "-u", "5", "--script-profile"];
    let printed = ran(script, &flags);
    // Everything that is due is run or counted as dropped.
    let count = |name: &str| {
        let line = printed.lines().find(|line| line.trim_start().starts_with(name));
        let count = line.and_then(|line| line.split_whitespace().nth(1));
        count.map_or(0, |count| count.parse::<u64>().unwrap())
    };
    assert_eq!(count("iterations..") + count("dropped_iterations.."), 40, "{printed}");
    let profile = printed.split_once("script profile: ").expect("a profile").1;
    assert!(profile.contains("%  busy"), "{profile}");
}

/// Responds with a 401 and a challenge to basic authentication, and with a 500 to none.
fn digest_server() -> std::net::SocketAddr {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && stream.read_exact(&mut byte).is_ok() {
                head.push(byte[0]);
            }
            let head = String::from_utf8_lossy(&head).into_owned();
            let challenge = "WWW-Authenticate: Digest realm=\"r\", qop=\"auth\", nonce=\"n\"\r\n";
            let (status, header) = match () {
                () if head.contains("Basic bWU6c2VjcmV0") => ("401 Who", challenge),
                () if head.contains("Digest username=\"me\"") => ("200 OK", ""),
                () => ("500 No", ""),
            };
            let rest = "Connection: close\r\nContent-Length: 0\r\n\r\n";
            let _ = write!(stream, "HTTP/1.1 {status}\r\n{header}{rest}");
        }
    });
    address
}

#[test]
fn a_digest_responds_to_the_servers_challenge() {
    let script = format!(
        "import http from 'k6/http';
        export default function () {{
            const r = http.get('http://me:secret@{}/a?b=1', {{ auth: 'digest' }});
            console.log('status', r.status, r.url.includes('me'));
        }}",
        digest_server()
    );
    let printed = ran(&script, &[]);
    assert!(printed.contains("status 200 false"), "{printed}");
    // Two requests; the first is not a failure.
    let failed = printed.lines().find(|line| line.contains("http_req_failed")).unwrap();
    assert!(failed.contains("0 out of 2"), "{failed}");
}

#[test]
fn a_seed_repeats_what_is_random() {
    let script = "export default function () { console.log('drew', Math.random()); }";
    let drawn = |seed: &str| {
        let printed = ran(script, &["--seed", seed, "-u", "2", "-i", "2"]);
        let mut drawn: Vec<String> = printed
            .lines()
            .filter_map(|line| Some(line.split_once("drew ")?.1.to_owned()))
            .collect();
        drawn.sort();
        drawn
    };
    let first = drawn("7");
    assert_eq!(first.len(), 2);
    assert_ne!(first[0], first[1], "users draw their own");
    assert_eq!(first, drawn("7"));
    assert_ne!(first, drawn("8"));
}

/// In what a script's run differs from k6's, but for what the ledger has.
fn unknown_of(ledger: &mut Ledger, case: &Case, seen: &Observed) -> Vec<String> {
    let differences = case.recorded().differences(seen).into_iter();
    let unknown = differences.filter(|difference| !ledger.knows(&case.name, difference.field));
    unknown.map(|difference| format!("{}: {difference}", case.name)).collect()
}

#[test]
fn scripts_run_as_k6_runs_them() {
    let mut cases = Case::all();
    assert!(std::env::var_os("GAKE_K6_CASES").is_some() || cases.len() >= 150);
    let (lab, secured) = (lab(), tls_lab());
    let url = format!("http://{}", lab.addr());
    let tls_url = format!("https://{}", secured.addr());
    if let Some((k6, records)) = real_k6() {
        // Only k6 1.x has what they are about.
        cases.retain(|case| !case.env.contains_key("GAKE_K6_VERSION"));
        let seen = of_each(&cases, |case| Tool::K6(k6.clone()).observe(case, &url, &tls_url));
        if records {
            cases.iter().zip(&seen).for_each(|(case, seen)| case.record(seen));
            return;
        }
        let differences = cases.iter().zip(&seen).flat_map(|(case, seen)| {
            let differences = case.recorded().differences(seen).into_iter();
            differences.map(|difference| format!("{}: {difference}", case.name))
        });
        let changed: Vec<String> = differences.collect();
        assert!(changed.is_empty(), "k6 does what is not recorded\n{}", changed.join("\n"));
    }
    let mut ledger = Ledger::read();
    let mut wrong = Vec::new();
    let seen: Vec<Observed> = of_each(&cases, |case| Tool::Gake.observe(case, &url, &tls_url));
    for (case, seen) in cases.iter().zip(seen) {
        let mut unknown = unknown_of(&mut ledger, case, &seen);
        // How often a script runs within its time is the machine's doing too: it is run once more,
        // alone.
        if !unknown.is_empty() {
            unknown = unknown_of(&mut ledger, case, &Tool::Gake.observe(case, &url, &tls_url));
        }
        wrong.extend(unknown);
    }
    // An entry that is no longer needed is good news, so it fails where people look for differences.
    if real_k6().is_some() {
        wrong.extend(ledger.stale());
    }
    assert!(wrong.is_empty(), "{} differences\n{}", wrong.len(), wrong.join("\n"));
}

/// What k6 2.3 has and 2.2, with which the cases are recorded, lacks.
#[test]
fn groups_and_tags_follow_asynchronous_code() {
    let script = "import { group } from 'k6';
        import exec from 'k6/execution';
        import { Counter } from 'k6/metrics';
        const ccc = new Counter('ccc');
        export const options = { thresholds: {
            'ccc{group:::a}': ['count==3'], 'ccc{group:::b}': ['count==2'], 'ccc{tag:b}': ['count==1'],
            'ccc{group:::b::in}': ['count==1'], 'group_duration{group:::a}': ['min>=60'], 'ccc{timer:1}': ['count==1'],
        } };
        const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
        export default async function () {
            const a = group('a', async () => { ccc.add(1); await wait(60); ccc.add(1); wait(1).then(() => ccc.add(1)); return 'A'; });
            const b = group('b', async () => {
                exec.vu.tags.tag = 'b'; ccc.add(1); delete exec.vu.tags.tag;
                setTimeout(() => { exec.vu.tags.timer = '1'; ccc.add(1); }, 10);
                await wait(20);
                await group('in', async () => { await null; ccc.add(1); });
                throw new Error('B');
            }).catch((error) => error.message);
            const thenable = group('t', () => ({ then(resolve) { resolve('T'); } }));
            console.log('returned', await a, await b, group('s', () => 7), thenable instanceof Promise, await thenable);
            console.log('tags', exec.vu.tags.timer, exec.vu.tags.tag, JSON.stringify(exec.vu.tags.group));
            await wait(20);
        }";
    let path = tempfile::NamedTempFile::with_suffix(".js").unwrap();
    std::fs::write(&path, script).unwrap();
    let run = |more: &[&str]| {
        let path = path.path().to_str().unwrap();
        let ran = start(&mut gake(&[&["as", "k6", "run", "--quiet", path], more].concat())).wait();
        (ran.code, ran.stderr + &ran.stdout)
    };
    let (code, printed) = run(&["--features", "async-metric-context"]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("returned A B 7 true T"), "{printed}");
    assert!(printed.contains("tags undefined undefined \\\"\\\""), "{printed}");
    let (_, refused) = run(&[]);
    assert!(refused.contains("group() does not support async functions"), "{refused}");
}

/// The version of HTTP is a flag for scripts, too.
#[test]
fn flags_choose_the_version_of_http_of_a_script() {
    let lab = lab();
    let script = "import http from 'k6/http';
        export const options = { httpVersion: '1.1' };
        export default () => console.log('spoke ' + http.get(__ENV.URL).proto);";
    let path = tempfile::NamedTempFile::with_suffix(".js").unwrap();
    std::fs::write(&path, script).unwrap();
    let url = format!("URL=http://{}/fast", lab.addr());
    let run = |more: &[&str]| {
        let args = ["run", path.path().to_str().unwrap(), "-u", "1", "-n", "1", "-e", &url];
        let ran = start(&mut gake(&[&args[..], more].concat())).wait();
        ran.stderr + &ran.stdout
    };
    for (flags, spoken) in
        [(&[][..], "HTTP/1.1"), (&["--http", "2"], "HTTP/2.0"), (&["--http2"], "HTTP/2.0")]
    {
        let printed = run(flags);
        assert!(printed.contains(&format!("spoke {spoken}")), "{flags:?}: {printed}");
    }
    let refused = run(&["--http", "1.0"]);
    assert!(refused.contains("scripts send HTTP/1.1, 2 or 3"), "{refused}");
}

/// What k6 2.3 has and 2.2, with which the cases are recorded, lacks.
#[test]
fn scenarios_are_chosen_and_run_once() {
    let script = "import { WebSocket } from 'k6/websockets';
        const long = (exec) => ({ executor: 'constant-vus', vus: 3, duration: '1h', exec });
        export const options = { scenarios: { a: { ...long('a'), env: { E: 'e' } }, b: long('b') } };
        export function a() {
            const { CONNECTING, OPEN, CLOSING, CLOSED } = WebSocket;
            console.log('ran a', __ENV.E, CONNECTING, OPEN, CLOSING, CLOSED);
        }
        export function b() { console.log('ran b', __ENV.E); }";
    let counts = |flags: &[&str]| {
        let printed = ran(script, flags);
        ["ran a e 0 1 2 3", "ran b undefined"].map(|line| printed.matches(line).count())
    };
    assert_eq!(counts(&["--once"]), [1, 1]);
    assert_eq!(counts(&["--once", "--scenario", "b"]), [0, 1]);
    assert_eq!(counts(&["--once", "--scenario=b,a"]), [1, 1]);
}
