//! What goes to which stream, without `--quiet`.

use std::path::Path;
use std::process::{Command, Output};

fn run(script: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gake"))
        .args(["as", "k6", "run", "--address", ""])
        .args(args)
        .arg(script)
        .output()
        .unwrap()
}

/// What a script of this text prints, with its path.
fn ran(text: &str, args: &[&str]) -> (String, Output) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("script.js");
    std::fs::write(&path, text).unwrap();
    let output = run(&path, args);
    (path.display().to_string(), output)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn standard_output_has_what_ci_logs_are_read_for() {
    let script = "import { sleep } from 'k6';
        export const options = { vus: 1, duration: '1500ms' };
        export default function () { sleep(0.5); }";
    let (path, output) = ran(script, &[]);
    let out = text(&output.stdout);
    assert!(out.starts_with("\n         /\\      Grafana "), "{out}");
    let head = format!(
        "\n     execution: local\n        script: {path}\n        output: -\n\n     scenarios: \
         (100.00%) 1 scenario, 1 max VUs, 31.5s max duration (incl. graceful stop):\n              \
         * default: 1 looping VUs for 1.5s (gracefulStop: 30s)\n\n"
    );
    assert!(out.contains(&head), "{out}");
    assert!(out.contains("\nrunning (01."), "{out}");
    assert!(out.contains(", 1/1 VUs, "), "{out}");
    let last = out.rsplit_once("\nrunning (").unwrap().1;
    assert!(last.contains(", 0/1 VUs, 3 complete and 0 interrupted iterations\n"), "{out}");
    assert!(last.contains("\ndefault \u{2713} [ 100% ] 1 VUs  1.5s\n"), "{out}");
    assert!(output.stderr.is_empty(), "{}", text(&output.stderr));
    let (_, quiet) = ran("export default function () {}", &["--quiet"]);
    assert!(!text(&quiet.stdout).contains("running ("));
}

#[test]
fn missing_modules_have_the_words_of_k6() {
    let (path, output) = ran("import x from './nope.js'; export default function () {}", &[]);
    let printed = text(&output.stderr);
    let start = format!(
        "could not initialize '{path}': could not load JS test 'file://{path}': The \
         moduleSpecifier \\\"./nope.js\\\" couldn't be found on local disk. Make sure that you've "
    );
    assert!(printed.contains(&start) && !printed.contains("hint="), "{printed}");
    let (path, output) = ran("const f = open('./no.csv'); export default function () {}", &[]);
    let printed = text(&output.stderr);
    let file = path.replace("script.js", "no.csv");
    let start = format!("msg=\"GoError: stat {file}: no such file or directory\\n\\tat go.k6.io/");
    assert!(printed.contains(&start) && printed.contains("hint=\"script exception\""), "{printed}");
    assert_eq!(output.status.code(), Some(107));
}

#[test]
fn a_browser_that_is_not_there_ends_the_test() {
    let script = "import { browser } from 'k6/browser';
        export const options = {
            scenarios: { ui: { executor: 'constant-vus', vus: 1, duration: '60s',
                options: { browser: { type: 'chromium' } } } },
            thresholds: { browser_web_vital_lcp: ['p(95)<1000'] } };
        export default async function () { await browser.newPage(); }";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("script.js");
    std::fs::write(&path, script).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_gake"));
    command.args(["as", "k6", "run", "--address", "", "--quiet"]).arg(&path);
    let output = command.env("K6_BROWSER_EXECUTABLE_PATH", "/none/such").output().unwrap();
    let printed = text(&output.stderr);
    assert!(printed.contains("K6_BROWSER_EXECUTABLE_PATH: no file /none/such"), "{printed}");
    assert_eq!(output.status.code(), Some(108));
}

#[test]
fn a_database_that_is_away_is_no_reason_not_to_run() {
    let script = "export default function () {}";
    let (_, output) = ran(script, &["--quiet", "--out", "influxdb=http://127.0.0.1:1/k6"]);
    let printed = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{printed}");
    assert!(printed.contains("warning: --out influxdb=http://127.0.0.1:1/k6"), "{printed}");
    assert!(text(&output.stdout).contains("iterations"));
}

#[test]
fn blocked_addresses_add_up() {
    let script = "import http from 'k6/http';
        export default function () {
            console.log(http.get('http://127.0.0.1:1/').error_code,
                http.get('http://[::1]:1/').error_code);
        }";
    let flags = ["--quiet", "--blacklist-ip", "127.0.0.0/8", "--blacklist-ip", "::1/128"];
    let (_, output) = ran(script, &flags);
    assert!(text(&output.stderr).contains("msg=\"1110 1110\""), "{}", text(&output.stderr));
}
