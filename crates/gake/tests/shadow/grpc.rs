//! gRPC through the proxy: HTTP/2 on both sides, and the status of a call after its response.

use gake_lab::LabConfig;
use rustix::process::Signal;
use serde_json::Value;

use crate::proxy::Proxy;
use crate::support::*;

/// The shadow takes one call at a time and sheds the others.
#[test]
fn calls_pass_and_the_status_of_a_copy_that_differs_is_found() {
    let master = lab();
    let shadow = lab_with(LabConfig { threads: Some(1), queue: Some(0), ..LabConfig::default() });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("diff.json");
    let path = path.to_str().unwrap();
    let backends = [
        format!("--master=production=h2c://{}", master.addr()),
        format!("--shadow=sandbox=h2c://{}", shadow.addr()),
    ];
    let backends = backends.each_ref().map(String::as_str);
    let flags = ["--shadow-methods", "all", "--diff-out", path];
    let proxy = Proxy::start(&[&backends[..], &flags].concat());
    let address = proxy.url.strip_prefix("http://").unwrap().trim_end_matches('/');
    let url = format!("grpc://{address}/gake.lab.v1.Echo");

    // The definitions come by reflection, which is a stream both ways.
    let line = ["-n", "40", "-c", "2", "--streams", "5", "--data", r#"{"delay_ms":20}"#];
    let json = run(&[&line[..], &[&format!("{url}/Say")]].concat());
    assert_eq!(json.count("requests.ok"), 40, "{json:?}");
    let chat = ["-n", "6", "-c", "1", "--data", r#"{"text":"a"}"#, "--data", r#"{"text":"b"}"#];
    let json = run(&[&chat[..], &[&format!("{url}/Chat")]].concat());
    assert_eq!(json.count("requests.ok"), 6, "{json:?}");
    let failing = ["run", "-o", "json", "-n", "3", "-c", "1", "--data", r#"{"status":5}"#];
    let failed = ran(&[&failing[..], &[&format!("{url}/Say")]].concat()).json();
    assert_eq!(failed.count("faults.grpc_status"), 3, "{failed:?}");
    proxy.settled();
    proxy.end(Signal::INT);

    let report = ran(&["shadow", "report", path, "-o", "json"]);
    let report = serde_json::from_str::<Value>(&report.stdout).unwrap()[0].take();
    let differences = report["differences"].as_array().unwrap();
    let status = differences.iter().find(|difference| {
        difference["path"] == "header grpc-status"
            && difference["endpoint"] == "POST /gake.lab.v1.Echo/Say"
    });
    assert!(status.is_some_and(|status| status["shadow"].as_u64() > Some(0)), "{report:#}");
}
