//! Names whose addresses change during a load.

use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::rc::Rc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use gake_core::clock::Clock as _;
use gake_core::record::Fault;
use gake_core::schedule::Slice;
use gake_wire::{
    Client, ClientSettings, Deadline, HttpRequest, NameLookup, Network, PreparedRequest, Resolver,
    TlsOptions,
};

use crate::client::{PATIENCE, TestClock, fault_of, on_runtime, status_of};

/// A backend on 127.0.0.`last`, which responds with the status 200 + `last`.
#[derive(Default)]
struct Backend {
    open: AtomicUsize,
    served: AtomicUsize,
    /// Whether responses are held back.
    holds: Mutex<bool>,
    released: Condvar,
}

impl Backend {
    fn start(last: u8, port: u16) -> (Arc<Self>, u16) {
        let listener = TcpListener::bind((IpAddr::from([127, 0, 0, last]), port)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let backend = Arc::new(Self::default());
        let shared = Arc::clone(&backend);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let backend = Arc::clone(&shared);
                backend.open.fetch_add(1, Ordering::SeqCst);
                thread::spawn(move || {
                    backend.serve(stream.unwrap(), last);
                    backend.open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        (backend, port)
    }

    fn serve(&self, mut stream: TcpStream, last: u8) {
        let mut bytes = [0; 4096];
        while stream.read(&mut bytes).is_ok_and(|count| count > 0) {
            self.served.fetch_add(1, Ordering::SeqCst);
            drop(self.released.wait_while(self.holds.lock().unwrap(), |holds| *holds).unwrap());
            let head =
                format!("HTTP/1.1 {} OK\r\nContent-Length: 0\r\n\r\n", 200 + u16::from(last));
            if stream.write_all(head.as_bytes()).is_err() {
                return;
            }
        }
    }

    fn hold(&self, holds: bool) {
        *self.holds.lock().unwrap() = holds;
        self.released.notify_all();
    }
}

struct Sender {
    client: Client<TestClock>,
    request: PreparedRequest,
    lookups: Arc<AtomicUsize>,
}

impl Sender {
    /// A client of `h.test`, which is at 127.0.0.`last`.
    fn new(last: &Arc<AtomicU8>, port: u16, ttl: Duration) -> Rc<Self> {
        let (last, lookups) = (Arc::clone(last), Arc::new(AtomicUsize::new(0)));
        let counted = Arc::clone(&lookups);
        let names = move |name: &str| {
            assert_eq!(name, "h.test");
            counted.fetch_add(1, Ordering::SeqCst);
            Ok(vec![IpAddr::from([127, 0, 0, last.load(Ordering::SeqCst)])])
        };
        let mut resolver = Resolver::default();
        resolver.names = Some(NameLookup::new(names));
        let settings = ClientSettings { dns_ttl: Some(ttl), ..ClientSettings::default() };
        let mut network = Network::new(&resolver, &TlsOptions::default(), settings).unwrap();
        let url = format!("http://h.test:{port}/");
        let request = network.prepare(&HttpRequest::new("GET", url)).unwrap();
        let client = Client::new(Arc::new(network), Slice::WHOLE, TestClock::new());
        Rc::new(Self { client, request, lookups })
    }

    async fn status(&self) -> u16 {
        let deadline = Deadline::within(self.client.clock().now(), PATIENCE);
        status_of(&self.client.send_to(&self.request, deadline, &mut ()).await)
    }
}

async fn until(reached: impl Fn() -> bool) {
    let waits = async {
        while !reached() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waits).await.expect("in time");
}

#[test]
fn connections_follow_a_name_after_their_exchanges() {
    let (old, port) = Backend::start(2, 0);
    let (new, _) = Backend::start(3, port);
    on_runtime(async move {
        let at = Arc::new(AtomicU8::new(2));
        let sender = Sender::new(&at, port, Duration::from_millis(5));
        // Two connections, of which one is idle and one carries a request.
        old.hold(true);
        let both = [0, 1].map(|_| {
            let sender = Rc::clone(&sender);
            tokio::task::spawn_local(async move { sender.status().await })
        });
        until(|| old.served.load(Ordering::SeqCst) == 2).await;
        old.hold(false);
        for one in both {
            assert_eq!(one.await.unwrap(), 202);
        }
        old.hold(true);
        let busy = Rc::clone(&sender);
        let busy = tokio::task::spawn_local(async move { busy.status().await });
        until(|| old.served.load(Ordering::SeqCst) == 3).await;
        assert_eq!(old.open.load(Ordering::SeqCst), 2);

        at.store(3, Ordering::SeqCst);
        // The second lookup from now on follows one that has seen the change.
        let begun = sender.lookups.load(Ordering::SeqCst);
        until(|| sender.lookups.load(Ordering::SeqCst) >= begun + 2).await;
        assert_eq!(sender.status().await, 203);
        until(|| old.open.load(Ordering::SeqCst) == 1).await;
        old.hold(false);
        assert_eq!(busy.await.unwrap(), 202, "a request in flight is completed");
        for _ in 0..3 {
            assert_eq!(sender.status().await, 203);
        }
        until(|| old.open.load(Ordering::SeqCst) == 0).await;
        assert_eq!(old.served.load(Ordering::SeqCst), 3);
        assert_eq!(new.served.load(Ordering::SeqCst), 4);
    });
}

#[test]
fn at_zero_each_connection_has_a_lookup() {
    let (old, port) = Backend::start(2, 0);
    let (new, _) = Backend::start(3, port);
    on_runtime(async move {
        let at = Arc::new(AtomicU8::new(2));
        let sender = Sender::new(&at, port, Duration::ZERO);
        assert_eq!(sender.status().await, 202);
        at.store(3, Ordering::SeqCst);
        assert_eq!(sender.status().await, 202, "an open connection stays");
        old.hold(true);
        let busy = Rc::clone(&sender);
        let busy = tokio::task::spawn_local(async move { busy.status().await });
        until(|| old.served.load(Ordering::SeqCst) == 3).await;
        assert_eq!(sender.status().await, 203, "a new one goes where the name is now");
        old.hold(false);
        assert_eq!(busy.await.unwrap(), 202);
        assert_eq!(new.open.load(Ordering::SeqCst), 1);
    });
}

#[test]
fn at_zero_a_failed_lookup_fails_the_connection() {
    let names = Mutex::new(Some(IpAddr::from([127, 0, 0, 1])));
    let names = move |_: &str| {
        let once = names.lock().unwrap().take();
        Ok(vec![once.ok_or(std::io::ErrorKind::NotFound)?])
    };
    let mut resolver = Resolver::default();
    resolver.names = Some(NameLookup::new(names));
    let settings = ClientSettings { dns_ttl: Some(Duration::ZERO), ..ClientSettings::default() };
    let mut network = Network::new(&resolver, &TlsOptions::default(), settings).unwrap();
    let request = network.prepare(&HttpRequest::new("GET", "http://h.test:9/")).unwrap();
    on_runtime(async move {
        let client = Client::new(Arc::new(network), Slice::WHOLE, TestClock::new());
        let deadline = Deadline::within(client.clock().now(), PATIENCE);
        let exchange = client.send_to(&request, deadline, &mut ()).await;
        assert_eq!(fault_of(&exchange), Fault::Dns);
    });
}
