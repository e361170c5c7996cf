//! Requests made during the run.

use std::sync::Arc;

use gake_wire::{HttpRequest, NextRequest, RequestFeed, WeightedRequest};

use crate::client::{Setup, request, status_of};
use crate::server::{Again, Request, Server, ok};

/// Gives each request once, in order.
#[derive(Debug)]
struct ListFeed(Vec<WeightedRequest>);

impl RequestFeed for ListFeed {
    fn next(&self, number: u64) -> NextRequest<'_> {
        Box::pin(async move { self.0.get(number as usize).cloned() })
    }
}

fn labelled(server: &Server, label: &str) -> WeightedRequest {
    WeightedRequest { label: Some(label.to_owned()), ..request("GET", &server.url("/")) }
}

fn fed(known: Vec<WeightedRequest>, fed: Vec<WeightedRequest>) -> Setup {
    Setup::of(known).with(|s| s.settings.feed = Some(Arc::new(ListFeed(fed))))
}

fn server() -> Server {
    Server::start([vec![Request, ok(1), Again]])
}

#[test]
fn a_new_label_is_other() {
    let server = server();
    let known = ["a", "b"].map(|label| labelled(&server, label)).to_vec();
    let unnamed = request("GET", &server.url("/new"));
    let next = vec![labelled(&server, "b"), labelled(&server, "c"), unnamed, known[0].clone()];
    let setup = fed(known, next);
    assert_eq!(setup.prepare().unwrap().labels, ["a", "b", "other"]);
    setup.run(async |client| {
        let mut lane = client.lane();
        for label in [1, 2, 2, 0] {
            let exchange = lane.fire().await;
            assert_eq!((status_of(&exchange), exchange.label), (200, label));
        }
    });
}

#[test]
fn a_new_label_is_other_in_a_list_shared_by_two_loads() {
    let server = server();
    let mut labels = Vec::new();
    for (own, number) in [("a", 0), ("b", 2)] {
        let next = vec![labelled(&server, "c"), labelled(&server, own)];
        fed(vec![labelled(&server, own)], next).run_with_labels(&mut labels, async |client| {
            let mut lane = client.lane();
            for label in [1, number] {
                assert_eq!(lane.fire().await.label, label, "{own}");
            }
        });
    }
    assert_eq!(labels, ["a", "other", "b"]);
}

#[test]
fn requests_need_no_labels() {
    let server = server();
    let get = request("GET", &server.url("/"));
    let setup = fed(vec![get.clone()], vec![get, request("GET", &server.url("/new"))]);
    assert!(setup.prepare().unwrap().labels.is_empty());
    setup.run(async |client| {
        let mut lane = client.lane();
        for _ in 0..2 {
            assert_eq!(lane.fire().await.label, 0);
        }
        assert!(lane.is_exhausted().await);
    });
}

#[test]
fn an_invalid_request_is_a_fault_of_its_arrival() {
    let server = server();
    let get = request("GET", &server.url("/"));
    let bad = HttpRequest::new("GET", "gopher://x/").into();
    fed(vec![get.clone()], vec![bad, get]).run(async |client| {
        let mut lane = client.lane();
        let exchange = lane.fire().await;
        assert!(crate::client::fault_of(&exchange).name() == "malformed", "{exchange:?}");
        lane.fire_ok(1).await;
    });
}
