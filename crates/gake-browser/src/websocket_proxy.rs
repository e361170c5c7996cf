//! The connections of pages' WebSockets, which its protocol cannot pause: with `blacklistIPs` they
//! go through this SOCKS proxy (RFC 1928) on the loopback interface, which refuses blocked targets.
//! Other processes of the machine could connect to the rest themselves.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

use gake_k6::blocked::BlockedTargets;
use gake_wire::{Address, Resolver};

/// Connections at once, at most.
const CONNECTIONS_MAX: usize = 1024;

const DIAL_LIMIT: Duration = Duration::from_secs(30);

/// Replies: granted, refused by a rule, unreachable.
const GRANTED: u8 = 0;
const BLOCKED: u8 = 2;
const UNREACHABLE: u8 = 4;

/// Where connections may go.
#[derive(Debug)]
pub(crate) struct Targets {
    /// With the rules of the option `hosts`.
    pub(crate) resolver: Resolver,
    pub(crate) blocked: BlockedTargets,
}

/// The running proxy; it ends when it is dropped.
#[derive(Debug)]
pub(crate) struct WebSocketProxy {
    pub(crate) address: SocketAddr,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl WebSocketProxy {
    pub(crate) fn start(targets: Targets) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let is_over = Arc::<AtomicBool>::default();
        let over = Arc::clone(&is_over);
        let (targets, open) = (Arc::new(targets), Arc::<AtomicUsize>::default());
        let thread = thread("accept").spawn(move || {
            while let Ok((client, _)) = listener.accept() {
                if over.load(Relaxed) {
                    break;
                }
                if open.load(Relaxed) >= CONNECTIONS_MAX {
                    continue;
                }
                open.fetch_add(1, Relaxed);
                let (targets, counted) = (Arc::clone(&targets), Arc::clone(&open));
                let served = thread("connection").spawn(move || {
                    // Either side may end at any time.
                    let _ = serve(client, &targets);
                    counted.fetch_sub(1, Relaxed);
                });
                if served.is_err() {
                    open.fetch_sub(1, Relaxed);
                }
            }
        })?;
        Ok(Self { address, is_over, thread: Some(thread) })
    }
}

impl Drop for WebSocketProxy {
    fn drop(&mut self) {
        self.is_over.store(true, Relaxed);
        // Wakes the thread.
        if TcpStream::connect(self.address).is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}

fn thread(what: &str) -> std::thread::Builder {
    std::thread::Builder::new().name(format!("gake-ws-{what}"))
}

fn serve(mut client: TcpStream, targets: &Targets) -> io::Result<()> {
    client.set_read_timeout(Some(DIAL_LIMIT))?;
    let [_, methods] = bytes(&mut client)?;
    client.read_exact(&mut vec![0; methods.into()])?;
    client.write_all(&[5, 0])?;
    let [_, _, _, kind] = bytes(&mut client)?;
    let host = match kind {
        1 => IpAddr::from(Ipv4Addr::from(bytes::<4>(&mut client)?)).to_string(),
        4 => IpAddr::from(Ipv6Addr::from(bytes::<16>(&mut client)?)).to_string(),
        _ => {
            let [length] = bytes(&mut client)?;
            let mut name = vec![0; length.into()];
            client.read_exact(&mut name)?;
            String::from_utf8_lossy(&name).into_owned()
        }
    };
    let port = u16::from_be_bytes(bytes(&mut client)?);
    let dialed = targets.dial(&host, port);
    let status = *dialed.as_ref().err().unwrap_or(&GRANTED);
    client.write_all(&[5, status, 0, 1, 0, 0, 0, 0, 0, 0])?;
    let Ok(mut server) = dialed else { return Ok(()) };
    client.set_read_timeout(None)?;
    let (mut from_client, mut to_server) = (client.try_clone()?, server.try_clone()?);
    let upward = thread("upward").spawn(move || {
        let _ = io::copy(&mut from_client, &mut to_server);
        let _ = to_server.shutdown(Shutdown::Write);
    })?;
    let _ = io::copy(&mut server, &mut client);
    let _ = client.shutdown(Shutdown::Both);
    let _ = upward.join();
    Ok(())
}

fn bytes<const N: usize>(client: &mut TcpStream) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    client.read_exact(&mut bytes).map(|()| bytes)
}

impl Targets {
    /// A connection to a host, or the reply that says why there is none.
    fn dial(&self, host: &str, port: u16) -> Result<TcpStream, u8> {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        let found = self.resolver.resolve(&host, port).map_err(|_| UNREACHABLE)?;
        let tcp = |address| match address {
            Address::Tcp(address) => Some(address),
            Address::Unix(_) => None,
        };
        let addresses: Vec<SocketAddr> = found.into_iter().filter_map(tcp).collect();
        let ips: Vec<IpAddr> = addresses.iter().map(SocketAddr::ip).collect();
        if self.blocked.blocks(&host, &ips) {
            return Err(BLOCKED);
        }
        let mut dialed = addresses.iter().map(|to| TcpStream::connect_timeout(to, DIAL_LIMIT));
        dialed.find_map(Result::ok).ok_or(UNREACHABLE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(rules: &[String], names: &[&str], networks: &[&str]) -> Targets {
        let owned = |list: &[&str]| list.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>();
        let mut resolver = Resolver::default();
        resolver.connect_to = rules.iter().map(|rule| rule.parse().unwrap()).collect();
        Targets {
            resolver,
            blocked: BlockedTargets::read(&owned(names), &owned(networks)).unwrap(),
        }
    }

    /// The reply to a request for a host.
    fn asked(proxy: &WebSocketProxy, host: &str, port: u16) -> (u8, TcpStream) {
        let mut client = TcpStream::connect(proxy.address).unwrap();
        client.write_all(&[5, 1, 0]).unwrap();
        assert_eq!(bytes(&mut client).unwrap(), [5, 0]);
        let mut request = vec![5, 1, 0, 3, host.len() as u8];
        request.extend(host.as_bytes());
        request.extend(port.to_be_bytes());
        client.write_all(&request).unwrap();
        let reply: [u8; 10] = bytes(&mut client).unwrap();
        (reply[1], client)
    }

    #[test]
    fn blocked_targets_are_refused_and_others_reached() {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = server.local_addr().unwrap().port();
        let rules = [
            "shop.test::127.0.0.1:".to_owned(),
            "bad.test::127.6.6.6:".to_owned(),
            format!("*.any.test:1:127.0.0.1:{port}"),
        ];
        let targets = targets(&rules, &["*.ads.test"], &["127.6.0.0/16"]);
        let proxy = WebSocketProxy::start(targets).unwrap();
        for (host, to, expected) in [
            ("bad.test", port, BLOCKED),
            ("127.6.6.7", port, BLOCKED),
            ("shop.test", port, GRANTED),
            ("x.any.test", 1, GRANTED),
            ("nothing.invalid", port, UNREACHABLE),
        ] {
            assert_eq!(asked(&proxy, host, to).0, expected, "{host}");
        }
        let (_, mut client) = asked(&proxy, "Shop.test.", port);
        client.write_all(b"hello").unwrap();
        // The requests before.
        (0..2).for_each(|_| drop(server.accept().unwrap()));
        let (mut accepted, _) = server.accept().unwrap();
        assert_eq!(&bytes::<5>(&mut accepted).unwrap(), b"hello");
        accepted.write_all(b"back").unwrap();
        assert_eq!(&bytes::<4>(&mut client).unwrap(), b"back");
    }
}
