//! TLS versions and ciphers as the user limits them, and what the result reports.

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
fn versions_and_ciphers_are_limited_and_reported() {
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
    // The first handshake has no session to resume.
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

/// How often a rate of handshakes was so, and of how many.
fn share(json: &Json, name: &str) -> (u64, u64) {
    let all = json.at("metrics.series").as_array().unwrap();
    let found = all.iter().find(|series| series["metric"] == name);
    let number = |key: &str| found.map_or(0, |series| series[key].as_u64().unwrap());
    (number("passed"), number("samples"))
}

/// `requests` requests on as many connections to a lab that takes early data.
fn early(lab: LabConfig, http: &[&str], load: &str, requests: u64) -> Json {
    let lab = lab_with(LabConfig { tls: true, early_data: true, ..lab });
    let url = format!("https://{}/fast", lab.addr());
    let flags = ["-k", "--no-keepalive", "--tls-early-data", "--no-probe", &url];
    let json = run(&[&flags[..], http, &words(load)].concat());
    // Rejected early data is sent again, and counts once on both sides.
    for outcome in ["sent", "ok", "written"] {
        assert_eq!(json.count(&format!("requests.{outcome}")), requests, "{json:?}");
    }
    assert_eq!(lab.shutdown().requests, requests, "{json:?}");
    json
}

#[test]
fn early_data_is_accepted_or_sent_again() {
    for http in [&["--http", "1.1"][..], &["--http3"]] {
        let lab = || LabConfig { http3: true, ..LabConfig::default() };
        let json = early(lab(), http, "-n 40 -c 1", 40);
        let (accepted, offered) = share(&json, "tls_early_data");
        // The first handshake has no session to resume.
        assert!((1..40).contains(&accepted) && accepted == offered, "{http:?} {json:?}");
        let (resumed, all) = share(&json, "tls_resumed");
        assert!(accepted <= resumed && resumed < all && all == 40, "{http:?} {json:?}");

        let rejecting = || LabConfig { reject_early_data_every: Some(3), ..lab() };
        for (load, requests) in [("-n 60 -c 1", 60), ("-r 50 -d 2s", 100)] {
            let json = early(rejecting(), http, load, requests);
            let (accepted, offered) = share(&json, "tls_early_data");
            let are_both = 0 < accepted && accepted < offered && offered < requests;
            assert!(are_both, "{http:?} {load} {json:?}");
        }
    }
}

#[test]
fn what_must_not_be_replayed_waits_for_the_handshake() {
    let lab = LabConfig { tls: true, http3: true, early_data: true, ..LabConfig::default() };
    let lab = lab_with(lab);
    let url = format!("https://{}/echo", lab.addr());
    let flags = words("-n 10 -c 1 -k --no-keepalive --tls-early-data");
    for more in [&["--data", "x"][..], &["-X", "DELETE"], &["-X", "GET", "--data", "x"]] {
        for http in [&["--http", "1.1"][..], &["--http3"]] {
            let json = run(&[&flags[..], &[url.as_str()], more, http].concat());
            assert_eq!(json.count("requests.sent"), 10, "{json:?}");
            assert_eq!(share(&json, "tls_early_data"), (0, 0), "{more:?} {json:?}");
        }
    }
    assert_eq!(lab.shutdown().requests, 60);
}
