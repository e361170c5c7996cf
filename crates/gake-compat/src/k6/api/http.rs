//! Requests to the REST API of another process.

use std::net::ToSocketAddrs;
use std::time::Duration;

use gake_run::{SendError, send_once};
use gake_wire::HttpRequest;

use crate::go_errors::cause;

/// The most bytes of a response, which may contain many metrics.
const RESPONSE_MAX: usize = 64 << 20;

/// The time limit of a request.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Sends a request to `address`, and returns the status and body of the response.
///
/// # Errors
/// A sentence if there is no response.
pub(super) fn send_request(
    address: &str,
    method: &str,
    path: &str,
    body: &str,
) -> Result<(u16, Vec<u8>), String> {
    // The server would take a name for another site's.
    let host = address.to_socket_addrs().map_err(|error| error.to_string())?.next();
    let host = host.ok_or("it has no address")?;
    let json = ("Content-Type".to_owned(), "application/json".to_owned());
    let request = HttpRequest {
        headers: vec![json],
        body: Some(body.as_bytes().into()),
        ..HttpRequest::new(method, format!("http://{host}{path}"))
    };
    let response =
        send_once(&request, None, RESPONSE_MAX, TIMEOUT).map_err(|error| match error {
            SendError::Fault(fault) => cause(fault, &host.to_string()),
            SendError::Unresolved(why) | SendError::Other(why) => why,
        })?;
    Ok((response.status, response.body))
}
