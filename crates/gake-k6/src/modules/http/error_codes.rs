//! k6's error codes and messages for faults of requests.

use std::net::{IpAddr, SocketAddr};

use gake_core::record::{ErrorCode, Fault, Phase};
use gake_wire::fault::{self, OTHER_NAME, PROXY_REFUSED, go_errno_text};
use gake_wire::lookup::{self, LookupError};
use url::Url;

/// EADDRNOTAVAIL and EMFILE.
const ADDRESS_NOT_AVAILABLE: i32 = 99;
const TOO_MANY_FILES: i32 = 24;

/// The `error_code` and `error` of a response for a fault of a request to `url`.
pub(super) fn of(fault: Fault, url: &Url) -> (u32, String) {
    match fault {
        Fault::Dns => match lookup::error(url.host_str().unwrap_or_default()) {
            LookupError { is_not_found: true, .. } => (1101, "lookup: no such host".to_owned()),
            unknown => (1100, unknown.text),
        },
        Fault::ConnectRefused => (1212, "dial: connection refused".to_owned()),
        Fault::ConnectTimeout => (1211, "dial: i/o timeout".to_owned()),
        Fault::Timeout(Phase::Connect | Phase::FirstByte | Phase::Body) => {
            (1050, "request timeout".to_owned())
        }
        Fault::ConnectReset => (1220, "dial: connection reset by peer".to_owned()),
        Fault::Unreachable(errno) => of_dial(errno),
        Fault::NoLocalPort => of_dial(ADDRESS_NOT_AVAILABLE),
        Fault::NoDescriptors => of_dial(TOO_MANY_FILES),
        Fault::NotAllowed(why) => (1110, format!("not allowed: {why}")),
        Fault::Tls(OTHER_NAME) => (1311, "x509: certificate doesn't match hostname".to_owned()),
        Fault::Tls(reason) => match fault::go_tls_text(reason) {
            None => (1300, format!("tls: {reason}")),
            Some(text) if text.contains("x509") => (1310, "x509: unknown authority".to_owned()),
            Some(text) if text.starts_with("remote error") => (1010, text.to_owned()),
            Some(text) => (1301, text.to_owned()),
        },
        Fault::Proxy(PROXY_REFUSED) => {
            (1200, "proxyconnect tcp: connect: connection refused".to_owned())
        }
        Fault::Proxy(reason) => (1000, proxy_error(reason)),
        Fault::Write | Fault::Reset => (1220, "read: connection reset by peer".to_owned()),
        Fault::ClosedEarly(Phase::Body) => (1000, "unexpected EOF".to_owned()),
        Fault::ClosedEarly(_) => (1000, "EOF".to_owned()),
        Fault::Goaway(code) => (of_http2(1610, code), fault.to_string()),
        Fault::StreamReset(code) => (of_http2(1630, code), fault.to_string()),
        other => (1000, other.to_string()),
    }
}

/// Of a connection that a system error prevented.
fn of_dial(errno: i32) -> (u32, String) {
    let text = go_errno_text(errno);
    (1213, format!("dial: unknown errno {errno} error with msg `{text}`"))
}

/// Go's message, for the log, for the fault of a request to `url` at `ip`; else `error`.
pub(super) fn go_text(fault: Fault, url: &Url, ip: Option<IpAddr>, error: &str) -> String {
    let host = url.host_str().unwrap_or_default();
    let port = url.port_or_known_default().unwrap_or_default();
    let address = match ip {
        Some(ip) => SocketAddr::new(ip, port).to_string(),
        None => format!("{host}:{port}"),
    };
    let dial = |why: &str| format!("dial tcp {address}: connect: {why}");
    match fault {
        Fault::Dns => lookup::error(host).text,
        Fault::ConnectRefused => dial("connection refused"),
        Fault::ConnectReset => dial("connection reset by peer"),
        Fault::Unreachable(errno) => dial(&go_errno_text(errno)),
        Fault::NoLocalPort => dial("cannot assign requested address"),
        Fault::Write | Fault::Reset => {
            format!("read tcp {address}: read: connection reset by peer")
        }
        Fault::Tls(reason) => fault::go_tls_text(reason).map_or(error, |text| text).to_owned(),
        _ => error.to_owned(),
    }
}

/// Go's error for a proxy that opens no tunnel: the phrase of its status, which the reason contains.
pub(crate) fn proxy_error(reason: &'static str) -> String {
    let numbers = reason.split(|c: char| !c.is_ascii_digit());
    let status = numbers.filter(|digits| digits.len() == 3).find_map(|digits| digits.parse().ok());
    status.map_or(reason, phrase).to_owned()
}

/// k6's code of an HTTP/2 error: the protocol's codes follow the general one.
fn of_http2(general: u32, code: ErrorCode) -> u32 {
    const NAMED: u32 = 0xd;
    let code = code as u32;
    if code <= NAMED { general + 1 + code } else { general }
}

/// The reason phrase of a status, which HTTP/2 does not send.
pub(super) fn phrase(status: u16) -> &'static str {
    // Go's phrases that differ from the current standard.
    match status {
        203 => "Non-Authoritative Information",
        413 => "Request Entity Too Large",
        414 => "Request URI Too Long",
        416 => "Requested Range Not Satisfiable",
        status => {
            let status = http::StatusCode::from_u16(status).ok();
            status.and_then(|status| status.canonical_reason()).unwrap_or_default()
        }
    }
}

/// The `error_code` of a response with this status.
pub(super) fn of_status(status: u16) -> u32 {
    if status >= 400 { 1000 + u32::from(status) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_errors_of_dialling_have_their_number_and_gos_words() {
        let url = Url::parse("http://192.0.2.1:3000/").unwrap();
        let ip = url.host_str().and_then(|host| host.parse().ok());
        for (fault, error, why) in [
            (
                Fault::Unreachable(101),
                "dial: unknown errno 101 error with msg `network is unreachable`",
                "network is unreachable",
            ),
            (
                Fault::Unreachable(113),
                "dial: unknown errno 113 error with msg `no route to host`",
                "no route to host",
            ),
            (
                Fault::NoLocalPort,
                "dial: unknown errno 99 error with msg `cannot assign requested address`",
                "cannot assign requested address",
            ),
        ] {
            assert_eq!(of(fault, &url), (1213, error.to_owned()));
            let text = go_text(fault, &url, ip, error);
            assert_eq!(text, format!("dial tcp 192.0.2.1:3000: connect: {why}"));
        }
    }

    #[test]
    fn errors_of_tls_and_proxies_have_the_codes_and_words_of_k6() {
        let url = Url::parse("https://a.test/").unwrap();
        for (fault, code, error) in [
            (Fault::Tls(OTHER_NAME), 1311, "x509: certificate doesn't match hostname"),
            (
                Fault::Tls("the certificate's issuer is not trusted"),
                1310,
                "x509: unknown authority",
            ),
            (
                Fault::Tls("the peer does not speak TLS"),
                1301,
                "tls: first record does not look like a TLS handshake",
            ),
            (
                Fault::Tls("the peer refused the TLS version"),
                1010,
                "remote error: tls: protocol version not supported",
            ),
            (Fault::Tls("the handshake failed"), 1300, "tls: the handshake failed"),
            (Fault::Proxy(PROXY_REFUSED), 1200, "proxyconnect tcp: connect: connection refused"),
            (Fault::Proxy("it cannot reach the target (502, 503)"), 1000, "Bad Gateway"),
            (Fault::Proxy("it does not allow the target (403)"), 1000, "Forbidden"),
            (Fault::Proxy("it closed the connection"), 1000, "it closed the connection"),
        ] {
            assert_eq!(of(fault, &url), (code, error.to_owned()));
        }
    }
}
