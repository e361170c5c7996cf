//! Idle connections, held without requests while the load runs.

use std::rc::Rc;
use std::sync::Arc;

use gake_core::clock::{Clock, Nanos, SECOND, nanos};
use gake_core::record::Exchange;
use gake_core::schedule::Slice;
use tokio::sync::Semaphore;

use crate::client::meter::bump;
use crate::client::shared::Shared;
use crate::client::transport::AnyTransport;
use crate::net::deadline::Deadline;

/// Maximum concurrent connects of one worker, so that many idle connections do not hold up the load.
const OPENING_MAX: usize = 64;

/// Opens this worker's slice of the idle connections at the connect rate, and counts those that fail
/// or are closed by the peer.
pub(crate) fn hold<C: Clock + Clone + 'static>(shared: &Rc<Shared<C>>, slice: Slice) {
    let settings = &shared.network.settings;
    let numbers = (0..slice.count(settings.idle_connections)).map(move |own| slice.number(own));
    if numbers.len() == 0 {
        return;
    }
    shared.meter.idle_pending.set(numbers.len() as u64);
    shared.alarms.watch(&shared.clock);
    let rate = settings.connect_rate;
    let shared = Rc::clone(shared);
    tokio::task::spawn_local(async move {
        let turns = Arc::new(Semaphore::new(OPENING_MAX));
        let begun = shared.clock.now();
        for number in numbers {
            if let Some(rate) = rate {
                shared.clock.sleep_until(due(begun, number, rate)).await;
            }
            let Ok(turn) = Arc::clone(&turns).acquire_owned().await else { return };
            let shared = Rc::clone(&shared);
            tokio::task::spawn_local(async move {
                let connection = open(&shared, number).await;
                shared.meter.idle_settled(connection.is_some());
                if let Some(connection) = connection {
                    // A separate task: its future is smaller than that of connecting.
                    tokio::task::spawn_local(keep(shared, connection));
                }
                drop(turn);
            });
        }
    });
}

fn due(begun: Nanos, number: usize, rate: f64) -> Nanos {
    begun.saturating_add((number as f64 / rate * SECOND as f64) as Nanos)
}

async fn open<C: Clock + Clone + 'static>(
    shared: &Shared<C>,
    number: usize,
) -> Option<AnyTransport> {
    let Shared { network, clock, dialer, alarms, .. } = shared;
    let origin = (number % network.origins.len()) as u32;
    let connect = nanos(network.settings.timeouts.connect);
    let deadline = Deadline { end: Nanos::MAX, connect, first_byte: None };
    let alarm = alarms.set(Nanos::MAX, deadline.shortest(clock.now()));
    let opened = dialer.dial((origin, None), &alarm, &deadline, &mut Exchange::unfinished(0)).await;
    opened.ok().filter(|connection| !connection.is_refused())
}

/// Holds a connection until the peer ends it.
async fn keep<C: Clock>(shared: Rc<Shared<C>>, connection: AnyTransport) {
    connection.until_ended(&shared.scratch).await;
    bump(&shared.meter.idle_lost);
}
