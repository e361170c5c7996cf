//! The use, the end and the counts of connections.

use std::time::Duration;

use crate::client::{Client, Lane, Setup, request, status_of};
use crate::server::{Again, Request, Server, Wait, ok};

fn servers(count: usize) -> Vec<Server> {
    (0..count).map(|_| Server::start([vec![Request, ok(1), Again]])).collect()
}

/// Requests to all servers, round-robin.
fn to_all(servers: &[Server]) -> Setup {
    Setup::of(servers.iter().map(|server| request("GET", &server.url("/"))).collect())
}

fn opened(servers: &[Server]) -> Vec<usize> {
    servers.iter().map(|server| server.seen().len()).collect()
}

#[test]
fn a_pooled_connection_serves_any_lane() {
    let servers = servers(1);
    to_all(&servers).run(async |client| {
        for _ in 0..5 {
            client.lane().fire_ok(2).await;
        }
        assert_eq!(client.counts().opened, 1);
    });
}

#[test]
fn an_own_connection_serves_its_lane_only() {
    let servers = servers(1);
    to_all(&servers).with(|s| s.settings.pooled = false).run(async |client| {
        let mut lanes: Vec<_> = (0..5).map(|_| client.lane()).collect();
        for _ in 0..3 {
            for lane in &mut lanes {
                lane.fire_ok(1).await;
            }
        }
        assert_eq!((client.counts().opened, client.gauges().open), (5, 5));
        // The connection ends with its user.
        lanes.truncate(2);
        assert_eq!(client.gauges().open, 2);
    });
}

#[test]
fn each_origin_has_its_connections() {
    for pooled in [true, false] {
        let servers = servers(3);
        to_all(&servers).with(|s| s.settings.pooled = pooled).run(async |client| {
            let mut lane = client.lane();
            lane.fire_ok(12).await;
            assert_eq!((client.counts().opened, client.gauges().open), (3, 3));
        });
        assert_eq!(opened(&servers), [1, 1, 1]);
        assert!(servers.iter().all(|server| server.requests().len() == 4));
    }
}

#[test]
fn the_bound_holds_over_origins() {
    let servers = servers(3);
    to_all(&servers).with(|s| s.settings.connections = 2).run(async |client| {
        let mut lane = client.lane();
        for round in 0..9 {
            lane.fire_ok(1).await;
            let gauges = client.gauges();
            assert!(gauges.peak <= 2, "{gauges:?} in round {round}");
        }
        // With one connection too few, each round must open one.
        assert!((5..=9).contains(&client.counts().opened), "{}", client.counts().opened);
    });
}

/// Fires all lanes concurrently.
async fn together(lanes: &mut [Lane<'_>]) {
    let mut firing = Vec::new();
    for lane in lanes {
        firing.push(Box::pin(lane.fire()));
    }
    let mut left = firing.len();
    std::future::poll_fn(|cx| {
        firing.retain_mut(|fire| match fire.as_mut().poll(cx) {
            std::task::Poll::Ready(exchange) => {
                assert_eq!(status_of(&exchange), 200);
                left -= 1;
                false
            }
            std::task::Poll::Pending => true,
        });
        if left == 0 { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
}

#[test]
fn the_bound_holds_while_connections_are_being_opened() {
    let slow = || Server::start([vec![Request, Wait(Duration::from_millis(20)), ok(1), Again]]);
    let servers: Vec<_> = (0..2).map(|_| slow()).collect();
    // In each round, all lanes go to one server.
    let requests = [0, 0, 0, 0, 1, 1, 1, 1].map(|at: usize| request("GET", &servers[at].url("/")));
    let setup = Setup::of(requests.to_vec()).with(|s| s.settings.connections = 4);
    setup.run(async |client: &Client| {
        let mut lanes: Vec<_> = (0..4).map(|_| client.lane()).collect();
        for _ in 0..4 {
            together(&mut lanes).await;
            let gauges = client.gauges();
            assert!(gauges.peak <= 4, "{gauges:?}");
            assert_eq!(gauges.open, 4);
        }
        assert_eq!(client.counts().opened, 16);
    });
}

#[test]
fn gauges_are_the_level_and_the_peak_since_the_last_call() {
    let slow = Server::start([vec![Request, Wait(Duration::from_millis(30)), ok(1), Again]]);
    let setup = Setup::get(slow.url("/")).with(|s| s.settings.keepalive = false);
    setup.run(async |client| {
        let mut lanes: Vec<_> = (0..3).map(|_| client.lane()).collect();
        together(&mut lanes).await;
        let gauges = client.gauges();
        assert_eq!((gauges.open, gauges.peak), (0, 3));
        assert_eq!((client.gauges().peak, client.counts().opened), (0, 3));
    });
}

#[test]
fn weights_and_labels_are_kept() {
    let servers = servers(2);
    let mut setup = to_all(&servers);
    setup.requests[0].weight = 3;
    setup.requests[1].label = Some("second".to_owned());
    let wire = setup.prepare().unwrap();
    assert_eq!(
        (wire.labels.as_slice(), wire.requests()),
        (&["GET /".to_owned(), "second".to_owned()][..], 2)
    );
    setup.run(async |client| {
        let mut lane = client.lane();
        let mut by_label = [0; 2];
        for _ in 0..40 {
            by_label[usize::from(lane.fire().await.label)] += 1;
        }
        assert_eq!(by_label, [30, 10]);
    });
    assert_eq!((servers[0].requests().len(), servers[1].requests().len()), (30, 10));
}
