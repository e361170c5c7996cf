//! The options of a client from its constructor's argument: an object or a URL.

use gake_js::value::text;
use rquickjs::{Ctx, Value};
use serde_json::{Map, Value as Json};

use super::options::{RedisOptions, go_type, unknown};
use super::url;

/// The options of a client, or why they are not valid.
pub(super) fn options<'js>(
    ctx: &Ctx<'js>,
    count: usize,
    options: Value<'js>,
) -> rquickjs::Result<Result<RedisOptions, String>> {
    if count != 1 {
        return Ok(Err("must specify one argument".to_owned()));
    }
    if options.is_function() {
        return Ok(Err(invalid_type("func(sobek.FunctionCall) sobek.Value")));
    }
    let read = match options.as_object().is_some_and(|options| !options.is_function()) {
        false if options.is_string() => url::parse(&text(ctx, &options)?),
        is_object => {
            let json = ctx.json_stringify(options)?.map(|json| json.to_string()).transpose()?;
            let json = json.as_deref().map(serde_json::from_str).and_then(Result::ok);
            match json.unwrap_or(Json::Null) {
                Json::Object(object) if is_object => of_object(&object),
                other => {
                    return Ok(Err(invalid_type(go_type(&other))));
                }
            }
        }
    };
    Ok(read.map_err(|why| format!("invalid options; reason: {why}")))
}

fn invalid_type(found: &str) -> String {
    format!("invalid options type: {found}; expected string or object")
}

/// The options of an object, as JSON.
fn of_object(object: &Map<String, Json>) -> Result<RedisOptions, String> {
    if let Some(cluster) = object.get("cluster").and_then(Json::as_object) {
        return of_cluster(cluster);
    }
    if object.contains_key("masterName") {
        return Err("gake has no client for Redis Sentinel: name the server itself".to_owned());
    }
    RedisOptions::of_node(object, "singleNodeOptions")
}

/// The options of a cluster, which must have one node.
fn of_cluster(cluster: &Map<String, Json>) -> Result<RedisOptions, String> {
    let nodes = cluster.get("nodes").unwrap_or(&Json::Null);
    let Some(nodes) = nodes.as_array() else {
        let found = go_type(nodes);
        return Err(format!("cluster nodes property must be an array; got {found}"));
    };
    for name in cluster.keys() {
        let known = ["nodes", "maxredirects", "readonly", "routebylatency", "routerandomly"];
        if !known.contains(&name.to_lowercase().as_str()) {
            return Err(unknown(name));
        }
    }
    match &nodes[..] {
        [] => Err("cluster nodes property cannot be empty".to_owned()),
        // As in k6, one node is a server of its own.
        [Json::String(text)] => url::parse(text),
        [Json::Object(node)] => RedisOptions::of_node(node, "clusterNodesMapOptions"),
        [Json::String(_) | Json::Object(_), ..] => {
            let why = "gake has no client for Redis Cluster: name one of its nodes";
            Err(why.to_owned())
        }
        [first, ..] => Err(format!(
            "cluster nodes array must contain string or object elements; got {}",
            go_type(first)
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use expect_test::expect;
    use serde_json::json;

    use super::*;

    fn of(value: Json) -> Result<RedisOptions, String> {
        of_object(value.as_object().unwrap())
    }

    #[test]
    fn objects_are_read_as_documented() {
        let options = of(json!({
            "username": "me", "password": "secret", "database": 2, "maxRetries": -1,
            "socket": {"host": "::1", "port": 7000, "readTimeout": 10, "poolSize": 3,
                "tls": {"ca": ["PEM"], "cert": "a", "key": "b"}},
        }));
        let options = options.unwrap();
        assert_eq!((options.host.as_str(), options.port, options.database), ("::1", 7000, 2));
        assert_eq!((options.retries, options.pool_size), (0, 3));
        assert_eq!(options.write_timeout, Some(Duration::from_millis(10)));
        assert_eq!(options.pool_timeout, Duration::from_millis(1_010));
        let tls = options.tls.clone().unwrap();
        assert!(tls.identity.is_some() && tls.authorities == ["PEM"]);
        assert!(!format!("{options:?}").contains("secret"));
        let one = of(json!({"cluster": {"nodes": ["redis://h:7001/3"]}})).unwrap();
        assert_eq!((one.port, one.database), (7001, 3));
    }

    #[test]
    fn wrong_objects_are_refused_in_the_words_of_the_extension() {
        let mut errors = String::new();
        for value in [
            json!({"addrs": ["localhost:6379"]}),
            json!({"username": "me", "password": "secret"}),
            json!({"cluster": {"nodes": 1}}),
            json!({"cluster": {"nodes": [1, 2]}}),
            json!({"cluster": {"nodes": []}}),
            json!({"cluster": {"nodes": ["redis://a", "redis://b"]}}),
            json!({"masterName": "m", "socket": {}}),
            json!({"socket": {"port": "6379"}}),
            json!({"socket": {"tls": {"ca": "PEM"}}}),
            json!({"socket": {"port": 70_000}}),
        ] {
            errors += &format!("{}\n", of(value).unwrap_err());
        }
        expect![[r#"
            json: unknown field "addrs"
            empty socket options
            cluster nodes property must be an array; got int64
            cluster nodes array must contain string or object elements; got int64
            cluster nodes property cannot be empty
            gake has no client for Redis Cluster: name one of its nodes
            gake has no client for Redis Sentinel: name the server itself
            json: cannot unmarshal string into Go struct field socketOptions.socket.port of type int
            json: cannot unmarshal string into Go struct field tlsOptions.socket.tls.ca of type []string
            dial tcp: address 70000: invalid port
        "#]]
        .assert_eq(&errors);
    }
}
