//! From a request to its answer.

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

use crate::abort::Cut;
use crate::body::{Answer, Broken, Chunks, Source};
use crate::connection::Connection;
use crate::database;
use crate::flight::{Flight, Open};
use crate::grpc;
use crate::pool;
use crate::routes::{self, Plan, Route};
use crate::stats::render_prometheus;

/// What `/fast` answers.
const FAST: &[u8] = b"Hello from the lab.\n";
/// What is answered when nobody may wait any more.
const FULL: &[u8] = b"The queue is full.\n";
/// What `/users` answers when there is no database.
const NO_DATABASE: &[u8] = b"no database: start the lab with --db\n";
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const BINARY: HeaderValue = HeaderValue::from_static("application/octet-stream");

/// The requests of one connection come here.
#[derive(Debug)]
pub(crate) struct Handler(Arc<Connection>);

impl Handler {
    pub(crate) fn new(connection: Arc<Connection>) -> Handler {
        Handler(connection)
    }
}

type Outcome = Result<Response<Answer>, Cut>;

/// An answer that is there, or one that takes time.
#[expect(clippy::large_enum_variant, reason = "a box is the allocation that Now avoids")]
pub(crate) enum Reply {
    Now(Option<Response<Answer>>),
    Later(Pin<Box<dyn Future<Output = Outcome> + Send>>),
}

impl Future for Reply {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome> {
        match &mut *self {
            Reply::Now(response) => Poll::Ready(response.take().ok_or(Cut::Gone)),
            Reply::Later(future) => future.as_mut().poll(cx),
        }
    }
}

impl Service<Request<Incoming>> for Handler {
    type Response = Response<Answer>;
    type Error = Cut;
    type Future = Reply;

    fn call(&self, request: Request<Incoming>) -> Reply {
        if grpc::is_call(&request) && !Route::of(request.uri().path()).is_control() {
            self.0.requests.begin();
            self.0.worker.begin(Route::Grpc);
            let flight = Flight::new(&self.0);
            return Reply::Later(Box::pin(grpc::answer(Arc::clone(&self.0), request, flight)));
        }
        self.reply(request)
    }
}

impl Handler {
    /// Answers a request, whatever it came over.
    pub(crate) fn reply<B>(&self, mut request: Request<B>) -> Reply
    where
        B: Body<Data = Bytes> + Send + Unpin + 'static,
    {
        let worker = &self.0.worker;
        self.0.requests.begin();
        let route = Route::of(request.uri().path());
        if route.is_control() {
            worker.counters().control.add(1);
            return Reply::Later(Box::pin(control(route, Arc::clone(&self.0), request)));
        }
        worker.begin(route);
        if route == Route::Fast && worker.shared.is_unlimited() && request.body().is_end_stream() {
            // The common case allocates nothing: hyper lent the request its
            // header map and gets it back with the answer.
            worker.counters().answered(200);
            let mut headers = std::mem::take(request.headers_mut());
            headers.clear();
            let answer = Answer::counted(Bytes::from_static(FAST));
            worker.shared.advertise(&mut headers);
            return Reply::Now(Some(respond(StatusCode::OK, headers, TEXT, answer)));
        }
        let flight = Flight::new(&self.0);
        Reply::Later(Box::pin(answer(route, Arc::clone(&self.0), request, flight)))
    }
}

async fn answer<B: Body<Data = Bytes> + Unpin>(
    route: Route,
    connection: Arc<Connection>,
    request: Request<B>,
    mut flight: Flight,
) -> Outcome {
    let (head, mut body) = request.into_parts();
    let worker = &connection.worker;
    let planned = routes::plan(route, &head.uri, &worker.shared.route_draws);
    let (delay, plan) = planned.unwrap_or_else(|bad| (Default::default(), Plan::bad(&bad)));
    let plan = match worker.shared.draw_reset() {
        true => Plan::Cut { how: Cut::Reset, after: None },
        false => plan,
    };
    let Some(place) = pool::place(worker) else {
        read_body(&mut body, 0).await?;
        let source = Source::Whole(Bytes::from_static(FULL));
        return Ok(finish(&head, flight, StatusCode::SERVICE_UNAVAILABLE, TEXT, source));
    };
    flight.hold(pool::hold(worker, delay, place).await?);
    if let Plan::Echo = plan {
        let kept = read_body(&mut body, routes::echo::BODY_CAP).await?;
        let text = routes::echo::render(&head, &kept, &connection);
        return Ok(finish(&head, flight, StatusCode::OK, JSON, Source::Whole(text)));
    }
    if let (Plan::Users, Some(users)) = (&plan, &worker.shared.users) {
        let kept = read_body(&mut body, database::BODY_CAP).await?;
        let (path, timer) = (head.uri.path(), &worker.timer);
        let (status, told) = users.answer(&head.method, path, &kept.bytes, timer).await;
        let text = Bytes::from(format!("{told}\n"));
        return Ok(finish(&head, flight, status, JSON, Source::Whole(text)));
    }
    read_body(&mut body, 0).await?;
    let ok = StatusCode::OK;
    match plan {
        Plan::Users => {
            let source = Source::Whole(Bytes::from_static(NO_DATABASE));
            Ok(finish(&head, flight, StatusCode::NOT_FOUND, TEXT, source))
        }
        Plan::Echo | Plan::Fast => {
            let source = Source::Whole(Bytes::from_static(FAST));
            Ok(finish(&head, flight, ok, TEXT, source))
        }
        Plan::Text(status, text) => Ok(finish(&head, flight, status, TEXT, Source::Whole(text))),
        Plan::Bytes(n) => Ok(finish(&head, flight, ok, BINARY, Source::Fill(n))),
        Plan::Chunks { count, every, are_events } => {
            let (kind, around) = match are_events {
                true => (EVENTS, ("data: event", "\n\n")),
                false => (TEXT, ("chunk", "\n")),
            };
            let chunks = Chunks::new(count, every, around, Arc::clone(&worker.timer));
            Ok(finish(&head, flight, ok, kind, Source::Chunks(chunks)))
        }
        Plan::Cut { how, after: Some(after) } => {
            let broken = Broken::new(after, how, Arc::clone(&connection.flushes));
            Ok(finish(&head, flight, ok, BINARY, Source::Broken(broken)))
        }
        Plan::Cut { how, after: None } => {
            flight.cut();
            Err(how)
        }
        Plan::Hang => match std::future::pending::<Infallible>().await {},
    }
}

/// `/metrics`, `/config` and `/stall`: no worker, no service time, no count
/// among the others.
async fn control<B: Body<Data = Bytes> + Unpin>(
    route: Route,
    connection: Arc<Connection>,
    request: Request<B>,
) -> Outcome {
    let _open = Open::new(&connection);
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
                // Answers when it is over.
                connection.worker.timer.sleep_until(until).await;
                (StatusCode::OK, TEXT, format!("stalled for {}\n", format_duration(length)))
            }
            Err(bad) => (StatusCode::BAD_REQUEST, TEXT, format!("{bad}\n")),
        },
    };
    let answer = Answer::counted(text.into());
    Ok(respond(status, shared.headers(), kind, answer))
}

fn finish(
    head: &Parts,
    flight: Flight,
    status: StatusCode,
    kind: HeaderValue,
    source: Source,
) -> Response<Answer> {
    let is_bodiless = head.method == Method::HEAD;
    let headers = flight.worker().shared.headers();
    let answer = Answer::new(source, flight, status.as_u16(), is_bodiless);
    respond(status, headers, kind, answer)
}

fn respond(
    status: StatusCode,
    mut headers: HeaderMap,
    kind: HeaderValue,
    answer: Answer,
) -> Response<Answer> {
    // An empty body has no type, and 204 and 304 must not have one.
    if !answer.is_end_stream() {
        headers.insert(CONTENT_TYPE, kind);
    }
    let mut response = Response::new(answer);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

/// The body of a request: how long it was and as much of it as was to be kept.
pub(crate) struct Kept {
    pub(crate) bytes: BytesMut,
    pub(crate) total: u64,
}

/// Reads a body to its end, so that the connection can be used again, and
/// keeps the first `cap` bytes.
async fn read_body<B: Body<Data = Bytes> + Unpin>(body: &mut B, cap: usize) -> Result<Kept, Cut> {
    let mut kept = Kept { bytes: BytesMut::new(), total: 0 };
    while !body.is_end_stream() {
        let frame = std::future::poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await;
        let Some(frame) = frame else { break };
        // The client went away, or sent an invalid body: no answer reaches it.
        let frame = frame.map_err(|_| Cut::Gone)?;
        if let Some(data) = frame.data_ref() {
            let room = cap.saturating_sub(kept.bytes.len()).min(data.len());
            kept.bytes.extend_from_slice(&data[..room]);
            kept.total += data.len() as u64;
        }
    }
    Ok(kept)
}
