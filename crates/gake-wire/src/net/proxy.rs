//! A forward proxy. With HTTP, requests in clear text are sent to it in absolute form, and TLS goes
//! through a tunnel (RFC 9110, sections 9.3.6 and 7.3.2); with SOCKS, everything does. An HTTP proxy
//! may itself be behind TLS.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use gake_core::record::Fault;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::net::location::{Location, Scheme, basic_authorization};
use crate::net::socks;
use crate::net::stream::Link;

/// Maximum bytes of the response head to CONNECT.
const HEAD_MAX: usize = 16 * 1024;

/// A proxy. It resolves names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForwardProxy {
    protocol: ProxyProtocol,
    pub(crate) host: String,
    pub(crate) port: u16,
    /// `user:password`.
    user: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProxyProtocol {
    Http,
    /// HTTP over TLS.
    Https,
    Socks5,
}

/// The usual port of SOCKS (RFC 1928, section 3).
const SOCKS_PORT: u16 = 1080;

/// Why a text is not the URL of a proxy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProxyError {
    /// Not a URL of this kind.
    #[error(
        "a proxy is written http://HOST:PORT, https://HOST:PORT or socks5://HOST:PORT, with \
         USER:PASSWORD@ before HOST if needed"
    )]
    Url,
    /// Another protocol.
    #[error("a proxy is reached over http://, https:// or socks5://, not {0}://")]
    Scheme(String),
}

impl FromStr for ForwardProxy {
    type Err = ProxyError;

    fn from_str(text: &str) -> Result<Self, ProxyError> {
        let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
        let protocol = match scheme.to_ascii_lowercase().as_str() {
            "http" => ProxyProtocol::Http,
            "https" => ProxyProtocol::Https,
            "socks5" | "socks5h" => ProxyProtocol::Socks5,
            _ => return Err(ProxyError::Scheme(scheme.to_owned())),
        };
        let location = Location::parse(&format!("http://{rest}")).map_err(|_| ProxyError::Url)?;
        if location.target != "/" {
            return Err(ProxyError::Url);
        }
        let has_port =
            location.port != Scheme::Http.port() || rest.trim_end_matches('/').ends_with(":80");
        let port = match protocol {
            ProxyProtocol::Socks5 if !has_port => SOCKS_PORT,
            ProxyProtocol::Https if !has_port => Scheme::Https.port(),
            _ => location.port,
        };
        Ok(Self { protocol, host: location.host, port, user: location.user })
    }
}

impl ForwardProxy {
    /// Whether requests in clear text go through it in absolute form, without a tunnel.
    pub(crate) fn takes_requests(&self) -> bool {
        self.protocol != ProxyProtocol::Socks5
    }

    /// Whether it is reached over TLS.
    pub(crate) fn is_tls(&self) -> bool {
        self.protocol == ProxyProtocol::Https
    }

    /// The link that a connection to the proxy is: with TLS if the proxy is behind it.
    ///
    /// # Errors
    /// The handshake failed.
    pub(crate) async fn link(
        &self,
        tcp: TcpStream,
        tls: Option<&Arc<ClientConfig>>,
    ) -> Result<Link, Fault> {
        if !self.is_tls() {
            return Ok(Link::Tcp(tcp));
        }
        let name = ServerName::try_from(self.host.clone());
        let (Some(tls), Ok(name)) = (tls, name) else {
            return Err(Fault::Proxy("TLS to it was not set up"));
        };
        let stream = TlsConnector::from(Arc::clone(tls)).connect(name, tcp).await;
        stream
            .map(|stream| Link::Proxy(Box::new(stream)))
            .map_err(|_| Fault::Proxy("the TLS handshake with it failed: --cacert, or --insecure"))
    }

    /// The `Proxy-Authorization` header, if the proxy has a user.
    pub(crate) fn header(&self) -> Option<(String, String)> {
        let value = basic_authorization(self.user.as_deref()?).1;
        Some(("Proxy-Authorization".to_owned(), value))
    }

    /// Opens a tunnel to `authority` on a new connection.
    ///
    /// # Errors
    /// The proxy refused or closed the connection.
    pub(crate) async fn tunnel(&self, stream: &mut Link, authority: &str) -> Result<(), Fault> {
        match self.protocol {
            ProxyProtocol::Http | ProxyProtocol::Https => self.connect(stream, authority).await,
            ProxyProtocol::Socks5 => socks::connect(stream, authority, self.user.as_deref()).await,
        }
    }

    async fn connect(&self, stream: &mut Link, authority: &str) -> Result<(), Fault> {
        let mut request = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n");
        if let Some((name, value)) = self.header() {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str("\r\n");
        stream.write_all(request.as_bytes()).await.map_err(|_| Fault::Proxy(SILENT))?;
        stream.flush().await.map_err(|_| Fault::Proxy(SILENT))?;
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

impl fmt::Display for ForwardProxy {
    /// Without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.protocol {
            ProxyProtocol::Http => "http",
            ProxyProtocol::Https => "https",
            ProxyProtocol::Socks5 => "socks5",
        };
        match self.host.contains(':') {
            true => write!(f, "{scheme}://[{}]:{}", self.host, self.port),
            false => write!(f, "{scheme}://{}:{}", self.host, self.port),
        }
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
        let proxy: ForwardProxy = "http://me:secret@proxy.example:3128".parse().unwrap();
        assert_eq!((proxy.host.as_str(), proxy.port), ("proxy.example", 3128));
        assert_eq!(proxy.header().unwrap().1, "Basic bWU6c2VjcmV0");
        assert_eq!("127.0.0.1:8080".parse::<ForwardProxy>().unwrap().port, 8080);
        let bad = ["ftp://me:secret@h:1", "socks4://me:secret@h:1", "http://me:secret@h:1/path"];
        let errors =
            bad.map(|text| text.parse::<ForwardProxy>().unwrap_err().to_string()).join("\n");
        assert!(!errors.contains("secret"));
        expect![[r#"
            a proxy is reached over http://, https:// or socks5://, not ftp://
            a proxy is reached over http://, https:// or socks5://, not socks4://
            a proxy is written http://HOST:PORT, https://HOST:PORT or socks5://HOST:PORT, with USER:PASSWORD@ before HOST if needed"#]]
        .assert_eq(&errors);
        assert_eq!("http://".parse::<ForwardProxy>(), Err(ProxyError::Url));
        for (text, shown) in [
            ("socks5://me:secret@h", "socks5://h:1080"),
            ("socks5h://h:80", "socks5://h:80"),
            ("SOCKS5://[::1]:9/", "socks5://[::1]:9"),
            ("http://me:secret@h", "http://h:80"),
            ("https://me:secret@h", "https://h:443"),
        ] {
            assert_eq!(text.parse::<ForwardProxy>().unwrap().to_string(), shown);
        }
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
