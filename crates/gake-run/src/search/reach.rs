//! Whether anything listens where a search would load, asked once before it.

use std::io::ErrorKind;
use std::net::TcpStream;
use std::time::Duration;

use gake_wire::{Address, PreparedRequests};

use crate::RunError;

/// How long one address may take to accept a connection; a slow one is no reason not to try.
const PATIENCE: Duration = Duration::from_secs(2);

/// Connects to every origin once: what refuses one connection refuses a million.
///
/// # Errors
/// When every address of an origin refuses.
pub(super) fn check(wire: &PreparedRequests, target: &str) -> Result<(), RunError> {
    for origin in &wire.network.origins {
        let refuses = |address: &Address| match address {
            Address::Tcp(address) => TcpStream::connect_timeout(address, PATIENCE)
                .is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused),
            Address::Unix(_) => false,
        };
        if origin.addresses.iter().all(refuses) {
            return Err(RunError::cannot(format!(
                "{target}: connection refused by {}: check the address, and that the server is up",
                origin.name
            )));
        }
    }
    Ok(())
}
