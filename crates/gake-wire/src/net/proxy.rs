//! A forward proxy: requests in clear text are sent to it in absolute form, TLS goes through a tunnel
//! (RFC 9110, sections 9.3.6 and 7.3.2).

use std::str::FromStr;

use gake_core::record::Fault;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::net::location::{Location, Scheme, basic_authorization};

/// Maximum bytes of the response head to CONNECT.
const HEAD_MAX: usize = 16 * 1024;

/// A proxy that speaks HTTP/1.1 without TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpProxy {
    pub(crate) host: String,
    pub(crate) port: u16,
    authorization: Option<String>,
}

/// Why a text is not the URL of a proxy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProxyError {
    /// Not a URL of this kind.
    #[error("a proxy is written http://HOST:PORT or http://USER:PASSWORD@HOST:PORT")]
    Url,
    /// Another protocol.
    #[error("a proxy is reached over http://, not {0}://")]
    Scheme(String),
}

impl FromStr for HttpProxy {
    type Err = ProxyError;

    fn from_str(text: &str) -> Result<Self, ProxyError> {
        if let Some((scheme, _)) = text.split_once("://").filter(|(scheme, _)| *scheme != "http") {
            return Err(ProxyError::Scheme(scheme.to_owned()));
        }
        let location = Location::parse(text).map_err(|_| ProxyError::Url)?;
        if location.scheme != Scheme::Http || location.target != "/" {
            return Err(ProxyError::Url);
        }
        let authorization = location.user.as_deref().map(|user| basic_authorization(user).1);
        Ok(Self { host: location.host, port: location.port, authorization })
    }
}

impl HttpProxy {
    /// The `Proxy-Authorization` header, if the proxy has a user.
    pub(crate) fn header(&self) -> Option<(String, String)> {
        let value = self.authorization.clone()?;
        Some(("Proxy-Authorization".to_owned(), value))
    }

    /// Opens a tunnel to `authority` on a new connection.
    ///
    /// # Errors
    /// The proxy refused or closed the connection.
    pub(crate) async fn tunnel(
        &self,
        stream: &mut TcpStream,
        authority: &str,
    ) -> Result<(), Fault> {
        let mut request = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n");
        if let Some((name, value)) = self.header() {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str("\r\n");
        stream.write_all(request.as_bytes()).await.map_err(|_| Fault::Proxy(SILENT))?;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            // One byte at a time: bytes after the head belong to the origin.
            let byte = stream.read_u8().await.map_err(|_| Fault::Proxy(SILENT))?;
            head.push(byte);
            if head.len() >= HEAD_MAX {
                return Err(Fault::Proxy(NOT_HTTP));
            }
        }
        judge(&head)
    }
}

const SILENT: &str = "it closed the connection";
const NOT_HTTP: &str = "its response to CONNECT is not HTTP/1.1";

/// Whether a proxy's response head opens the tunnel.
fn judge(head: &[u8]) -> Result<(), Fault> {
    let status = head.strip_prefix(b"HTTP/1.").and_then(|rest| rest.get(2..5));
    let status = status.and_then(|digits| std::str::from_utf8(digits).ok()?.parse::<u16>().ok());
    Err(Fault::Proxy(match status {
        Some(200..=299) => return Ok(()),
        Some(407) => "it requires credentials (407): --proxy http://USER:PASSWORD@HOST:PORT",
        Some(403) => "it does not allow the target (403)",
        Some(405) => "it does not allow CONNECT (405)",
        Some(502 | 503) => "it cannot reach the target (502, 503)",
        Some(504) => "the target did not respond in time (504)",
        Some(_) => "it refused CONNECT",
        None => NOT_HTTP,
    }))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn proxies_are_parsed_and_errors_never_show_the_password() {
        let proxy: HttpProxy = "http://me:secret@proxy.example:3128".parse().unwrap();
        assert_eq!((proxy.host.as_str(), proxy.port), ("proxy.example", 3128));
        assert_eq!(proxy.header().unwrap().1, "Basic bWU6c2VjcmV0");
        assert_eq!("127.0.0.1:8080".parse::<HttpProxy>().unwrap().port, 8080);
        let bad = ["https://me:secret@h:1", "socks5://me:secret@h:1", "http://me:secret@h:1/path"];
        let errors = bad.map(|text| text.parse::<HttpProxy>().unwrap_err().to_string()).join("\n");
        assert!(!errors.contains("secret"));
        expect![[r#"
            a proxy is reached over http://, not https://
            a proxy is reached over http://, not socks5://
            a proxy is written http://HOST:PORT or http://USER:PASSWORD@HOST:PORT"#]]
        .assert_eq(&errors);
        assert_eq!("http://".parse::<HttpProxy>(), Err(ProxyError::Url));
    }

    #[test]
    fn only_a_success_opens_a_tunnel() {
        assert_eq!(judge(b"HTTP/1.1 200 Connection established\r\n\r\n"), Ok(()));
        assert_eq!(judge(b"HTTP/1.0 200\r\n\r\n"), Ok(()));
        let statuses = [407, 403, 405, 502, 504, 302].map(|status| format!("HTTP/1.1 {status} x"));
        let heads = statuses.into_iter().chain(["SSH-2.0-OpenSSH".to_owned()]);
        let errors: Vec<_> =
            heads.map(|head| judge(head.as_bytes()).unwrap_err().to_string()).collect();
        expect![[r#"
            proxy: it requires credentials (407): --proxy http://USER:PASSWORD@HOST:PORT
            proxy: it does not allow the target (403)
            proxy: it does not allow CONNECT (405)
            proxy: it cannot reach the target (502, 503)
            proxy: the target did not respond in time (504)
            proxy: it refused CONNECT
            proxy: its response to CONNECT is not HTTP/1.1"#]]
        .assert_eq(&errors.join("\n"));
    }
}
