//! The TOML file.

use std::time::Duration;

use gake_shadow::config::{Config, ForwardedPolicy, HostPolicy, Sampling};
use gake_shadow::exchange::Role;

fn read(text: &str) -> Result<Config, String> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("shadow.toml");
    std::fs::write(&path, text).unwrap();
    Config::from_file(&path).map_err(|error| error.to_string())
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
    for (change, with, message) in [
        ("threads = 3", "thread = 3", "unknown field `thread`"),
        ("threads = 3", "threads = \"3\"", "line 3"),
        ("rate = 100.0", "speed = 1", "unknown field `speed`"),
        ("\"2s\"", "\"2 parsecs\"", "2 parsecs"),
        ("\"64KiB\"", "\"64 bits\"", "64 bits"),
        ("\"cookie:session\"", "\"biscuit\"", "biscuit"),
        ("http://127.0.0.1:8081", "http://127.0.0.1:8081/path", "has a path"),
        ("deny = \"/admin\"", "methods = [\"GET\"]", "either `allow` or `deny`"),
        ("[master]", "[mister]", "unknown field `mister`"),
    ] {
        let error = read(&WHOLE.replacen(change, with, 1)).unwrap_err();
        assert!(error.contains(message), "{with}: {error}");
    }
    assert!(Config::from_file("/nowhere".as_ref()).unwrap_err().to_string().contains("/nowhere"));
}

#[test]
fn contradictory_settings_are_rejected() {
    for (change, with, message) in [
        ("\"twin\"", "\"sandbox\"", "two backends are named"),
        ("percentage = 12.5", "percentage = 120.0", "0 to 100"),
        ("rate = 100.0", "rate = 0.0", "above 0"),
        ("rate = 100.0", "queue = 0", "at least 1"),
        ("127.0.0.1:9901", "0.0.0.0:9901", "loopback"),
    ] {
        let config = read(&WHOLE.replacen(change, with, 1)).unwrap();
        let error = config.check().unwrap_err().to_string();
        assert!(error.contains(message), "{with}: {error}");
    }
}
