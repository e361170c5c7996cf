//! Figures on a NATS subject, one message per line.
//!
//! A PING after each batch confirms that the server has received it. This is a client of 100 lines
//! because async-nats would add some 60 crates to the plain build.

use std::io::{self, BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Instant;

use gake_wire::percent_decoded;
use serde_json::{Value, json};
use url::Url;

use super::FigureBatch;
use super::lines::{LineDelivery, TIMEOUT, connected};

/// Maximum bytes of a line from the server.
const LINE_MAX: u64 = 64 << 10;
const PORT: u16 = 4222;

pub(crate) struct NatsCarrier {
    /// `HOST:PORT`.
    server: String,
    subject: String,
    /// The CONNECT line.
    hello: String,
}

impl NatsCarrier {
    /// A subject at `nats://USER:PASSWORD@HOST:PORT`, or with a token instead of the user.
    pub(crate) fn new(url: &Url, subject: &str, token: Option<&str>) -> Self {
        let host = url.host_str().unwrap_or_default();
        let server = format!("{host}:{}", url.port().unwrap_or(PORT));
        let mut hello = json!({
            "verbose": false, "pedantic": false, "name": "gake", "lang": "rust",
            "version": env!("CARGO_PKG_VERSION"), "protocol": 1, "tls_required": false,
        });
        match (url.username(), url.password(), token) {
            (_, _, Some(token)) => hello["auth_token"] = token.into(),
            ("", _, None) => {}
            (token, None, None) => hello["auth_token"] = percent_decoded(token).into(),
            (user, Some(password), None) => {
                hello["user"] = percent_decoded(user).into();
                hello["pass"] = percent_decoded(password).into();
            }
        }
        Self { server, subject: subject.to_owned(), hello: format!("CONNECT {hello}\r\n") }
    }
}

/// Whether a subject is valid for publishing: tokens separated by points, none empty or a wildcard.
pub(crate) fn is_subject(text: &str) -> bool {
    let is_token = |token: &str| {
        !token.is_empty() && token.bytes().all(|byte| byte > b' ' && !b"*>\x7f".contains(&byte))
    };
    text.split('.').all(is_token)
}

impl LineDelivery for NatsCarrier {
    type Connection = BufReader<TcpStream>;

    fn address(&self) -> &str {
        &self.server
    }

    fn open(&self) -> io::Result<Self::Connection> {
        let mut connection = BufReader::new(connected(&self.server)?);
        let greeting = line(&mut connection)?;
        let info = greeting.strip_prefix("INFO ").map(serde_json::from_str::<Value>);
        let Some(Ok(info)) = info else {
            return Err(io::Error::other("it is not a NATS server"));
        };
        if info["tls_required"] == true {
            return Err(io::Error::other(
                "the server requires TLS, which this sink does not \
                                         support",
            ));
        }
        connection.get_mut().write_all(self.hello.as_bytes())?;
        confirm(&mut connection)?;
        Ok(connection)
    }

    fn deliver(&self, connection: &mut Self::Connection, batch: &FigureBatch) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(2 * batch.bytes.len());
        for message in batch.bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            write!(bytes, "PUB {} {}\r\n", self.subject, message.len())?;
            bytes.extend_from_slice(message);
            bytes.extend_from_slice(b"\r\n");
        }
        connection.get_mut().write_all(&bytes)?;
        confirm(connection)
    }
}

/// Waits until the server has received everything written.
fn confirm(connection: &mut BufReader<TcpStream>) -> io::Result<()> {
    connection.get_mut().write_all(b"PING\r\n")?;
    let end = Instant::now() + TIMEOUT;
    loop {
        if Instant::now() > end {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let line = line(connection)?;
        match line.split(' ').next() {
            Some("PONG") => return Ok(()),
            Some("PING") => connection.get_mut().write_all(b"PONG\r\n")?,
            Some("-ERR") => return Err(io::Error::other(line[4..].trim().trim_matches('\''))),
            // Updates of the cluster.
            _ => {}
        }
    }
}

fn line(connection: &mut BufReader<TcpStream>) -> io::Result<String> {
    let mut line = String::new();
    io::Read::take(&mut *connection, LINE_MAX).read_line(&mut line)?;
    if !line.ends_with('\n') {
        return Err(io::Error::other("the server closed the connection"));
    }
    Ok(gake_text::foreign::line(line.trim_end()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::TcpListener;
    use std::thread;

    fn nats(url: &str, token: Option<&str>) -> NatsCarrier {
        NatsCarrier::new(&Url::parse(url).unwrap(), "a.b", token)
    }

    #[test]
    fn subjects_have_no_wildcards() {
        for (subject, expected) in
            [("gake.figures", true), ("a", true), ("", false), ("a..b", false), ("a.*", false)]
        {
            assert_eq!(is_subject(subject), expected, "{subject}");
        }
        assert!(!is_subject("a b") && !is_subject("a\r\nPUB"));
    }

    #[test]
    fn credentials_in_the_connect_line() {
        assert!(!nats("nats://h", None).hello.contains("pass"));
        let hello = nats("nats://me:p%40+s&s@h:1", None).hello;
        assert!(
            hello.contains("\"pass\":\"p@+s&s\"") && hello.contains("\"user\":\"me\""),
            "{hello}"
        );
        for with_token in [nats("nats://t0ken@h", None), nats("nats://h", Some("t0ken"))] {
            assert!(with_token.hello.contains("\"auth_token\":\"t0ken\""));
        }
        assert_eq!(nats("nats://h", None).server, "h:4222");
    }

    #[test]
    fn a_batch_is_one_message_per_line_and_is_confirmed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("nats://{}", listener.local_addr().unwrap());
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(b"INFO {\"tls_required\":false}\r\n").unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut received = String::new();
            for _ in 0..2 {
                while !received.ends_with("PING\r\n") {
                    reader.read_line(&mut received).unwrap();
                }
                received.truncate(received.len() - 6);
                stream.write_all(b"INFO {}\r\nPING\r\nPONG\r\n").unwrap();
            }
            stream.write_all(b"-ERR 'Maximum Payload Violation'\r\n").unwrap();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            let _ = reader.read_to_string(&mut received);
            received
        });
        let nats = nats(&url, None);
        let mut connection = nats.open().unwrap();
        let batch = FigureBatch { bytes: b"{\"n\":1}\n{\"n\":22}\n".to_vec(), rows: 2 };
        nats.deliver(&mut connection, &batch).unwrap();
        let refused = nats.deliver(&mut connection, &batch).unwrap_err();
        assert_eq!(refused.to_string(), "Maximum Payload Violation");
        drop(connection);
        let received = server.join().unwrap();
        let published = "PUB a.b 7\r\n{\"n\":1}\r\nPUB a.b 8\r\n{\"n\":22}\r\n";
        assert!(received.starts_with("CONNECT {") && received.contains(published), "{received}");
    }
}
