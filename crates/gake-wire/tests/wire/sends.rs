//! The client without a load: concurrent requests, sent by hand.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use gake_codec::http1::Visitor;
use gake_core::clock::Clock as _;
use gake_core::record::{Counts, Exchange, ExchangeEnd, Fault, ResponseSummary};
use gake_core::schedule::Slice;
use gake_wire::{
    Client, ClientSettings, Deadline, ExchangeVisitor, HttpRequest, Network, PreparedRequest,
    Resolver, TlsOptions,
};

use crate::client::{PATIENCE, TestClock, fault_of, millis, on_runtime, status_of};
use crate::server::{Again, Hold, Request, Server, Wait, ok, send};

struct Sender {
    client: Client<TestClock>,
    request: PreparedRequest,
}

impl Sender {
    fn new(server: &Server, settings: ClientSettings) -> Rc<Self> {
        let mut network =
            Network::new(&Resolver::default(), &TlsOptions::default(), settings).unwrap();
        let request = network.prepare(&HttpRequest::new("GET", server.url("/"))).unwrap();
        let client = Client::new(Arc::new(network), Slice::WHOLE, TestClock::new());
        Rc::new(Self { client, request })
    }

    fn deadline(&self) -> Deadline {
        Deadline::within(self.client.clock().now(), PATIENCE)
    }

    /// Sends `count` requests concurrently.
    async fn together(self: &Rc<Self>, count: usize) -> Vec<Exchange> {
        let tasks: Vec<_> = (0..count)
            .map(|_| {
                let sender = Rc::clone(self);
                tokio::task::spawn_local(async move {
                    sender.client.send_to(&sender.request, sender.deadline(), &mut ()).await
                })
            })
            .collect();
        let mut exchanges = Vec::new();
        for task in tasks {
            exchanges.push(task.await.unwrap());
        }
        exchanges
    }

    fn peak(&self) -> (u64, u64) {
        let mut counts = Counts::default();
        let gauges = self.client.observe(&mut counts);
        (counts.opened, gauges.peak)
    }
}

fn slow() -> Server {
    Server::start([vec![Request, Wait(Duration::from_millis(20)), ok(3), Again]])
}

#[test]
fn requests_are_concurrent() {
    let server = slow();
    on_runtime(async {
        let sender = Sender::new(&server, ClientSettings::default());
        let exchanges = sender.together(40).await;
        assert!(exchanges.iter().all(|exchange| status_of(exchange) == 200));
        assert!(exchanges.iter().all(|exchange| exchange.blocked == 0));
        assert_eq!(sender.peak(), (40, 40));
        // The next requests reuse the connections.
        sender.together(40).await;
        assert_eq!(sender.peak(), (0, 40));
    });
}

#[test]
fn more_requests_than_connections_wait_fifo() {
    let server = slow();
    on_runtime(async {
        let sender =
            Sender::new(&server, ClientSettings { connections: 3, ..ClientSettings::default() });
        let exchanges = sender.together(12).await;
        assert!(exchanges.iter().all(|exchange| status_of(exchange) == 200));
        assert_eq!(sender.peak(), (3, 3));
        // FIFO, and the wait is not part of the service time.
        assert!(exchanges.is_sorted_by_key(|exchange| exchange.write));
        assert!(exchanges[..3].iter().all(|exchange| exchange.blocked == 0));
        for exchange in &exchanges[3..] {
            assert!(millis(exchange.blocked) >= 19, "{exchange:?}");
            assert!(exchange.connect.is_none(), "{exchange:?}");
        }
        // The last one waited for three others.
        let last = exchanges.last().unwrap();
        assert!(last.blocked > 2 * exchanges[3].blocked, "{last:?}");
    });
}

#[test]
fn a_wait_ends_at_the_deadline() {
    let server = Server::start([vec![Request, Hold]]);
    on_runtime(async {
        let sender =
            Sender::new(&server, ClientSettings { connections: 1, ..ClientSettings::default() });
        let hanging = Rc::clone(&sender);
        let task = tokio::task::spawn_local(async move { hanging.together(1).await });
        let opened = Cell::new(false);
        while !opened.get() {
            opened.set(sender.peak().0 > 0);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let now = sender.client.clock().now();
        let deadline = Deadline::within(now, Duration::from_millis(100));
        let exchange = sender.client.send_to(&sender.request, deadline, &mut ()).await;
        assert!(matches!(fault_of(&exchange), Fault::Timeout(_)), "{exchange:?}");
        assert!(millis(exchange.blocked) >= 100 && exchange.bytes_out == 0, "{exchange:?}");
        task.abort();
    });
}

#[test]
fn a_body_is_kept_up_to_a_limit() {
    let server = Server::start([vec![Request, ok(10), Again]]);
    on_runtime(async {
        let sender = Sender::new(&server, ClientSettings::default());
        for (keep, expected) in [(0, ""), (4, "xxxx"), (100, "xxxxxxxxxx")] {
            let (exchange, kept) =
                sender.client.send(&sender.request, sender.deadline(), keep).await;
            assert_eq!(
                exchange.end,
                ExchangeEnd::Response(ResponseSummary { status: 200, body_bytes: 10 })
            );
            assert_eq!((kept.body.as_slice(), kept.headers.len()), (expected.as_bytes(), 1));
        }
    });
}

#[derive(Clone, Default)]
struct BodyVisitor(Rc<RefCell<Vec<u8>>>);

impl Visitor for BodyVisitor {
    fn body(&mut self, bytes: &[u8]) {
        self.0.borrow_mut().extend_from_slice(bytes);
    }
}

impl ExchangeVisitor for BodyVisitor {}

#[test]
fn a_body_is_streamed_as_it_comes() {
    let first = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n";
    let server = Server::start([vec![Request, send(first), Hold]]);
    on_runtime(async {
        let sender = Sender::new(&server, ClientSettings::default());
        let stream = BodyVisitor::default();
        let mut visitor = stream.clone();
        // The response never ends, but its start is shown.
        tokio::select! {
            exchange = sender.client.send_to(&sender.request, sender.deadline(), &mut visitor) => {
                panic!("{exchange:?}")
            }
            () = async {
                while stream.0.borrow().as_slice() != b"first" {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            } => {}
        }
    });
}

#[test]
fn an_abandoned_exchange_keeps_its_facts() {
    let server = Server::start([vec![Request, Hold], vec![Request, ok(1), Again]]);
    on_runtime(async {
        let sender =
            Sender::new(&server, ClientSettings { connections: 1, ..ClientSettings::default() });
        let now = sender.client.clock().now();
        let mut exchange = Exchange::unfinished(now);
        let (request, deadline, visitor) = (&sender.request, sender.deadline(), &mut ());
        tokio::select! {
            () = sender.client.exchange(request, now, deadline, visitor, &mut exchange) => {
                panic!("it ended")
            }
            () = async {
                while server.requests().is_empty() {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            } => {}
        }
        assert!(exchange.written && exchange.connect.is_some(), "{exchange:?}");
        assert_eq!((exchange.end, exchange.first_byte), (ExchangeEnd::Unfinished, None));
        // Its slot is free again, on another connection.
        assert_eq!(status_of(&sender.together(1).await[0]), 200);
    });
}

#[test]
fn a_request_made_during_the_run_may_have_a_new_origin() {
    let (known, new) = (slow(), slow());
    on_runtime(async {
        let sender = Sender::new(&known, ClientSettings::default());
        let request = HttpRequest::new("GET", new.url("/new"));
        for _ in 0..2 {
            let request = sender.client.prepare(&request).await.unwrap();
            let exchange = sender.client.send_to(&request, sender.deadline(), &mut ()).await;
            assert_eq!(status_of(&exchange), 200);
        }
        assert_eq!((new.requests().len(), new.seen().len()), (2, 1));
        for bad in [HttpRequest::new("GET", "ftp://x/"), HttpRequest::new("G T", new.url("/"))] {
            assert!(matches!(sender.client.prepare(&bad).await, Err(Fault::Malformed(_))));
        }
    });
}

#[test]
fn a_user_has_connections_of_its_own() {
    let server = slow();
    on_runtime(async {
        let sender =
            Sender::new(&server, ClientSettings { connections: 1, ..ClientSettings::default() });
        let users = [0; 3].map(|_| sender.client.with_own_connections());
        for _ in 0..2 {
            for user in &users {
                // Two concurrent requests, like a page and its image.
                let send = async || user.send_to(&sender.request, sender.deadline(), &mut ()).await;
                let (page, picture) = tokio::join!(send(), send());
                assert_eq!((status_of(&page), status_of(&picture)), (200, 200));
            }
        }
        let mut counts = Counts::default();
        let gauges = sender.client.observe(&mut counts);
        assert_eq!((counts.opened, gauges.open), (6, 6));
        drop(users);
        assert_eq!(sender.client.observe(&mut Counts::default()).open, 0);
    });
}
