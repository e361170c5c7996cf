//! Spring MVC on Tomcat with Actuator, and its users in a MariaDB behind HikariCP.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::database::MariaDb;
use crate::support::*;
use crate::{copy_dependencies, source};

/// What Spring Boot does not show by default.
const SHOWN: [&str; 2] = [
    "server.tomcat.mbeanregistry.enabled=true",
    "management.endpoint.configprops.show-values=always",
];

/// An application, and what tells of it.
struct Spring {
    peer: Peer,
    watch: String,
}

/// The folders of its class and jars, made once.
fn class_path() -> String {
    let made = Path::new(env!("CARGO_TARGET_TMPDIR")).join("spring-boot-3.4.1");
    let (classes, jars) = (made.join("classes"), made.join("jars"));
    let [pom, peer] = ["pom.xml", "Peer.java"].map(|name| source("spring").join(name));
    let sources = [&pom, &peer].map(|file| fs::read(file).unwrap()).concat();
    once(&made.join("sources"), &sources, || {
        copy_dependencies("spring", &jars);
        let compiled = command("javac")
            .args(["-parameters", "-cp", &format!("{}/*", jars.display())])
            .args(["-d", &classes.display().to_string()])
            .arg(peer)
            .output()
            .unwrap();
        assert!(compiled.status.success(), "{compiled:?}");
    });
    format!("{}:{}/*", classes.display(), jars.display())
}

/// Starts it with settings of Spring Boot, and with a pool of this many connections if it has a
/// database.
fn spring(database: Option<(&MariaDb, u32)>, settings: &[&str]) -> Spring {
    let mut command = command("java");
    command.args(["-XX:TieredStopAtLevel=1", "-cp", &class_path(), "Peer"]);
    match database {
        Some((database, pool)) => command.arg(database.socket()).arg(pool.to_string()),
        None => command.args(["-", "0"]),
    };
    let mut peer = Peer::start(command.args(settings));
    let watch = format!("actuator:{}", peer.line());
    Spring { peer, watch }
}

fn load(spring: &Spring, page: &str, flags: &str) -> Json {
    let url = format!("{}{page}", spring.peer.url);
    run(&[&[url.as_str(), "--watch", &spring.watch], &*words(flags)].concat())
}

/// The names of the settings in force, with their values.
fn settings(json: &Json) -> Vec<String> {
    let settings = json.at("target.settings").as_array().unwrap().iter();
    let text = |setting: &Value, key| setting[key].as_str().unwrap().to_owned();
    settings.map(|one| format!("{}={}", text(one, "name"), text(one, "value"))).collect()
}

#[test]
fn an_application_exports_threads_and_settings_when_configured() {
    let few = "server.tomcat.threads.max=20";
    let users = "-c 60 -d 4s --warmup 1s";
    // The first ones find a thread, and each waits for its turn: of users who keep their connection
    // the same twenty may have the threads all the time.
    let growing = "--users 1..80@2s,80@3s --no-keepalive";
    // As it comes: nothing to blame, and what to set is said.
    let json = load(&spring(None, &[few]), "/sleep?ms=200", growing);
    assert_eq!(json.count("requests.failed"), 0, "{}", json.0);
    assert_eq!(settings(&json), [""; 0], "{}", json.0["target"]);
    assert!(!json.findings().contains(&"target_pool"), "{}", json.at("verdict"));
    assert!(json.0.to_string().contains("server.tomcat.mbeanregistry.enabled=true"), "{}", json.0);
    let server = spring(None, &[&[few], &SHOWN[..]].concat());
    let json = load(&server, "/sleep?ms=200", users);
    for setting in [few, "server.tomcat.acceptCount=100", "server.tomcat.maxConnections=8192"] {
        assert!(settings(&json).iter().any(|one| one == setting), "{:?}", settings(&json));
    }
    assert!(json.findings().contains(&"target_pool"), "{}", json.at("verdict"));
    // Twenty threads, 200 ms each.
    let before = json.number("rate.completed");
    assert!(before <= 105.0, "{before}");
    // The experiment that is for it names the same.
    let url = format!("{}/sleep?ms=50", server.peer.url);
    let args = ["experiment", "pool", "--quick", "--only", "40 users", "-q", "-o", "json"];
    let ran = ran(&[&args[..], &["--target", &url, "--watch", &server.watch]].concat()).done();
    let json: Value = serde_json::from_str(&ran.stdout).unwrap();
    let step = &json["steps"][0];
    let mut findings = step["findings"].as_array().unwrap().iter();
    assert!(findings.any(|one| one["id"] == "target_pool" && one["rank"] == "cause"), "{step}");
    assert!(step["target"]["settings"].to_string().contains("server.tomcat.threads.max"), "{step}");
    drop(server);
    // Cured: three times as many.
    let cured = spring(None, &[&["server.tomcat.threads.max=100"], &SHOWN[..]].concat());
    let json = load(&cured, "/sleep?ms=200", users);
    assert!(!json.findings().contains(&"target_pool"), "{}", json.at("verdict"));
    let after = json.number("rate.completed");
    assert!(after > 1.8 * before, "{before} to {after}");
}

#[test]
fn its_connection_pool_is_named_and_each_response_has_its_row() {
    let database = MariaDb::start(151);
    let server = spring(Some((&database, 5)), &SHOWN);
    let json = load(&server, "/query?ms=20", "-c 40 -d 4s --warmup 1s");
    assert_eq!(json.count("requests.failed"), 0, "{}", json.0);
    // Five connections, each held for 20 ms.
    let rate = json.number("rate.completed");
    assert!(rate <= 5.0 * 50.0 * 1.05, "{rate}");
    assert!(json.findings().contains(&"target_db_pool"), "{}", json.at("verdict"));
    let go = database.service(5, 5, "SELECT 1");
    for url in [&server.peer.url, &go.url] {
        let url = format!("{url}/users");
        let rows = format!("sql:{}:SELECT COUNT(*) FROM d.users", database.watch());
        let body = r#"{"name":"Ada","mail":"ada@example.com"}"#;
        let json = run(&[&url, "--data", body, "-H", "Content-Type: application/json"]
            .into_iter()
            .chain(["--reconcile", &rows, "-r", "200", "-d", "2s"])
            .collect::<Vec<_>>());
        assert_eq!(json.count("requests.ok"), 400, "{}", json.0);
        assert_eq!(json.at("objectives")[0]["value"].as_f64(), Some(400.0), "{}", json.0);
    }
}
