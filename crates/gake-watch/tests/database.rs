//! MySQL's protocol against a scripted server that requests the password encrypted with its key.

#![allow(clippy::unwrap_used, clippy::expect_used)] // all of it is test code

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use aws_lc_rs::encoding::{AsDer, PublicKeyX509Der};
use aws_lc_rs::rsa::{KeySize, OAEP_SHA1_MGF1SHA1, OaepPrivateDecryptingKey, PrivateDecryptingKey};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use gake_watch::{Sampler, WatchError, WatchEvent, WatchSource};

const NONCE: &[u8; 20] = b"0123456789abcdefghij";

/// One connection of a server, from its side.
struct Session {
    stream: TcpStream,
    sequence: u8,
}

impl Session {
    fn send(&mut self, payload: &[u8]) {
        let length = (payload.len() as u32).to_le_bytes();
        let head = [length[0], length[1], length[2], self.sequence];
        // The next read notices a client that is gone.
        let _ = self.stream.write_all(&[&head[..], payload].concat());
        self.sequence = self.sequence.wrapping_add(1);
    }

    /// The next packet; `None` when the client is gone.
    fn receive(&mut self) -> Option<Vec<u8>> {
        let mut head = [0; 4];
        self.stream.read_exact(&mut head).ok()?;
        let mut payload = vec![0; u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize];
        self.stream.read_exact(&mut payload).ok()?;
        self.sequence = head[3].wrapping_add(1);
        Some(payload)
    }

    fn greet(&mut self) {
        let mut greeting = b"\x0a8.4.0\0\x01\0\0\0".to_vec();
        greeting.extend(&NONCE[..8]);
        greeting.push(0);
        greeting.extend([0xff, 0xf7, 45, 2, 0, 0xff, 0x81, 21]);
        greeting.extend([0; 10]);
        greeting.extend(&NONCE[8..]);
        greeting.extend(b"\0caching_sha2_password\0");
        self.send(&greeting);
    }

    /// Requests the password encrypted with a key, and returns it.
    fn whole_password(&mut self, key: &PrivateDecryptingKey) -> Vec<u8> {
        self.send(&[1, 4]);
        assert_eq!(self.receive().unwrap(), [2], "it asks for the key");
        let der: PublicKeyX509Der<'_> = key.public_key().as_der().unwrap();
        let pem = format!(
            "-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n",
            BASE64.encode(der.as_ref())
        );
        self.send(&[b"\x01", pem.as_bytes()].concat());
        let sealed = self.receive().unwrap();
        let key = OaepPrivateDecryptingKey::new(key.clone()).unwrap();
        let mut opened = vec![0; key.min_output_size()];
        let opened = key.decrypt(&OAEP_SHA1_MGF1SHA1, &sealed, &mut opened, None).unwrap();
        opened.iter().zip(NONCE.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect()
    }

    /// Replies to a query with rows of text.
    fn rows(&mut self, rows: &[&[&str]]) {
        let columns = rows[0].len();
        self.send(&[columns as u8]);
        for _ in 0..columns {
            self.send(b"\x03def");
        }
        self.send(b"\xfe\0\0\x02\0");
        for row in rows {
            let cells = row.iter().map(|cell| [&[cell.len() as u8], cell.as_bytes()].concat());
            self.send(&cells.collect::<Vec<_>>().concat());
        }
        self.send(b"\xfe\0\0\x02\0");
    }

    fn serve(&mut self) {
        // COM_QUIT is a packet of one byte.
        while let Some(packet) = self.receive().filter(|packet| packet.len() > 1) {
            let query = String::from_utf8(packet[1..].to_vec()).unwrap();
            match query.starts_with("SHOW") {
                true => self.rows(&[&["Threads_connected", "30"], &["Questions", "7"]]),
                false => self.rows(&[&["40"]]),
            }
        }
    }
}

fn dsn(listener: &TcpListener, user: &str) -> WatchSource {
    let at = listener.local_addr().unwrap();
    format!("mysql://{user}@{at}").parse().unwrap()
}

#[test]
fn the_password_is_encrypted_with_the_servers_key() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let source = dsn(&listener, "me:s%40cret");
    let server = thread::spawn(move || {
        let key = PrivateDecryptingKey::generate(KeySize::Rsa2048).unwrap();
        let mut session = Session { stream: listener.accept().unwrap().0, sequence: 0 };
        session.greet();
        let login = session.receive().unwrap();
        assert!(login.windows(3).any(|part| part == b"me\0"), "{login:?}");
        assert_eq!(session.whole_password(&key), b"s@cret\0");
        session.send(&[0, 0, 0, 2, 0, 0, 0]);
        session.serve();
    });
    let sampler = Sampler::start(vec![source], Duration::from_secs(60), || ()).unwrap();
    let batches: Vec<_> = sampler.batches.try_iter().collect();
    let levels: Vec<_> = batches
        .iter()
        .filter_map(|batch| match batch {
            WatchEvent::Readings { readings, .. } => Some(readings),
            _ => None,
        })
        .flatten()
        .map(|reading| (reading.name.as_str(), reading.value))
        .collect();
    let expected = [("db_open", 30.0), ("db_max_connections", 40.0), ("db_connections", 0.75)];
    assert_eq!(levels, expected);
    drop(sampler);
    server.join().unwrap();
}

#[test]
fn the_error_of_a_server_without_free_connections() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let source = dsn(&listener, "me:secret");
    let server = thread::spawn(move || {
        let mut session = Session { stream: listener.accept().unwrap().0, sequence: 0 };
        session.send(b"\xff\x10\x04Too many connections");
    });
    let refused = Sampler::start(vec![source], Duration::from_secs(60), || ()).unwrap_err();
    assert!(matches!(refused, WatchError::Source { .. }), "{refused}");
    let message = refused.to_string();
    assert!(message.contains("1040: Too many connections"), "{message}");
    assert!(!message.contains("secret"), "{message}");
    server.join().unwrap();
}
