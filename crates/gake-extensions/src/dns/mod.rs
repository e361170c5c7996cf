//! The module `k6/x/dns`: questions to a name server, and lookups as this machine makes them.

mod nameserver;
mod query;

use std::rc::Rc;

use gake_core::clock::Nanos;
use gake_core::metric::{MetricKind, MetricUnit};
use gake_js::errors::go_error;
use gake_js::native::named;
use gake_js::value::{given, text};
use gake_k6::metrics::MetricNumber;
use gake_k6::user::dial::is_blocked;
use gake_k6::user::vu::{Vu, VuStage};
use gake_wire::lookup;
use rquickjs::function::Rest;
use rquickjs::{Ctx, IntoJs, Object, Promise, Value};

use crate::later::{Rejection, promise, rejected};

/// The kind of errors that no server sent.
const REFUSED: (u16, &str) = (5, "Refused");

/// The metrics of one kind of call.
#[derive(Clone, Copy)]
struct CallMetrics {
    count: MetricNumber,
    duration: MetricNumber,
    failed: MetricNumber,
}

pub(crate) fn make<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
    let vu = &Vu::of(ctx)?;
    let metrics = CallMetrics::define(
        vu,
        ["dns_resolutions", "dns_resolution_duration", "dns_resolution_failed"],
    );
    let resolutions = metrics.map_err(|error| go_error(ctx, &error))?;
    let metrics =
        CallMetrics::define(vu, ["dns_lookups", "dns_lookup_duration", "dns_lookup_failed"]);
    let lookups = metrics.map_err(|error| go_error(ctx, &error))?;
    let module = Object::new(ctx.clone())?;
    let user = Rc::clone(vu);
    let call = move |ctx: Ctx<'js>, arguments: Rest<Value<'js>>| {
        resolve(&ctx, &user, resolutions, &arguments.0)
    };
    module.set("resolve", named("dns", "resolve", call))?;
    let user = Rc::clone(vu);
    let call = move |ctx: Ctx<'js>, arguments: Rest<Value<'js>>| {
        look_up(&ctx, &user, lookups, &arguments.0)
    };
    module.set("lookup", named("dns", "lookup", call))?;
    Ok(module)
}

impl CallMetrics {
    fn define(vu: &Vu, [count, duration, failed]: [&str; 3]) -> Result<Self, String> {
        let metric = |name, kind, unit| {
            vu.series_index.metric(name, kind, unit).map_err(|error| error.to_string())
        };
        Ok(Self {
            count: metric(count, MetricKind::Counter, MetricUnit::Number)?,
            duration: metric(duration, MetricKind::Trend, MetricUnit::Time)?,
            failed: metric(failed, MetricKind::Rate, MetricUnit::Number)?,
        })
    }

    fn record(self, vu: &Vu, tags: &[(String, String)], begun: Nanos, is_failed: bool) {
        vu.record_tagged(self.count, tags, 1.0);
        vu.record_tagged(self.duration, tags, vu.now().saturating_sub(begun) as f64);
        vu.record_tagged(self.failed, tags, f64::from(u8::from(is_failed)));
    }
}

/// A text argument; empty if it is `null` or `undefined`.
fn given_text<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> rquickjs::Result<String> {
    given(Some(value.clone())).map_or(Ok(String::new()), |value| text(ctx, &value))
}

fn refused<'js>(ctx: &Ctx<'js>, why: &str) -> rquickjs::Result<Promise<'js>> {
    rejected(ctx, &Rejection::Error(why.to_owned()))
}

/// `dns.resolve(query, recordType, nameserver)`.
fn resolve<'js>(
    ctx: &Ctx<'js>,
    vu: &Rc<Vu>,
    metrics: CallMetrics,
    arguments: &[Value<'js>],
) -> rquickjs::Result<Promise<'js>> {
    if vu.stage.get() == VuStage::Init {
        return refused(ctx, "resolve can not be used in the init context");
    }
    let [name, record, server, ..] = arguments else {
        return refused(ctx, "nameserver argument must be provided");
    };
    let [name, record, server] =
        [given_text(ctx, name)?, given_text(ctx, record)?, given_text(ctx, server)?];
    let server = match nameserver::parse(&server) {
        Ok(server) => server,
        Err(why) => return refused(ctx, &format!("parsing nameserver address failed: {why}")),
    };
    let tags = [("query", &name), ("recordType", &record), ("nameserver", &server.to_string())];
    let tags = tags.map(|(key, value)| (key.to_owned(), value.clone()));
    let refusal = "DNS query blocked by k6 option blockHostnames";
    counted(ctx, vu, (metrics, tags), (name, refusal), async move |user, name| {
        query::ask(user, (name, query::record_type(&record)?), server).await
    })
}

/// A promise for the result of a call about a host, unless `blockHostnames` refuses that. The call is
/// counted, with these tags.
fn counted<'js, T: for<'a> IntoJs<'a> + 'static, const TAGS: usize>(
    ctx: &Ctx<'js>,
    vu: &Rc<Vu>,
    (metrics, tags): (CallMetrics, [(String, String); TAGS]),
    (host, refusal): (String, &'static str),
    call: impl AsyncFnOnce(&Rc<Vu>, &str) -> Result<T, Rejection> + 'static,
) -> rquickjs::Result<Promise<'js>> {
    let user = Rc::clone(vu);
    let response = async move {
        let begun = user.now();
        let response = match blocked(&user, &host) {
            Some(name) => {
                Err(query::error(REFUSED, "BlockedHostname", &format!("{refusal}: {name}")))
            }
            None => call(&user, &host).await,
        };
        metrics.record(&user, &tags, begun, response.is_err());
        response
    };
    promise(ctx, vu, response, |ctx, value| value.into_js(ctx))
}

/// `dns.lookup(hostname)`.
fn look_up<'js>(
    ctx: &Ctx<'js>,
    vu: &Rc<Vu>,
    metrics: CallMetrics,
    arguments: &[Value<'js>],
) -> rquickjs::Result<Promise<'js>> {
    if vu.stage.get() == VuStage::Init {
        return refused(ctx, "lookup can not be used in the init context");
    }
    let host = arguments.first().map_or(Ok(String::new()), |host| given_text(ctx, host))?;
    let tags = [("host".to_owned(), host.clone())];
    counted(ctx, vu, (metrics, tags), (host, "blocked hostname"), async |_, host| {
        addresses(host).await
    })
}

/// The name by which `blockHostnames` blocks a host, if it does.
fn blocked(vu: &Vu, host: &str) -> Option<String> {
    let host = host.to_lowercase();
    let host = host.strip_suffix('.').unwrap_or(&host);
    let is_name = host.parse::<std::net::IpAddr>().is_err();
    (is_name && is_blocked(vu, host).is_some()).then(|| host.to_owned())
}

/// The addresses of a host, each once. The resolver of the system blocks a thread of its own.
async fn addresses(host: &str) -> Result<Vec<String>, Rejection> {
    let name = host.trim_matches(['[', ']']);
    let mut all: Vec<String> = match tokio::net::lookup_host((name, 0)).await {
        Ok(found) => found.map(|address| address.ip().to_string()).collect(),
        Err(_) => Vec::new(),
    };
    let mut known = std::collections::BTreeSet::new();
    all.retain(|address| known.insert(address.clone()));
    match all.is_empty() {
        false => Ok(all),
        true => {
            let why = format!("lookup of {host} failed: {}", lookup::error(name).text);
            Err(query::error(REFUSED, "LookupFailed", &why))
        }
    }
}
