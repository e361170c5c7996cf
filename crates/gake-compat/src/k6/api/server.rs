//! The server of the API: one request at a time.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::http::{ApiRequest, receive, respond};
use super::{Api, NoChange};

/// The pause after a connection could not be accepted.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// Serves the API of a run at `address`, on a thread that ends with the process. Without
/// `may_change` it refuses all changes.
///
/// # Errors
/// When it cannot listen there.
pub(in super::super) fn start(api: &Arc<Api>, address: &str, may_change: bool) -> io::Result<()> {
    let listener = TcpListener::bind(address)?;
    let api = Arc::clone(api);
    let serve = move || {
        gake_engine::lower_class();
        for stream in listener.incoming() {
            match stream {
                // A client that disconnects, or sends no valid request, gets no response.
                Ok(stream) => drop(serve_one(&api, stream, may_change)),
                // No free descriptor, for example.
                Err(_) => thread::sleep(ACCEPT_AGAIN),
            }
        }
    };
    thread::Builder::new().name("gake-api".to_owned()).spawn(serve)?;
    Ok(())
}

fn serve_one(api: &Api, mut stream: TcpStream, may_change: bool) -> io::Result<()> {
    let Some(request) = receive(&mut stream)? else { return Ok(()) };
    let (status, body) = handle(api, &request, may_change);
    let sent = respond(&mut stream, status, &body.to_string());
    api.stop_if_requested();
    sent
}

/// The status and the body of the response.
fn handle(api: &Api, request: &ApiRequest, may_change: bool) -> (&'static str, Value) {
    let found = |data: Value| ("200 OK", json!({ "data": data }));
    let path = request.path.trim_end_matches('/');
    match (request.method.as_str(), path) {
        ("GET", "/v1/status") => found(api.status()),
        ("GET", "/v1/metrics") => found(metrics(&api.figures())),
        ("GET", "/v1/groups") => found(groups(&api.figures())),
        ("GET", path) => {
            let figures = api.figures();
            let (list, id) =
                match path.split_once("/v1/").and_then(|(_, rest)| rest.split_once('/')) {
                    Some(("metrics", id)) => (metrics(&figures), id),
                    Some(("groups", id)) => (groups(&figures), id),
                    _ => return refused("404 Not Found", "there is nothing at this path"),
                };
            let one = list.as_array().and_then(|list| list.iter().find(|one| one["id"] == id));
            match one {
                Some(one) => found(one.clone()),
                None => refused("404 Not Found", "No metric or group with that ID was found"),
            }
        }
        ("PATCH", "/v1/status") if !may_change => {
            refused("403 Forbidden", "changes need a run that was started with --address")
        }
        ("PATCH", "/v1/status") => match serde_json::from_slice::<Value>(&request.body) {
            Err(error) => refused("400 Bad Request", &error.to_string()),
            Ok(wish) => match api.change(&wish["data"]["attributes"]) {
                Ok(()) => found(api.status()),
                Err(NoChange(why)) => refused("400 Bad Request", &why),
            },
        },
        _ => refused("405 Method Not Allowed", "the API has GET, and PATCH of /v1/status"),
    }
}

fn refused(status: &'static str, why: &str) -> (&'static str, Value) {
    let (code, title) = status.split_once(' ').unwrap_or((status, ""));
    (status, json!({ "errors": [{ "status": code, "title": title, "detail": why }] }))
}

/// The metrics of figures as `handleSummary` gets them.
fn metrics(figures: &Value) -> Value {
    let metrics = figures["metrics"].as_object().into_iter().flatten();
    let metrics = metrics.map(|(name, metric)| {
        let is_crossed = |thresholds: &Value| {
            thresholds.as_object().is_some_and(|all| all.values().any(|one| one["ok"] == false))
        };
        let tainted = metric.get("thresholds").map(is_crossed);
        json!({
            "type": "metrics",
            "id": name,
            "attributes": {
                "type": metric["type"],
                "contains": metric["contains"],
                "tainted": tainted,
                "sample": sample(metric),
            },
        })
    });
    metrics.collect()
}

/// The values of a metric in the form of k6's API.
fn sample(metric: &Value) -> Value {
    let values = &metric["values"];
    match metric["type"].as_str() {
        Some("gauge") => json!({ "value": values["value"] }),
        Some("rate") => json!({ "rate": values["rate"] }),
        _ => values.clone(),
    }
}

/// The groups of figures, each with its checks.
fn groups(figures: &Value) -> Value {
    let mut list = Vec::new();
    add_group(&figures["root_group"], None, &mut list);
    Value::Array(list)
}

fn add_group(group: &Value, parent: Option<&Value>, list: &mut Vec<Value>) {
    if group.is_null() {
        return;
    }
    let inner = || group["groups"].as_array().into_iter().flatten();
    let link = |id: &Value| json!({ "type": "groups", "id": id });
    let children: Vec<Value> = inner().map(|group| link(&group["id"])).collect();
    list.push(json!({
        "type": "groups",
        "id": group["id"],
        "attributes": {
            "path": group["path"],
            "name": group["name"],
            // An empty list is null, as in k6.
            "checks": group["checks"].as_array().filter(|checks| !checks.is_empty()),
        },
        "relationships": {
            "groups": { "data": children },
            "parent": { "data": parent.map(link) },
        },
    }));
    for one in inner() {
        add_group(one, Some(&group["id"]), list);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_lists() {
        let figures = json!({
            "root_group": { "name": "", "path": "", "id": "r", "checks": [], "groups": [
                { "name": "a", "path": "::a", "id": "x", "groups": [], "checks": [{ "name": "c" }] },
            ] },
            "metrics": { "checks": {
                "type": "rate", "contains": "default", "values": { "rate": 0.5 },
                "thresholds": { "rate>0.9": { "ok": false } },
            } },
        });
        let metric = &metrics(&figures)[0];
        assert_eq!(metric["id"], "checks");
        assert_eq!(metric["attributes"]["sample"]["rate"], 0.5);
        assert_eq!(metric["attributes"]["tainted"], true);
        let groups = groups(&figures);
        assert_eq!(groups[1]["relationships"]["parent"]["data"]["id"], "r");
        assert_eq!(groups[1]["attributes"]["checks"][0]["name"], "c");
        assert_eq!(metrics(&Value::Null), json!([]));
    }
}
