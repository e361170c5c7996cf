//! What goes on beside a proxy: the admin service, ramps, names that are resolved again.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::admin;
use crate::control::ProxyControl;

/// How often a percentage moves while it ramps.
const RAMP_STEP: Duration = Duration::from_millis(100);
/// How often backends' names are resolved again.
const RESOLVE_AGAIN: Duration = Duration::from_secs(30);

/// What goes on beside the proxy, until it has ended.
pub(crate) async fn run(control: ProxyControl, admin: Option<TcpListener>) {
    if let Some(listener) = admin {
        tokio::task::spawn_local(admin::serve(listener, control.clone()));
    }
    let ramping = control.clone();
    tokio::task::spawn_local(async move {
        loop {
            tokio::time::sleep(RAMP_STEP).await;
            ramping.step_ramps(Instant::now());
        }
    });
    let resolving = control.clone();
    tokio::task::spawn_local(async move {
        loop {
            tokio::time::sleep(RESOLVE_AGAIN).await;
            let shared = Arc::clone(resolving.shared());
            // A thread of its own: a resolver that hangs holds up nothing else, the end included.
            let _ = std::thread::Builder::new().name("gake-resolve".to_owned()).spawn(move || {
                shared.master.refresh();
                for backend in &shared.shadows {
                    backend.target.refresh();
                }
            });
        }
    });
    control.ended().await;
}
