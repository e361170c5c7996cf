//! gRPC: an echo, the standard health check, and reflection.
//!
//! A call is an ordinary request: it waits for a worker, takes its service time, and is counted
//! under its HTTP status.

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

use self::calls::Method;
use self::frames::{Frames, framed};
use self::replies::{CallStatus, Replies};
use crate::abort::Abort;
use crate::body::{BodySource, ResponseBody, ResponseResult};
use crate::connection::HttpConnection;
use crate::flight::Flight;
use crate::pool;

/// The content type of calls and responses.
const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");

pub(crate) fn is_call(request: &Request<Incoming>) -> bool {
    let kind = request.headers().get(CONTENT_TYPE);
    request.version() == Version::HTTP_2
        && kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"))
}

pub(crate) async fn serve(
    connection: Arc<HttpConnection>,
    request: Request<Incoming>,
    mut flight: Flight,
) -> ResponseResult {
    let worker = &connection.worker;
    if worker.shared.draw_reset() {
        flight.cut();
        return Err(Abort::Reset);
    }
    let Some(call) = Method::named(request.uri().path()) else {
        return Ok(failed(
            flight,
            &CallStatus::new(CallStatus::UNIMPLEMENTED, "there is no such method"),
        ));
    };
    let Some(permit) = pool::admit(worker) else {
        let full = CallStatus::new(CallStatus::RESOURCE_EXHAUSTED, "the queue is full");
        return Ok(failed(flight, &full));
    };
    let mut frames = Frames::new(request.into_body());
    if !call.is_unary() {
        flight.hold(pool::hold(worker, Duration::ZERO, permit).await?);
        let replies = call.stream(frames, Arc::clone(&worker.timer));
        return Ok(respond(flight, BodySource::Grpc(replies), None));
    }
    let message = match frames.only().await {
        Ok(message) => message,
        Err(status) => return Ok(failed(flight, &status)),
    };
    let (delay, reply) = match call.unary(&message) {
        Ok((delay, reply)) => (delay, Ok(reply)),
        Err((delay, status)) => (delay, Err(status)),
    };
    flight.hold(pool::hold(worker, delay, permit).await?);
    Ok(match reply {
        Ok(reply) => respond(flight, BodySource::Grpc(Replies::one(reply)), None),
        Err(status) => failed(flight, &status),
    })
}

/// A response without messages: the status is in its head.
fn failed(flight: Flight, status: &CallStatus) -> Response<ResponseBody> {
    respond(flight, BodySource::Whole(bytes::Bytes::new()), Some(status.fields()))
}

fn respond(
    flight: Flight,
    source: BodySource,
    fields: Option<HeaderMap>,
) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::new(source, flight, 200, false));
    *response.headers_mut() = fields.unwrap_or_default();
    response.headers_mut().insert(CONTENT_TYPE, GRPC);
    response
}

fn encoded(message: &impl Message) -> bytes::Bytes {
    framed(&message.encode_to_vec())
}
