//! Whether anything listens where a search would load, asked once before it.

use std::io::ErrorKind;
use std::net::TcpStream;
use std::time::Duration;

use gake_wire::{Address, Wire};

use gake_session::Failure;

/// How long one address may take to answer; a slow one is no reason not to try.
const PATIENCE: Duration = Duration::from_secs(2);

/// Connects to every origin once: what refuses one connection refuses a million.
///
/// # Errors
/// When every address of an origin refuses.
pub fn check(wire: &Wire, target: &str) -> Result<(), Failure> {
    for origin in &wire.network.origins {
        let refuses = |address: &Address| match address {
            Address::Tcp(address) => TcpStream::connect_timeout(address, PATIENCE)
                .is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused),
            Address::Unix(_) => false,
        };
        if origin.addresses.iter().all(refuses) {
            return Err(Failure::could_not(format!(
                "{target}: connection refused by {}: check the address, and that the server is up",
                origin.name
            )));
        }
    }
    Ok(())
}
