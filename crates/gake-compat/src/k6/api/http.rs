//! Requests and responses of the REST API: one of each over an HTTP/1 connection.

use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use gake_run::{SendError, send_once};
use gake_sinks::visitor::{VisitorHead, read_whole, send};
use gake_wire::HttpRequest;

use crate::go_errors::cause;

/// The most bytes of a request's body.
const REQUEST_MAX: usize = 64 << 10;

/// The most bytes of a response, which may contain many metrics.
const RESPONSE_MAX: usize = 64 << 20;

/// The time limit of reads and writes on either side.
const TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, PartialEq, Eq)]
pub(super) struct ApiRequest {
    pub(super) method: String,
    /// The path without a query.
    pub(super) path: String,
    pub(super) body: Vec<u8>,
}

/// Reads a request; `None` if it is not one, or names another host, as a web page does that has
/// rebound its name to this machine.
pub(super) fn receive(stream: &mut TcpStream) -> io::Result<Option<ApiRequest>> {
    let (head, body) = read_whole(stream, REQUEST_MAX, TIMEOUT)?;
    let head = VisitorHead::parse(&head).filter(|head| head.is_for(""));
    Ok(head.map(|head| ApiRequest {
        method: head.method.to_owned(),
        path: head.path.to_owned(),
        body,
    }))
}

/// Writes a response of JSON.
pub(super) fn respond(stream: &mut TcpStream, status: &str, body: &str) -> io::Result<()> {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json; charset=utf-8\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    send(stream, &[head.as_bytes(), body.as_bytes()].concat(), TIMEOUT)
}

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
