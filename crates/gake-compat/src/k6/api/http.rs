//! Requests and responses of the REST API: one each over a connection of HTTP/1.

use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use gake_run::{SendError, send_once};
use gake_sinks::visitor::{VisitorHead, read_whole, send};
use gake_wire::HttpRequest;

use crate::go_errors::cause;

/// Bytes of a request's body.
const REQUEST_MAX: usize = 64 << 10;

/// Bytes of a response, which may hold many metrics.
const RESPONSE_MAX: usize = 64 << 20;

/// How long either side may keep the other waiting.
const PATIENCE: Duration = Duration::from_secs(5);

/// A request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ApiRequest {
    pub(super) method: String,
    /// Without its query.
    pub(super) path: String,
    pub(super) body: Vec<u8>,
}

/// Reads a request; `None` when it is not one, or names another host: a page of the web that has
/// rebound its name to this machine.
pub(super) fn receive(stream: &mut TcpStream) -> io::Result<Option<ApiRequest>> {
    let (head, body) = read_whole(stream, REQUEST_MAX, PATIENCE)?;
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
    send(stream, &[head.as_bytes(), body.as_bytes()].concat(), PATIENCE)
}

/// Sends a request to `address`, and gives the status and body of the response.
///
/// # Errors
/// In words, when there is none.
pub(super) fn ask(
    address: &str,
    method: &str,
    path: &str,
    body: &str,
) -> Result<(u16, Vec<u8>), String> {
    // A name would be taken for that of another site.
    let host = address.to_socket_addrs().map_err(|error| error.to_string())?.next();
    let host = host.ok_or("it has no address")?;
    let json = ("Content-Type".to_owned(), "application/json".to_owned());
    let request = HttpRequest {
        headers: vec![json],
        body: Some(body.as_bytes().into()),
        ..HttpRequest::new(method, format!("http://{host}{path}"))
    };
    let response = send_once(&request, RESPONSE_MAX, PATIENCE).map_err(|error| match error {
        SendError::Fault(fault) => cause(fault, &host.to_string()),
        SendError::Other(why) => why,
    })?;
    Ok((response.status, response.body))
}
