//! TLS as the user bounds it, and what is told of it.

use gake_lab::LabConfig;

use crate::support::*;

/// The handshakes of a run that all agreed on the same: version, cipher suite, how many, and how
/// many of them resumed a session.
fn handshakes(json: &Json) -> (String, String, u64, u64) {
    let all = json.at("metrics.series").as_array().unwrap();
    let only = |name: &str| {
        let mut found = all.iter().filter(|series| series["metric"] == name);
        let first = found.next().unwrap();
        assert!(found.next().is_none(), "{json:?}");
        first
    };
    let tag = |series: &serde_json::Value, key: &str| {
        series["tags"][key].as_str().unwrap_or_default().to_owned()
    };
    let (agreed, resumed) = (only("tls_handshakes"), only("tls_resumed"));
    let stapled = only("tls_stapled");
    assert_eq!(
        (stapled["passed"].as_u64(), stapled["samples"].as_u64() > Some(0)),
        (Some(0), true)
    );
    assert_ne!(tag(agreed, "group"), "", "{agreed}");
    let count = agreed["samples"].as_u64().unwrap();
    assert_eq!(resumed["samples"].as_u64(), Some(count));
    (tag(agreed, "version"), tag(agreed, "cipher"), count, resumed["passed"].as_u64().unwrap())
}

#[test]
fn versions_and_ciphers_are_bounded_and_told() {
    let lab = lab_with(LabConfig { tls: true, ..LabConfig::default() });
    let url = format!("https://{}/fast", lab.addr());
    let common = ["-n", "6", "-c", "1", "-k", "--no-keepalive", &url];
    let old = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256";
    let json = run(&[&common[..], &["--tls-max", "1.2", "--ciphers", old]].concat());
    let (version, cipher, count, resumed) = handshakes(&json);
    assert_eq!((version.as_str(), count, resumed), ("1.2", 6, 0));
    assert!(old.contains(&cipher), "{cipher}");

    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().join("keys").display().to_string();
    let new = "TLS_CHACHA20_POLY1305_SHA256";
    let flags = ["--tls-min", "1.3", "--ciphers", new, "--session-tickets", "--key-log", &keys];
    let json = run(&[&common[..], &flags].concat());
    let (version, cipher, count, resumed) = handshakes(&json);
    assert_eq!((version.as_str(), cipher.as_str(), count), ("1.3", new, 6));
    // The first session has none before it.
    assert!((1..6).contains(&resumed), "{resumed}");
    let secrets = || {
        let keys = std::fs::read_to_string(&keys).unwrap();
        keys.lines().filter(|line| line.starts_with("CLIENT_TRAFFIC_SECRET_0 ")).count()
    };
    assert_eq!(secrets(), 6);
    // The variable names the same file, to which it is added; a warning says so.
    let line = [&["run", "--tls-min", "1.3"], &common[..]].concat();
    let ran = start(gake(&line).env("SSLKEYLOGFILE", &keys)).wait().done();
    assert!(ran.stderr.contains("gets the secrets of TLS"), "{ran:?}");
    assert_eq!(secrets(), 12);
}

#[test]
fn bounds_that_leave_nothing_are_refused() {
    for (flags, said) in [
        (["--tls-min", "1.3", "--tls-max", "1.2"], "--tls-min"),
        (["--ciphers", "TLS_NOPE", "-n", "1"], "TLS_AES_256_GCM_SHA384"),
        (["--tls-max", "1.1", "-n", "1"], "1.2"),
    ] {
        let line = [&["run"][..], &flags, &["https://127.0.0.1:1/"]].concat();
        ran(&line).refused(2, said);
    }
}
