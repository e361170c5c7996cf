//! The history of a project: runs are kept, listed, compared, and a regression fails.

use std::fs;
use std::path::Path;
use std::process::Command;

use gake_lab::Lab;

use crate::support::*;

/// gake in a folder, without the environment of continuous integration.
fn within(folder: &Path, args: &[&str]) -> Command {
    let mut command = gake(args);
    for name in ["GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "GITHUB_REF_NAME", "GITHUB_HEAD_REF"] {
        command.env_remove(name);
    }
    command.current_dir(folder);
    command
}

fn done(folder: &Path, args: &[&str]) -> String {
    let ran = start(&mut within(folder, args)).wait();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran.stdout
}

/// The arguments of a run of 200/s for 12 s: enough seconds for a comparison to decide.
fn args<'a>(url: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["run", url], &words("-r 200 -d 12s -q")[..], more].concat()
}

/// A repository of Git with a commit.
fn repository(folder: &Path) -> String {
    let git = |args: &[&str]| {
        let name = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=trunk"];
        let ran = command("git").args(name).args(args).current_dir(folder).output().unwrap();
        assert!(ran.status.success(), "{ran:?}");
        String::from_utf8(ran.stdout).unwrap().trim().to_owned()
    };
    git(&["init"]);
    git(&["commit", "--allow-empty", "-m", "first"]);
    git(&["rev-parse", "HEAD"])
}

/// Runs against a route, kept in the history, and says whether the run was valid: on a busy machine
/// it may not be.
fn keep(folder: &Path, lab: &Lab, route: &str) -> bool {
    let url = url(lab, route);
    start(&mut within(folder, &args(&url, &["--save"]))).wait().done().code == Some(0)
}

#[test]
fn runs_are_kept_and_a_regression_fails() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let commit = repository(root);
    let inside = root.join("a/b");
    fs::create_dir_all(&inside).unwrap();
    // Responses that become slower: 2 ms, then 40 ms.
    let lab = lab();
    let is_valid = keep(root, &lab, "/delay/2ms");
    done(&inside, &["history", "baseline", "main"]);
    let slow = url(&lab, "/delay/40ms");
    let summary = root.join("summary.md");
    let mut command = within(&inside, &args(&slow, &["--baseline", "main"]));
    command.env("GITHUB_STEP_SUMMARY", &summary).env("GITHUB_ACTIONS", "true");
    let ran = start(&mut command).wait();
    // An invalid run is not compared.
    assert!(matches!((is_valid, ran.code), (true, Some(99 | 3)) | (false, Some(3))), "{ran:?}");
    let summary_text = fs::read_to_string(&summary).unwrap();
    assert!(summary_text.contains("response.p99"), "{summary_text}");
    if ran.code == Some(99) {
        assert!(ran.stderr.contains("::error title=gake::against main (#1): "), "{ran:?}");
        let heading = summary_text.lines().next().unwrap();
        assert!(heading.contains("B is worse"), "{ran:?}");
    }
    // Markdown is for the step summary; the terminal has the table of `gake compare`.
    assert!(ran.stdout.contains("interval") && !ran.stdout.contains("| A | B |"), "{ran:?}");
    let list = done(&inside, &["history", "list"]);
    assert_eq!(list.lines().count(), 3, "{list}");
    assert!(list.contains(&commit[..8]) && list.contains("trunk"), "{list}");
    assert!(list.lines().nth(1).unwrap().ends_with("/delay/2ms [main]"), "{list}");
    // The shown run equals its run file's.
    let shown = start(&mut within(&inside, &["history", "show", "1", "-o", "json"])).wait();
    assert_eq!(shown.json().count("requests.sent"), 2_400);
    let compared = start(&mut within(&inside, &["history", "compare", "main", "last"])).wait();
    assert_eq!(compared.code, if is_valid { ran.code } else { Some(3) }, "{compared:?}");
    let page = root.join("trend.html");
    let trend = ["history", "trend", "--html", page.to_str().unwrap()];
    let trend = done(&inside, &trend);
    assert!(trend.contains("p99") && trend.contains('█'), "{trend}");
    assert!(fs::read_to_string(&page).unwrap().contains("\"kind\":\"trend\""));
    lab.shutdown();
}

#[test]
fn a_run_missing_from_history_is_an_error_before_the_first_request() {
    let folder = tempfile::tempdir().unwrap();
    let lab = lab();
    let url = url(&lab, "/fast");
    let none = start(&mut within(folder.path(), &["history", "list"])).wait();
    none.refused(1, "there is no history");
    let run = ["run", &url, "-n", "5", "-q", "--baseline", "main"];
    start(&mut within(folder.path(), &run)).wait().refused(1, "no run \"main\"");
    assert_eq!(lab.stats().requests, 0);
    let run = ["run", &url, "-n", "5", "-q", "--save"];
    start(&mut within(folder.path(), &run)).wait().done();
    let name = ["history", "baseline", "7"];
    start(&mut within(folder.path(), &name)).wait().refused(2, "choose another name");
    let alone = ["history", "compare"];
    start(&mut within(folder.path(), &alone)).wait().refused(1, "no run of");
    // Another program's file in its place is left as it is.
    let database = folder.path().join(".gake/history.db");
    fs::write(&database, "not a database, and longer than one page of one would have to be")
        .unwrap();
    let ran = start(&mut within(folder.path(), &["history", "list"])).wait();
    ran.refused(1, "not a database");
    lab.shutdown();
}
