//! `gake convert`, and the script that comes of it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn gake(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gake"));
    command.args(args).stdin(Stdio::null()).output().unwrap()
}

/// Runs what an input becomes, and gives what was printed.
fn run_of(input: &str, folder: &Path) -> String {
    let converted = gake(&["convert", input]);
    assert!(converted.status.success(), "{converted:?}");
    let path = folder.join("script.js");
    fs::write(&path, converted.stdout).unwrap();
    let ran = gake(&["as", "k6", "run", "--quiet", "--no-color", path.to_str().unwrap()]);
    assert!(ran.status.success(), "{ran:?}");
    String::from_utf8(ran.stdout).unwrap()
}

#[test]
fn what_was_converted_runs() {
    let lab = crate::lab();
    let (url, folder) = (format!("http://{}", lab.addr()), tempfile::tempdir().unwrap());
    let printed = run_of(&format!("curl {url}/echo -d 'a=b c' -H 'X-Y: z'"), folder.path());
    assert!(printed.contains("✓ POST http://"), "{printed}");
    let entry = |route: &str, status: u16| {
        format!(
            r#"{{"request":{{"method":"GET","url":"{url}{route}","headers":[]}},
                "response":{{"status":{status}}}}}"#
        )
    };
    let (right, wrong) = (entry("/status/404", 404), entry("/fast", 500));
    let har = folder.path().join("session.har");
    fs::write(&har, format!(r#"{{"log":{{"entries":[{right},{wrong}]}}}}"#)).unwrap();
    let printed = run_of(har.to_str().unwrap(), folder.path());
    assert!(printed.contains("✓ GET") && printed.contains("/status/404: status 404"), "{printed}");
    assert!(printed.contains("✗ GET") && printed.contains("/fast: status 500"), "{printed}");
    assert_eq!(lab.shutdown().requests, 3);
}

#[test]
fn what_is_nothing_known_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("notes.txt");
    fs::write(&file, "hello").unwrap();
    let refused = gake(&["convert", file.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(1));
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(said.contains("notes.txt: not a HAR"), "{said}");
}
