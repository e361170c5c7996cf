//! vegeta: its commands, alone and joined by pipes, and Go's own gob beside ours.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use crate::common::*;

const GAKE: &str = env!("CARGO_BIN_EXE_gake");

/// Files written by Vegeta itself.
const RESULTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../gake-report/tests/data/vegeta/");

/// Its reports of the same results.
const REPORTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../gake-compat/tests/expected/vegeta/");

/// A folder with the targets `targets.http`.
struct Folder(TempDir);

impl Folder {
    fn new(targets: &str) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        fs::write(folder.path("targets.http"), targets).unwrap();
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A command line of vegeta's, in the folder.
    fn vegeta(&self, line: &str) -> Ran {
        let mut command = gake(&[vec!["as", "vegeta"], words(line)].concat());
        start(command.current_dir(self.0.path())).wait()
    }

    /// A command line of the shell's, in which `vegeta` is a link to gake. All parts of a pipe
    /// have to succeed.
    fn shell(&self, line: &str) -> Ran {
        let link = self.path("vegeta");
        if !link.exists() {
            std::os::unix::fs::symlink(GAKE, link).unwrap();
        }
        let mut command = Command::new("bash");
        command.args(["-c", &format!("set -o pipefail; PATH=.:$PATH; {line}")]);
        start(command.current_dir(self.0.path())).wait()
    }

    /// The results in a file.
    fn results(&self, file: &str) -> Vec<Value> {
        let ran = self.vegeta(&format!("encode {file}"));
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
        ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

fn golden(name: &str) -> String {
    let folder = if name.starts_with("report.") { REPORTS } else { RESULTS };
    format!("{folder}{name}")
}

#[test]
fn h2c_is_http2_in_clear() {
    let lab = lab();
    let folder = Folder::new(&format!("GET {}\n", url(&lab, "/fast")));
    let ran =
        folder.vegeta("attack -h2c -targets targets.http -rate 50 -duration 1s -output h.bin");
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (Some(0), "", ""), "{ran:?}");
    let report = folder.vegeta("report h.bin");
    assert!(report.stdout.contains("Status Codes  [code:count]                      200:50"));
    let counted = lab.shutdown();
    assert_eq!(counted.requests, 50);
}

#[test]
fn the_commands_of_an_article_run_as_they_stand() {
    let lab = lab();
    let folder = Folder::new("");
    let body = "{\"name\":\"ユーザー\"}";
    fs::write(folder.path("user.json"), body).unwrap();
    let target =
        format!("POST {}\nContent-Type: application/json\n@user.json\n", url(&lab, "/echo"));
    fs::write(folder.path("post_user.txt"), target).unwrap();
    let ran = folder
        .shell("vegeta attack -targets=post_user.txt -output=result.bin -rate=10 -duration=2s");
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (Some(0), "", ""), "{ran:?}");
    let report = folder.shell("vegeta report result.bin");
    assert_eq!(report.code, Some(0), "{report:?}");
    let bytes = body.len();
    // Twenty instants a tenth of a second apart, to the nanosecond.
    for line in [
        "Requests      [total, rate, throughput]         20, 10.53, ".to_owned(),
        format!("Bytes Out     [total, mean]                     {}, {bytes}.00\n", 20 * bytes),
        "Success       [ratio]                           100.00%\n".to_owned(),
        "Status Codes  [code:count]                      200:20  \nError Set:\n".to_owned(),
    ] {
        assert!(report.stdout.contains(&line), "{line:?} {report:?}");
    }
    assert_eq!(lab.shutdown().requests, 20);
    let results = folder.results("result.bin");
    let echoed: Value = {
        use base64::Engine as _;
        let body = results[7]["body"].as_str().unwrap();
        let bytes = base64::engine::general_purpose::STANDARD.decode(body).unwrap();
        serde_json::from_slice(&bytes).unwrap()
    };
    assert_eq!(echoed["body"], body);
    assert_eq!(echoed["headers"]["x-vegeta-seq"], "7");
    assert_eq!(echoed["headers"]["user-agent"], "Go-http-client/1.1");
    assert_eq!(results[7]["headers"]["Content-Type"][0], "application/json");
}

#[test]
fn pipes_carry_every_result() {
    let lab = lab();
    let folder =
        Folder::new(&format!("GET {}\nGET {}\n", url(&lab, "/fast"), url(&lab, "/status/503")));
    let ran = folder.shell(
        "cat targets.http | vegeta attack -name=p -rate=100/s -duration=1s | tee all.bin \
         | vegeta encode -to csv | tee all.csv | vegeta encode -to gob | vegeta report -type=json",
    );
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(report["requests"], 100);
    assert_eq!(report["status_codes"], serde_json::json!({"200": 50, "503": 50}));
    assert_eq!(report["errors"], serde_json::json!(["503 Service Unavailable"]));
    let whole = fs::read(folder.path("all.csv")).unwrap();
    let again = folder.shell("vegeta encode -to csv all.bin");
    assert_eq!(again.stdout.as_bytes(), whole);
    // Two files are one; each encoding is detected by itself.
    let both = folder.vegeta("report -type hist[0,1h] all.bin all.csv");
    assert!(both.stdout.contains("[0s,      1h0m0s]  200  100.00%"), "{both:?}");
}

#[test]
fn reports_of_vegetas_own_file_are_its_own() {
    let folder = Folder::new("");
    for (line, expected) in [
        ("report", "report.text.txt"),
        ("report -type=json", "report.json.txt"),
        ("report -type json -buckets [0,1ms,5ms]", "report.buckets.txt"),
        ("report -type=hist[0,1ms,5ms,10ms,1s]", "report.hist.txt"),
        ("report --type hdrplot", "report.hdrplot.txt"),
        ("encode -to csv", "results.csv"),
    ] {
        let ran = folder.vegeta(&format!("{line} {}", golden("results.gob")));
        assert_eq!(ran.stdout, fs::read_to_string(golden(expected)).unwrap(), "{line} {ran:?}");
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    }
    let ran = folder.vegeta(&format!("encode -to gob -output again.bin {}", golden("results.gob")));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        fs::read(folder.path("again.bin")).unwrap() == fs::read(golden("results.gob")).unwrap()
    );
}

#[test]
fn a_plot_has_a_line_for_each_attack_and_its_errors() {
    let folder = Folder::new("");
    let ran =
        folder.vegeta(&format!("plot -title Golden -output p.html {}", golden("results.gob")));
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    let page = fs::read_to_string(folder.path("p.html")).unwrap();
    for part in ["\"title\":\"Golden\"", "\"golden: OK\"", "\"golden: ERROR\""] {
        assert!(page.contains(part), "{part}");
    }
}

/// The program in `peers/gob`.
fn gob_peer() -> PathBuf {
    go_program("gob")
}

/// Lines of JSON, whatever the order of their keys.
fn lines(text: &[u8]) -> Vec<Value> {
    text.split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect()
}

#[test]
fn go_reads_our_gob_and_we_read_gos() {
    let lab = lab();
    let folder = Folder::new(&format!(
        "GET {}\nGET {}\nGET http://127.0.0.1:1/refused\nHEAD {}\nGET {}\n",
        url(&lab, "/echo"),
        url(&lab, "/status/404"),
        url(&lab, "/fast"),
        url(&lab, "/bytes/70000"),
    ));
    let ran = folder
        .vegeta("attack -name go -targets targets.http -rate 200 -duration 500ms -output our.bin");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let go = |what: &str| {
        let output = Command::new(gob_peer())
            .args([what, "our.bin"])
            .current_dir(folder.0.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        output.stdout
    };
    let ours = folder.results("our.bin");
    assert_eq!(ours.len(), 100);
    assert_eq!(lines(&go("json")), ours);
    fs::write(folder.path("gos.bin"), go("gob")).unwrap();
    assert_eq!(folder.results("gos.bin"), ours);
    // But for the order of headers, in which Go's maps have none, it is the same file.
    assert_eq!(
        fs::metadata(folder.path("gos.bin")).unwrap().len(),
        fs::metadata(folder.path("our.bin")).unwrap().len()
    );
}

#[test]
fn faults_have_the_words_of_go() {
    let lab = lab();
    let paths = ["/close", "/reset", "/hang"].map(|path| format!("GET {}\n", url(&lab, path)));
    let folder = Folder::new(&(paths.concat() + "GET http://127.0.0.1:1/x\n"));
    let ran = folder.vegeta(
        "attack -targets targets.http -rate 40 -duration 100ms -timeout 700ms -output f.bin",
    );
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let addr = lab.addr();
    let mut results = folder.results("f.bin");
    results.sort_by_key(|result| result["seq"].as_u64());
    let errors: Vec<_> = results.iter().map(|result| result["error"].as_str().unwrap()).collect();
    assert_eq!(
        errors,
        [
            format!("Get \"http://{addr}/close\": EOF"),
            format!("Get \"http://{addr}/reset\": read tcp {addr}: read: connection reset by peer"),
            format!(
                "Get \"http://{addr}/hang\": context deadline exceeded (Client.Timeout exceeded \
                 while awaiting headers)"
            ),
            "Get \"http://127.0.0.1:1/x\": dial tcp 0.0.0.0:0->127.0.0.1:1: connect: connection \
             refused"
                .to_owned(),
        ]
    );
    assert!(results.iter().all(|result| result["code"] == 0 && result["headers"].is_null()));
    assert!(results[2]["latency"].as_u64().unwrap() >= 700_000_000);
}

#[test]
fn a_lazy_attack_ends_with_its_targets() {
    let lab = lab();
    let folder = Folder::new(&format!("GET {}\n", url(&lab, "/fast")));
    for load in ["-rate 50", "-rate 0 -max-workers 3"] {
        let ran = folder.shell(&format!(
            "for i in 1 2 3 4 5 6 7; do cat targets.http; done \
             | vegeta attack -lazy {load} -duration 50s --gake-format json --gake-out run.json \
             | vegeta report -type json"
        ));
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
        assert!(ran.took < Duration::from_secs(30), "{ran:?}");
        let report: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(report["requests"], 7, "{load}");
        let run: Value =
            serde_json::from_slice(&fs::read(folder.path("run.json")).unwrap()).unwrap();
        assert_eq!(run["requests"]["due"], 7, "{load} {run}");
        assert_eq!(run["ended"]["by"], "out_of_targets", "{load} {run}");
    }
    assert_eq!(lab.shutdown().requests, 14);
}

#[test]
fn a_pipe_may_make_targets_for_ever() {
    let lab = lab();
    let folder = Folder::new(&format!("GET {}\n", url(&lab, "/fast")));
    let ran = folder.shell(
        "(while cat targets.http; do :; done 2>/dev/null; true) \
         | vegeta attack -lazy -rate 100 -duration 1s | vegeta report -type json",
    );
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(report["requests"], 100);
}

#[test]
fn an_attack_without_a_duration_lasts_until_interrupted() {
    let lab = lab();
    let folder = Folder::new(&format!("GET {}\n", url(&lab, "/delay/300ms")));
    let mut command = gake(&words("as vegeta attack -targets targets.http -rate 20 -output i.bin"));
    let started = start(command.current_dir(folder.0.path()));
    eventually("results while the attack runs", || {
        fs::metadata(folder.path("i.bin")).is_ok_and(|file| file.len() > 1_000)
    });
    started.signal(Signal::INT);
    let ran = started.wait();
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    // What was under way is waited for.
    let results = folder.results("i.bin");
    assert!(results.iter().all(|result| result["code"] == 200), "{results:?}");
    assert_eq!(lab.shutdown().requests, results.len() as u64);
}

#[test]
fn a_closed_reader_ends_the_attack() {
    let lab = lab();
    let folder = Folder::new(&format!("GET {}\n", url(&lab, "/fast")));
    let ran = folder.shell("vegeta attack -targets targets.http -rate 100 | head -c 100 | wc -c");
    assert_eq!((ran.code, ran.stdout.trim()), (Some(0), "100"), "{ran:?}");
}

/// Redirects `/a` to `/b`; every other response is a 200.
fn redirecting() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut first = String::new();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut line = String::new();
            while reader.read_line(&mut line).unwrap_or(0) > 2 {
                if first.is_empty() {
                    first.clone_from(&line);
                }
                line.clear();
            }
            let head = if first.contains(" /a ") { "302 Found\r\nLocation: /b" } else { "200 OK" };
            let answer =
                format!("HTTP/1.1 {head}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    url
}

#[test]
fn redirects_are_followed_or_not() {
    let folder = Folder::new(&format!("GET {}/a\n", redirecting()));
    for (flag, code, error) in [
        ("", 200, ""),
        ("-redirects -1", 302, ""),
        ("-redirects=0", 0, "stopped after 0 redirects"),
    ] {
        let ran = folder.vegeta(&format!(
            "attack -targets targets.http -rate 10 -duration 100ms -output r.bin {flag}"
        ));
        assert_eq!(ran.code, Some(0), "{flag} {ran:?}");
        let results = folder.results("r.bin");
        assert_eq!((results.len(), &results[0]["code"]), (1, &code.into()), "{flag} {results:?}");
        assert!(results[0]["error"].as_str().unwrap().ends_with(error), "{flag} {results:?}");
        assert_eq!(results[0]["error"] == "", error.is_empty(), "{flag} {results:?}");
    }
}

#[test]
fn a_body_is_kept_as_far_as_asked() {
    let lab = lab();
    let folder = Folder::new(&format!("GET {}\n", url(&lab, "/bytes/1000")));
    for (flag, kept) in
        [("", 1_000), ("-max-body=10B", 10), ("-max-body 0", 0), ("-max-body -1", 1_000)]
    {
        let ran = folder.vegeta(&format!(
            "attack -targets targets.http -rate 10 -duration 100ms -output b.bin {flag}"
        ));
        assert_eq!(ran.code, Some(0), "{flag} {ran:?}");
        let results = folder.results("b.bin");
        let body = results[0]["body"].as_str().unwrap_or_default();
        assert_eq!(body.trim_end_matches('=').len() * 3 / 4, kept, "{flag}");
        assert_eq!(results[0]["bytes_in"], 1_000, "{flag}");
    }
}

#[test]
fn a_damaged_file_is_reported_as_far_as_it_can_be_read() {
    let folder = Folder::new("");
    let whole = fs::read(golden("results.gob")).unwrap();
    fs::write(folder.path("cut.bin"), &whole[..whole.len() - 7]).unwrap();
    let ran = folder.vegeta("report cut.bin");
    assert!(
        ran.stdout.starts_with("Requests      [total, rate, throughput]         119, "),
        "{ran:?}"
    );
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let warning =
        "warning: cut.bin: record 120 is cut off and was left out: the file ends within it\n";
    assert_eq!(ran.stderr, warning);
    for (name, content, said) in [
        ("empty", &b""[..], "empty is empty: it holds no result"),
        ("text", b"hello\n", "text holds no results of Vegeta"),
        ("elf", b"\x7fELF\x02\x01\x01\x00\x00\x00", "elf holds no results of Vegeta"),
    ] {
        fs::write(folder.path(name), content).unwrap();
        for command in ["report", "encode", "plot"] {
            folder.vegeta(&format!("{command} {name}")).refused(1, said);
        }
    }
    folder.vegeta("report nosuch").refused(1, "nosuch cannot be read: No such file");
}

#[test]
fn a_report_may_come_again_and_again() {
    let lab = lab();
    let folder = Folder::new(&format!("GET {}\n", url(&lab, "/fast")));
    let ran = folder.shell(
        "vegeta attack -targets targets.http -rate 50 -duration 4s \
         | vegeta report -every 500ms -type json",
    );
    let counts: Vec<u64> =
        lines(ran.stdout.as_bytes()).iter().map(|r| r["requests"].as_u64().unwrap()).collect();
    assert!(counts.len() >= 3 && counts.is_sorted(), "{counts:?}");
    assert_eq!(counts.last(), Some(&200));
}

#[test]
fn what_cannot_be_done_is_refused_by_name() {
    let folder = Folder::new("GET http://127.0.0.1:1/\n");
    for (line, code, said) in [
        ("attack -nosuch", 2, "-nosuch"),
        ("attack -rate=0", 2, "-rate=0 requires setting -max-workers"),
        ("attack -targets nosuch", 1, "nosuch"),
        ("attack -targets stdin", 1, "no targets to attack"),
        ("report -type xml", 2, "\"xml\""),
        ("report -type hist", 2, "needs buckets"),
        ("report -type hist[1ms,1ms]", 2, "start after"),
        ("encode -to xml", 2, "\"xml\""),
        ("dump", 2, "encode"),
        ("nosuch", 2, "\"nosuch\""),
    ] {
        folder.vegeta(line).refused(code, said);
    }
}
