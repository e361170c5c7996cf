//! One unary call: its request, its response and its samples.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use gake_core::record::{Exchange, ExchangeEnd, Fault, GrpcStatus};
use gake_js::errors::go_error;
use gake_js::value::PAIR;
use gake_script::user::HeapCharge;
use gake_wire::{Deadline, GrpcError, GrpcMethod, HttpRequest, grpc_call, grpc_frame};
use rquickjs::{Ctx, Object, Value};
use serde_json::json;

use super::connection::GrpcConnection;
use super::params::CallParams;
use super::reader::GrpcReader;
use super::status::{CANCELED, INTERNAL, of_end};
use super::tags::CallTags;
use crate::metrics::BuiltinMetric;
use crate::user::vu::Vu;

/// The default timeout of a call.
const CALL_TIMEOUT: Duration = Duration::from_secs(120);

/// A prepared call.
pub(super) struct GrpcCall {
    vu: Rc<Vu>,
    connection: Rc<GrpcConnection>,
    method: GrpcMethod,
    /// `/package.Service/Method`
    path: String,
    params: CallParams,
    request: HttpRequest,
}

/// A message of a script, encoded: its JSON must fit into the script's heap once more, as values.
pub(super) fn encoded(
    ctx: &Ctx<'_>,
    method: &GrpcMethod,
    json: &str,
) -> rquickjs::Result<Result<Vec<u8>, GrpcError>> {
    // Two bytes of JSON may be a value.
    let values = json.bytes().filter(|byte| b",[{:".contains(byte)).count();
    let _held = HeapCharge::new(ctx, json.len().saturating_add(values.saturating_mul(2 * PAIR)))?;
    Ok(method.encode(json))
}

/// The result of a call.
pub(super) struct GrpcResponse {
    status: GrpcStatus,
    /// As JSON.
    message: Option<String>,
    /// Empty if the call succeeded.
    error: String,
    headers: Vec<(String, String)>,
    trailers: Vec<(String, String)>,
}

impl GrpcCall {
    /// Prepares a call with an encoded message.
    pub(super) fn new(
        vu: Rc<Vu>,
        connection: Rc<GrpcConnection>,
        method: GrpcMethod,
        message: &[u8],
        mut params: CallParams,
    ) -> Self {
        if params.timeout.is_zero() {
            params.timeout = CALL_TIMEOUT;
        }
        let path = format!("/{}", method.path());
        let body = grpc_frame(message);
        let metadata = connection.metadata(&vu, &params.metadata);
        let url = format!("{}{path}", connection.origin);
        let request = grpc_call(url, &metadata, params.timeout, body);
        Self { vu, connection, method, path, params, request }
    }

    /// Bytes of its message and metadata.
    pub(super) fn bytes(&self) -> usize {
        let headers = self.request.headers.iter().map(|(name, value)| name.len() + value.len());
        self.request.body.as_ref().map_or(0, |body| body.len()) + headers.sum::<usize>()
    }

    /// Makes the call and records its samples.
    pub(super) async fn run(&self) -> GrpcResponse {
        let client = &self.connection.client;
        let start = self.vu.now();
        let mut flight =
            CallFlight { call: self, start, exchange: Exchange::unfinished(start), is_over: false };
        let mut reader = GrpcReader::new(self.connection.max_receive);
        match client.prepare(&self.request).await {
            Ok(prepared) => {
                let now = self.vu.now();
                let deadline = Deadline::within(now, self.params.timeout);
                let exchange = &mut flight.exchange;
                *exchange = Exchange::unfinished(now);
                let is_wrong = Rc::clone(&reader.is_wrong);
                let mut exchanging =
                    pin!(client.exchange(&prepared, now, deadline, &mut reader, exchange));
                // As in Go, the rest of an invalid response is not awaited.
                poll_fn(|cx| match exchanging.as_mut().poll(cx) {
                    Poll::Pending if is_wrong.get() => Poll::Ready(()),
                    polled => polled,
                })
                .await;
            }
            Err(fault) => client.end(&mut flight.exchange, ExchangeEnd::Fault(fault)),
        }
        flight.is_over = true;
        let mut response = self.response(reader, &flight.exchange);
        match ended(flight.exchange.end, response.status) {
            end if flight.exchange.end == ExchangeEnd::Unfinished => {
                client.end(&mut flight.exchange, end)
            }
            end => flight.exchange.end = end,
        }
        if self.params.discards {
            response.message = None;
        }
        self.record(&response, &flight.exchange);
        self.vu.pending.exchange(start, flight.exchange.clone());
        response
    }

    fn response(&self, mut reader: GrpcReader, exchange: &Exchange) -> GrpcResponse {
        if matches!(exchange.end, ExchangeEnd::Response(response) if response.status == 200) {
            reader.end();
        }
        let (headers, trailers) = reader.metadata();
        let GrpcReader { message, wrong, .. } = reader;
        let (status, error) = match wrong {
            Some(wrong) => wrong,
            None => of_end(exchange.end, &headers, &trailers, &self.connection.address),
        };
        let mut response = GrpcResponse { status, message: None, error, headers, trailers };
        // A failed call without a message has an empty one.
        match self.method.decode(message.as_deref().unwrap_or_default()) {
            Ok(message) => response.message = Some(message),
            Err(error) if status == GrpcStatus::OK => {
                (response.status, response.error) = (INTERNAL, error.to_string());
            }
            Err(_) => {}
        }
        response
    }

    fn record(&self, response: &GrpcResponse, exchange: &Exchange) {
        let vu = &self.vu;
        let tags = vu.series_index.tag_set(&CallTags {
            vu,
            connection: &self.connection,
            path: &self.path,
            own: &self.params.tags,
            status: Some(response.status),
        });
        let took = exchange.done.saturating_sub(exchange.write);
        vu.record(BuiltinMetric::GrpcReqDuration, &tags, took as f64);
        vu.count_traffic(exchange.bytes_out, exchange.bytes_in);
    }
}

/// The end of a call with this status: a complete HTTP response may be an invalid message.
pub(super) fn ended(end: ExchangeEnd, status: GrpcStatus) -> ExchangeEnd {
    match end {
        ExchangeEnd::Response(response) if response.status == 200 && status != GrpcStatus::OK => {
            ExchangeEnd::Fault(Fault::Grpc(status))
        }
        // The rest of the response was not awaited.
        ExchangeEnd::Unfinished if status != CANCELED => ExchangeEnd::Fault(Fault::Grpc(status)),
        end => end,
    }
}

/// A call in flight: recorded as unfinished if dropped before its end.
struct CallFlight<'a> {
    call: &'a GrpcCall,
    start: u64,
    exchange: Exchange,
    is_over: bool,
}

impl Drop for CallFlight<'_> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        self.call.connection.client.end(&mut self.exchange, ExchangeEnd::Unfinished);
        if self.exchange.bytes_out > 0 {
            let response = self.call.response(GrpcReader::default(), &self.exchange);
            self.call.record(&response, &self.exchange);
        }
        self.call.vu.pending.exchange(self.start, self.exchange.clone());
    }
}

impl GrpcResponse {
    /// The response for scripts.
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

    /// The result of a health check; throws if the call failed.
    pub(super) fn health<'js>(&self, ctx: &Ctx<'js>) -> rquickjs::Result<Value<'js>> {
        if self.status != GrpcStatus::OK {
            let code = super::constant(self.status.name().unwrap_or("UNKNOWN"));
            let code = code.trim_start_matches("Status");
            let message = format!("rpc error: code = {code} desc = {}", self.error);
            return Err(go_error(ctx, &message));
        }
        // k6 returns the number of the state, not its name.
        let state = self.message.as_deref().unwrap_or_default();
        let names = ["UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"];
        let number = names.iter().position(|name| state.contains(&format!("\"{name}\"")));
        let shown = Object::new(ctx.clone())?;
        shown.set("status", number.unwrap_or(0) as u32)?;
        Ok(shown.into_value())
    }
}

/// The values of metadata by name, without the protocol's own.
fn metadata<'js>(ctx: &Ctx<'js>, lines: &[(String, String)]) -> rquickjs::Result<Value<'js>> {
    let mut shown: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, value) in lines.iter().filter(|(name, _)| !name.starts_with("grpc-")) {
        shown.entry(name).or_default().push(value);
    }
    // JSON keeps a property `__proto__`.
    ctx.json_parse(json!(shown).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_with_an_invalid_message_is_a_fault() {
        let response = |status| {
            ExchangeEnd::Response(gake_core::record::ResponseSummary { status, body_bytes: 5 })
        };
        let fault = ExchangeEnd::Fault(Fault::Grpc(INTERNAL));
        for (end, status, expected) in [
            (response(200), GrpcStatus::OK, response(200)),
            (response(200), INTERNAL, fault),
            (response(503), GrpcStatus::UNAVAILABLE, response(503)),
            (ExchangeEnd::Unfinished, INTERNAL, fault),
            (ExchangeEnd::Unfinished, CANCELED, ExchangeEnd::Unfinished),
            (
                ExchangeEnd::Fault(Fault::Write),
                GrpcStatus::UNAVAILABLE,
                ExchangeEnd::Fault(Fault::Write),
            ),
        ] {
            assert_eq!(ended(end, status), expected);
        }
    }
}
