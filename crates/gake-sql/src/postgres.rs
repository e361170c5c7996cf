//! PostgreSQL's protocol, version 3.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use md5::{Digest, Md5};

use crate::dsn::Dsn;
use crate::reply::{ReplyReader, Row, displayable};
use crate::scram::Scram;
use crate::stream::{SqlStream, SqlTransport};

/// Maximum messages of a reply.
const MESSAGES_MAX: usize = 1_000;

#[derive(Debug)]
pub(super) struct Postgres<S> {
    pub(super) stream: S,
}

impl Postgres<SqlStream> {
    pub(super) async fn open(dsn: &Dsn) -> Result<Self, String> {
        Self::start(SqlStream::open(dsn).await?, dsn).await
    }
}

impl<S: SqlTransport> Postgres<S> {
    pub(super) async fn start(stream: S, dsn: &Dsn) -> Result<Self, String> {
        let stream = encrypted(stream, dsn).await?;
        let mut open = Self { stream };
        open.stream.send(&startup(dsn)).await?;
        open.authenticate(dsn).await?;
        Ok(open)
    }

    async fn authenticate(&mut self, dsn: &Dsn) -> Result<(), String> {
        let mut scram = None;
        for _ in 0..MESSAGES_MAX {
            let (kind, body) = self.message().await?;
            let mut reply = ReplyReader(&body);
            match kind {
                b'E' if dsn.is_script => return Err(go_error(reply, "")),
                b'E' => return Err(refusal(reply)),
                b'Z' => return Ok(()),
                b'R' => {}
                _ => continue,
            }
            match reply.big(4)? {
                0 => {}
                3 if dsn.is_private() => self.password(&format!("{}\0", dsn.password)).await?,
                3 => {
                    return Err("the server requests the password in the clear, which needs \
                                sslmode=verify-full"
                        .to_owned());
                }
                5 => {
                    let inner = md5_hex(&[dsn.password.as_bytes(), dsn.user.as_bytes()]);
                    let outer = md5_hex(&[inner.as_bytes(), reply.bytes(4)?]);
                    self.password(&format!("md5{outer}\0")).await?;
                }
                10 => {
                    let started = scram.insert(Scram::new(&nonce()?));
                    let first = started.first();
                    let length = u32::try_from(first.len()).unwrap_or(u32::MAX).to_be_bytes();
                    let body = [b"SCRAM-SHA-256\0", &length[..], first.as_bytes()].concat();
                    self.stream.send(&message(b'p', &body)).await?;
                }
                11 => {
                    let scram: &mut Scram = scram.as_mut().ok_or_else(unexpected)?;
                    let challenge = String::from_utf8_lossy(reply.0).into_owned();
                    let proof = scram.proof(&challenge, &dsn.password)?;
                    self.stream.send(&message(b'p', proof.as_bytes())).await?;
                }
                12 => {
                    let proof = String::from_utf8_lossy(reply.0).into_owned();
                    if !scram.as_ref().is_some_and(|scram| scram.is_proven_by(&proof)) {
                        return Err("the server cannot prove that it knows the password".to_owned());
                    }
                }
                other => {
                    return Err(format!(
                        "the server requests authentication {other}, which is not supported"
                    ));
                }
            }
        }
        Err(unexpected())
    }

    async fn password(&mut self, password: &str) -> Result<(), String> {
        self.stream.send(&message(b'p', password.as_bytes())).await
    }

    /// Executes a statement and returns its rows.
    pub(super) async fn query(&mut self, sql: &str) -> Result<Vec<Row>, String> {
        self.stream.send(&message(b'Q', format!("{sql}\0").as_bytes())).await?;
        let (mut rows, mut refused) = (Vec::new(), None);
        for _ in 0..MESSAGES_MAX {
            let (kind, body) = self.message().await?;
            match kind {
                b'D' => rows.push(fields(ReplyReader(&body))?),
                b'E' => refused = Some(refusal(ReplyReader(&body))),
                b'Z' => return refused.map_or(Ok(rows), Err),
                _ => {}
            }
        }
        Err(unexpected())
    }

    async fn message(&mut self) -> Result<(u8, Vec<u8>), String> {
        let head = self.stream.take_bytes(5).await?;
        let mut reply = ReplyReader(&head);
        let (kind, length) = (reply.byte()?, reply.big(4)?);
        let length = usize::try_from(length).ok().and_then(|length| length.checked_sub(4));
        Ok((kind, self.stream.take_bytes(length.ok_or_else(unexpected)?).await?))
    }
}

/// A request for TLS, before the startup message.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];

/// Requests TLS if the connection may be encrypted.
async fn encrypted<S: SqlTransport>(mut stream: S, dsn: &Dsn) -> Result<S, String> {
    if dsn.encrypts(true) != Ok(true) {
        return Ok(stream);
    }
    stream.send(&SSL_REQUEST).await?;
    let offered = match stream.take_bytes(1).await?[..] {
        [b'S'] => true,
        [b'N'] => false,
        _ => return Err(unexpected()),
    };
    if dsn.encrypts(offered)? { stream.secure(dsn).await } else { Ok(stream) }
}

/// That of Go's driver is the user's.
fn default_database(dsn: &Dsn) -> &str {
    if dsn.is_script { &dsn.user } else { "postgres" }
}

fn startup(dsn: &Dsn) -> Vec<u8> {
    let mut body = 196_608_u32.to_be_bytes().to_vec();
    for (name, value) in [
        ("user", dsn.user.as_str()),
        ("database", dsn.database.as_deref().unwrap_or(default_database(dsn))),
        ("application_name", "gake"),
        ("client_encoding", "UTF8"),
    ]
    .into_iter()
    .chain(dsn.parameters.iter().map(|(name, value)| (name.as_str(), value.as_str())))
    {
        body.extend([name.as_bytes(), b"\0", value.as_bytes(), b"\0"].concat());
    }
    body.push(0);
    [length(&body).to_vec(), body].concat()
}

pub(super) fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind], &length(body)[..], body].concat()
}

/// A length, itself included.
fn length(body: &[u8]) -> [u8; 4] {
    u32::try_from(body.len() + 4).unwrap_or(u32::MAX).to_be_bytes()
}

fn nonce() -> Result<String, String> {
    let mut bytes = [0; 18];
    aws_lc_rs::rand::fill(&mut bytes).map_err(|_| "the system has no random numbers".to_owned())?;
    Ok(BASE64.encode(bytes))
}

/// The digest of concatenated bytes in hexadecimal digits.
fn md5_hex(parts: &[&[u8]]) -> String {
    Md5::digest(parts.concat()).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn fields(mut reply: ReplyReader<'_>) -> Result<Row, String> {
    let count = reply.big(2)?;
    let field = |_| match u32::try_from(reply.big(4)?) {
        Ok(u32::MAX) => Ok(None),
        Ok(length) => Ok(Some(String::from_utf8_lossy(reply.bytes(length as usize)?).into_owned())),
        Err(_) => Err(unexpected()),
    };
    (0..count).map(field).collect()
}

/// The SQLSTATE, the message and the position of an error.
pub(super) fn error_fields(mut reply: ReplyReader<'_>) -> (&[u8], &[u8], &[u8]) {
    let (mut code, mut text, mut position): (&[u8], &[u8], &[u8]) = (b"", b"", b"");
    while let Ok(kind @ 1..) = reply.byte() {
        let value = reply.until_zero();
        match kind {
            b'C' => code = value,
            b'M' => text = value,
            b'P' => position = value,
            _ => {}
        }
    }
    (code, text, position)
}

/// The message of Go's driver for an error, with its place in a statement.
pub(super) fn go_error(reply: ReplyReader<'_>, statement: &str) -> String {
    let (code, text, position) = error_fields(reply);
    let text = String::from_utf8_lossy(text);
    let position = std::str::from_utf8(position).ok().and_then(|text| text.parse().ok());
    let place = position.filter(|_| !statement.is_empty());
    let place = place.map(|position| place_of(statement, position)).unwrap_or_default();
    match code {
        b"" => format!("pq: {text}{place}"),
        code => format!("pq: {text}{place} ({})", String::from_utf8_lossy(code)),
    }
}

/// The place of a character in a statement, counted from 1.
fn place_of(statement: &str, position: usize) -> String {
    let mut before = 0;
    let lines: Vec<_> = statement.split('\n').collect();
    for (number, line) in lines.iter().enumerate() {
        let length = line.chars().count() + 1;
        if before + length >= position {
            let column = position.saturating_sub(before).max(1);
            return match lines.len() {
                1 => format!(" at column {column}"),
                _ => format!(" at position {}:{column}", number + 1),
            };
        }
        before += length;
    }
    String::new()
}

fn refusal(reply: ReplyReader<'_>) -> String {
    let (code, text, _) = error_fields(reply);
    format!("server error {}: {}", displayable(code), displayable(text))
}

pub(super) fn unexpected() -> String {
    "the server does not speak PostgreSQL's protocol".to_owned()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn digests_are_in_hexadecimal_digits() {
        // RFC 1321.
        assert_eq!(md5_hex(&[b"a", b"bc"]), "900150983cd24fb0d6963f7d28e17f72");
    }

    #[test]
    fn rows_and_errors_are_parsed() {
        let row = [&[0, 2, 0, 0, 0, 2][..], b"42", &[255, 255, 255, 255]].concat();
        assert_eq!(fields(ReplyReader(&row)), Ok(vec![Some("42".to_owned()), None]));
        assert!(fields(ReplyReader(&row[..7])).is_err());
        let refused = b"SFATAL\0C53300\0Msorry, too many clients already\0\0";
        expect!["server error 53300: sorry, too many clients already"]
            .assert_eq(&refusal(ReplyReader(refused)));
        expect!["server error : "].assert_eq(&refusal(ReplyReader(b"")));
    }
}
