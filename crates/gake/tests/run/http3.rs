//! HTTP/3 on the lab: counts, stalls, and its figures in results.

use crate::support::*;

#[test]
fn both_sides_count_the_same_over_http3() {
    let lab = Peer::lab(&["--tls", "self", "--http3", "--stall", "200ms+500ms"]);
    let url = format!("{}/fast", lab.url);
    // 100 of the arrivals are due while the server stands still, and wait for its end.
    let open =
        run(&[&[url.as_str()], &*words("--http3 -k -r 200 -d 1s -c 2 --streams 50")].concat());
    assert_eq!((open.count("requests.due"), open.count("requests.ok")), (200, 200), "{open:?}");
    let latency = |name: &str| open.at("latency_ns.response")[name].as_f64().unwrap() / 1e6;
    assert!(latency("p95") >= 400.0 && latency("max") >= 480.0, "{open:?}");
    assert_eq!(open.text("connections.protocol"), "HTTP/3");
    assert_eq!(open.count("connections.quic.streams"), 200, "{open:?}");
    let packets = (open.count("connections.quic.packets"), open.count("connections.quic.lost"));
    assert!(packets.0 > 0 && packets.1 <= packets.0, "{open:?}");
    // Ten users on two connections, as the text says.
    let line = words("--http3 -k -n 300 -c 2 --streams 5");
    let closed = ran(&[&["run", &url], &*line].concat()).done().stdout;
    assert!(closed.contains(", HTTP/3\n") && closed.contains("2 opened"), "{closed}");
    // Another tool's flags.
    let oha = ran(&[
        &["as", "oha", "--http-version", "3", "--insecure"],
        &*words("-n 40 -c 2 -p 2 --no-tui"),
        &[&url],
    ]
    .concat());
    assert!(oha.done().stdout.contains("[200] 40 responses"));
    // An offer in a response over TCP.
    let auto = run(&[&[url.as_str()], &*words("--http auto3 -k -n 100 -c 1 --streams 1")].concat());
    assert_eq!(auto.count("requests.ok"), 100, "{auto:?}");
    assert_eq!(auto.count("connections.quic.streams"), 99, "{auto:?}");
    assert_eq!(number_after(&lab.end(), "requests"), 200 + 300 + 40 + 100);
}

#[test]
fn a_server_without_http3_is_reported() {
    let lab = Peer::lab(&["--tls", "self"]);
    let unserved = ran(&["run", &lab.url, "--http3", "-k", "-n", "3", "-c", "1"]);
    assert!(unserved.stdout.contains("connection refused"), "{unserved:?}");
    ran(&["run", "http://127.0.0.1:1/", "--http3", "-n", "1"])
        .refused(2, "HTTP/3 has no clear text");
    ran(&["run", &lab.url, "--http3", "--proxy", "http://127.0.0.1:1", "-n", "1"])
        .refused(2, "--proxy");
}

/// A script whose requests go to the lab at `lab.url` over HTTP/3, and to another in clear text.
#[test]
fn scripts_speak_http3_when_an_option_says_so() {
    let lab = Peer::lab(&["--tls", "self", "--http3"]);
    let clear = Peer::lab(&[]);
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script.js");
    let with = |option: &str| {
        let text = format!(
            "import http from 'k6/http';
            export const options = {{ insecureSkipTLSVerify: true, iterations: 2, {option}
                thresholds: {{ 'http_reqs{{proto:HTTP/3.0}}': ['count==4'],
                    'http_reqs{{proto:HTTP/1.1}}': ['count==2'] }} }};
            export default function () {{
                const got = http.get('{url}/fast');
                const posted = http.post('{url}/fast', 'x');
                const plain = http.get('{clear}/fast');
                console.log(got.status, got.proto, got.status_text, posted.proto, plain.proto,
                    got.tls_version);
            }}",
            url = lab.url,
            clear = clear.url,
        );
        std::fs::write(&script, text).unwrap();
        script.display().to_string()
    };
    let path = with("httpVersion: '3',");
    let k6 = ran(&["as", "k6", "run", "--quiet", &path]);
    let line = "200 HTTP/3.0 200 OK HTTP/3.0 HTTP/1.1 tls1.3";
    assert_eq!((k6.code, k6.stderr.matches(line).count()), (Some(0), 2), "{k6:?}");
    // The flag of `gake run` does the same.
    let native = ran(&["run", &with(""), "--http3"]);
    assert_eq!((native.code, native.stderr.matches(line).count()), (Some(0), 2), "{native:?}");
    let path = with("httpVersion: '3',");
    let proxied = start(gake(&["as", "k6", "run", &path]).env("HTTPS_PROXY", "http://127.0.0.1:1"));
    let proxied = proxied.wait();
    assert!(proxied.stderr.contains("a proxy does not carry UDP"), "{proxied:?}");
    let refused = ran(&["as", "k6", "run", &with("httpVersion: '4',")]);
    assert!(refused.stderr.contains("httpVersion is \\\"4\\\""), "{refused:?}");
    assert_eq!(number_after(&clear.end(), "requests"), 4);
}
