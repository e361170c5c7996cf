//! nginx as master and shadow, its access log counting the requests; and as a reference proxy.

use std::fs;
use std::thread;

use gake_shadow::config::{Backend as BackendConfig, Config};
use gake_shadow::{Category, Proxy, ProxySummary};
use gake_testkit::Nginx;

use crate::client::Client;
use crate::{shadow_at, stop, until};

/// An nginx with two servers that have this in their locations, and this behind the address to
/// listen at; the names of their logs are their numbers.
pub fn nginx(protocol: &str, location: &str) -> Nginx {
    Nginx::start(1024, 2, |directory, ports| {
        let at = directory.display();
        let server = |number: usize| {
            format!(
                "server {{ listen 127.0.0.1:{} {protocol}; access_log {at}/{number};
                   merge_slashes off; location / {{ {location} }} }}",
                ports[number]
            )
        };
        format!("keepalive_requests 50; {} {}", server(0), server(1))
    })
}

/// Requests in a log with a protocol.
fn logged(nginx: &Nginx, number: usize, protocol: &str) -> usize {
    let log = fs::read_to_string(nginx.path(&number.to_string()));
    log.unwrap_or_default().lines().filter(|line| line.contains(protocol)).count()
}

/// Runs eight clients against a proxy whose master and shadow have these URLs.
fn copied(urls: [String; 2], ask: impl Fn(&mut Client) + Send + Sync) -> ProxySummary {
    let [master, shadow] = urls;
    let mut config = Config::new(BackendConfig::new("nginx", &master).unwrap());
    config.threads = 2;
    let mut shadow = shadow_at(0, &shadow);
    shadow.queue = 10_000;
    config.shadows.push(shadow);
    let proxy = Proxy::new(config).unwrap().start().unwrap();
    let addr = proxy.addr();
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| ask(&mut Client::new(addr)));
        }
    });
    stop(proxy)
}

#[test]
fn nginx_responds_to_everything_and_sees_every_copy() {
    let nginx = nginx("", r#"return 200 "hello\n";"#);
    let summary = copied([0, 1].map(|number| nginx.url(number)), |client| {
        for _ in 0..200 {
            let response = client.get("/");
            assert_eq!((response.status, response.body.as_str()), (200, "hello\n"));
        }
    });
    assert_eq!(summary.ledgers[0].count(Category::Ok), 1600, "{}", summary.ledgers[0]);
    assert_eq!(summary.stats.responses[2], 1600);
    let seen = |number| logged(&nginx, number, "HTTP/1.1\"");
    until("both logs are written", || seen(0) == 1600 && seen(1) == 1600);
}

/// nginx closes connections after 50 requests, and refuses the requests in flight.
#[test]
fn nginx_is_asked_in_http2_and_no_request_is_lost_with_its_connections() {
    let nginx = nginx("http2", "return 200 \"$request_method $host$request_uri\\n\";");
    let urls = [0, 1].map(|number| nginx.url(number).replace("http:", "h2c:"));
    let summary = copied(urls, |client| {
        for number in 0..100 {
            let path = format!("/{number}?a=b");
            let response = client.get(&path);
            assert_eq!((response.status, response.body), (200, format!("GET h{path}\n")));
            let head = format!("POST {path} HTTP/1.1\r\nHost: h\r\nContent-Length: 5");
            client.write(format!("{head}\r\n\r\nhello"));
            let response = client.response(false);
            assert_eq!((response.status, response.body), (200, format!("POST h{path}\n")));
        }
    });
    assert_eq!(summary.ledgers[0].count(Category::Ok), 1600, "{}", summary.ledgers[0]);
    assert_eq!((summary.stats.responses[2], summary.stats.master_faults), (1600, 0));
    let seen = |number| logged(&nginx, number, "HTTP/2.0\"");
    until("both logs are written", || seen(0) >= 1600 && seen(1) >= 1600);
}
