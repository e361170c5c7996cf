//! Serving gRPC: an echo, the standard health check, and reflection.
//!
//! A call is a request like any other: it waits for a thread, takes its service time, and is
//! counted under its HTTP status.

mod calls;
mod definitions;
mod frames;
mod messages;
mod reflection;
pub(crate) mod replies;

use std::sync::Arc;
use std::time::Duration;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Request, Response, Version};
use hyper::body::Incoming;
use prost::Message;

use self::calls::Call;
use self::frames::{Frames, framed};
use self::replies::{Replies, Status};
use crate::abort::Cut;
use crate::body::{Answer, Source};
use crate::connection::Connection;
use crate::flight::Flight;
use crate::pool;

/// The content type of calls and answers.
const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");

type Outcome = Result<Response<Answer>, Cut>;

/// Whether a request is a call.
pub(crate) fn is_call(request: &Request<Incoming>) -> bool {
    let kind = request.headers().get(CONTENT_TYPE);
    request.version() == Version::HTTP_2
        && kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"))
}

/// Answers a call.
pub(crate) async fn answer(
    connection: Arc<Connection>,
    request: Request<Incoming>,
    mut flight: Flight,
) -> Outcome {
    let worker = &connection.worker;
    if worker.shared.draw_reset() {
        flight.cut();
        return Err(Cut::Reset);
    }
    let Some(call) = Call::named(request.uri().path()) else {
        return Ok(failed(flight, &Status::new(Status::UNIMPLEMENTED, "there is no such method")));
    };
    let Some(place) = pool::place(worker) else {
        let full = Status::new(Status::RESOURCE_EXHAUSTED, "the queue is full");
        return Ok(failed(flight, &full));
    };
    let mut frames = Frames::new(request.into_body());
    if !call.is_unary() {
        flight.hold(pool::hold(worker, Duration::ZERO, place).await?);
        let replies = call.stream(frames, Arc::clone(&worker.timer));
        return Ok(respond(flight, Source::Grpc(replies), None));
    }
    let message = match frames.only().await {
        Ok(message) => message,
        Err(status) => return Ok(failed(flight, &status)),
    };
    let (delay, reply) = match call.unary(&message) {
        Ok((delay, reply)) => (delay, Ok(reply)),
        Err((delay, status)) => (delay, Err(status)),
    };
    flight.hold(pool::hold(worker, delay, place).await?);
    Ok(match reply {
        Ok(reply) => respond(flight, Source::Grpc(Replies::one(reply)), None),
        Err(status) => failed(flight, &status),
    })
}

/// An answer without messages, whose head has the status.
fn failed(flight: Flight, status: &Status) -> Response<Answer> {
    respond(flight, Source::Whole(bytes::Bytes::new()), Some(status.fields()))
}

fn respond(flight: Flight, source: Source, fields: Option<HeaderMap>) -> Response<Answer> {
    let mut response = Response::new(Answer::new(source, flight, 200, false));
    *response.headers_mut() = fields.unwrap_or_default();
    response.headers_mut().insert(CONTENT_TYPE, GRPC);
    response
}

/// A message in its frame.
fn encoded(message: &impl Message) -> bytes::Bytes {
    framed(&message.encode_to_vec())
}
