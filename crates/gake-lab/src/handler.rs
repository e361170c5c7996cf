//! From a request to its response.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use gake_text::duration::format_duration;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use http_body::Body;
use hyper::body::Incoming;
use hyper::service::Service;

use crate::abort::Abort;
use crate::body::{AbortedBody, BodySource, Chunks, ResponseBody, ResponseResult};
use crate::connection::HttpConnection;
use crate::database;
use crate::flight::{Flight, OpenRequest};
use crate::grpc;
use crate::pool;
use crate::routes::{self, ResponsePlan, Route};
use crate::stats::render_prometheus;

const FAST: &[u8] = b"Hello from the lab.\n";
/// The response when the queue is full.
const FULL: &[u8] = b"The queue is full.\n";
/// The response to `/users` without a database.
const NO_DATABASE: &[u8] = b"no database: start the lab with --db\n";
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const BINARY: HeaderValue = HeaderValue::from_static("application/octet-stream");

/// Serves the requests of one connection.
#[derive(Debug)]
pub(crate) struct Handler(Arc<HttpConnection>);

impl Handler {
    pub(crate) fn new(connection: Arc<HttpConnection>) -> Handler {
        Handler(connection)
    }
}

/// A response that is ready, or one that takes time.
#[expect(clippy::large_enum_variant, reason = "a box is the allocation that Now avoids")]
pub(crate) enum ResponseFuture {
    Now(Option<Response<ResponseBody>>),
    Later(Pin<Box<dyn Future<Output = ResponseResult> + Send>>),
}

impl Future for ResponseFuture {
    type Output = ResponseResult;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<ResponseResult> {
        match &mut *self {
            ResponseFuture::Now(response) => Poll::Ready(response.take().ok_or(Abort::Gone)),
            ResponseFuture::Later(future) => future.as_mut().poll(cx),
        }
    }
}

impl Service<Request<Incoming>> for Handler {
    type Response = Response<ResponseBody>;
    type Error = Abort;
    type Future = ResponseFuture;

    fn call(&self, request: Request<Incoming>) -> ResponseFuture {
        if grpc::is_call(&request) && !Route::of(request.uri().path()).is_control() {
            self.0.requests.begin();
            self.0.worker.begin(Route::Grpc);
            let flight = Flight::new(&self.0);
            return ResponseFuture::Later(Box::pin(grpc::serve(
                Arc::clone(&self.0),
                request,
                flight,
            )));
        }
        self.reply(request)
    }
}

impl Handler {
    /// Serves a request of any HTTP version.
    pub(crate) fn reply<B>(&self, mut request: Request<B>) -> ResponseFuture
    where
        B: Body<Data = Bytes> + Send + Unpin + 'static,
    {
        let worker = &self.0.worker;
        self.0.requests.begin();
        let route = Route::of(request.uri().path());
        if route.is_control() {
            worker.counters().control.add(1);
            return ResponseFuture::Later(Box::pin(control(route, Arc::clone(&self.0), request)));
        }
        worker.begin(route);
        if route == Route::Fast && worker.shared.is_unlimited() && request.body().is_end_stream() {
            // The common case allocates nothing: hyper lends its header map to the request and
            // gets it back with the response.
            worker.counters().responded(200);
            let mut headers = std::mem::take(request.headers_mut());
            headers.clear();
            let body = ResponseBody::counted(Bytes::from_static(FAST));
            worker.shared.advertise(&mut headers);
            return ResponseFuture::Now(Some(respond(StatusCode::OK, headers, TEXT, body)));
        }
        let flight = Flight::new(&self.0);
        ResponseFuture::Later(Box::pin(serve(route, Arc::clone(&self.0), request, flight)))
    }
}

async fn serve<B: Body<Data = Bytes> + Unpin>(
    route: Route,
    connection: Arc<HttpConnection>,
    request: Request<B>,
    mut flight: Flight,
) -> ResponseResult {
    let (head, mut body) = request.into_parts();
    let worker = &connection.worker;
    let planned = routes::plan(route, &head.uri, &worker.shared.route_draws);
    let (delay, plan) = planned.unwrap_or_else(|bad| (Default::default(), ResponsePlan::bad(&bad)));
    let plan = match worker.shared.draw_reset() {
        true => ResponsePlan::Abort { how: Abort::Reset, after: None },
        false => plan,
    };
    let Some(permit) = pool::admit(worker) else {
        read_body(&mut body, 0).await?;
        let source = BodySource::Whole(Bytes::from_static(FULL));
        return Ok(finish(&head, flight, StatusCode::SERVICE_UNAVAILABLE, TEXT, source));
    };
    flight.hold(pool::hold(worker, delay, permit).await?);
    if let ResponsePlan::Echo = plan {
        let body = read_body(&mut body, routes::echo::BODY_CAP).await?;
        let text = routes::echo::render(&head, &body, &connection);
        return Ok(finish(&head, flight, StatusCode::OK, JSON, BodySource::Whole(text)));
    }
    if let (ResponsePlan::Users, Some(users)) = (&plan, &worker.shared.users) {
        let body = read_body(&mut body, database::BODY_CAP).await?;
        let (path, timer) = (head.uri.path(), &worker.timer);
        let (status, reply) = users.serve(&head.method, path, &body.bytes, timer).await;
        let text = Bytes::from(format!("{reply}\n"));
        return Ok(finish(&head, flight, status, JSON, BodySource::Whole(text)));
    }
    read_body(&mut body, 0).await?;
    let ok = StatusCode::OK;
    match plan {
        ResponsePlan::Users => {
            let source = BodySource::Whole(Bytes::from_static(NO_DATABASE));
            Ok(finish(&head, flight, StatusCode::NOT_FOUND, TEXT, source))
        }
        ResponsePlan::Echo | ResponsePlan::Fast => {
            let source = BodySource::Whole(Bytes::from_static(FAST));
            Ok(finish(&head, flight, ok, TEXT, source))
        }
        ResponsePlan::Text(status, text) => {
            Ok(finish(&head, flight, status, TEXT, BodySource::Whole(text)))
        }
        ResponsePlan::Bytes(n) => Ok(finish(&head, flight, ok, BINARY, BodySource::Fill(n))),
        ResponsePlan::Chunks { count, every, are_events } => {
            let (kind, around) = match are_events {
                true => (EVENTS, ("data: event", "\n\n")),
                false => (TEXT, ("chunk", "\n")),
            };
            let chunks = Chunks::new(count, every, around, Arc::clone(&worker.timer));
            Ok(finish(&head, flight, ok, kind, BodySource::Chunks(chunks)))
        }
        ResponsePlan::Abort { how, after: Some(after) } => {
            let aborted = AbortedBody::new(after, how, Arc::clone(&connection.flushes));
            Ok(finish(&head, flight, ok, BINARY, BodySource::Aborted(aborted)))
        }
        ResponsePlan::Abort { how, after: None } => {
            flight.cut();
            Err(how)
        }
        ResponsePlan::Hang => match std::future::pending::<Infallible>().await {},
    }
}

/// `/metrics`, `/config` and `/stall`: without a worker, a service time or a place in the request
/// counts.
async fn control<B: Body<Data = Bytes> + Unpin>(
    route: Route,
    connection: Arc<HttpConnection>,
    request: Request<B>,
) -> ResponseResult {
    let _open = OpenRequest::new(&connection);
    let (head, mut body) = request.into_parts();
    read_body(&mut body, 0).await?;
    let shared = &connection.worker.shared;
    let (status, kind, text) = match route {
        Route::Metrics => {
            let mut text = render_prometheus(&shared.stats(), &shared.config);
            if let Some(users) = &shared.users {
                users.pool.render(&mut text);
            }
            let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
            (StatusCode::OK, kind, text)
        }
        Route::Config => (StatusCode::OK, JSON, routes::settings::render(shared)),
        _ => match routes::stall_length(&head.uri) {
            Ok(length) => {
                let until = Instant::now() + length;
                shared.pause(until);
                connection.worker.timer.sleep_until(until).await;
                (StatusCode::OK, TEXT, format!("stalled for {}\n", format_duration(length)))
            }
            Err(bad) => (StatusCode::BAD_REQUEST, TEXT, format!("{bad}\n")),
        },
    };
    let body = ResponseBody::counted(text.into());
    Ok(respond(status, shared.headers(), kind, body))
}

fn finish(
    head: &Parts,
    flight: Flight,
    status: StatusCode,
    kind: HeaderValue,
    source: BodySource,
) -> Response<ResponseBody> {
    let is_bodiless = head.method == Method::HEAD;
    let headers = flight.worker().shared.headers();
    let body = ResponseBody::new(source, flight, status.as_u16(), is_bodiless);
    respond(status, headers, kind, body)
}

fn respond(
    status: StatusCode,
    mut headers: HeaderMap,
    kind: HeaderValue,
    body: ResponseBody,
) -> Response<ResponseBody> {
    // An empty body has no type, and 204 and 304 must not have one.
    if !body.is_end_stream() {
        headers.insert(CONTENT_TYPE, kind);
    }
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

/// The first bytes of a request body, and its total length.
pub(crate) struct BodyPrefix {
    pub(crate) bytes: BytesMut,
    pub(crate) total: u64,
}

/// Reads a body to its end, so that the connection can be reused, and keeps the first `cap` bytes.
async fn read_body<B: Body<Data = Bytes> + Unpin>(
    body: &mut B,
    cap: usize,
) -> Result<BodyPrefix, Abort> {
    let mut prefix = BodyPrefix { bytes: BytesMut::new(), total: 0 };
    while !body.is_end_stream() {
        let frame = std::future::poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await;
        let Some(frame) = frame else { break };
        // The client disconnected or sent an invalid body: no response can reach it.
        let frame = frame.map_err(|_| Abort::Gone)?;
        if let Some(data) = frame.data_ref() {
            let room = cap.saturating_sub(prefix.bytes.len()).min(data.len());
            prefix.bytes.extend_from_slice(&data[..room]);
            prefix.total += data.len() as u64;
        }
    }
    Ok(prefix)
}
