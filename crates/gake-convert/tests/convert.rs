//! Scripts from what others have of requests.

#![allow(clippy::unwrap_used, missing_docs)] // the helpers are tests too

use gake_k6::convert::{ConvertError, ConvertedRequest, requests, script};
use serde_json::json;

fn one(text: &str) -> ConvertedRequest {
    let mut requests = requests(text).unwrap();
    assert_eq!(requests.len(), 1);
    requests.remove(0)
}

fn headers(request: &ConvertedRequest) -> Vec<(&str, &str)> {
    request.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

#[test]
fn a_curl_command_as_browsers_copy_it() {
    let request = one(
        "curl 'http://h/a?b=c' \\\n  -X 'PUT' \\\n  -H 'accept: */*' --compressed \\\n  -H \"x-q: \\\"1\\\"\" \\\n  --data-raw $'{\"a\":\"it\\'s\\\\n\"}' -s -o /dev/null",
    );
    assert_eq!((request.method.as_str(), request.url.as_str()), ("PUT", "http://h/a?b=c"));
    assert_eq!(
        headers(&request),
        [
            ("accept", "*/*"),
            ("x-q", "\"1\""),
            ("Content-Type", "application/x-www-form-urlencoded")
        ]
    );
    assert_eq!(request.body.as_deref(), Some("{\"a\":\"it's\\n\"}"));
}

#[test]
fn the_flags_of_curl() {
    for (line, method, url, body) in [
        ("curl h/a", "GET", "http://h/a", None),
        ("curl -d a=1 -d b=2 http://h", "POST", "http://h", Some("a=1&b=2")),
        ("curl -G -d a=1 http://h/?x=y", "GET", "http://h/?x=y&a=1", None),
        ("curl -I https://h", "HEAD", "https://h", None),
        ("curl -XDELETE --url=http://h/1", "DELETE", "http://h/1", None),
        ("curl --json {} http://h", "POST", "http://h", Some("{}")),
    ] {
        let request = one(line);
        assert_eq!(request.method, method, "{line}");
        assert_eq!((request.url.as_str(), request.body.as_deref()), (url, body), "{line}");
    }
    for (line, error) in [
        ("curl -F a=@b http://h", ConvertError::Flag("-F".to_owned())),
        ("curl 'http://h", ConvertError::CutShort),
        ("curl -H", ConvertError::CutShort),
        ("curl -s", ConvertError::Empty),
    ] {
        assert_eq!(requests(line), Err(error), "{line}");
    }
}

#[test]
fn a_har_with_a_value_that_comes_from_a_response() {
    let entry = |url: &str, status: u16, header: &str, answer: &str| {
        json!({
            "request": {
                "method": "GET", "url": url,
                "headers": [
                    { "name": ":authority", "value": "h" },
                    { "name": "Host", "value": "h" },
                    { "name": "Authorization", "value": header },
                ],
            },
            "response": { "status": status, "content": { "text": answer } },
        })
    };
    let har = json!({ "log": { "entries": [
        entry("https://h/login", 201, "none", "{\"data\":{\"token\":\"abcdef123\"}}"),
        entry("data:image/png;base64,AA", 200, "", ""),
        entry("https://h/me", 200, "Bearer abcdef123", "<html>"),
        entry("https://h/old", 302, "none", ""),
    ] } });
    let requests = requests(&har.to_string()).unwrap();
    let urls: Vec<_> = requests.iter().map(|request| request.url.as_str()).collect();
    assert_eq!(urls, ["https://h/login", "https://h/me", "https://h/old"]);
    let statuses: Vec<_> = requests.iter().map(|request| request.status).collect();
    assert_eq!(statuses, [Some(201), Some(200), None]);
    assert_eq!(headers(&requests[0]), [("Authorization", "none")]);
    assert_eq!(
        requests[1].remarks,
        ["The value \"abcdef123\" is data.token of the response to request 1: take it from there."]
    );
    assert!(requests[0].remarks.is_empty() && requests[2].remarks.is_empty());
}

#[test]
fn a_postman_collection_with_folders_and_variables() {
    let collection = json!({
        "info": { "name": "shop" },
        "variable": [{ "key": "base", "value": "http://h" }],
        "item": [
            { "name": "home", "request": "{{base}}/" },
            { "name": "folder", "item": [{
                "name": "order",
                "request": {
                    "method": "POST",
                    "url": { "raw": "{{base}}/orders/{{id}}" },
                    "header": [
                        { "key": "X-A", "value": "{{token}}" },
                        { "key": "X-B", "value": "no", "disabled": true },
                    ],
                    "body": { "mode": "urlencoded", "urlencoded": [{ "key": "a b", "value": "1&2" }] },
                },
            }] },
        ],
    });
    let requests = requests(&collection.to_string()).unwrap();
    assert_eq!((requests[0].url.as_str(), requests[0].method.as_str()), ("http://h/", "GET"));
    assert_eq!(requests[1].url, "http://h/orders/{{id}}");
    assert_eq!(requests[1].body.as_deref(), Some("a+b=1%262"));
    let script = script(&requests);
    assert!(script.contains("`http://h/orders/${__ENV[\"id\"]}`"), "{script}");
    assert!(script.contains("\"X-A\": `${__ENV[\"token\"]}`"), "{script}");
    assert!(!script.contains("X-B"), "{script}");
}

#[test]
fn an_openapi_description() {
    let description = json!({
        "openapi": "3.0.0",
        "servers": [{ "url": "https://api/v1/" }],
        "paths": { "/pets/{id}": {
            "get": { "summary": "A pet", "responses": { "404": {}, "200": {} } },
            "put": {
                "requestBody": { "content": { "application/json": { "example": { "n": 1 } } } },
                "responses": { "204": {} },
            },
        } },
    });
    let requests = requests(&description.to_string()).unwrap();
    assert_eq!(requests[0].url, "https://api/v1/pets/{{id}}");
    assert_eq!((requests[0].status, requests[1].status), (Some(200), Some(204)));
    assert_eq!(requests[1].body.as_deref(), Some("{\"n\":1}"));
    assert_eq!(headers(&requests[1]), [("Content-Type", "application/json")]);
}

#[test]
fn an_openapi_description_in_yaml() {
    let description = "\
openapi: '3.0.3'
servers:
  - url: https://api/v1 # the only one
paths:
  /pets/{id}:
    get: &read
      summary: >-
        A pet,
        by its number
      responses:
        404: {}
        200: { description: found }
    head: *read
    post:
      requestBody:
        content:
          application/json:
            example:
              name: Rex
              tags: [a, 'b: c']
";
    let requests = requests(description).unwrap();
    assert_eq!(requests[0].url, "https://api/v1/pets/{{id}}");
    assert_eq!(requests[0].status, Some(200));
    assert_eq!(requests[0].remarks, ["A pet, by its number"]);
    assert_eq!(requests[1].body.as_deref(), Some("{\"name\":\"Rex\",\"tags\":[\"a\",\"b: c\"]}"));
    assert_eq!((requests.len(), requests[2].method.as_str()), (3, "HEAD"));
}

#[test]
fn a_script_says_what_it_sends_and_checks() {
    let request = ConvertedRequest {
        method: "POST".to_owned(),
        url: "http://h/a?b=${c}`".to_owned(),
        body: Some("</script>\u{2028}\"".to_owned()),
        status: Some(201),
        remarks: vec!["two\nlines".to_owned()],
        ..ConvertedRequest::default()
    };
    let script = script(&[request]);
    for line in [
        "  // two lines",
        "  res = http.request(\"POST\", \"http://h/a?b=${c}`\", \"</script>\u{2028}\\\"\");",
        "  check(res, { \"POST http://h/a: status 201\": (r) => r.status === 201 });",
    ] {
        assert!(script.lines().any(|one| one == line), "{line} of {script}");
    }
}

#[test]
fn anything_else_is_refused() {
    for text in ["", "hello", "{}", "[]", "{\"log\":{}}", "a: b: c", "- a"] {
        assert_eq!(requests(text), Err(ConvertError::Unknown), "{text}");
    }
    assert_eq!(requests("{\"log\":{\"entries\":[]}}"), Err(ConvertError::Empty));
    assert_eq!(requests("openapi: 3.0.0"), Err(ConvertError::Empty));
}
