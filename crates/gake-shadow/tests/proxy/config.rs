//! The TOML file.

use std::time::Duration;

use expect_test::{Expect, expect};
use gake_shadow::config::{Config, ForwardedPolicy, HostPolicy, Sampling};
use gake_shadow::exchange::Role;

fn read(text: &str) -> Result<Config, String> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("shadow.toml");
    std::fs::write(&path, text).unwrap();
    Config::from_file(&path).map_err(|error| {
        error.to_string().replace(path.to_str().unwrap(), "shadow.toml").trim_end().to_owned()
    })
}

/// Checks the errors of the whole file with one change each.
fn expect_errors(changes: &[(&str, &str)], expected: &Expect) {
    let errors = changes.iter().map(|(change, with)| {
        let file = read(&WHOLE.replacen(change, with, 1));
        file.and_then(|config| config.check().map_err(|error| error.to_string())).unwrap_err()
            + "\n"
    });
    expected.assert_eq(&errors.collect::<String>());
}

const WHOLE: &str = r#"
listen = "127.0.0.1:8080"
threads = 3
admin = "127.0.0.1:9901"
forwarded = "replace"
shadow-body-limit = "64KiB"
first-byte-timeout = "2s"

[master]
name = "production"
url = "http://127.0.0.1:8081"

[[rule]]
deny = "/admin"

[[shadow]]
name = "sandbox"
url = "https://127.0.0.1:8443"
host = "backend"
percentage = 12.5
sample = "cookie:session"
methods = ["safe", "post"]
marker = "none"
rate = 100.0
timeout = "3s"

[shadow.headers]
remove = ["Cookie"]
suffix = { Idempotency-Key = "-shadow" }
remap = { Authorization = { "Bearer live" = "Bearer test" } }

[[shadow.rule]]
allow = "/search/**"
methods = ["POST"]

[[shadow]]
name = "twin"
url = "http://127.0.0.1:8083"
noise = true
"#;

#[test]
fn a_file_sets_everything_that_flags_do() {
    let config = read(WHOLE).unwrap();
    assert_eq!((config.threads, config.forwarded), (3, ForwardedPolicy::Replace));
    assert_eq!(config.limits.shadow_body, 65536);
    assert_eq!(config.timeouts.first_byte, Duration::from_secs(2));
    let [sandbox, twin] = &config.shadows[..] else { panic!("{config:?}") };
    assert_eq!(sandbox.backend.host, HostPolicy::Backend);
    assert_eq!(sandbox.sample, Sampling::Cookie("session".to_owned()));
    assert_eq!((sandbox.methods.len(), sandbox.rules.len()), (5, 2));
    assert!(sandbox.marker.is_none() && sandbox.backend.edits.remap.len() == 1);
    assert_eq!((twin.role, twin.rules.len()), (Role::Secondary, 1));
    config.check().unwrap();
}

#[test]
fn errors_have_a_position() {
    let changes = [
        ("threads = 3", "thread = 3"),
        ("threads = 3", "threads = \"3\""),
        ("rate = 100.0", "speed = 1"),
        ("\"2s\"", "\"2 parsecs\""),
        ("\"64KiB\"", "\"64 bits\""),
        ("\"cookie:session\"", "\"biscuit\""),
        ("http://127.0.0.1:8081", "http://127.0.0.1:8081/path"),
        ("deny = \"/admin\"", "methods = [\"GET\"]"),
        ("[master]", "[mister]"),
    ];
    expect_errors(
        &changes,
        &expect![[r#"
        shadow.toml: TOML parse error at line 3, column 1
          |
        3 | thread = 3
          | ^^^^^^
        unknown field `thread`, expected one of `listen`, `threads`, `tls-cert`, `tls-key`, `insecure`, `cacert`, `admin`, `forwarded`, `underscores-in-headers`, `seed`, `shadow-nice`, `max-connections`, `shadow-body-limit`, `answer-body-limit`, `head-timeout`, `client-timeout`, `connect-timeout`, `first-byte-timeout`, `idle-timeout`, `master`, `shadow`, `rule`
        shadow.toml: TOML parse error at line 3, column 11
          |
        3 | threads = "3"
          |           ^^^
        invalid type: string "3", expected usize
        shadow.toml: TOML parse error at line 24, column 1
           |
        24 | speed = 1
           | ^^^^^
        unknown field `speed`, expected one of `name`, `url`, `host`, `headers`, `noise`, `percentage`, `ramp`, `sample`, `methods`, `marker`, `queue`, `queue-bytes`, `connections`, `rate`, `breaker-failures`, `breaker-pause`, `timeout`, `rule`
        shadow.toml: TOML parse error at line 7, column 22
          |
        7 | first-byte-timeout = "2 parsecs"
          |                      ^^^^^^^^^^^
        "2 parsecs" is not a duration; write for example 30s, 1m30s, 250ms, or bare seconds
        shadow.toml: TOML parse error at line 6, column 21
          |
        6 | shadow-body-limit = "64 bits"
          |                     ^^^^^^^^^
        "64 bits" is not a valid size; write for example 65536, 64KiB or 1MiB
        shadow.toml: sample "biscuit" cannot be used: write random, path, header:NAME or cookie:NAME
        shadow.toml: "http://127.0.0.1:8081/path" has a path or a user; a backend is only a scheme, a host and a port
        shadow.toml: rule "" cannot be used: write either `allow` or `deny`, with a path
        shadow.toml: TOML parse error at line 9, column 2
          |
        9 | [mister]
          |  ^^^^^^
        unknown field `mister`, expected one of `listen`, `threads`, `tls-cert`, `tls-key`, `insecure`, `cacert`, `admin`, `forwarded`, `underscores-in-headers`, `seed`, `shadow-nice`, `max-connections`, `shadow-body-limit`, `answer-body-limit`, `head-timeout`, `client-timeout`, `connect-timeout`, `first-byte-timeout`, `idle-timeout`, `master`, `shadow`, `rule`
    "#]],
    );
    assert!(Config::from_file("/nowhere".as_ref()).unwrap_err().to_string().contains("/nowhere"));
}

#[test]
fn contradictory_settings_are_rejected() {
    let changes = [
        ("\"twin\"", "\"sandbox\""),
        ("percentage = 12.5", "percentage = 120.0"),
        ("rate = 100.0", "rate = 0.0"),
        ("rate = 100.0", "queue = 0"),
        ("127.0.0.1:9901", "0.0.0.0:9901"),
    ];
    expect_errors(
        &changes,
        &expect![[r#"
        two backends are named "sandbox"; names identify backends in reports and hooks
        the percentage of "sandbox" must be 0 to 100
        the rate of "sandbox" must be above 0 per second
        the queue and the connections of "sandbox" must be at least 1; percentage 0 disables it
        the admin service listens on loopback only; forward a port to reach it remotely
    "#]],
    );
}
