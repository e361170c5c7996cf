//! nginx with few connections for each worker.

use crate::support::*;

pub struct Nginx {
    _nginx: gake_testkit::Nginx,
    pub url: String,
}

impl Nginx {
    pub fn start(worker_connections: u32) -> Self {
        let nginx = gake_testkit::Nginx::start(worker_connections, 1, |_, ports| {
            format!(
                "access_log off; keepalive_requests 1000000; keepalive_timeout 60s;
                 server {{
                   listen 127.0.0.1:{} backlog=4096;
                   location / {{ return 200 \"hello\\n\"; }}
                 }}",
                ports[0]
            )
        });
        let url = nginx.url(0) + "/";
        Self { _nginx: nginx, url }
    }
}

#[test]
fn too_few_worker_connections_are_closed_under_their_requests() {
    let flags = words("-c 100 -d 3s");
    let few = Nginx::start(50);
    let json = run(&[&[few.url.as_str()], &*flags].concat());
    assert!(json.findings().contains(&"server_closes"), "{}", json.at("verdict"));
    let failed = json.count("requests.failed") + json.count("connections.stale_reconnects");
    assert!(failed > 100, "{}", json.0);
    let enough = Nginx::start(500);
    let json = run(&[&[enough.url.as_str()], &*flags].concat());
    assert!(!json.findings().contains(&"server_closes"), "{}", json.at("verdict"));
    assert_eq!(json.count("requests.failed"), 0, "{}", json.0);
    assert_eq!(json.count("connections.opened"), 100, "{}", json.0);
}
