//! The users service on a database of SQLite, and `gake experiment users-db --db`: rows, failures, and
//! what is left behind.

use std::path::Path;

use rusqlite::Connection;
use rustix::process::Signal;
use serde_json::Value;

use crate::support::*;

/// The command on this file, for JSON.
fn args<'a>(db: &'a str, more: &'a str) -> Vec<&'a str> {
    let line = "experiment users-db --quick -q -o json --db";
    [&*words(line), &[db], &*words(more)].concat()
}

fn store(file: &Path) -> String {
    format!("sqlite:{}", file.display())
}

/// A table like the lab's, with a user.
fn table_with_a_user(file: &Path) {
    let sql = "CREATE TABLE gake_users (id INTEGER PRIMARY KEY AUTOINCREMENT, \
               name TEXT NOT NULL, mail TEXT NOT NULL); \
               INSERT INTO gake_users (name, mail) VALUES ('Ada', 'ada@example.com')";
    Connection::open(file).unwrap().execute_batch(sql).unwrap();
}

fn rows(file: &Path) -> u64 {
    let sql = "SELECT COUNT(*) FROM gake_users";
    let connection = Connection::open(file).unwrap();
    let count: i64 = connection.query_row(sql, [], |row| row.get(0)).unwrap();
    count.unsigned_abs()
}

#[test]
fn every_response_has_a_row_and_the_rows_are_removed_afterwards() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("users.db");
    table_with_a_user(&file);
    let db = store(&file);
    let ran = ran(&[&args(&db, "--only")[..], &["10/s, idle 2"]].concat());
    // Figures other than counts depend on the machine's load.
    assert!(matches!(ran.code, Some(0 | 3)), "{ran:?}");
    let json: Value = serde_json::from_str(&ran.stdout).unwrap();
    let steps = json["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 2, "{json}");
    for step in steps {
        let expectations = step["expectations"].as_array().unwrap();
        let rows = expectations.iter().find(|one| one["what"] == "rows").unwrap();
        assert!(rows["met"] == true && step["ok"].as_u64().unwrap() > 0, "{step}");
    }
    assert_eq!(rows(&file), 1, "the user's own row is there alone");
}

#[test]
fn an_interrupted_experiment_leaves_no_rows_and_a_new_file_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let (file, new) = (folder.path().join("users.db"), folder.path().join("new.db"));
    table_with_a_user(&file);
    let db = store(&file);
    let started = start(&mut gake(&args(&db, "--only calibration")));
    eventually("rows come", || rows(&file) > 1);
    started.signal(Signal::INT);
    let ran = started.wait();
    assert_eq!(ran.code, Some(130), "{ran:?}");
    assert_eq!(rows(&file), 1, "the user's own row is there alone");
    let db = store(&new);
    let started = start(&mut gake(&args(&db, "--only calibration")));
    eventually("the file is there", || new.exists());
    started.wait();
    let names = folder.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name());
    assert!(names.collect::<Vec<_>>().iter().all(|name| !name.to_string_lossy().contains("new")));
}

#[test]
fn a_table_that_takes_no_row_is_no_success() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("users.db");
    let sql = "CREATE TABLE gake_users (id INTEGER PRIMARY KEY, name TEXT, mail TEXT, \
               age INTEGER NOT NULL)";
    Connection::open(&file).unwrap().execute_batch(sql).unwrap();
    let db = store(&file);
    let ran = ran(&args(&db, "--only idle"));
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let why = "NOT NULL constraint failed: gake_users.age";
    assert!(ran.stderr.contains(why), "{ran:?}");
    let json: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(json["as_expected"] != true && json["complete"] == false, "{json}");
    assert_eq!(json["steps"].as_array().unwrap().len(), 1, "the calibration: {json}");
    let body = json["steps"][0]["failed_bodies"]["bodies"][0]["text"].as_str().unwrap();
    assert!(body.contains(why), "{json}");
    let note = json["notes"][0].as_str().unwrap();
    assert!(note.contains("the experiment failed") && note.contains(why), "{note}");
    let missing = note.split("; missing: ").nth(1).unwrap();
    for step in ["\"10/s, idle 2\"", "\"1,000/s, idle 1,000\"", "a pool of 50\""] {
        assert!(missing.contains(step), "{note}");
    }
    assert!(!missing.contains("calibration"), "it has ended: {note}");
}

#[test]
fn a_lab_that_is_killed_has_kept_every_row_that_it_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("users.db");
    let lab = Peer::lab(&["--db", &store(&file)]);
    let url = format!("{}/users", lab.url);
    let load = words("-r 200 -d 60s -o json");
    let run = start(&mut gake(&[&["run", &url, "--data", "{}"][..], &load].concat()));
    eventually("rows come", || rows(&file) > 100);
    // With SIGKILL: it closes nothing.
    drop(lab);
    run.signal(Signal::INT);
    let json = run.wait().json();
    let count = |name: &str| json.count(&format!("requests.{name}"));
    let (ok, others) = (count("ok"), count("failed") + count("unfinished"));
    let kept = rows(&file);
    // What failed may have been written before its response was lost.
    assert!(ok > 0 && (ok..=ok + others).contains(&kept), "{kept} of {ok} and {others}");
}
