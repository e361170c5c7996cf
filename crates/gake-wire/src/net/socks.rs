//! SOCKS 5 (RFC 1928) with user and password (RFC 1929): a tunnel to a name or an address.

use std::net::IpAddr;

use gake_core::record::Fault;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

const SILENT: &str = "it closed the connection";

const VERSION: u8 = 5;
/// Methods of authentication.
const NONE: u8 = 0;
const PASSWORD: u8 = 2;
/// The version of the exchange of user and password.
const PASSWORD_VERSION: u8 = 1;
const CONNECT: u8 = 1;
/// Types of addresses.
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;

const NOT_SOCKS: Fault = Fault::Proxy("its response is not SOCKS 5");

/// Opens a tunnel to `authority`, a host and a port. `user`: `user:password`.
///
/// # Errors
/// The proxy refused or closed the connection.
pub(super) async fn connect(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    authority: &str,
    user: Option<&str>,
) -> Result<(), Fault> {
    let method = if user.is_some() { PASSWORD } else { NONE };
    write(stream, &[VERSION, 1, method]).await?;
    let [version, chosen] = read(stream).await?;
    if version != VERSION {
        return Err(NOT_SOCKS);
    }
    match user {
        _ if chosen != method => {
            return Err(Fault::Proxy(
                "it wants another authentication: --proxy socks5://USER:PASSWORD@HOST:PORT",
            ));
        }
        Some(user) => authenticate(stream, user).await?,
        None => {}
    }
    write(stream, &request(authority)?).await?;
    let [version, status, _, kind] = read(stream).await?;
    if version != VERSION {
        return Err(NOT_SOCKS);
    }
    judge(status)?;
    // The address that the proxy uses.
    match kind {
        IPV4 => drop(read::<6>(stream).await?),
        IPV6 => drop(read::<18>(stream).await?),
        NAME => {
            let [length] = read(stream).await?;
            for _ in 0..usize::from(length) + 2 {
                let [_] = read(stream).await?;
            }
        }
        _ => return Err(NOT_SOCKS),
    }
    Ok(())
}

async fn authenticate(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    user: &str,
) -> Result<(), Fault> {
    let (name, password) = user.split_once(':').unwrap_or((user, ""));
    let mut bytes = vec![PASSWORD_VERSION];
    for text in [name, password] {
        let length = u8::try_from(text.len());
        bytes.push(length.map_err(|_| Fault::Proxy("its user or password is too long"))?);
        bytes.extend_from_slice(text.as_bytes());
    }
    write(stream, &bytes).await?;
    match read(stream).await? {
        [PASSWORD_VERSION, 0] => Ok(()),
        _ => Err(Fault::Proxy("it refused user and password")),
    }
}

/// The request for a tunnel.
fn request(authority: &str) -> Result<Vec<u8>, Fault> {
    let bad = Fault::Proxy("the target has no host and port");
    let (host, port) = authority.rsplit_once(':').ok_or(bad)?;
    let port: u16 = port.parse().map_err(|_| bad)?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let mut bytes = vec![VERSION, CONNECT, 0];
    match host.parse::<IpAddr>() {
        Ok(IpAddr::V4(ip)) => {
            bytes.push(IPV4);
            bytes.extend_from_slice(&ip.octets());
        }
        Ok(IpAddr::V6(ip)) => {
            bytes.push(IPV6);
            bytes.extend_from_slice(&ip.octets());
        }
        Err(_) => {
            let length = u8::try_from(host.len());
            let length = length.map_err(|_| Fault::Proxy("the target's name is too long"))?;
            bytes.extend_from_slice(&[NAME, length]);
            bytes.extend_from_slice(host.as_bytes());
        }
    }
    bytes.extend_from_slice(&port.to_be_bytes());
    Ok(bytes)
}

fn judge(status: u8) -> Result<(), Fault> {
    Err(Fault::Proxy(match status {
        0 => return Ok(()),
        2 => "it does not allow the target",
        3 | 4 => "it cannot reach the target",
        5 => "the target refused its connection",
        6 => "the target did not respond in time",
        7 | 8 => "it does not support tunnels to such addresses",
        _ => "it failed",
    }))
}

async fn write(stream: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> Result<(), Fault> {
    stream.write_all(bytes).await.map_err(|_| Fault::Proxy(SILENT))
}

async fn read<const LENGTH: usize>(
    stream: &mut (impl AsyncRead + Unpin),
) -> Result<[u8; LENGTH], Fault> {
    let mut bytes = [0; LENGTH];
    stream.read_exact(&mut bytes).await.map_err(|_| Fault::Proxy(SILENT))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    /// What a client sends to a proxy that sends `replies`, and how that ends.
    async fn exchange(
        authority: &str,
        user: Option<&str>,
        replies: &[u8],
    ) -> (Vec<u8>, Result<(), Fault>) {
        let (mut client, mut proxy) = tokio::io::duplex(1 << 10);
        proxy.write_all(replies).await.unwrap();
        proxy.shutdown().await.unwrap();
        let connected = connect(&mut client, authority, user).await;
        drop(client);
        let mut sent = Vec::new();
        proxy.read_to_end(&mut sent).await.unwrap();
        (sent, connected)
    }

    #[tokio::test]
    async fn a_tunnel_goes_to_a_name_or_an_address() {
        let replies = b"\x05\0\x05\0\0\x01\x7f\0\0\x01\0\x50";
        let (sent, connected) = exchange("h.test:443", None, replies).await;
        assert_eq!(connected, Ok(()));
        assert_eq!(sent, b"\x05\x01\0\x05\x01\0\x03\x06h.test\x01\xbb");
        // The proxy may name its own host.
        let replies = b"\x05\x02\x01\0\x05\0\0\x03\x01p\0\x50";
        let (sent, connected) = exchange("127.0.0.1:80", Some("me:s:e"), replies).await;
        assert_eq!(connected, Ok(()));
        let expected = b"\x05\x01\x02\x01\x02me\x03s:e\x05\x01\0\x01\x7f\0\0\x01\0\x50";
        assert_eq!(sent, expected);
        let request = request("[::1]:1").unwrap();
        assert_eq!((request[3], request.len()), (IPV6, 4 + 16 + 2));
    }

    #[tokio::test]
    async fn refusals_have_reasons() {
        let mut reasons = Vec::new();
        for replies in [
            &b"\x05\xff"[..],
            b"\x05\0\x05\x02\0\x01",
            b"\x05\0\x05\x05\0\x01",
            b"\x05\0\x05",
            b"HTTP/1.1 400 Bad Request",
        ] {
            reasons.push(exchange("h:1", None, replies).await.1.unwrap_err().to_string());
        }
        let replies = b"\x05\x02\x01\x01";
        reasons.push(exchange("h:1", Some("a:b"), replies).await.1.unwrap_err().to_string());
        expect![[r#"
            proxy: it wants another authentication: --proxy socks5://USER:PASSWORD@HOST:PORT
            proxy: it does not allow the target
            proxy: the target refused its connection
            proxy: it closed the connection
            proxy: its response is not SOCKS 5
            proxy: it refused user and password"#]]
        .assert_eq(&reasons.join("\n"));
    }
}
