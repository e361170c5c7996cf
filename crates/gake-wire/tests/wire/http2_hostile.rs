//! HTTP/2 servers that break rules: each violation has a name, and none hangs the client.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use gake_core::clock::Clock as _;
use gake_core::record::{ErrorCode, Exchange, ExchangeEnd, Fault, Phase};
use gake_wire::{ClientSettings, Deadline};

use crate::client::{PATIENCE, fault_of, millis, on_runtime, status_of};
use crate::http2::{Sender, settings};
use crate::scripted;

const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;

/// The server's side of a connection.
struct Peer(TcpStream);

impl Peer {
    /// Reads a frame: kind, stream and payload.
    fn read(&mut self) -> io::Result<(u8, u32, Vec<u8>)> {
        let mut header = [0; 9];
        self.0.read_exact(&mut header)?;
        let mut payload =
            vec![0; u32::from_be_bytes([0, header[0], header[1], header[2]]) as usize];
        self.0.read_exact(&mut payload)?;
        Ok((header[3], u32::from_be_bytes(header[5..].try_into().unwrap()), payload))
    }

    /// Reads until a request has come; returns its stream.
    fn request(&mut self) -> io::Result<u32> {
        loop {
            if let (HEADERS, stream, _) = self.read()? {
                return Ok(stream);
            }
        }
    }

    fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> io::Result<()> {
        let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
        frame.extend([kind, flags]);
        frame.extend(stream.to_be_bytes());
        frame.extend(payload);
        self.0.write_all(&frame)
    }

    fn allow_streams(&mut self, most: u32) -> io::Result<()> {
        self.send(SETTINGS, 0, 0, &[&[0, 3][..], &most.to_be_bytes()].concat())
    }

    /// Sends `:status: 200` and ends the stream.
    fn respond(&mut self, stream: u32) -> io::Result<()> {
        self.send(HEADERS, 5, stream, &[0x88])
    }

    fn goaway(&mut self, last: u32, code: u32) -> io::Result<()> {
        self.send(GOAWAY, 0, 0, &[last.to_be_bytes(), code.to_be_bytes()].concat())
    }
}

/// Plays `script` on every connection after its preface; returns the address and the number of connections.
fn serve(
    script: impl Fn(&mut Peer) -> io::Result<()> + Send + Sync + 'static,
) -> (SocketAddr, Arc<AtomicUsize>) {
    scripted::serve(move |mut stream| {
        stream.read_exact(&mut [0; 24])?;
        script(&mut Peer(stream))
    })
}

fn one_connection() -> ClientSettings {
    ClientSettings { connections: 1, ..settings() }
}

fn fault(script: impl Fn(&mut Peer) -> io::Result<()> + Send + Sync + 'static) -> Fault {
    let (address, _) = serve(script);
    on_runtime(async {
        let sender = Sender::get(&format!("http://{address}/"), settings());
        fault_of(&sender.within(Duration::from_millis(500)).await)
    })
}

#[test]
fn each_broken_rule_has_its_name() {
    type Script = fn(&mut Peer) -> io::Result<()>;
    let cases: [(Script, Fault); 9] = [
        (
            |peer| peer.0.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
            Fault::Malformed("not_http2"),
        ),
        (
            |peer| {
                peer.allow_streams(1)?;
                let stream = peer.request()?;
                peer.send(RST_STREAM, 0, stream, &2_u32.to_be_bytes())
            },
            Fault::StreamReset(ErrorCode::InternalError),
        ),
        (
            |peer| {
                peer.allow_streams(1)?;
                let stream = peer.request()?;
                peer.goaway(stream, 11)
            },
            Fault::Goaway(ErrorCode::EnhanceYourCalm),
        ),
        (
            |peer| {
                peer.allow_streams(1)?;
                peer.request()?;
                peer.0.shutdown(std::net::Shutdown::Both)
            },
            Fault::ClosedEarly(Phase::FirstByte),
        ),
        (
            |peer| {
                peer.allow_streams(1)?;
                let stream = peer.request()?;
                peer.send(HEADERS, 4, stream, &[0x88])?;
                peer.0.shutdown(std::net::Shutdown::Both)
            },
            Fault::ClosedEarly(Phase::Body),
        ),
        (
            |peer| {
                peer.allow_streams(1)?;
                let stream = peer.request()?;
                // A wrong content-length.
                peer.send(HEADERS, 5, stream, &[0x88, 0x0f, 13, 1, b'5'])?;
                peer.request().map(drop)
            },
            Fault::Malformed("length_mismatch"),
        ),
        (
            |peer| {
                peer.allow_streams(1)?;
                let stream = peer.request()?;
                peer.send(HEADERS, 5, stream, &[0xff, 0x20])
            },
            Fault::Malformed("hpack_index"),
        ),
        (
            |peer| {
                peer.allow_streams(1)?;
                loop {
                    peer.send(PING, 1, 0, &[0; 8])?;
                }
            },
            Fault::TooLarge("flood"),
        ),
        (
            |peer| {
                peer.allow_streams(1)?;
                peer.request()?;
                // Half a frame, and silence.
                peer.0.write_all(&[0, 0, 8, PING])?;
                peer.request().map(drop)
            },
            Fault::Timeout(Phase::FirstByte),
        ),
    ];
    for (script, expected) in cases {
        assert_eq!(fault(script), expected);
    }
}

#[test]
fn retries_of_unprocessed_requests_are_limited() {
    let (address, connections) = serve(|peer| {
        peer.allow_streams(10)?;
        peer.request()?;
        peer.goaway(0, 0)
    });
    on_runtime(async {
        let sender = Sender::get(&format!("http://{address}/"), settings());
        let exchange = sender.within(PATIENCE).await;
        assert_eq!(fault_of(&exchange), Fault::Goaway(ErrorCode::NoError));
        let counts = sender.counts();
        assert_eq!((counts.unhandled, counts.goaways, counts.opened), (5, 6, 6));
    });
    assert_eq!(connections.load(SeqCst), 6);
    let (address, connections) = serve(|peer| {
        peer.allow_streams(10)?;
        loop {
            let stream = peer.request()?;
            peer.send(RST_STREAM, 0, stream, &7_u32.to_be_bytes())?;
        }
    });
    on_runtime(async {
        let sender = Sender::get(&format!("http://{address}/"), settings());
        let exchange = sender.within(PATIENCE).await;
        assert_eq!(fault_of(&exchange), Fault::StreamReset(ErrorCode::RefusedStream));
        assert_eq!(
            (sender.counts().unhandled, sender.client.observe(&mut Default::default()).open),
            (5, 1)
        );
    });
    assert_eq!(connections.load(SeqCst), 1);
}

#[test]
fn requests_wait_while_the_server_allows_no_streams() {
    let pause = Duration::from_millis(100);
    let (address, connections) = serve(move |peer| {
        let first = peer.request()?;
        peer.allow_streams(0)?;
        peer.respond(first)?;
        std::thread::sleep(pause);
        peer.allow_streams(2)?;
        loop {
            let stream = peer.request()?;
            peer.respond(stream)?;
        }
    });
    on_runtime(async {
        let sender = Sender::get(&format!("http://{address}/"), one_connection());
        assert_eq!(status_of(&sender.within(PATIENCE).await), 200);
        // A short time-out ends the wait.
        let short = sender.within(Duration::from_millis(20)).await;
        assert_eq!((fault_of(&short), short.bytes_out), (Fault::Timeout(Phase::Connect), 0));
        let exchanges = sender.together(4).await;
        assert!(exchanges.iter().all(|exchange| status_of(exchange) == 200));
        assert!(millis(exchanges[0].blocked) >= 20, "{:?}", exchanges[0]);
    });
    assert_eq!(connections.load(SeqCst), 1);
}

#[test]
fn an_abandoned_exchange_keeps_its_facts() {
    let (address, _) = serve(|peer| {
        peer.allow_streams(10)?;
        let stream = peer.request()?;
        peer.send(HEADERS, 4, stream, &[0x88])?;
        peer.request().map(drop)
    });
    on_runtime(async {
        let sender = Sender::get(&format!("http://{address}/"), settings());
        let now = sender.client.clock().now();
        let mut exchange = Exchange::unfinished(now);
        let (request, visitor) = (&sender.request, &mut ());
        let deadline = Deadline::within(now, PATIENCE);
        tokio::select! {
            () = sender.client.exchange(request, now, deadline, visitor, &mut exchange) => {
                panic!("it ended")
            }
            () = tokio::time::sleep(Duration::from_millis(100)) => {}
        }
        assert!(exchange.written && exchange.bytes_out > 0, "{exchange:?}");
        assert!(
            exchange.first_byte.is_some() && exchange.end == ExchangeEnd::Unfinished,
            "{exchange:?}"
        );
    });
}
