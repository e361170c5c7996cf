//! WebSocket servers, correct and hostile: each violation has a name, and none
//! hangs the client.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gake_core::record::{CloseCode, Fault, Phase};
use gake_wire::{ClientSettings, HttpRequest, Protocol, ReplyRule};

use crate::client::{PATIENCE, fault_of, on_runtime, status_of};
use crate::http2::Sender;
use crate::scripted;

const TEXT: u8 = 0x81;
const CLOSE: u8 = 0x88;
const PING: u8 = 0x89;
const PONG: u8 = 0x8a;

/// The server's side of a connection.
struct Peer(TcpStream);

impl Peer {
    /// Reads the upgrade; returns `Sec-WebSocket-Accept`.
    fn upgrade(&mut self) -> io::Result<String> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            self.0.read_exact(&mut byte)?;
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).unwrap();
        let key = head.lines().find_map(|line| line.strip_prefix("Sec-WebSocket-Key: ")).unwrap();
        let text = format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
        let sha1 = &aws_lc_rs::digest::SHA1_FOR_LEGACY_USE_ONLY;
        Ok(STANDARD.encode(aws_lc_rs::digest::digest(sha1, text.as_bytes())))
    }

    fn switch(&mut self, accept: &str) -> io::Result<()> {
        let head = format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Accept: {accept}\r\n\r\n"
        );
        self.0.write_all(head.as_bytes())
    }

    fn open(&mut self) -> io::Result<()> {
        let accept = self.upgrade()?;
        self.switch(&accept)
    }

    /// Reads a short frame: first byte and payload.
    fn read(&mut self) -> io::Result<(u8, Vec<u8>)> {
        let mut header = [0; 6];
        self.0.read_exact(&mut header)?;
        assert!((0x80..0x80 + 126).contains(&header[1]), "a client masks, and this one is brief");
        let mut payload = vec![0; usize::from(header[1] & 0x7f)];
        self.0.read_exact(&mut payload)?;
        let mask = header[2..].iter().cycle();
        Ok((header[0], payload.iter().zip(mask).map(|(byte, mask)| byte ^ mask).collect()))
    }

    /// Reads frames until a message comes.
    fn message(&mut self) -> io::Result<Vec<u8>> {
        loop {
            if let (TEXT, payload) = self.read()? {
                return Ok(payload);
            }
        }
    }

    fn send(&mut self, first: u8, payload: &[u8]) -> io::Result<()> {
        self.0.write_all(&[&[first, payload.len() as u8][..], payload].concat())
    }

    /// Opens a session and waits for a message.
    fn open_and_read(&mut self) -> io::Result<()> {
        self.open()?;
        self.message().map(drop)
    }
}

/// Plays `script` on every connection; returns the address and the number of connections.
fn serve(
    script: impl Fn(&mut Peer) -> io::Result<()> + Send + Sync + 'static,
) -> (SocketAddr, Arc<AtomicUsize>) {
    scripted::serve(move |stream| script(&mut Peer(stream)))
}

fn settings(reply: ReplyRule) -> ClientSettings {
    ClientSettings {
        protocol: Protocol::WebSocket,
        connections: 1,
        reply,
        ..ClientSettings::default()
    }
}

fn sender(address: SocketAddr, reply: ReplyRule) -> std::rc::Rc<Sender> {
    let body = Some(Arc::from(&b"hello"[..]));
    let request = HttpRequest { body, ..HttpRequest::new("GET", format!("ws://{address}/chat")) };
    Sender::of(&request, settings(reply))
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn each_broken_rule_has_its_name() {
    type Script = fn(&mut Peer) -> io::Result<()>;
    let closed = |code| Fault::WebSocketClosed(CloseCode::new(code));
    let cases: [(Script, Fault); 14] = [
        (
            |peer| {
                peer.upgrade()?;
                peer.0.write_all(b"SSH-2.0-x\r\n")
            },
            Fault::Malformed("websocket_upgrade"),
        ),
        (
            |peer| {
                peer.upgrade()?;
                peer.switch("bm9ib2R5J3Mga2V5IGlzIGhlcmU=")
            },
            Fault::Malformed("websocket_accept"),
        ),
        (
            |peer| {
                peer.upgrade()?;
                peer.0.write_all(b"HTTP/1.1 101 Switching Proto")?;
                peer.0.shutdown(Shutdown::Write)
            },
            Fault::ClosedEarly(Phase::FirstByte),
        ),
        (
            |peer| {
                peer.upgrade()?;
                loop {
                    peer.0.write_all(b"HTTP/1.1 103 Early Hints\r\n\r\n")?;
                }
            },
            Fault::Timeout(Phase::Connect),
        ),
        (
            |peer| peer.upgrade().map(|_| std::thread::sleep(PATIENCE)),
            Fault::Timeout(Phase::Connect),
        ),
        (
            |peer| {
                peer.open_and_read()?;
                peer.0.write_all(&[0x81, 0x81, 0, 0, 0, 0, b'x'])
            },
            Fault::Malformed("websocket_bits"),
        ),
        (
            |peer| {
                peer.open_and_read()?;
                peer.send(0x80, b"orphan")
            },
            Fault::Malformed("websocket_order"),
        ),
        (
            |peer| {
                peer.open_and_read()?;
                peer.send(0x01, b"a fragment")?;
                peer.send(TEXT, b"another message")
            },
            Fault::Malformed("websocket_order"),
        ),
        (
            |peer| {
                peer.open_and_read()?;
                peer.send(CLOSE, &1013_u16.to_be_bytes())
            },
            closed(1013),
        ),
        (
            |peer| {
                peer.open_and_read()?;
                peer.send(0x01, b"the first fragment")?;
                peer.send(CLOSE, b"")
            },
            Fault::WebSocketClosed(CloseCode::NONE),
        ),
        (
            |peer| {
                peer.open_and_read()?;
                peer.0.shutdown(Shutdown::Write)
            },
            Fault::ClosedEarly(Phase::FirstByte),
        ),
        (
            |peer| {
                peer.open_and_read()?;
                peer.0.write_all(&[TEXT, 100, b'h', b'a', b'l', b'f'])?;
                peer.0.shutdown(Shutdown::Write)
            },
            Fault::ClosedEarly(Phase::Body),
        ),
        (
            |peer| {
                peer.open_and_read()?;
                peer.0.write_all(&[TEXT, 100, b'h', b'a', b'l', b'f'])?;
                peer.message().map(drop)
            },
            Fault::Timeout(Phase::Body),
        ),
        (
            |peer| peer.open_and_read().map(|()| std::thread::sleep(PATIENCE)),
            Fault::Timeout(Phase::FirstByte),
        ),
    ];
    for (script, expected) in cases {
        check_fault(script, ReplyRule::Next, expected);
    }
}

/// A message must have this fault. A time-out may come early on a busy machine.
fn check_fault(
    script: impl Fn(&mut Peer) -> io::Result<()> + Send + Sync + 'static,
    reply: ReplyRule,
    expected: Fault,
) {
    let (address, _) = serve(script);
    let is_silent = matches!(expected, Fault::Timeout(_));
    let time = if is_silent { Duration::from_millis(150) } else { PATIENCE };
    on_runtime(async {
        let seen = fault_of(&sender(address, reply).within(time).await);
        match is_silent {
            // A flood of interim responses is cut off by its size or by the time.
            true => assert!(matches!(seen, Fault::Timeout(_) | Fault::TooLarge("head")), "{seen}"),
            false => assert_eq!(seen, expected),
        }
    });
}

#[test]
fn a_refused_upgrade_is_a_response() {
    let (address, _) = serve(|peer| {
        peer.upgrade()?;
        peer.0.write_all(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
    });
    on_runtime(async {
        let exchange = sender(address, ReplyRule::Next).send().await;
        assert_eq!((status_of(&exchange), exchange.written), (503, false));
    });
}

#[test]
fn other_frames_are_not_replies() {
    let (address, count) = serve(|peer| {
        peer.open()?;
        peer.send(TEXT, b"welcome")?;
        while let Ok(message) = peer.message() {
            peer.send(PING, b"?")?;
            peer.send(0x01, b"not for ")?;
            peer.send(PONG, b"")?;
            peer.send(0x80, b"you")?;
            peer.send(TEXT, &message)?;
        }
        Ok(())
    });
    on_runtime(async {
        let sender = sender(address, ReplyRule::Matching("^hello$".parse().unwrap()));
        for _ in 0..3 {
            let exchange = sender.send().await;
            assert_eq!((status_of(&exchange), exchange.written), (101, true));
        }
        assert_eq!(count.load(SeqCst), 1);
    });
}

#[test]
fn floods_are_bounded_by_time_and_memory() {
    type Script = fn(&mut Peer) -> io::Result<()>;
    let flood: [(Script, Fault); 3] = [
        (
            |peer| {
                peer.open_and_read()?;
                loop {
                    peer.send(PING, &[0; 100])?;
                }
            },
            Fault::Timeout(Phase::Body),
        ),
        (
            |peer| {
                peer.open_and_read()?;
                loop {
                    peer.send(TEXT, b"not this")?;
                }
            },
            Fault::Timeout(Phase::Body),
        ),
        (
            |peer| {
                peer.open_and_read()?;
                peer.0.write_all(&[TEXT, 127, 0, 0, 1, 0, 0, 0, 0, 0])?;
                loop {
                    peer.0.write_all(&[b'x'; 1 << 16])?;
                }
            },
            Fault::TooLarge("message"),
        ),
    ];
    for (script, expected) in flood {
        check_fault(script, ReplyRule::Matching("^hello$".parse().unwrap()), expected);
    }
}

/// A scripted server that can signal the test.
fn signalling(
    script: impl Fn(&mut Peer, &dyn Fn()) -> io::Result<()> + Send + Sync + 'static,
) -> (SocketAddr, Arc<AtomicUsize>, Receiver<()>) {
    let (sender, signals) = channel();
    let sender = std::sync::Mutex::new(sender);
    let (address, count) =
        serve(move |peer| script(peer, &|| sender.lock().unwrap().send(()).unwrap_or_default()));
    (address, count, signals)
}

/// Lets the client's thread run until the server signals.
async fn until(signals: &Receiver<()>) {
    while signals.try_recv().is_err() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[test]
fn an_idle_session_replies_to_pings() {
    let (address, count, signals) = signalling(|peer, signal| {
        peer.open()?;
        loop {
            let message = peer.message()?;
            peer.send(TEXT, &message)?;
            for payload in [&b"one"[..], b"two"] {
                peer.send(PING, payload)?;
                assert_eq!(peer.read()?, (PONG, payload.to_vec()));
            }
            signal();
        }
    });
    on_runtime(async {
        let sender = sender(address, ReplyRule::Next);
        for _ in 0..2 {
            assert_eq!(status_of(&sender.send().await), 101);
            until(&signals).await;
        }
        assert_eq!(count.load(SeqCst), 1);
    });
}

#[test]
fn a_session_ended_by_the_server_is_replaced_and_its_close_echoed() {
    let (address, count, signals) = signalling(|peer, signal| {
        peer.open()?;
        let message = peer.message()?;
        peer.send(TEXT, &message)?;
        peer.send(CLOSE, &1001_u16.to_be_bytes())?;
        assert_eq!(peer.read()?, (CLOSE, vec![0x03, 0xe9]));
        signal();
        Ok(())
    });
    on_runtime(async {
        let sender = sender(address, ReplyRule::Next);
        for _ in 0..3 {
            assert_eq!(status_of(&sender.send().await), 101);
            until(&signals).await;
        }
        let counts = sender.counts();
        assert_eq!((counts.sessions, counts.sessions_ended), (3, 3));
        assert_eq!((count.load(SeqCst), counts.stale_reconnects), (3, 0));
    });
}

#[test]
fn a_late_reply_is_not_that_of_the_next_message() {
    let may_answer = Arc::new(AtomicUsize::new(0));
    let allowed = Arc::clone(&may_answer);
    let (address, count, signals) = signalling(move |peer, signal| {
        peer.open()?;
        let message = peer.message()?;
        signal();
        while allowed.load(SeqCst) == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        peer.send(TEXT, &message)?;
        peer.message().map(drop)
    });
    on_runtime(async {
        let sender = sender(address, ReplyRule::Next);
        tokio::select! {
            exchange = sender.send() => panic!("{exchange:?}"),
            () = until(&signals) => {}
        }
        may_answer.store(1, SeqCst);
        assert_eq!(status_of(&sender.send().await), 101);
        assert_eq!(count.load(SeqCst), 2);
    });
}

#[test]
fn without_a_reply_a_message_ends_when_it_is_written() {
    let (address, count, signals) = signalling(|peer, signal| {
        peer.open()?;
        for _ in 0..100 {
            assert_eq!(peer.message()?, b"hello");
            // No reply is awaited.
            peer.send(TEXT, b"thanks")?;
        }
        signal();
        peer.message().map(drop)
    });
    on_runtime(async {
        let sender = sender(address, ReplyRule::None);
        for _ in 0..100 {
            let exchange = sender.send().await;
            assert_eq!((status_of(&exchange), exchange.written), (101, true));
        }
        until(&signals).await;
        assert_eq!(count.load(SeqCst), 1);
    });
}
