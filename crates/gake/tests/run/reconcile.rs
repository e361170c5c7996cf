//! `--reconcile`: rows against responses.

use gake_lab::{DatabaseConfig, DatabaseKind, Lab, LabConfig};

use crate::support::*;

/// A users service with an instant database.
fn users(lose_every: Option<u64>) -> Lab {
    let kind = DatabaseKind::Model("model:0s,0s".parse().unwrap());
    let database = Some(DatabaseConfig { lose_every, ..kind.into() });
    lab_with(LabConfig { database, ..LabConfig::default() })
}

/// Posts users to a lab and counts them.
fn posted(lab: &Lab, users: u64) -> Ran {
    let (url, count) = (url(lab, "/users"), format!("http:{}#count", url(lab, "/users/count")));
    let line = format!("-n {users} -c 4 --data {{}} -o json --reconcile");
    ran(&[&["run", url.as_str()], &*words(&line), &[count.as_str()]].concat())
}

#[test]
fn rows_equal_ok_responses() {
    let lab = users(None);
    // Rows that were there before do not count.
    for _ in 0..2 {
        let json = posted(&lab, 1_000).done().json();
        assert_eq!(json.at("objectives")[0]["met"], true, "{}", json.0["objectives"]);
        assert_eq!(json.at("objectives")[0]["value"].as_f64(), Some(1_000.0));
    }
}

#[test]
fn the_lab_that_is_loaded_counts_its_own_users() {
    let lab = users(None);
    let line = format!("run {} -n 20 --data {{}} -o json --reconcile lab", url(&lab, "/users?a=b"));
    for before in [0, 20] {
        let json = ran(&words(&line)).done().json();
        let objective = &json.at("objectives")[0];
        assert_eq!(objective["value"].as_f64(), Some(20.0), "{objective}");
        let text = objective["text"].as_str().unwrap();
        let found = format!("; {before} before, {} after: equal", before + 20);
        assert!(text.ends_with(&found), "{text}");
    }
    // Without a URL there is no lab to ask.
    let folder = tempfile::tempdir().unwrap();
    let targets = folder.path().join("targets");
    std::fs::write(&targets, format!("GET {}\n", url(&lab, "/users/1"))).unwrap();
    let line = format!("run {} -n 1 --reconcile lab", targets.display());
    ran(&words(&line)).refused(2, "this run has no URL");
}

#[test]
fn one_write_in_ten_thousand_that_is_acknowledged_and_lost_is_found() {
    let ran = posted(&users(Some(10_000)), 10_000);
    assert_eq!(ran.code, Some(99), "{ran:?}");
    let json = ran.json();
    let objective = &json.at("objectives")[0];
    assert_eq!(objective["value"].as_f64(), Some(9_999.0));
    let text = objective["text"].as_str().unwrap();
    assert!(text.ends_with("0 before, 9,999 after: 1 write acknowledged and lost"), "{text}");
}

#[test]
fn unacknowledged_writes_are_found() {
    const TWICE: u64 = 5;
    let lab = users(None);
    let (url, rows) = (url(&lab, "/users"), url(&lab, "/users/count"));
    let count = format!("http:{rows}#count");
    let line = words("-n 100 -r 100 --data {} -o json --reconcile");
    let run = start(&mut gake(&[&["run", &url][..], &line, &[&count]].concat()));
    let curl = |args: &[&str]| command("curl").arg("-s").args(args).output().unwrap();
    eventually("rows come", || !curl(&[&rows]).stdout.starts_with(b"{\"count\":0}"));
    for _ in 0..TWICE {
        assert!(curl(&["--data", "{}", &url]).status.success());
    }
    let ran = run.wait();
    // A busy machine makes the run invalid, which comes first.
    assert!(matches!(ran.code, Some(3 | 99)), "{ran:?}");
    let json = ran.json();
    assert_eq!(json.at("objectives")[0]["met"], false);
    let text = json.at("objectives")[0]["text"].as_str().unwrap();
    assert!(text.ends_with("0 before, 105 after: 5 writes too many, made twice"), "{text}");
}

#[test]
fn an_uncountable_source_is_refused_before_the_first_request() {
    let lab = users(None);
    let (url, none) = (url(&lab, "/users"), format!("{}#total", url(&lab, "/users/count")));
    let of = |source: &str| ran(&["run", &url, "-n", "1", "--reconcile", source]);
    of("labs").refused(2, "--reconcile: write sql:mysql://");
    of(&none).refused(1, "has no number total");
    let secret = of("sql:oracle://me:secret@h:SELECT 1");
    secret.refused(2, "--reconcile");
    assert!(!secret.stderr.contains("secret"), "{secret:?}");
    assert!(lab.shutdown().routes.get("/users").is_none_or(|users| *users <= 1));
}

/// A script that counts its users, posts a user an iteration, and asks for one that is not there.
const SCRIPT: &str = "
    import http from 'k6/http';
    export const options = { vus: 4, iterations: 100 };
    export function setup() {
        http.post(__ENV.URL, '{}');
    }
    export default function () {
        http.get(`${__ENV.URL}/count`);
        http.post(__ENV.URL, '{}');
        http.get(`${__ENV.URL}/999999`);
    }
";

#[test]
fn the_posts_of_a_script_are_compared_with_rows() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("users.js");
    std::fs::write(&script, SCRIPT).unwrap();
    let run = |lab: &Lab| {
        let (env, rows) = (format!("URL={}", url(lab, "/users")), url(lab, "/users/count"));
        let rows = format!("http:{rows}#count");
        let script = script.to_str().unwrap();
        let flags = ["-e", &env, "--reconcile", &rows, "--body-errors"];
        ran(&[&["as", "k6", "run", "--address", "", script][..], &flags].concat())
    };
    let own = |lab: &Lab| {
        let (env, rows) = (format!("URL={}", url(lab, "/users")), url(lab, "/users/count"));
        let rows = format!("http:{rows}#count");
        ran(&["run", script.to_str().unwrap(), "-e", &env, "--reconcile", &rows])
    };
    let native = own(&users(Some(20)));
    assert_eq!(native.code, Some(99), "{native:?}");
    assert!(native.stdout.contains("✘ POST requests: rows added = 101"), "{native:?}");
    let kept = run(&users(None)).done();
    assert!(
        kept.stdout.contains(
            "  ✓ POST requests: rows added = 101, the ok responses; 0 before, 101 after: equal\n"
        ),
        "{kept:?}"
    );
    assert!(kept.stdout.contains("  100 × 404  "), "{kept:?}");
    let lost = run(&users(Some(20)));
    assert_eq!(lost.code, Some(99), "{lost:?}");
    assert!(lost.stdout.contains("  ✗ POST requests: rows added = 101"), "{lost:?}");
    assert!(lost.stdout.contains(": 5 writes acknowledged and lost\n"), "{lost:?}");
}
