//! Background tasks of a proxy: percentage ramps, DNS refresh.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::control::ProxyControl;

/// Interval between two steps of a ramp.
const RAMP_STEP: Duration = Duration::from_millis(100);
/// Interval between two resolutions of the backends' names.
const RESOLVE_AGAIN: Duration = Duration::from_secs(30);

/// Runs the background tasks until the proxy has ended.
pub(crate) async fn run(control: ProxyControl) {
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
            // On a thread of its own: a hanging resolver must not delay shutdown.
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
