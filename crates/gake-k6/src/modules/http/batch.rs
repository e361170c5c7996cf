//! Requests side by side: `http.batch`, `http.asyncRequest`.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

use gake_script::user::Completion;
use rquickjs::{Array, Ctx, Exception, Object, Persistent, Promise, Value};
use url::Url;

use super::ask::Ask;
use super::facts::ResponseFacts;
use super::{IN_INIT, give, send};
use crate::errors::go_error;
use crate::modules::value::{self, given};
use crate::user::vu::Vu;

/// Sends requests side by side and waits for all of their responses.
pub(super) fn batch<'js>(
    ctx: &Ctx<'js>,
    vu: &Rc<Vu>,
    requests: &Value<'js>,
) -> rquickjs::Result<Value<'js>> {
    vu.not_in_init(ctx, IN_INIT)?;
    let Some(object) = requests.as_object() else {
        let message = "invalid http.batch() argument: write an array or an object of requests";
        return Err(Exception::throw_type(ctx, message));
    };
    let mut names = Vec::new();
    let mut asks = Vec::new();
    for property in object.props::<String, Value<'js>>() {
        let (name, request) = property?;
        asks.push(ask(ctx, vu, &request)?);
        names.push(name);
    }
    let responses = vu.wait(ctx, all(vu, &asks))?;
    let results: Object<'js> = match requests.is_array() {
        true => Array::new(ctx.clone())?.into_object(),
        false => Object::new(ctx.clone())?,
    };
    for (place, (facts, ask)) in responses.into_iter().zip(&asks).enumerate() {
        let response = give(ctx, facts, ask.throw)?;
        match requests.is_array() {
            true => results.set(place as u32, response)?,
            false => results.set(names[place].as_str(), response)?,
        }
    }
    Ok(results.into_value())
}

/// One entry: a URL, an array of the arguments of `http.request`, or an object that names them.
fn ask<'js>(ctx: &Ctx<'js>, vu: &Rc<Vu>, request: &Value<'js>) -> rquickjs::Result<Ask> {
    let get = |method: Option<Value<'js>>| match given(method) {
        Some(method) => value::text(ctx, &method),
        None => Ok("GET".to_owned()),
    };
    if let Some(array) = request.as_array() {
        let argument = |place: usize| array.get::<Value<'js>>(place).ok();
        let url = argument(1).unwrap_or_else(|| Value::new_undefined(ctx.clone()));
        return Ask::read(ctx, vu, get(argument(0))?.into(), &url, argument(2), argument(3));
    }
    if let Some(object) = request.as_object()
        && !object.contains_key("name")?
    {
        let argument = |name: &str| object.get::<_, Value<'js>>(name).ok();
        let Some(url) = given(argument("url")) else {
            let message = "invalid http.batch() argument: a request has no url";
            return Err(go_error(ctx, message));
        };
        let method = get(argument("method"))?;
        return Ask::read(ctx, vu, method.into(), &url, argument("body"), argument("params"));
    }
    Ask::read(ctx, vu, "GET".into(), request, None, None)
}

type Flight<'a> = Pin<Box<dyn Future<Output = ResponseFacts> + 'a>>;

/// The responses to all requests, in order: as many at once as the settings allow, to one host and
/// in all.
async fn all(vu: &Vu, asks: &[Ask]) -> Vec<ResponseFacts> {
    let settings = vu.test.settings();
    let host = |ask: &Ask| {
        let url = Url::parse(&ask.url).ok();
        url.and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default()
    };
    let bound = |bound: usize| if bound == 0 { usize::MAX } else { bound };
    let mut waiting: Vec<usize> = (0..asks.len()).rev().collect();
    let mut busy: HashMap<String, usize> = HashMap::new();
    let mut flights: Vec<(usize, String, Flight<'_>)> = Vec::new();
    let mut done: Vec<Option<ResponseFacts>> = asks.iter().map(|_| None).collect();
    poll_fn(|cx| {
        loop {
            let may_start = waiting.iter().rposition(|number| {
                let used = busy.get(&host(&asks[*number])).copied().unwrap_or(0);
                used < bound(settings.batch_per_host)
            });
            if flights.len() < bound(settings.batch)
                && let Some(place) = may_start
            {
                let number = waiting.remove(place);
                let host = host(&asks[number]);
                *busy.entry(host.clone()).or_default() += 1;
                flights.push((number, host, Box::pin(send::send(vu, &asks[number]))));
                continue;
            }
            let ready =
                flights.iter_mut().enumerate().find_map(|(place, (.., flight))| {
                    match flight.as_mut().poll(cx) {
                        Poll::Ready(facts) => Some((place, facts)),
                        Poll::Pending => None,
                    }
                });
            let Some((place, facts)) = ready else { break };
            let (number, host, _) = flights.swap_remove(place);
            done[number] = Some(facts);
            *busy.entry(host).or_insert(1) -= 1;
        }
        if flights.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    done.into_iter().flatten().collect()
}

/// Sends a request beside the script, which gets a promise of its response.
pub(super) fn request_later<'js>(
    ctx: &Ctx<'js>,
    vu: &Rc<Vu>,
    method: String,
    url: &Value<'js>,
    body: Option<Value<'js>>,
    params: Option<Value<'js>>,
) -> rquickjs::Result<Promise<'js>> {
    vu.not_in_init(ctx, IN_INIT)?;
    let ask = Ask::read(ctx, vu, method.into(), url, body, params)?;
    let (promise, resolve, reject) = ctx.promise()?;
    let (resolve, reject) = (Persistent::save(ctx, resolve), Persistent::save(ctx, reject));
    let user = Rc::clone(vu);
    vu.tasks.add(async move {
        let facts = send::send(&user, &ask).await;
        Box::new(move |ctx: &Ctx<'_>| match give(ctx, facts, ask.throw) {
            Ok(response) => resolve.restore(ctx)?.call((response,)),
            Err(_) => reject.restore(ctx)?.call((ctx.catch(),)),
        }) as Completion
    });
    Ok(promise)
}
