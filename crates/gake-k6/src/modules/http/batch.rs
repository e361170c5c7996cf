//! Concurrent requests: `http.batch`, `http.asyncRequest`.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

use gake_js::errors::go_error;
use gake_js::value;
use gake_script::user::{Completion, HeapCharge, poll, throw_out_of_memory};
use rquickjs::{Array, Ctx, Exception, Object, Persistent, Promise, Value};
use url::Url;

use super::response_facts::ResponseFacts;
use super::script_request::ScriptRequest;
use super::{IN_INIT, give, go_value, response_object, send, unmade};
use crate::test::LogLevel;
use crate::user::vu::Vu;

/// `http.batch`: sends requests concurrently and awaits all responses.
pub(super) fn batch<'js>(
    ctx: &Ctx<'js>,
    vu: &Rc<Vu>,
    requests: &Value<'js>,
) -> rquickjs::Result<Value<'js>> {
    vu.not_in_init(ctx, "Using batch")?;
    let type_name = go_value::type_name(ctx, requests);
    let is_taken = requests.is_array() || type_name.starts_with("map[");
    let Some(object) = requests.as_object().filter(|_| is_taken) else {
        let message = format!("invalid http.batch() argument type {type_name}");
        return Err(go_error(ctx, &message));
    };
    let results: Object<'js> = match requests.is_array() {
        true => Array::new(ctx.clone())?.into_object(),
        false => Object::new(ctx.clone())?,
    };
    let mut names = Vec::new();
    let mut parsed = Vec::new();
    let mut held = HeapCharge::new(ctx, 0)?;
    for property in object.props::<String, Value<'js>>() {
        let (name, request) = property?;
        match entry(ctx, vu, &name, &request) {
            Ok(mut request) if held.grow(request.bytes()) => {
                request.take_cookies();
                parsed.push(request);
            }
            Ok(_) => return Err(throw_out_of_memory(ctx)),
            Err(error) => {
                let count = object.props::<String, Value<'js>>().count();
                let entry = (name.as_str(), requests.is_array().then_some(count));
                return refused(ctx, vu, results, entry, &names, error);
            }
        }
        names.push(name);
        poll(ctx)?;
    }
    let responses = vu.wait(ctx, all(vu, &parsed))?;
    for (index, (facts, request)) in responses.into_iter().zip(&parsed).enumerate() {
        let response = give(ctx, facts, request.throw)?;
        match requests.is_array() {
            true => results.set(index as u32, response)?,
            false => results.set(names[index].as_str(), response)?,
        }
    }
    Ok(results.into_value())
}

/// The result of a batch with an invalid request: as in k6 a warning, its failed response and empty
/// ones for the others, unless errors are thrown.
fn refused<'js>(
    ctx: &Ctx<'js>,
    vu: &Rc<Vu>,
    results: Object<'js>,
    (name, count): (&str, Option<usize>),
    read: &[String],
    error: rquickjs::Error,
) -> rquickjs::Result<Value<'js>> {
    if vu.test.settings().throw || !error.is_exception() {
        return Err(error);
    }
    let thrown = ctx.catch();
    let why = thrown.as_exception().and_then(Exception::message).unwrap_or_default();
    vu.test.log(LogLevel::Warning, "A batch request failed", &[("error", &why)]);
    for index in 0..count.unwrap_or(0) {
        results.set(index as u32, Value::new_null(ctx.clone()))?;
    }
    for before in read {
        results.set(before.as_str(), response_object(ctx, unmade("".into(), ""))?)?;
    }
    results.set(name, response_object(ctx, unmade("".into(), &why))?)?;
    Ok(results.into_value())
}

/// An entry of a batch: a URL, or the arguments of `http.request` as an array or object.
fn entry<'js>(
    ctx: &Ctx<'js>,
    vu: &Rc<Vu>,
    name: &str,
    request: &Value<'js>,
) -> rquickjs::Result<ScriptRequest> {
    let get = |method: &Value<'js>| match method.is_string() {
        true => value::text(ctx, method),
        false => {
            let shown = go_value::printed(ctx, method)?;
            Err(go_error(ctx, &format!("invalid method type '{shown}'")))
        }
    };
    // As in k6, only the methods of objects are converted to upper case.
    if let Some(array) = request.as_array() {
        let argument = |index: usize| array.get::<Value<'js>>(index);
        if array.len() < 2 {
            let shown = ctx.json_stringify(array.clone())?.map(|text| text.to_string());
            let shown = shown.transpose()?.unwrap_or_default();
            let shown = shown.trim_start_matches('[').trim_end_matches(']');
            let message = format!("invalid batch request '[]interface {{}}{{{shown}}}'");
            return Err(go_error(ctx, &message));
        }
        let method = get(&argument(0)?)?;
        let (body, params) = (argument(2).ok(), argument(3).ok());
        return ScriptRequest::read(ctx, vu, method.into(), &argument(1)?, body, params);
    }
    if let Some(object) = request.as_object()
        && !object.contains_key("clean_url")?
    {
        let argument = |name: &str| object.get::<_, Value<'js>>(name).ok();
        let Some(url) = argument("url").filter(|_| object.contains_key("url").unwrap_or(false))
        else {
            let message = format!("batch request {name} doesn't have a url key");
            return Err(go_error(ctx, &message));
        };
        let method = match object.contains_key("method")? {
            true => get(&object.get("method")?)?.to_uppercase(),
            false => "GET".to_owned(),
        };
        let body = argument("body").filter(|_| !matches!(method.as_str(), "GET" | "HEAD"));
        return ScriptRequest::read(ctx, vu, method.into(), &url, body, argument("params"));
    }
    ScriptRequest::read(ctx, vu, "GET".into(), request, None, None)
}

type PendingResponse<'a> = Pin<Box<dyn Future<Output = ResponseFacts> + 'a>>;

/// Sends all requests, within the bounds (in all, and to one host); the responses are in order.
async fn all(vu: &Vu, parsed: &[ScriptRequest]) -> Vec<ResponseFacts> {
    let settings = vu.test.settings();
    let hosts: Vec<String> = parsed.iter().map(host).collect();
    let bound = |bound: usize| if bound == 0 { usize::MAX } else { bound };
    let mut waiting: Vec<usize> = (0..parsed.len()).rev().collect();
    let mut busy: HashMap<&str, usize> = HashMap::new();
    let mut flights: Vec<(usize, PendingResponse<'_>)> = Vec::new();
    let mut done: Vec<Option<ResponseFacts>> = parsed.iter().map(|_| None).collect();
    poll_fn(|cx| {
        loop {
            let may_start = |number: &usize| {
                let used = busy.get(hosts[*number].as_str()).copied().unwrap_or(0);
                used < bound(settings.batch_per_host)
            };
            if flights.len() < bound(settings.batch)
                && let Some(index) = waiting.iter().rposition(may_start)
            {
                let number = waiting.remove(index);
                *busy.entry(&hosts[number]).or_default() += 1;
                flights.push((number, Box::pin(send::send(vu, &parsed[number]))));
                continue;
            }
            let ready =
                flights.iter_mut().enumerate().find_map(|(index, (_, flight))| {
                    match flight.as_mut().poll(cx) {
                        Poll::Ready(facts) => Some((index, facts)),
                        Poll::Pending => None,
                    }
                });
            let Some((index, facts)) = ready else { break };
            let (number, _) = flights.swap_remove(index);
            done[number] = Some(facts);
            *busy.entry(&hosts[number]).or_insert(1) -= 1;
        }
        if flights.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    done.into_iter().flatten().collect()
}

fn host(request: &ScriptRequest) -> String {
    let url = Url::parse(&request.url).ok();
    url.and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default()
}

/// `http.asyncRequest`: sends a request concurrently with the script; returns a promise.
pub(super) fn request_later<'js>(
    ctx: &Ctx<'js>,
    vu: &Rc<Vu>,
    method: String,
    url: &Value<'js>,
    body: Option<Value<'js>>,
    params: Option<Value<'js>>,
) -> rquickjs::Result<Promise<'js>> {
    vu.not_in_init(ctx, IN_INIT)?;
    let mut request = ScriptRequest::read(ctx, vu, method.into(), url, body, params)?;
    request.take_cookies();
    vu.room_for_task(ctx)?;
    let held = HeapCharge::new(ctx, request.bytes())?;
    let (promise, resolve, reject) = ctx.promise()?;
    let (resolve, reject) = (Persistent::save(ctx, resolve), Persistent::save(ctx, reject));
    let user = Rc::clone(vu);
    vu.tasks.add(async move {
        let facts = send::send(&user, &request).await;
        drop(held);
        Box::new(move |ctx: &Ctx<'_>| match give(ctx, facts, request.throw) {
            Ok(response) => resolve.restore(ctx)?.call((response,)),
            Err(_) => reject.restore(ctx)?.call((ctx.catch(),)),
        }) as Completion
    });
    Ok(promise)
}
