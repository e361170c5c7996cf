//! A check before a search that the target accepts connections.

use std::io::ErrorKind;
use std::net::TcpStream;
use std::time::Duration;

use gake_wire::{Address, PreparedRequests};

use crate::RunError;

/// Time limit for one connection; a slow target is not an error.
const PATIENCE: Duration = Duration::from_secs(2);

/// Connects to every origin once.
///
/// # Errors
/// When all addresses of an origin refuse the connection.
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
