//! The protocol of MySQL and MariaDB.

use aws_lc_rs::digest::{self, Algorithm};
use aws_lc_rs::rsa::{OAEP_SHA1_MGF1SHA1, OaepPublicEncryptingKey, PublicEncryptingKey};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use crate::dsn::Dsn;
use crate::reply::{ReplyReader, Row, displayable};
use crate::stream::{SqlStream, SqlTransport};

/// LONG_PASSWORD, PROTOCOL_41, TRANSACTIONS, SECURE_CONNECTION, PLUGIN_AUTH.
const CAPABILITIES: u32 = 0x1 | 0x200 | 0x2000 | 0x8000 | 0x8_0000;
const PLUGIN_AUTH: u64 = 0x8_0000;
const SSL: u32 = 0x800;
const CONNECT_WITH_DB: u32 = 0x8;
/// utf8mb4.
const CHARSET: u8 = 45;
pub(super) const NULL: u8 = 0xfb;

/// Maximum packets of a reply.
const PACKETS_MAX: usize = 1_000;
const ROUNDS_MAX: usize = 8;
/// Bytes of a challenge.
const NONCE: usize = 20;

#[derive(Debug)]
pub(super) struct MySql<S> {
    pub(super) stream: S,
    /// The sequence number of the next packet.
    pub(super) sequence: u8,
    /// The auto-increment value of the last row inserted.
    pub(super) last_id: u64,
}

#[derive(Debug, PartialEq)]
struct Greeting {
    plugin: String,
    nonce: Vec<u8>,
    offers_tls: bool,
}

impl MySql<SqlStream> {
    pub(super) async fn open(dsn: &Dsn) -> Result<Self, String> {
        Self::start(SqlStream::open(dsn).await?, dsn).await
    }
}

impl<S: SqlTransport> MySql<S> {
    pub(super) async fn start(stream: S, dsn: &Dsn) -> Result<Self, String> {
        let mut open = Self { stream, sequence: 0, last_id: 0 };
        let greeting = Greeting::read(&open.packet().await?, dsn)?;
        let encrypts = dsn.encrypts(greeting.offers_tls)?;
        if encrypts {
            open.send(&preface(dsn, true)).await?;
            open.sequence += 1;
            let Self { stream, sequence, last_id } = open;
            open = Self { stream: stream.secure(dsn).await?, sequence, last_id };
        }
        open.send(&greeting.reply(dsn, encrypts)).await?;
        open.authenticate(dsn, greeting).await?;
        Ok(open)
    }

    async fn authenticate(&mut self, dsn: &Dsn, greeting: Greeting) -> Result<(), String> {
        let Greeting { mut plugin, mut nonce, .. } = greeting;
        for _ in 0..ROUNDS_MAX {
            let packet = self.packet().await?;
            let mut reply = ReplyReader(&packet);
            match reply.byte()? {
                0x00 => return Ok(()),
                0xff => return Err(refusal(reply, dsn)),
                0xfe if reply.0.is_empty() => {
                    return Err("the account has a password from before MySQL 4.1".to_owned());
                }
                0xfe => {
                    plugin = displayable(reply.until_zero());
                    nonce = reply.until_zero().to_vec();
                    self.send(&token(&plugin, &dsn.password, &nonce)?).await?;
                }
                // caching_sha2_password: cached ...
                0x01 if reply.0 == [3] => {}
                // ... or full authentication.
                0x01 if reply.0 == [4] => self.whole_password(dsn, &nonce).await?,
                _ => return Err(format!("unexpected packet in {plugin} authentication")),
            }
        }
        Err("too many rounds of authentication".to_owned())
    }

    /// Sends the password: in the clear over a socket or TLS, else encrypted with the server's key.
    /// Only on this machine or with a checked certificate, since a man in the middle could present
    /// a key.
    async fn whole_password(&mut self, dsn: &Dsn, nonce: &[u8]) -> Result<(), String> {
        let mut password = [dsn.password.as_bytes(), b"\0"].concat();
        if !dsn.is_private() {
            return Err(
                "the server requests the password itself, which needs sslmode=verify-full \
                        or a Unix socket; or log in once with another client, so that the server \
                        caches it"
                    .to_owned(),
            );
        }
        if !self.stream.is_open_to_listeners() {
            return self.send(&password).await;
        }
        self.send(&[2]).await?;
        let packet = self.packet().await?;
        let key = key(packet.strip_prefix(&[1]).unwrap_or(&packet))?;
        for (byte, mask) in password.iter_mut().zip(nonce.iter().take(NONCE).cycle()) {
            *byte ^= mask;
        }
        let mut sealed = vec![0; key.ciphertext_size()];
        let sealed = key
            .encrypt(&OAEP_SHA1_MGF1SHA1, &password, &mut sealed, None)
            .map_err(|_| "the password does not fit the server's key".to_owned())?
            .to_vec();
        self.send(&sealed).await
    }

    /// Executes a statement and returns its rows.
    pub(super) async fn query(&mut self, sql: &str) -> Result<Vec<Row>, String> {
        self.sequence = 0;
        self.send(&[b"\x03", sql.as_bytes()].concat()).await?;
        let head = self.packet().await?;
        let columns = match head.first() {
            Some(0xff) => return Err(plain_error(ReplyReader(&head[1..]))),
            Some(0) => {
                let mut reply = ReplyReader(&head[1..]);
                // After the number of rows affected.
                number(&mut reply)?;
                self.last_id = number(&mut reply)?;
                return Ok(Vec::new());
            }
            Some(columns @ 1..NULL) => usize::from(*columns),
            _ => return Err(unexpected()),
        };
        // Column definitions and their end.
        for _ in 0..=columns {
            self.packet().await?;
        }
        let mut rows = Vec::new();
        for _ in 0..PACKETS_MAX {
            let packet = self.packet().await?;
            match packet.first() {
                Some(0xfe) if packet.len() < 9 => return Ok(rows),
                Some(0xff) => return Err(plain_error(ReplyReader(&packet[1..]))),
                _ => rows.push(row(ReplyReader(&packet), columns)?),
            }
        }
        Err(unexpected())
    }

    pub(super) async fn packet(&mut self) -> Result<Vec<u8>, String> {
        let head = self.stream.take_bytes(4).await?;
        let mut reply = ReplyReader(&head);
        let (length, sequence) = (reply.little(3)?, reply.byte()?);
        self.sequence = sequence.wrapping_add(1);
        self.stream.take_bytes(length as usize).await
    }

    pub(super) async fn send(&mut self, payload: &[u8]) -> Result<(), String> {
        let length = u32::try_from(payload.len()).unwrap_or(u32::MAX).to_le_bytes();
        let head = [length[0], length[1], length[2], self.sequence];
        self.stream.send(&[&head[..], payload].concat()).await
    }
}

impl Greeting {
    fn read(packet: &[u8], dsn: &Dsn) -> Result<Self, String> {
        let mut reply = ReplyReader(packet);
        match reply.byte()? {
            10 => {}
            0xff => return Err(refusal(reply, dsn)),
            _ => return Err(unexpected()),
        }
        // Version and connection id.
        reply.until_zero();
        reply.bytes(4)?;
        let mut nonce = reply.bytes(8)?.to_vec();
        reply.byte()?;
        let low = reply.little(2)?;
        // Character set and status.
        reply.bytes(3)?;
        let high = reply.little(2)?;
        let length = usize::from(reply.byte()?);
        reply.bytes(10)?;
        nonce.extend(reply.bytes(length.saturating_sub(8).max(13))?);
        nonce.truncate(NONCE);
        let plugin = match (low | high << 16) & PLUGIN_AUTH {
            0 => NATIVE.to_owned(),
            _ => displayable(reply.until_zero()),
        };
        Ok(Self { plugin, nonce, offers_tls: low & u64::from(SSL) != 0 })
    }

    /// The handshake response, with a proof of the password for the server's default plugin. For an
    /// unknown plugin it is empty: the server then names the plugin of the account.
    fn reply(&self, dsn: &Dsn, encrypted: bool) -> Vec<u8> {
        let token = token(&self.plugin, &dsn.password, &self.nonce).unwrap_or_default();
        let mut payload = preface(dsn, encrypted);
        payload.extend([dsn.user.as_bytes(), b"\0"].concat());
        payload.push(token.len() as u8);
        payload.extend(token);
        if let Some(database) = &dsn.database {
            payload.extend([database.as_bytes(), b"\0"].concat());
        }
        payload.extend([self.plugin.as_bytes(), b"\0"].concat());
        payload
    }
}

/// The first fields of a handshake response; by themselves, a request for TLS.
fn preface(dsn: &Dsn, encrypted: bool) -> Vec<u8> {
    let ssl = if encrypted { SSL } else { 0 };
    let with_database = if dsn.database.is_some() { CONNECT_WITH_DB } else { 0 };
    let capabilities = CAPABILITIES | ssl | with_database | dsn.capabilities;
    let mut payload = capabilities.to_le_bytes().to_vec();
    payload.extend((1_u32 << 20).to_le_bytes());
    payload.push(CHARSET);
    payload.extend([0; 23]);
    payload
}

const NATIVE: &str = "mysql_native_password";

/// The proof of a password for a plugin.
fn token(plugin: &str, password: &str, nonce: &[u8]) -> Result<Vec<u8>, String> {
    let nonce = &nonce[..nonce.len().min(NONCE)];
    match plugin {
        NATIVE | "caching_sha2_password" if password.is_empty() => Ok(Vec::new()),
        NATIVE => {
            let of = |parts: &[&[u8]]| hash(&digest::SHA1_FOR_LEGACY_USE_ONLY, parts);
            let once = of(&[password.as_bytes()]);
            Ok(xor(&once, &of(&[nonce, &of(&[&once])])))
        }
        "caching_sha2_password" => {
            let of = |parts: &[&[u8]]| hash(&digest::SHA256, parts);
            let once = of(&[password.as_bytes()]);
            Ok(xor(&once, &of(&[&of(&[&once]), nonce])))
        }
        // Authenticated by the kernel, through the socket.
        "auth_socket" | "unix_socket" => Ok(Vec::new()),
        other => Err(format!(
            "the account needs {other}; use one with {NATIVE} or caching_sha2_password"
        )),
    }
}

fn hash(algorithm: &'static Algorithm, parts: &[&[u8]]) -> Vec<u8> {
    digest::digest(algorithm, &parts.concat()).as_ref().to_vec()
}

fn xor(a: &[u8], b: &[u8]) -> Vec<u8> {
    a.iter().zip(b).map(|(a, b)| a ^ b).collect()
}

/// The server's public key, from PEM.
fn key(pem: &[u8]) -> Result<OaepPublicEncryptingKey, String> {
    let text = String::from_utf8_lossy(pem);
    let lines = text.lines().filter(|line| !line.starts_with("-----"));
    let base64: String = lines.map(str::trim).collect();
    let der = BASE64.decode(base64.trim_end_matches('\0')).ok();
    der.and_then(|der| PublicEncryptingKey::from_der(&der).ok())
        .and_then(|key| OaepPublicEncryptingKey::new(key).ok())
        .ok_or_else(|| "the server's key is of an unknown type".to_owned())
}

fn row(mut reply: ReplyReader<'_>, columns: usize) -> Result<Row, String> {
    let value = |_| {
        if reply.0.first() == Some(&NULL) {
            reply.byte()?;
            return Ok(None);
        }
        let length = number(&mut reply)?;
        Ok(Some(String::from_utf8_lossy(reply.bytes(length as usize)?).into_owned()))
    };
    (0..columns).map(value).collect()
}

/// A length-encoded integer.
pub(super) fn number(reply: &mut ReplyReader<'_>) -> Result<u64, String> {
    match reply.byte()? {
        0xfc => reply.little(2),
        0xfd => reply.little(3),
        0xfe => reply.little(8),
        NULL | 0xff => Err(unexpected()),
        short => Ok(u64::from(short)),
    }
}

/// The code, the SQL state and the message of an error packet.
pub(super) fn error_fields(mut reply: ReplyReader<'_>) -> (u64, &[u8], &[u8]) {
    let code = reply.little(2).unwrap_or(0);
    let state = reply.0.strip_prefix(b"#").and_then(|rest| rest.split_at_checked(5));
    let (state, text) = state.unwrap_or((b"", reply.0));
    (code, state, text)
}

fn refusal(reply: ReplyReader<'_>, dsn: &Dsn) -> String {
    if dsn.is_script { go_error(reply) } else { plain_error(reply) }
}

fn plain_error(reply: ReplyReader<'_>) -> String {
    let (code, _, text) = error_fields(reply);
    format!("server error {code}: {}", displayable(text))
}

/// The message of Go's driver for an error packet.
pub(super) fn go_error(reply: ReplyReader<'_>) -> String {
    let (code, state, text) = error_fields(reply);
    let (state, text) = (String::from_utf8_lossy(state), String::from_utf8_lossy(text));
    match state.is_empty() {
        true => format!("Error {code}: {text}"),
        false => format!("Error {code} ({state}): {text}"),
    }
}

pub(super) fn unexpected() -> String {
    "the server does not speak MySQL's protocol".to_owned()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::dsn::SqlKind;

    #[test]
    fn proofs_of_passwords_are_valid() {
        // A server stores SHA1(SHA1(password)) and computes SHA1(password) from the token.
        let nonce: Vec<u8> = (1..=20).collect();
        let sha1 = |parts: &[&[u8]]| hash(&digest::SHA1_FOR_LEGACY_USE_ONLY, parts);
        let stored = sha1(&[&sha1(&[b"secret"])]);
        let token_native = token(NATIVE, "secret", &[&nonce[..], &[0]].concat()).unwrap();
        let once = xor(&token_native, &sha1(&[&nonce, &stored]));
        assert_eq!(sha1(&[&once]), stored);
        let sha2 = |parts: &[&[u8]]| hash(&digest::SHA256, parts);
        let stored = sha2(&[&sha2(&[b"secret"])]);
        let token_sha2 = token("caching_sha2_password", "secret", &nonce).unwrap();
        let once = xor(&token_sha2, &sha2(&[&stored, &nonce]));
        assert_eq!(sha2(&[&once]), stored);
        assert!(token(NATIVE, "", &nonce).unwrap().is_empty());
        assert!(token("client_ed25519", "x", &nonce).unwrap_err().contains(NATIVE));
    }

    #[test]
    fn greetings_rows_and_errors_are_parsed() {
        let mut packet = b"\x0a10.11.6-MariaDB\0\x01\0\0\0abcdefgh\0".to_vec();
        packet.extend([0xff, 0xf7, 45, 2, 0, 0xff, 0x81, 21]);
        packet.extend([0; 10]);
        packet.extend(b"ijklmnopqrst\0mysql_native_password\0");
        let dsn = Dsn::parse(SqlKind::MySql, "//h").unwrap();
        let greeting = Greeting::read(&packet, &dsn).unwrap();
        assert_eq!(greeting.nonce, b"abcdefghijklmnopqrst");
        assert_eq!(greeting.plugin, NATIVE);
        assert!(!greeting.offers_tls, "its capabilities 0xf7ff lack it");
        for cut in 0..packet.len() - NATIVE.len() - 1 {
            assert!(Greeting::read(&packet[..cut], &dsn).is_err(), "{cut}");
        }
        let full = Greeting::read(b"\xff\x10\x04Too many connections", &dsn).unwrap_err();
        expect!["server error 1040: Too many connections"].assert_eq(&full);
        let denied = b"\x15\x04#28000Access denied";
        expect!["Error 1045 (28000): Access denied"].assert_eq(&go_error(ReplyReader(denied)));
        let denied = refusal(ReplyReader(denied), &dsn);
        expect!["server error 1045: Access denied"].assert_eq(&denied);
        let columns = row(ReplyReader(b"\x02ab\xfb"), 2).unwrap();
        assert_eq!(columns, [Some("ab".to_owned()), None]);
        assert!(row(ReplyReader(b"\x05ab"), 1).is_err());
    }
}
