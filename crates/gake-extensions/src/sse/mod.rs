//! The module `k6/x/sse`: server-sent events of an HTTP response, which a script handles one by one.

mod events;
mod exchange;
mod params;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use gake_core::metric::{MetricKind, MetricUnit};
use gake_js::errors::{go_error, go_value};
use gake_js::value::text;
use gake_k6::metrics::{BuiltinMetric, MetricNumber};
use gake_k6::user::vu::Vu;
use rquickjs::function::{Func, Rest};
use rquickjs::{Ctx, Function, Object, Persistent, Value};

use self::events::{SseEvent, SseItem};
use self::exchange::{SseExchange, SseNext};
use self::params::SseParams;

/// The metric of events.
const EVENTS: &str = "sse_event";

const IN_INIT: &str = "using sse";

pub(crate) fn make<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
    let vu = &Vu::of(ctx)?;
    let events = vu.series_index.metric(EVENTS, MetricKind::Counter, MetricUnit::Number);
    let events = events.map_err(|error| go_error(ctx, &error.to_string()))?;
    let user = Rc::clone(vu);
    let open = move |ctx: Ctx<'js>, arguments: Rest<Value<'js>>| {
        user.not_in_init(&ctx, IN_INIT)?;
        open(&ctx, &user, events, arguments.0)
    };
    let module = Object::new(ctx.clone())?;
    module.set("open", Func::from(open))?;
    Ok(module)
}

/// The handlers of a client, by the name of their event. They belong to the script: dropped before
/// the call ends.
type Handlers = Rc<RefCell<BTreeMap<String, Vec<Persistent<Function<'static>>>>>>;

/// `sse.open`: sends a request, and calls the script's handlers until the response ends or the
/// script closes it.
fn open<'js>(
    ctx: &Ctx<'js>,
    vu: &Rc<Vu>,
    events: MetricNumber,
    arguments: Vec<Value<'js>>,
) -> rquickjs::Result<Value<'js>> {
    let (params, set_up) = SseParams::read(ctx, vu, arguments)?;
    let start = vu.now();
    let mut exchange = SseExchange::new(ctx, vu, &params)?;
    let opened = vu.wait(ctx, exchange.open())?;
    let tags = exchange.tags(&params);
    let connected = vu.now().saturating_sub(start) as f64;
    // As the extension does: the time until the response began.
    vu.record_tagged(BuiltinMetric::HttpReqSending.number(), &tags, connected);
    let result = match opened {
        Ok(()) => {
            let ended = run(ctx, vu, &mut exchange, &set_up, (events, &tags));
            ended.and_then(|()| shown(ctx, Some((&params.url, &exchange)), ""))
        }
        Err(why) if vu.test.settings().throw => Err(go_error(ctx, &why)),
        Err(why) => shown(ctx, None, &why),
    };
    exchange.finish();
    vu.record_tagged(BuiltinMetric::HttpReqs.number(), &tags, 1.0);
    vu.record_tagged(BuiltinMetric::HttpReqSending.number(), &tags, connected);
    let took = vu.now().saturating_sub(start) as f64;
    vu.record_tagged(BuiltinMetric::HttpReqDuration.number(), &tags, took);
    result
}

fn run<'js>(
    ctx: &Ctx<'js>,
    vu: &Rc<Vu>,
    exchange: &mut SseExchange,
    set_up: &Function<'js>,
    (events, tags): (MetricNumber, &[(String, String)]),
) -> rquickjs::Result<()> {
    let handlers = Handlers::default();
    let is_closed = Rc::new(Cell::new(false));
    // The script may keep the client, whose handlers must not outlive its runtime.
    let _clear = ClearHandlers(Rc::clone(&handlers));
    set_up.call::<_, ()>((client(ctx, &handlers, &is_closed)?,))?;
    call(ctx, &handlers, "open", None)?;
    while !is_closed.get() {
        match vu.wait(ctx, exchange.next())? {
            SseNext::Item(SseItem::Event(event)) => {
                vu.record_tagged(events, tags, 1.0);
                let event = shown_event(ctx, event)?;
                call(ctx, &handlers, "event", Some(event))?;
            }
            SseNext::Item(SseItem::Unknown(line)) => {
                let error = go_value(ctx, &format!("unknown event: {line}\n"))?;
                call(ctx, &handlers, "error", Some(error))?;
            }
            SseNext::End => break,
            SseNext::Failed(why) => {
                call(ctx, &handlers, "error", Some(go_value(ctx, &why)?))?;
                break;
            }
            SseNext::NoMemory => return Err(gake_script::user::throw_out_of_memory(ctx)),
        }
    }
    Ok(())
}

struct ClearHandlers(Handlers);

impl Drop for ClearHandlers {
    fn drop(&mut self) {
        self.0.take();
    }
}

/// The client of a set-up function.
fn client<'js>(
    ctx: &Ctx<'js>,
    handlers: &Handlers,
    is_closed: &Rc<Cell<bool>>,
) -> rquickjs::Result<Object<'js>> {
    let client = Object::new(ctx.clone())?;
    let (kept, closed) = (Rc::downgrade(handlers), Rc::clone(is_closed));
    let on = move |ctx: Ctx<'js>, name: String, handler: Value<'js>| {
        let Some(handlers) = kept.upgrade().filter(|_| !closed.get()) else { return };
        if let Some(handler) = handler.into_function() {
            let handler = Persistent::save(&ctx, handler);
            handlers.borrow_mut().entry(name).or_default().push(handler);
        }
    };
    client.set("on", Func::from(on))?;
    let closed = Rc::clone(is_closed);
    client.set("close", Func::from(move || closed.set(true)))?;
    Ok(client)
}

/// Calls the handlers of an event.
fn call<'js>(
    ctx: &Ctx<'js>,
    handlers: &Handlers,
    name: &str,
    argument: Option<Value<'js>>,
) -> rquickjs::Result<()> {
    // A handler may add others.
    let all = handlers.borrow().get(name).cloned().unwrap_or_default();
    for handler in all {
        let handler = handler.restore(ctx)?;
        match &argument {
            Some(argument) => handler.call::<_, Value<'js>>((argument.clone(),))?,
            None => handler.call::<_, Value<'js>>(())?,
        };
    }
    Ok(())
}

fn shown_event<'js>(ctx: &Ctx<'js>, event: SseEvent) -> rquickjs::Result<Value<'js>> {
    let shown = Object::new(ctx.clone())?;
    shown.set("id", event.id)?;
    shown.set("comment", event.comment)?;
    shown.set("name", event.name)?;
    shown.set("data", event.data)?;
    Ok(shown.into_value())
}

/// The response of `open`: the URL that was asked for, and its last exchange, or an error.
fn shown<'js>(
    ctx: &Ctx<'js>,
    response: Option<(&str, &SseExchange)>,
    error: &str,
) -> rquickjs::Result<Value<'js>> {
    let shown = Object::new(ctx.clone())?;
    shown.set("url", response.map_or("", |(url, _)| url))?;
    shown.set("status", response.map_or(0, |(_, exchange)| exchange.status()))?;
    let headers = response.map(|(_, exchange)| exchange.headers()).unwrap_or_default();
    // JSON keeps a property `__proto__`.
    shown.set("headers", ctx.json_parse(serde_json::json!(headers).to_string())?)?;
    shown.set("error", error)?;
    Ok(shown.into_value())
}

/// `String(value)` without blanks at its ends.
fn trimmed<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> rquickjs::Result<String> {
    text(ctx, value).map(|text| text.trim().to_owned())
}
