//! The arguments of `sse.open`.

use std::rc::Rc;
use std::time::Duration;

use gake_go::duration::GoDuration;
use gake_js::errors::go_error;
use gake_js::value::{given, text};
use gake_k6::user::request_params::RequestParams;
use gake_k6::user::vu::Vu;
use rquickjs::{Ctx, Function, Value};

use super::trimmed;

/// A request for events.
#[derive(Debug)]
pub(super) struct SseParams {
    pub(super) url: String,
    pub(super) method: String,
    pub(super) body: String,
    pub(super) request: RequestParams,
    /// The time that the whole response may take.
    pub(super) timeout: Option<Duration>,
}

impl SseParams {
    /// The request, and the function that sets up handlers.
    pub(super) fn read<'js>(
        ctx: &Ctx<'js>,
        vu: &Rc<Vu>,
        arguments: Vec<Value<'js>>,
    ) -> rquickjs::Result<(Self, Function<'js>)> {
        let mut arguments = arguments.into_iter();
        let url = arguments.next().map_or_else(|| Ok(String::new()), |url| text(ctx, &url))?;
        let (params, set_up) = match (arguments.next(), arguments.next(), arguments.next()) {
            (Some(set_up), None, None) => (None, set_up),
            (Some(params), Some(set_up), None) => (Some(params), set_up),
            _ => return Err(go_error(ctx, "invalid number of arguments to sse.open")),
        };
        let Some(set_up) = set_up.into_function() else {
            return Err(go_error(ctx, "last argument to sse.open must be a function"));
        };
        let (method, body) = ("GET".to_owned(), String::new());
        let mut request = RequestParams::new(vu);
        request.set_header("Accept", "text/event-stream");
        // As Go's client adds it.
        request.set_header("Accept-Encoding", "gzip");
        let mut read = Self { url, method, body, request, timeout: None };
        if let Some(params) = given(params).and_then(Value::into_object) {
            for property in params.props::<String, Value<'js>>() {
                let (key, value) = property?;
                if let Some(value) = given(Some(value)) {
                    read.take(ctx, &key, &value)?;
                }
            }
        }
        Ok((read, set_up))
    }

    fn take<'js>(&mut self, ctx: &Ctx<'js>, key: &str, value: &Value<'js>) -> rquickjs::Result<()> {
        if self.request.read(ctx, (key, value), "sse.open")? {
            return Ok(());
        }
        match key {
            "method" => match trimmed(ctx, value)? {
                method if method.is_empty() => {}
                method => self.method = method,
            },
            "body" => self.body = trimmed(ctx, value)?,
            "timeout" => {
                let time = GoDuration::parse_go(&text(ctx, value)?);
                let time = time.map_err(|error| {
                    go_error(ctx, &format!("invalid sse.open() timeout: {error}"))
                })?;
                self.timeout = Some(time.to_std()).filter(|time| !time.is_zero());
            }
            _ => {}
        }
        Ok(())
    }
}
