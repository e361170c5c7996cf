//! docs/tutorial.md, typed: every command of it, in one shell, against what the page shows.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

/// Between a command's output and the next one's.
const MARK: &str = "@@@";

/// A command of the page, and the lines that it shows of its output.
struct Typed<'a> {
    command: &'a str,
    shown: Vec<&'a str>,
}

fn commands(page: &str) -> Vec<Typed<'_>> {
    let mut all: Vec<Typed<'_>> = Vec::new();
    let mut is_open = false;
    for line in page.lines() {
        let code = line.strip_prefix("    ");
        match code.and_then(|code| code.strip_prefix("$ ")) {
            Some(command) => all.push(Typed { command, shown: Vec::new() }),
            None if is_open => {
                if let (Some(code), Some(last)) = (code, all.last_mut()) {
                    last.shown.push(code);
                }
            }
            None => {}
        }
        // Text between two blocks ends what a command shows.
        is_open = code.is_some() && (is_open || line.starts_with("    $ "));
    }
    all
}

/// What a line begins with before its first figure; a verdict's sign is a figure, too.
fn label(line: &str) -> &str {
    let line = line.trim_start_matches([' ', '✔', '✘', '|']);
    match line.split_once("  ") {
        Some((label, _)) => label.trim(),
        None => line.split_once(" |").map_or(line, |(label, _)| label),
    }
}

#[test]
fn every_command_does_what_the_page_shows() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tutorial.md");
    let page = fs::read_to_string(docs).unwrap();
    let typed = commands(&page);
    assert!(typed.len() >= 10, "the page has commands");
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    // %1 is the server that is running: a server that has ended leaves its number.
    let mut script = "exec 2>&1\n".to_owned();
    for one in &typed {
        let command = one.command.replace("8080", &port.to_string());
        script += &format!("{command}\ncode=$?; echo; echo '{MARK}' $code\n");
    }
    let folder = tempfile::tempdir().unwrap();
    let gake = Path::new(env!("CARGO_BIN_EXE_gake")).parent().unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let out = Command::new("bash")
        .args(["-c", &script])
        .current_dir(folder.path())
        .env("PATH", format!("{}:{path}", gake.display()))
        .output()
        .unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    let outputs: Vec<_> = text.split(MARK).collect();
    assert_eq!(outputs.len(), typed.len() + 1, "{text}");
    for (at, one) in typed.iter().enumerate() {
        let code = outputs[at + 1].lines().next().unwrap_or_default().trim();
        // 3: the machine was busy; 99: it was too slow for an objective or the baseline.
        assert!(["0", "3", "99"].contains(&code), "{}: {code}\n{text}", one.command);
        for line in &one.shown {
            assert!(outputs[at].contains(label(line)), "{}: {line}\n{text}", one.command);
        }
    }
    assert!(folder.path().join("shop/report.html").is_file());
    assert!(typed.iter().any(|one| one.command.contains("gake find")));
}

#[test]
fn labels_are_what_stays_of_a_line() {
    assert_eq!(label("capacity      381/s   (95 %: 352/s to 402/s)"), "capacity");
    assert_eq!(label("  ✔ p99<500ms   62.4 ms"), "p99<500ms");
    assert_eq!(label("| response.p50 | 11.2 ms |"), "response.p50");
    assert_eq!(label("main is run 1"), "main is run 1");
}
