//! The lab's users service on real databases: a row for each 200, whatever happens in between.

use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::database::MariaDb;
use crate::postgres::Postgres;
use crate::support::*;
use crate::together;

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
    let output = Command::new("curl").args(["-s", url]).output().unwrap();
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

#[test]
fn postgresql_has_a_row_for_each_answer() {
    let _together = together();
    let database = Postgres::start(20, "scram-sha-256");
    has_a_row_for_each_answer(&database.dsn());
    let wrong = database.dsn().replace("p%40ss", "x");
    let ran = ran(&["serve", "--listen", "127.0.0.1:0", "--db", &wrong]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("28P01") && !ran.stderr.contains("word@"), "{ran:?}");
}

#[test]
fn a_database_that_crashes_in_the_middle_explains_every_row() {
    const CONNECTIONS: u32 = 20;
    let _together = together();
    let mut database = MariaDb::durable(CONNECTIONS);
    let db = format!("{}?dbname=d", database.watch());
    has_a_row_for_each_answer(&db);
    // More than the database allows: refused in its words, which the run shows.
    let lab = serve(&db, "");
    let refused = post(&lab, &db, "-n 400 -c 60 --body-errors");
    assert!(refused.stdout.contains("Too many connections"), "{refused:?}");
    assert_eq!(refused.json().at("objectives")[0]["met"], true, "{refused:?}");
    let lab = serve(&db, "--db-max-open 8 --db-max-idle 8");
    let json = thread::scope(|scope| {
        let run = scope.spawn(|| post(&lab, &db, "-r 200 -d 8s"));
        thread::sleep(Duration::from_secs(2));
        database.crash(CONNECTIONS);
        run.join().unwrap().json()
    });
    let [ok, failed] = ["ok", "failed"].map(|name| json.count(&format!("requests.{name}")));
    assert!(ok > 0 && failed > 0, "{}", json.0);
    // What failed may have been written before its answer was lost.
    let rows = &json.at("objectives")[0];
    assert_eq!(rows["met"], true, "{rows}");
    let value = rows["value"].as_f64().unwrap();
    assert!((ok as f64..=(ok + failed) as f64).contains(&value), "{rows} of {ok} and {failed}");
}
