//! The request that opens a session, and its response.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::http1::Version;
use crate::http1::request::{RequestError, RequestParts, render};

/// The constant that the server appends to the key (RFC 6455, section 1.3).
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Headers that the upgrade sets, or cannot have.
const OWN_HEADERS: &[&str] = &[
    "connection",
    "upgrade",
    "content-length",
    "transfer-encoding",
    "sec-websocket-key",
    "sec-websocket-version",
    "sec-websocket-extensions",
];

/// Maximum headers of a response.
const HEADERS_MAX: usize = 100;

/// The upgrade request of a load, ready to be written. All its sessions share one random key.
#[derive(Debug)]
pub struct UpgradeRequest {
    /// The whole request.
    pub bytes: Vec<u8>,
    /// The expected `Sec-WebSocket-Accept`.
    accept: String,
    /// The offered subprotocols.
    protocols: Vec<String>,
}

/// The state of the response.
#[derive(Debug, PartialEq, Eq)]
pub enum UpgradeProgress {
    /// The head is incomplete.
    Partial,
    /// The head of the response, and its length in bytes.
    Complete(UpgradeResponse, usize),
    /// The response violates the protocol; the name of the fault.
    Malformed(&'static str),
}

/// The head of the response to an upgrade.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpgradeResponse {
    /// The status code: 101 if the session is open.
    pub status: u16,
    /// The header lines.
    pub headers: Vec<(String, String)>,
    /// The start of the body, if the session is not open.
    pub body: Vec<u8>,
}

impl UpgradeResponse {
    /// Whether the session is open.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.status == 101
    }
}

impl UpgradeRequest {
    /// The upgrade at a target, with these header lines.
    pub fn new(
        (authority, target): (&str, &str),
        given: &[(String, String)],
        opaque: &[(String, Vec<u8>)],
    ) -> Result<Self, RequestError> {
        let is_own = |name: &str| OWN_HEADERS.contains(&name.to_ascii_lowercase().as_str());
        if let Some((name, _)) = given.iter().find(|(name, _)| is_own(name)) {
            return Err(RequestError::UpgradeHeader(name.clone()));
        }
        let mut random = [0; 16];
        // Without randomness the key is zeros, which servers accept, too.
        let _ = aws_lc_rs::rand::fill(&mut random);
        let key = STANDARD.encode(random);
        let own = [
            ("Connection", "Upgrade"),
            ("Sec-WebSocket-Key", &key),
            ("Sec-WebSocket-Version", "13"),
            ("Upgrade", "websocket"),
        ];
        let mut headers = given.to_vec();
        headers.extend(own.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let rendered = render(&RequestParts {
            method: "GET",
            target,
            authority,
            headers: &headers,
            opaque,
            body: None,
            keep_alive: true,
            version: Version::Http11,
        })?;
        let is_offer = |name: &str| name.eq_ignore_ascii_case("sec-websocket-protocol");
        let offers = given.iter().filter(|(name, _)| is_offer(name));
        let protocols =
            offers.flat_map(|(_, value)| value.split(',')).map(|one| one.trim().to_owned());
        Ok(Self {
            bytes: rendered.first.to_vec(),
            accept: accept(&key),
            protocols: protocols.collect(),
        })
    }

    /// Reads the response, of which `bytes` have come.
    pub fn read(&self, bytes: &[u8]) -> UpgradeProgress {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut response = httparse::Response::new(&mut headers);
        let length = match response.parse(bytes) {
            Ok(httparse::Status::Complete(length)) => length,
            Ok(httparse::Status::Partial) => return UpgradeProgress::Partial,
            Err(_) => return UpgradeProgress::Malformed("websocket_upgrade"),
        };
        let status = response.code.unwrap_or(0);
        if status == 101
            && let Some(fault) = self.fault(response.headers)
        {
            return UpgradeProgress::Malformed(fault);
        }
        let line = |header: &httparse::Header<'_>| {
            (header.name.to_owned(), String::from_utf8_lossy(header.value).into_owned())
        };
        let headers = response.headers.iter().map(line).collect();
        UpgradeProgress::Complete(UpgradeResponse { status, headers, body: Vec::new() }, length)
    }

    /// Validates a 101 response (RFC 6455, section 4.1).
    fn fault(&self, headers: &[httparse::Header<'_>]) -> Option<&'static str> {
        let values = |wanted: &'static str| {
            let found = headers.iter().filter(move |one| one.name.eq_ignore_ascii_case(wanted));
            found.map(|header| std::str::from_utf8(header.value).unwrap_or_default().trim())
        };
        let has_token = |name, token: &str| {
            let mut tokens = values(name).flat_map(|value| value.split(','));
            tokens.any(|one| one.trim().eq_ignore_ascii_case(token))
        };
        if !has_token("upgrade", "websocket") || !has_token("connection", "upgrade") {
            return Some("websocket_upgrade");
        }
        if !values("sec-websocket-accept").eq([self.accept.as_str()]) {
            return Some("websocket_accept");
        }
        if values("sec-websocket-extensions").next().is_some() {
            return Some("websocket_extension");
        }
        let is_offered = |one: &str| self.protocols.iter().any(|offered| offered == one);
        if !values("sec-websocket-protocol").all(is_offered) {
            return Some("websocket_protocol");
        }
        None
    }
}

fn accept(key: &str) -> String {
    let text = [key.as_bytes(), GUID].concat();
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA1_FOR_LEGACY_USE_ONLY, &text);
    STANDARD.encode(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upgrade(headers: &[(&str, &str)]) -> Result<UpgradeRequest, RequestError> {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let headers: Vec<_> = headers.iter().map(owned).collect();
        UpgradeRequest::new(("h:81", "/chat?a=b"), &headers, &[])
    }

    #[test]
    fn the_accept_value_matches_the_rfc() {
        // RFC 6455, section 1.3.
        assert_eq!(accept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn the_request_asks_for_the_upgrade() {
        let text = String::from_utf8(upgrade(&[("X-A", "1")]).unwrap().bytes).unwrap();
        assert!(text.starts_with("GET /chat?a=b HTTP/1.1\r\nHost: h:81\r\n"), "{text}");
        for line in ["X-A: 1", "Connection: Upgrade", "Upgrade: websocket", "User-Agent: gake/"] {
            assert!(text.contains(&format!("\r\n{line}")), "{text}");
        }
        let refused = upgrade(&[("sec-websocket-extensions", "x")]).unwrap_err();
        assert!(refused.to_string().contains("sec-websocket-extensions"), "{refused}");
    }

    #[test]
    fn a_response_is_open_refused_or_wrong() {
        let upgrade = upgrade(&[("Sec-WebSocket-Protocol", "chat, news")]).unwrap();
        let good = format!(
            "HTTP/1.1 101 X\r\nupgrade: WebSocket\r\nconnection: keep-alive, Upgrade\r\n\
             sec-websocket-accept: {}\r\n",
            upgrade.accept
        );
        let read = |text: &str| upgrade.read(format!("{text}\r\nrest").as_bytes());
        let is_open = |read: UpgradeProgress, length: usize| match read {
            UpgradeProgress::Complete(response, at) => response.is_open() && at == length,
            _ => false,
        };
        assert!(is_open(read(&good), good.len() + 2));
        assert_eq!(upgrade.read(good.as_bytes()), UpgradeProgress::Partial);
        let chosen = format!("{good}Sec-WebSocket-Protocol: news\r\n");
        assert!(is_open(read(&chosen), chosen.len() + 2));
        let refused = read("HTTP/1.1 503 No\r\nA: b\r\n");
        let UpgradeProgress::Complete(response, _) = refused else { panic!("{refused:?}") };
        assert_eq!((response.status, response.is_open()), (503, false));
        for (text, why) in [
            ("hello\r\n".to_owned(), "websocket_upgrade"),
            (good.replace("WebSocket", "h2c"), "websocket_upgrade"),
            (good.replace("keep-alive, Upgrade", "close"), "websocket_upgrade"),
            (good.replace(&upgrade.accept, "x"), "websocket_accept"),
            (format!("{good}Sec-WebSocket-Extensions: x\r\n"), "websocket_extension"),
            (format!("{good}Sec-WebSocket-Protocol: other\r\n"), "websocket_protocol"),
        ] {
            assert_eq!(read(&text), UpgradeProgress::Malformed(why), "{text}");
        }
    }
}
