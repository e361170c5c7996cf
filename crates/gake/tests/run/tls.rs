//! TLS as the user bounds it, and what is told of it.

use gake_lab::LabConfig;

use crate::support::*;

/// The handshakes of a run: version, cipher suite, whether resumed, and how many.
fn handshakes(json: &Json) -> Vec<(String, String, String, u64)> {
    let all = json.at("metrics.series").as_array().unwrap();
    let own = all.iter().filter(|series| series["metric"] == "tls_handshakes");
    let tag = |series: &serde_json::Value, key: &str| {
        series["tags"][key].as_str().unwrap_or_default().to_owned()
    };
    own.map(|series| {
        let [version, cipher, resumed] =
            ["version", "cipher", "resumed"].map(|key| tag(series, key));
        assert_ne!(tag(series, "group"), "", "{series}");
        (version, cipher, resumed, series["samples"].as_u64().unwrap())
    })
    .collect()
}

#[test]
fn versions_and_ciphers_are_bounded_and_told() {
    let lab = lab_with(LabConfig { tls: true, ..LabConfig::default() });
    let url = format!("https://{}/fast", lab.addr());
    let common = ["-n", "6", "-c", "1", "-k", "--no-keepalive", &url];
    let old = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256";
    let json = run(&[&common[..], &["--tls-max", "1.2", "--ciphers", old]].concat());
    let all = handshakes(&json);
    assert_eq!(all.len(), 1, "{all:?}");
    let (version, cipher, resumed, count) = &all[0];
    assert_eq!((version.as_str(), resumed.as_str(), *count), ("1.2", "false", 6));
    assert!(old.contains(cipher.as_str()), "{cipher}");

    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().join("keys").display().to_string();
    let new = "TLS_CHACHA20_POLY1305_SHA256";
    let flags = ["--tls-min", "1.3", "--ciphers", new, "--session-tickets", "--key-log", &keys];
    let json = run(&[&common[..], &flags].concat());
    let all = handshakes(&json);
    assert!(all.iter().all(|one| one.0 == "1.3" && one.1 == new), "{all:?}");
    // The first session has none before it.
    let count = |resumed: &str| all.iter().find(|one| one.2 == resumed).map_or(0, |one| one.3);
    assert!(count("false") >= 1 && count("true") >= 1, "{all:?}");
    assert_eq!(count("false") + count("true"), 6);
    let keys = std::fs::read_to_string(keys).unwrap();
    let secrets = keys.lines().filter(|line| line.starts_with("CLIENT_TRAFFIC_SECRET_0 "));
    assert_eq!(secrets.count(), 6, "{keys}");
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
