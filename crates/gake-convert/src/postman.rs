//! A Postman collection, version 2.

use serde_json::Value;

use super::{ConvertedRequest, is_own_header};

/// The requests of a collection, in the order of its folders.
pub(super) fn requests(collection: &Value) -> Vec<ConvertedRequest> {
    let mut requests = Vec::new();
    collect(collection, &mut requests);
    let variables = collection.get("variable").and_then(Value::as_array);
    let variables: Vec<(String, &str)> = variables
        .into_iter()
        .flatten()
        .filter_map(|one| {
            let name = format!("{{{{{}}}}}", one.get("key")?.as_str()?);
            Some((name, one.get("value")?.as_str()?))
        })
        .collect();
    let fill = |text: &mut String| {
        for (name, value) in &variables {
            *text = text.replace(name, value);
        }
    };
    for request in &mut requests {
        fill(&mut request.url);
        request.body.iter_mut().for_each(fill);
        request.headers.iter_mut().for_each(|header| fill(&mut header.1));
    }
    requests
}

fn collect(folder: &Value, requests: &mut Vec<ConvertedRequest>) {
    for item in folder.get("item").and_then(Value::as_array).into_iter().flatten() {
        if let Some(request) = item.get("request").and_then(request) {
            let name = item.get("name").and_then(Value::as_str);
            let remarks = name.map(str::to_owned).into_iter().collect();
            requests.push(ConvertedRequest { remarks, ..request });
        }
        collect(item, requests);
    }
}

fn request(request: &Value) -> Option<ConvertedRequest> {
    if let Some(url) = request.as_str() {
        return Some(ConvertedRequest {
            method: "GET".to_owned(),
            url: url.to_owned(),
            ..ConvertedRequest::default()
        });
    }
    let url = request.get("url")?;
    let url = url.as_str().or_else(|| url.get("raw")?.as_str())?;
    let enabled = |list: Option<&Value>| -> Vec<(String, String)> {
        let pairs = list.and_then(Value::as_array).into_iter().flatten();
        let pairs = pairs.filter(|one| one.get("disabled") != Some(&Value::Bool(true)));
        let pair = |one: &Value| {
            Some((one.get("key")?.as_str()?.to_owned(), one.get("value")?.as_str()?.to_owned()))
        };
        pairs.filter_map(pair).collect()
    };
    let mut headers = enabled(request.get("header"));
    headers.retain(|header| !is_own_header(&header.0));
    let body = request.get("body");
    let body = body.and_then(|body| match body.get("mode")?.as_str()? {
        "raw" => Some(body.get("raw")?.as_str()?.to_owned()),
        "urlencoded" => {
            let form = url::form_urlencoded::Serializer::new(String::new())
                .extend_pairs(enabled(body.get("urlencoded")))
                .finish();
            headers
                .push(("Content-Type".to_owned(), "application/x-www-form-urlencoded".to_owned()));
            Some(form)
        }
        _ => None,
    });
    let method = request.get("method").and_then(Value::as_str).unwrap_or("GET").to_owned();
    let url = if url.contains("://") || url.starts_with("{{") {
        url.to_owned()
    } else {
        format!("http://{url}")
    };
    Some(ConvertedRequest { method, url, headers, body, ..ConvertedRequest::default() })
}
