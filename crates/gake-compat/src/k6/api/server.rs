//! The server of the API.

use std::io;
use std::sync::Arc;

use gake_listen::{Reply, Request, Server, Site};
use serde_json::{Value, json};

use super::{Api, NoChange};

/// Serves the API of a run at `address` until it is dropped. Without `may_change` it refuses all
/// changes.
///
/// # Errors
/// When it cannot listen there.
pub(in super::super) fn start(
    api: &Arc<Api>,
    address: &str,
    may_change: bool,
) -> io::Result<Server> {
    let site = ApiSite { api: Arc::clone(api), may_change };
    let listener = gake_listen::listen(address)?;
    Server::start("gake-api", listener, site, gake_engine::lower_class)
}

struct ApiSite {
    api: Arc<Api>,
    may_change: bool,
}

impl Site for ApiSite {
    fn reply(&self, request: &Request<'_>) -> Reply {
        let (status, body) = handle(&self.api, request, self.may_change);
        let body = Arc::from(body.to_string().into_bytes());
        Reply::new(status, "application/json; charset=utf-8", "", vec![body])
    }

    fn sent(&self) {
        self.api.stop_if_requested();
    }
}

/// The status and the body of the response.
fn handle(api: &Api, request: &Request<'_>, may_change: bool) -> (&'static str, Value) {
    let found = |data: Value| ("200 OK", json!({ "data": data }));
    let path = request.path.trim_end_matches('/');
    match (request.method, path) {
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
        ("PATCH", "/v1/status") => match serde_json::from_slice::<Value>(request.body) {
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
