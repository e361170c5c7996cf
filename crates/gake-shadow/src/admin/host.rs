//! Protection against DNS rebinding: a web page whose name was rebound to this machine sends its own
//! host.

use gake_text::host::is_local_or_address;
use http::Request;
use http::header::HOST;

/// Whether a request has exactly one host, and that is `localhost` or an address.
pub(super) fn is_ours<B>(request: &Request<B>) -> bool {
    let mut hosts = request.headers().get_all(HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
    // An absolute target would be a second host.
    request.uri().authority().is_none() && host.to_str().is_ok_and(is_local_or_address)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn ours(target: &str, hosts: &[&[u8]]) -> bool {
        let mut request = Request::builder().uri(target).body(()).unwrap();
        for host in hosts {
            request.headers_mut().append(HOST, HeaderValue::from_bytes(host).unwrap());
        }
        is_ours(&request)
    }

    #[test]
    fn exactly_one_known_host() {
        for host in
            ["localhost", "LocalHost:9000", "127.0.0.1", "10.1.2.3:80", "[::1]", "[fe80::1]:81"]
        {
            assert!(ours("/status", &[host.as_bytes()]), "{host}");
        }
        for host in [
            "",
            "evil.test",
            "evil.test:9000",
            "localhost.evil.test",
            "localhost.",
            "localhost:",
            "localhost:x",
            "localhost:99999",
            "localhost:+80",
            "localhost:80:80",
            "localhost evil.test",
            "localhost,evil.test",
            "evil@localhost",
            "127.1",
            "0x7f000001",
            "127.0.0.1.evil.test",
            "::1",
            "[::1",
            "[127.0.0.1]",
            "[localhost]",
            "[::1]evil.test",
            "[[::1]]",
            ":80",
        ] {
            assert!(!ours("/status", &[host.as_bytes()]), "{host}");
        }
        assert!(!ours("/status", &[]));
        assert!(!ours("/status", &[b"localhost\xff"]));
        assert!(!ours("/status", &[b"evil\xe9.test"]));
        assert!(!ours("/status", &[b"localhost", b"localhost"]));
        assert!(!ours("/status", &[b"localhost", b"evil.test"]));
        assert!(!ours("http://localhost/status", &[b"localhost"]));
        assert!(!ours("http://evil.test/status", &[b"localhost"]));
    }
}
