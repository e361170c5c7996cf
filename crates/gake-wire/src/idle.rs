//! Connections that are opened and held without a request, beside the load.

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::Duration;

use gake_core::clock::{Clock, Nanos};
use gake_core::record::Exchange;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::conn::Conn;
use crate::deadline::Deadlines;
use crate::factory::Shop;
use crate::meter::bump;

/// Connections that one worker opens at the same time, so that the load beside them is not held
/// up when many are asked for at once.
const OPENING_MAX: usize = 64;

/// Opens this worker's part of the idle connections at the connect rate, and counts those that
/// cannot be opened in time and those that the peer ends.
pub(crate) fn hold<C: Clock + 'static>(
    shop: &Rc<Shop<C>>,
    deadlines: &Rc<Deadlines>,
    worker: usize,
    workers: usize,
) {
    let settings = &shop.dialer.wire.settings;
    let numbers = (worker..settings.idle_connections).step_by(workers);
    if numbers.len() == 0 {
        return;
    }
    shop.dialer.meter.idle_pending.set(numbers.len() as u64);
    let rate = settings.connect_rate;
    let (shop, deadlines) = (Rc::clone(shop), Rc::clone(deadlines));
    tokio::task::spawn_local(async move {
        let turns = Arc::new(Semaphore::new(OPENING_MAX));
        let begun = Instant::now();
        for number in numbers {
            if let Some(due) = rate.and_then(|rate| due(begun, number, rate)) {
                tokio::time::sleep_until(due).await;
            }
            let Ok(turn) = Arc::clone(&turns).acquire_owned().await else { return };
            let (shop, deadlines) = (Rc::clone(&shop), Rc::clone(&deadlines));
            tokio::task::spawn_local(async move {
                let conn = open(&shop, &deadlines, number).await;
                shop.dialer.meter.idle_settled(conn.is_some());
                if let Some(conn) = conn {
                    // A task of its own is smaller than what opening took.
                    tokio::task::spawn_local(keep(shop, conn));
                }
                drop(turn);
            });
        }
    });
}

fn due(begun: Instant, number: usize, rate: f64) -> Option<Instant> {
    begun.checked_add(Duration::try_from_secs_f64(number as f64 / rate).ok()?)
}

async fn open<C: Clock>(shop: &Shop<C>, deadlines: &Deadlines, number: usize) -> Option<Box<Conn>> {
    let origin = (number % shop.dialer.wire.origins.len()) as u32;
    let mut exchange = Exchange::unfinished(0);
    shop.dialer.dial(origin, &deadlines.add(), Nanos::MAX, &mut exchange).await.ok()
}

/// Holds a connection until the peer ends it. What the peer sends before that (TLS session
/// tickets, a time-out's 408) is read and forgotten.
async fn keep<C: Clock>(shop: Rc<Shop<C>>, mut conn: Box<Conn>) {
    poll_fn(|cx| {
        loop {
            match ready!(shop.scratch.read(&mut conn.stream, cx, <[u8]>::is_empty)) {
                Ok(false) => {}
                Ok(true) | Err(_) => return Poll::Ready(()),
            }
        }
    })
    .await;
    bump(&shop.dialer.meter.idle_lost);
}
