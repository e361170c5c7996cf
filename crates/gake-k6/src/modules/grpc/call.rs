//! One call: its request, its answer and its samples.

use std::borrow::Cow;
use std::rc::Rc;

use gake_core::record::{End, Exchange, Fault, GrpcStatus};
use gake_wire::http1::{Header, ResponseHead, Visitor};
use gake_wire::{
    Deadline, GrpcError, GrpcMessages, GrpcMethod, HttpRequest, grpc_call, grpc_frame,
};
use rquickjs::{Ctx, Object, Value};

use super::ask::CallAsk;
use super::connection::{Connection, HEALTH_CHECK};
use crate::errors::go_error;
use crate::metrics::Builtin;
use crate::user::book::TagSource;
use crate::user::vu::Vu;

/// A call about to be made.
pub(super) struct Call {
    vu: Rc<Vu>,
    connection: Rc<Connection>,
    method: GrpcMethod,
    /// `/package.Service/Method`
    path: String,
    ask: CallAsk,
    request: HttpRequest,
    /// Whether it is a health check, whose samples have fewer tags in k6.
    is_health: bool,
}

/// What came of a call.
pub(super) struct Answer {
    status: GrpcStatus,
    /// The message as JSON, if there is one.
    message: Option<String>,
    /// Why the call failed; empty if it did not.
    error: String,
    headers: Vec<(String, String)>,
    trailers: Vec<(String, String)>,
}

impl Call {
    /// The call of `method` with the message that is `json`.
    ///
    /// # Errors
    /// When that is no message that the method takes.
    pub(super) fn new(
        vu: Rc<Vu>,
        connection: Rc<Connection>,
        method: GrpcMethod,
        json: &str,
        ask: CallAsk,
    ) -> Result<Self, GrpcError> {
        let path = format!("/{}", method.path());
        let body = grpc_frame(&method.encode(json)?);
        let mut metadata = ask.metadata.clone();
        let has = |name: &str| metadata.iter().any(|(known, _)| known == name);
        let agent = &vu.test.settings().user_agent;
        if !agent.is_empty() && !has("user-agent") {
            metadata.push(("user-agent".to_owned(), agent.clone()));
        }
        if let Some(authority) = &connection.authority {
            metadata.push(("host".to_owned(), authority.clone()));
        }
        let url = format!("{}{path}", connection.origin);
        let request = grpc_call(url, &metadata, ask.timeout, body);
        let is_health = path == HEALTH_CHECK;
        Ok(Self { vu, connection, method, path, ask, request, is_health })
    }

    /// Makes the call and notes its samples.
    pub(super) async fn run(&self) -> Answer {
        let client = &self.connection.client;
        let start = self.vu.now();
        let mut flight =
            Flight { call: self, start, exchange: Exchange::unfinished(start), is_over: false };
        let mut collected = Collected::default();
        match client.prepare(&self.request).await {
            Ok(prepared) => {
                let now = self.vu.now();
                let deadline = Deadline::within(now, self.ask.timeout);
                let exchange = &mut flight.exchange;
                *exchange = Exchange::unfinished(now);
                client.exchange(&prepared, now, deadline, &mut collected, exchange).await;
            }
            Err(fault) => client.end(&mut flight.exchange, End::Fault(fault)),
        }
        flight.is_over = true;
        let mut answer = self.answer(collected, &flight.exchange);
        if self.ask.discards {
            answer.message = None;
        }
        self.note(&answer, &flight.exchange);
        self.vu.notes.exchange(start, flight.exchange.clone());
        answer
    }

    fn answer(&self, collected: Collected, exchange: &Exchange) -> Answer {
        let Collected { mut headers, body, mut trailers } = collected;
        // A head that has the status is all of the answer: k6 takes it for trailers.
        if headers.iter().any(|(name, _)| name == "grpc-status") {
            trailers = std::mem::take(&mut headers);
        }
        let (status, error) = match exchange.end {
            End::Answered(answer) if answer.status == 200 => (GrpcStatus::OK, String::new()),
            End::Answered(answer) => http_error(answer.status),
            End::Fault(Fault::Grpc(status)) => {
                let told = trailers.iter().find(|(name, _)| name == "grpc-message");
                (status, told.map(|(_, text)| percent_decoded(text)).unwrap_or_default())
            }
            End::Fault(fault) if fault.is_timeout() => {
                (GrpcStatus::DEADLINE_EXCEEDED, "context deadline exceeded".to_owned())
            }
            End::Fault(fault) => (GrpcStatus::UNAVAILABLE, told(fault, &self.connection.address)),
            End::Unfinished => (CANCELED, "context canceled".to_owned()),
        };
        let mut answer = Answer { status, message: None, error, headers, trailers };
        match self.message(&body, status == GrpcStatus::OK) {
            Ok(message) => answer.message = Some(message),
            Err(error) if status == GrpcStatus::OK => {
                (answer.status, answer.error) = (INTERNAL, error.to_string());
            }
            Err(_) => {}
        }
        if status == GrpcStatus::OK && self.method.is_server_streaming() {
            (answer.status, answer.error) = (INTERNAL, SEVERAL.to_owned());
        }
        answer
    }

    /// The last message of a body as JSON; an empty one if a failed call has none.
    fn message(&self, body: &[u8], is_ok: bool) -> Result<String, GrpcError> {
        let messages = GrpcMessages::of(body)?;
        match messages.last() {
            None if is_ok => Err(GrpcError::CutShort),
            last => self.method.decode(last.map_or(&[], Vec::as_slice)),
        }
    }

    fn note(&self, answer: &Answer, exchange: &Exchange) {
        let vu = &self.vu;
        let tags = vu.book.set(&Tags { call: self, status: answer.status });
        let took = exchange.done.saturating_sub(exchange.write);
        vu.note(Builtin::GrpcReqDuration, &tags, took as f64);
        let plain = vu.book.set(&**vu);
        vu.note(Builtin::DataSent, &plain, exchange.bytes_out as f64);
        vu.note(Builtin::DataReceived, &plain, exchange.bytes_in as f64);
    }
}

/// What k6 says of the call of a stream.
const SEVERAL: &str = "cardinality violation: expected <EOF> for non server-streaming RPCs, but \
                       received another message";

const CANCELED: GrpcStatus = GrpcStatus::new(1);
const INTERNAL: GrpcStatus = GrpcStatus::new(13);

/// A call under way: noted as unfinished when it is dropped before its end.
struct Flight<'a> {
    call: &'a Call,
    start: u64,
    exchange: Exchange,
    is_over: bool,
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        self.call.connection.client.end(&mut self.exchange, End::Unfinished);
        if self.exchange.bytes_out > 0 {
            let answer = self.call.answer(Collected::default(), &self.exchange);
            self.call.note(&answer, &self.exchange);
        }
        self.call.vu.notes.exchange(self.start, self.exchange.clone());
    }
}

/// What a call gets.
#[derive(Default)]
struct Collected {
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    trailers: Vec<(String, String)>,
}

impl Visitor for Collected {
    fn head(&mut self, head: &ResponseHead<'_>) {
        self.headers = lines(head.headers);
        self.body.clear();
    }

    fn body(&mut self, bytes: &[u8]) {
        self.body.extend_from_slice(bytes);
    }

    fn trailers(&mut self, trailers: &[Header<'_>]) {
        self.trailers = lines(trailers);
    }
}

fn lines(headers: &[Header<'_>]) -> Vec<(String, String)> {
    let line = |header: &Header<'_>| {
        (header.name.to_owned(), String::from_utf8_lossy(header.value).into_owned())
    };
    headers.iter().map(line).collect()
}

impl Answer {
    /// The answer as scripts have it.
    pub(super) fn shown<'js>(&self, ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
        let shown = Object::new(ctx.clone())?;
        shown.set("status", self.status.number())?;
        let message = match &self.message {
            Some(json) => ctx.json_parse(json.as_str())?,
            None => Value::new_null(ctx.clone()),
        };
        shown.set("message", message)?;
        shown.set("headers", metadata(ctx, &self.headers)?)?;
        shown.set("trailers", metadata(ctx, &self.trailers)?)?;
        if self.status == GrpcStatus::OK {
            shown.set("error", Value::new_null(ctx.clone()))?;
        } else {
            let error = Object::new(ctx.clone())?;
            error.set("code", self.status.number())?;
            error.set("details", rquickjs::Array::new(ctx.clone())?)?;
            error.set("message", self.error.as_str())?;
            shown.set("error", error)?;
        }
        Ok(shown)
    }
}

impl Answer {
    /// The answer to a health check, or the error that it failed with.
    pub(super) fn health<'js>(&self, ctx: &Ctx<'js>) -> rquickjs::Result<Value<'js>> {
        if self.status != GrpcStatus::OK {
            let code = super::constant(self.status.name().unwrap_or("UNKNOWN"));
            let code = code.trim_start_matches("Status");
            let message = format!("rpc error: code = {code} desc = {}", self.error);
            return Err(go_error(ctx, &message));
        }
        // k6 gives the number of the state, not its name.
        let state = self.message.as_deref().unwrap_or_default();
        let names = ["UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"];
        let number = names.iter().position(|name| state.contains(&format!("\"{name}\"")));
        let shown = Object::new(ctx.clone())?;
        shown.set("status", number.unwrap_or(0) as u32)?;
        Ok(shown.into_value())
    }
}

/// The values of metadata by name, without what belongs to the protocol.
fn metadata<'js>(ctx: &Ctx<'js>, lines: &[(String, String)]) -> rquickjs::Result<Object<'js>> {
    let shown = Object::new(ctx.clone())?;
    for (name, value) in lines {
        if name.starts_with("grpc-") {
            continue;
        }
        let mut values: Vec<String> = shown.get::<_, Option<_>>(name.as_str())?.unwrap_or_default();
        values.push(value.clone());
        shown.set(name.as_str(), values)?;
    }
    Ok(shown)
}

/// The status of a call that was answered by HTTP alone, and why.
fn http_error(status: u16) -> (GrpcStatus, String) {
    let code = match status {
        400 => 13,
        401 => 16,
        403 => 7,
        404 => 12,
        429 | 502 | 503 | 504 => 14,
        _ => 2,
    };
    (GrpcStatus::new(code), format!("unexpected HTTP status code received from server: {status}"))
}

/// A text of `grpc-message`.
fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let hex =
            |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        match (first, tail) {
            (b'%', [high, low, after @ ..]) if hex(*high).is_some() && hex(*low).is_some() => {
                bytes.push(hex(*high).unwrap_or(0) << 4 | hex(*low).unwrap_or(0));
                rest = after;
            }
            _ => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A fault as Go tells it.
pub(super) fn told(fault: Fault, address: &str) -> String {
    let dialing = "connection error: desc = \"transport: error while dialing: dial tcp";
    match fault {
        Fault::ConnectRefused => format!("{dialing} {address}: connect: connection refused\""),
        Fault::ConnectReset => format!("{dialing} {address}: connect: connection reset by peer\""),
        Fault::ConnectTimeout | Fault::Timeout(_) => "context deadline exceeded".to_owned(),
        other => format!("connection error: desc = \"{other}\""),
    }
}

/// The tags that k6 gives to the samples of a call.
const SYSTEM_TAGS: [&str; 5] = ["url", "name", "service", "method", "status"];

/// The tags of a call's samples.
struct Tags<'a> {
    call: &'a Call,
    status: GrpcStatus,
}

impl TagSource for Tags<'_> {
    fn tag(&self, key: &str) -> Option<Cow<'_, str>> {
        let Call { vu, connection, path, ask, .. } = self.call;
        let own = ask.tags.iter().rev().find(|(known, _)| known == key);
        if let Some((_, value)) = own {
            return Some(value.as_str().into());
        }
        let mut parts = path[1..].split('/');
        match key {
            "url" | "name" | "service" | "method" if self.call.is_health => None,
            "url" => Some(format!("{}{path}", connection.address).into()),
            "name" => Some(path.as_str().into()),
            "service" => parts.next().map(Cow::Borrowed),
            "method" => parts.nth(1).map(Cow::Borrowed),
            "status" => Some(self.status.number().to_string().into()),
            _ => vu.tag(key),
        }
    }

    fn keys(&self) -> Vec<String> {
        let Call { vu, ask, .. } = self.call;
        let system = SYSTEM_TAGS.into_iter().filter(|tag| vu.test.has_system_tag(tag));
        let own = ask.tags.iter().map(|(name, _)| name.clone());
        system.map(str::to_owned).chain(own).chain(vu.keys()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_statuses_are_percent_encoded() {
        assert_eq!(percent_decoded("50%25 of %C3%A9 %zz %"), "50% of é %zz %");
    }
}
