//! Connections that are opened and held without a request, beside the load.

use std::rc::Rc;
use std::time::Duration;

use gake_core::clock::{Clock, Nanos};

use crate::connect::Dialer;
use crate::deadline::Deadlines;
use crate::meter::bump;

/// Opens this worker's part of the idle connections at the connect rate, and counts those that the
/// peer ends.
pub(crate) fn hold<C: Clock + 'static>(
    dialer: &Rc<Dialer<C>>,
    deadlines: &Rc<Deadlines>,
    worker: usize,
    workers: usize,
) {
    let settings = &dialer.wire.settings;
    let rate = settings.connect_rate;
    for number in (worker..settings.idle_connections).step_by(workers) {
        let (dialer, deadline) = (Rc::clone(dialer), deadlines.add());
        tokio::task::spawn_local(async move {
            if let Some(rate) = rate {
                tokio::time::sleep(Duration::from_secs_f64(number as f64 / rate)).await;
            }
            let origin = (number % dialer.wire.origins.len()) as u32;
            let dialed = dialer.dial(origin, &deadline, Nanos::MAX).await;
            if let Ok(conn) = dialed.conn {
                // The peer says nothing to a connection without a request, unless it ends it.
                conn.stream.readable().await;
            }
            bump(&dialer.meter.idle_lost);
        });
    }
}
