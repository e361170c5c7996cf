//! The lab's users service on real databases: a row for each 200, whatever happens in between.

use rustix::process::Signal;
use serde_json::Value;

use crate::database::MariaDb;
use crate::postgres::Postgres;
use crate::support::*;

/// A name that would end a statement early, did it not travel as digits.
const BODY: &str = r#"{"name":"Robert'); DROP TABLE gake_users; --","mail":"é\\"}"#;

fn serve(db: &str, flags: &str) -> Peer {
    Peer::lab(&[&["--db", db], &*words(flags)].concat())
}

/// Posts users, and counts the rows in the database itself.
fn post(lab: &Peer, count: &str, flags: &str) -> Ran {
    let url = format!("{}/users", lab.url);
    let source = format!("sql:{count}:SELECT COUNT(*) FROM gake_users");
    let run = ["run", &url, "--data", BODY, "-o", "json", "--reconcile", &source];
    ran(&[&run[..], &words(flags)].concat())
}

fn get(url: &str) -> String {
    let output = command("curl").args(["-s", url]).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// Posts and reads on a database that works.
fn has_a_row_for_each_answer(db: &str) {
    let lab = serve(db, "--db-max-open 8 --db-max-idle 8");
    let ran = post(&lab, db, "-n 500 -c 8").done();
    let json = ran.json();
    assert_eq!(json.count("requests.ok"), 500, "{}", json.0);
    assert_eq!(json.at("objectives")[0]["value"].as_f64(), Some(500.0), "{}", json.0["objectives"]);
    let user = get(&format!("{}/users/1", lab.url));
    assert!(user.contains("Robert'); DROP TABLE") && user.contains("\"mail\":\"é\\\\\""), "{user}");
    assert!(get(&format!("{}/users/count", lab.url)).contains("500"));
    assert!(!get(&format!("{}/config", lab.url)).contains("ss%20word"));
}

/// Posts while the database crashes and comes back.
fn every_row_is_explained(db: &str, crash: impl FnOnce()) {
    let lab = serve(db, "--db-max-open 8 --db-max-idle 8");
    let (url, source) =
        (format!("{}/users", lab.url), format!("sql:{db}:SELECT COUNT(*) FROM gake_users"));
    let flags = words("-r 200 -d 90s -o json --reconcile");
    let args = [&["run", url.as_str(), "--data", BODY], &*flags, &[source.as_str()]].concat();
    let rows = || {
        let answer = get(&format!("{}/users/count", lab.url));
        let json = serde_json::from_str::<Value>(&answer).ok();
        json.and_then(|json| json["count"].as_u64()).unwrap_or(0)
    };
    let before = rows();
    let run = start(&mut gake(&args));
    eventually("rows come", || rows() > before + 100);
    crash();
    let after = rows().max(before + 100);
    eventually("rows come again", || rows() > after + 100);
    run.signal(Signal::INT);
    let json = run.wait().json();
    let count = |name: &str| json.count(&format!("requests.{name}"));
    let (ok, failed) = (count("ok"), count("failed") + count("unfinished"));
    assert!(ok >= 200, "{}", json.0);
    // What failed may have been written before its response was lost.
    let rows = &json.at("objectives")[0];
    assert_eq!(rows["met"], true, "{rows}");
    let value = rows["value"].as_f64().unwrap();
    assert!((ok as f64..=(ok + failed) as f64).contains(&value), "{rows} of {ok} and {failed}");
}

/// The steps of the experiment on a database. Rows are judged in each of them.
fn experiment(db: &str, only: &str) -> Value {
    let args = ["experiment", "users-db", "--quick", "-q", "-o", "json", "--db", db];
    judged(start(&mut gake(&[&args[..], &["--only", only]].concat())).wait())
}

/// That every step of an experiment that has ended has its rows.
fn judged(ran: Ran) -> Value {
    let json: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
    assert_eq!(json["complete"], true, "{json}");
    for step in json["steps"].as_array().unwrap() {
        let expectations = step["expectations"].as_array().unwrap();
        let rows = expectations.iter().find(|one| one["what"] == "rows").unwrap();
        assert!(rows["met"] == true && step["ok"].as_u64().unwrap() > 0, "{step}");
    }
    json
}

/// Runs the experiment on an empty table while the database crashes and comes back.
fn an_experiment_survives(db: &str, crash: impl FnOnce()) {
    let lab = serve(db, "--db-max-open 1 --db-max-idle 1");
    let users = |path: &str| format!("{}/users{path}", lab.url);
    let rows = || {
        let json = serde_json::from_str::<Value>(&get(&users("/count"))).ok();
        json.and_then(|json| json["count"].as_u64())
    };
    let emptied = command("curl").args(["-s", "-X", "DELETE", &users("")]).output().unwrap();
    assert!(emptied.status.success(), "{emptied:?}");
    let args = ["experiment", "users-db", "--quick", "-o", "json", "--db", db];
    let run = start(&mut gake(&[&args[..], &["--only", "/s, idle 2"]].concat()));
    eventually("the first step has ended", || run.stderr().contains("10/s, idle 2: "));
    let before = rows().unwrap();
    eventually("the second one is under way", || rows().is_some_and(|rows| rows > before + 50));
    crash();
    let json = judged(run.wait());
    assert_eq!(json["steps"].as_array().unwrap().len(), 4, "{json}");
    eventually("its rows are gone", || rows() == Some(0));
}

#[test]
fn postgresql_has_a_row_for_each_response() {
    const CONNECTIONS: u32 = 20;
    let mut database = Postgres::start(CONNECTIONS, "scram-sha-256");
    let dsn = database.dsn();
    has_a_row_for_each_answer(&dsn);
    every_row_is_explained(&dsn, || database.crash(CONNECTIONS));
    an_experiment_survives(&dsn, || database.crash(CONNECTIONS));
    let json = experiment(&dsn, "100/s, idle 2");
    assert_eq!(json["steps"].as_array().unwrap().len(), 2, "{json}");
    let wrong = database.dsn().replace("p%40ss", "x");
    let ran = ran(&["serve", "--listen", "127.0.0.1:0", "--db", &wrong]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("28P01") && !ran.stderr.contains("word@"), "{ran:?}");
}

#[test]
fn a_database_that_crashes_in_the_middle_explains_every_row() {
    const CONNECTIONS: u32 = 20;
    let mut database = MariaDb::durable(CONNECTIONS);
    let db = format!("{}?dbname=d", database.watch());
    has_a_row_for_each_answer(&db);
    // More than the database allows: refused in its words, which the run shows.
    let lab = serve(&db, "");
    let refused = post(&lab, &db, "-n 400 -c 60 --body-errors");
    assert!(refused.stdout.contains("Too many connections"), "{refused:?}");
    assert_eq!(refused.json().at("objectives")[0]["met"], true, "{refused:?}");
    drop(lab);
    every_row_is_explained(&db, || database.crash(CONNECTIONS));
    an_experiment_survives(&db, || database.crash(CONNECTIONS));
    // A pool of 50 on a database that allows 20: refused in its words, and each row is there.
    let json = experiment(&db, "1,000/s, idle 2");
    let calibration = &json["steps"][0]["failed_bodies"]["bodies"][0]["text"];
    assert!(calibration.as_str().unwrap().contains("Too many connections"), "{json}");
}
