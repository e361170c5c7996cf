//! Scripts converted from other formats.

#![allow(clippy::unwrap_used, missing_docs)] // the helpers are tests too

mod jmeter;
mod openapi;
mod postman;

use expect_test::expect;
use gake_convert::{ConvertError, ConvertOptions, Converted, command_line, convert};
use serde_json::{Value, json};

fn converted(text: &str) -> Converted {
    convert(text, ConvertOptions::default()).unwrap()
}

fn script_of(value: &Value) -> String {
    converted(&value.to_string()).script
}

/// Asserts that a script contains lines in this order, ignoring indentation.
fn assert_lines(script: &str, lines: &[&str]) {
    let mut own = script.lines().map(str::trim);
    for line in lines {
        assert!(
            own.any(|one| one == *line),
            "{line:?} is not there, or not in its place:\n{script}"
        );
    }
}

#[test]
fn a_curl_command_as_browsers_copy_it() {
    let script = converted(
        "curl 'http://h/a?b=c' \\\n  -X 'PUT' \\\n  -H 'accept: */*' --compressed \\\n  -H \"x-q: \\\"1\\\"\" \\\n  --data-raw $'{\"a\":\"it\\'s\\\\n\"}' -s -o /dev/null",
    )
    .script;
    assert_lines(
        &script,
        &[
            r#"res = http.request("PUT", "http://h/a?b=c", "{\"a\":\"it's\\n\"}", {"#,
            r#""accept": "*/*","#,
            r#""Accept-Encoding": "deflate, gzip, br, zstd","#,
            r#""x-q": "\"1\"","#,
            r#""Content-Type": "application/x-www-form-urlencoded","#,
            r#"check(res, { "PUT http://h/a: status below 400": (r) => r.status > 0 && r.status < 400 });"#,
        ],
    );
}

#[test]
fn the_flags_of_curl() {
    for (line, expected) in [
        ("curl h/a", r#""GET", "http://h/a", null"#),
        ("curl -d a=1 -d b=2 http://h", r#""POST", "http://h", "a=1&b=2""#),
        ("curl -G -d a=1 http://h/?x=y", r#""GET", "http://h/?x=y&a=1", null"#),
        ("curl -I https://h", r#""HEAD", "https://h", null"#),
        ("curl -XDELETE --url=http://h/1", r#""DELETE", "http://h/1", null"#),
        ("curl --json {} http://h", r#""POST", "http://h", "{}""#),
        ("curl --data-urlencode 'a=b c&' http://h", r#""POST", "http://h", "a=b%20c%26""#),
        ("curl --data-binary @a.json http://h", r#""POST", "http://h", file1"#),
        (
            "curl -F a=b -F 'f=@/d/x.png;type=image/png' http://h",
            r#""POST", "http://h", { "a": "b", "f": http.file(file1, "x.png", "image/png") }"#,
        ),
        (
            "curl -X PUT --form 'f=@x;filename=\"y z\"' http://h",
            r#""PUT", "http://h", { "f": http.file(file1, "y z") }"#,
        ),
        ("curl -d '{{a}}' http://h", r#""POST", "http://h", "{{a}}""#),
    ] {
        let script = converted(line).script;
        assert!(script.contains(&format!("http.request({expected}")), "{line}: {script}");
    }
    let script = converted("curl -k -u me:secret -m 2.5 http://h").script;
    assert_lines(
        &script,
        &[
            "insecureSkipTLSVerify: true,",
            r#""Authorization": "Basic bWU6c2VjcmV0","#,
            r#"timeout: "2.5s","#,
        ],
    );
    let script = converted("curl --form-string 'a=@b' -F c=d;type=text/x http://h").script;
    for part in [r#"name=\"a\"\r\n\r\n@b\r\n"#, r#"Content-Type: text/x\r\n\r\nd\r\n"#] {
        assert!(script.contains(part), "{script}");
    }
    for (line, error) in [
        ("curl --proxy p http://h", ConvertError::Flag("--proxy".to_owned())),
        ("curl -F a http://h", ConvertError::CutShort),
        ("curl 'http://h", ConvertError::CutShort),
        ("curl -H", ConvertError::CutShort),
        ("curl -s", ConvertError::Empty),
    ] {
        assert_eq!(convert(line, ConvertOptions::default()), Err(error), "{line}");
    }
}

#[test]
fn separate_words_are_one_command() {
    let words = ["curl", "-d", "it's {a}", "http://h"].map(str::to_owned);
    assert_eq!(command_line(&words), r"curl '-d' 'it'\''s {a}' 'http://h'");
    let script = converted(&command_line(&words)).script;
    assert!(script.contains(r#"http.request("POST", "http://h", "it's {a}""#), "{script}");
}

fn entry(url: &str, status: u16, header: &str, response: &str) -> Value {
    json!({
        "request": {
            "method": "GET", "url": url,
            "headers": [
                { "name": ":authority", "value": "h" },
                { "name": "Host", "value": "h" },
                { "name": "Authorization", "value": header },
            ],
        },
        "response": { "status": status, "content": { "text": response } },
    })
}

fn har(entries: &[Value]) -> String {
    json!({ "log": { "entries": entries } }).to_string()
}

#[test]
fn a_har_with_a_value_that_comes_from_a_response() {
    let text = har(&[
        entry("https://h/login", 201, "none", "{\"data\":{\"token\":\"abcdef123\"}}"),
        entry("data:image/png;base64,AA", 200, "", ""),
        entry("https://h/me", 200, "Bearer abcdef123", "<html>"),
        entry("https://h/old?{{a}}", 302, "none", ""),
    ]);
    let converted = converted(&text);
    let remark = "// The value \"abcdef123\" is data.token of the response to request 1: extract it instead of hard-coding it.";
    assert_lines(
        &converted.script,
        &[
            // A recorded redirect is not followed: its target would be sent twice.
            "maxRedirects: 0,",
            r#"res = http.request("GET", "https://h/login", null, {"#,
            r#""Authorization": "none","#,
            r#"check(res, { "GET https://h/login: status 201": (r) => r.status === 201 });"#,
            remark,
            r#"res = http.request("GET", "https://h/me", null, {"#,
            r#"res = http.request("GET", "https://h/old?{{a}}", null, {"#,
            r#"check(res, { "GET https://h/old: status 302": (r) => r.status === 302 });"#,
        ],
    );
    assert_eq!(converted.script.matches("extract it instead").count(), 1);
    assert_eq!(converted.script.matches("http.request").count(), 3);
    expect!["1 × a value of an earlier response is sent as it was recorded (data.token of the response to request 1)"].assert_eq(&converted.warnings.join("\n"));
}

#[test]
fn the_bodies_of_a_har() {
    let with_body = |data: Value| {
        let headers = json!([{ "name": "content-type", "value": data["mimeType"] }]);
        json!({
            "request": { "method": "POST", "url": "http://h/", "headers": headers, "postData": data },
            "response": { "status": 200 },
        })
    };
    let params = json!([{ "name": "a b", "value": "1&2" }, { "name": "c", "value": "%20" }]);
    let text = har(&[
        with_body(json!({ "mimeType": "application/x-www-form-urlencoded", "params": params })),
        with_body(json!({ "mimeType": "text/plain", "encoding": "base64", "text": "aMOp" })),
        with_body(json!({ "mimeType": "image/png", "encoding": "base64", "text": "/w==" })),
        with_body(json!({
            "mimeType": "multipart/form-data; boundary=XX",
            "params": [
                { "name": "a", "value": "1" },
                { "name": "f", "fileName": "x.txt", "contentType": "text/plain" },
            ],
        })),
    ]);
    let converted = converted(&text);
    for body in [
        r#""a+b=1%262&c=%20""#,
        r#""hé""#,
        r#"encoding.b64decode("/w==")"#,
        r#""--XX\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--XX\r\nContent-Disposition: form-data; name=\"f\"; filename=\"x.txt\"\r\nContent-Type: text/plain\r\n\r\n\r\n--XX--\r\n""#,
    ] {
        let call = format!("http.request(\"POST\", \"http://h/\", {body}, {{");
        assert!(converted.script.contains(&call), "{body}: {}", converted.script);
    }
    expect!["1 × a file's contents are not in the recording, and sent empty (x.txt)"]
        .assert_eq(&converted.warnings.join("\n"));
}

#[test]
fn the_query_pauses_and_static_files_of_a_har() {
    let at = |second: u32, mut entry: Value| {
        entry["startedDateTime"] = json!(format!("2026-01-01T00:00:0{second}.000Z"));
        entry["time"] = json!(500);
        entry
    };
    let mut with_query = at(0, entry("http://h/a", 200, "", ""));
    with_query["request"]["queryString"] = json!([{ "name": "q", "value": "x y" }]);
    let mut image = at(2, entry("http://h/b", 200, "", ""));
    image["response"]["content"]["mimeType"] = json!("image/png");
    let text = har(&[with_query, image, at(4, entry("http://h/c?d", 304, "", ""))]);
    let script = converted(&text).script;
    assert_lines(
        &script,
        &[
            r#"res = http.request("GET", "http://h/a?q=x+y", null, {"#,
            "sleep(1.5);",
            r#"res = http.request("GET", "http://h/b", null, {"#,
            "sleep(1.5);",
            r#"res = http.request("GET", "http://h/c?d", null, {"#,
        ],
    );
    let lean = convert(&text, ConvertOptions { think: false, skip_static: true }).unwrap();
    assert!(
        !lean.script.contains("sleep") && !lean.script.contains("http://h/b"),
        "{}",
        lean.script
    );
    expect!["1 × an image, font or style sheet is left out"].assert_eq(&lean.warnings.join("\n"));
}

#[test]
fn other_formats_are_named() {
    for (text, word) in [
        (
            "config:\n  target: http://h\nscenarios:\n  - flow:\n      - get: { url: / }\n",
            "Artillery",
        ),
        ("from locust import HttpUser, task\n\nclass A(HttpUser):\n    pass\n", "Locust"),
        ("import io.gatling.core.Predef._\nclass A extends Simulation {}", "Gatling"),
        ("wrk.method = \"POST\"\n", "wrk"),
        ("import http from 'k6/http';\nexport default function () {}\n", "gake run"),
        (r#"{"name":"e","values":[],"_postman_variable_scope":"environment"}"#, "-e NAME=VALUE"),
    ] {
        let refused = convert(text, ConvertOptions::default()).unwrap_err();
        assert!(matches!(refused, ConvertError::Foreign(_)), "{text}: {refused}");
        assert!(refused.to_string().contains(word), "{refused}");
    }
}

#[test]
fn anything_else_is_refused() {
    for text in ["", "hello", "{}", "[]", "{\"log\":{}}", "a: b: c", "- a"] {
        assert_eq!(convert(text, ConvertOptions::default()), Err(ConvertError::Unknown), "{text}");
    }
    for text in ["{\"log\":{\"entries\":[]}}", "openapi: 3.0.0", "<jmeterTestPlan/>"] {
        assert_eq!(convert(text, ConvertOptions::default()), Err(ConvertError::Empty), "{text}");
    }
    let broken = convert("<jmeterTestPlan><hashTree>", ConvertOptions::default());
    assert!(matches!(broken, Err(ConvertError::Xml(_))), "{broken:?}");
}
