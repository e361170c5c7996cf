//! Postman collections.

use expect_test::expect;
use serde_json::{Value, json};

use super::{assert_lines, converted, script_of};

fn collection(items: Value) -> Value {
    json!({
        "info": { "name": "shop" },
        "auth": { "type": "bearer", "bearer": [{ "key": "token", "value": "{{token}}" }] },
        "variable": [{ "key": "base", "value": "http://h" }],
        "item": items,
    })
}

#[test]
fn folders_and_variables() {
    let converted = converted(
        &collection(json!([
            { "name": "home", "request": "{{base}}/" },
            { "name": "folder", "item": [{
                "name": "order",
                "request": {
                    "method": "POST",
                    "auth": { "type": "noauth" },
                    "url": { "raw": "{{base}}/orders/{{an id}}" },
                    "header": [
                        { "key": "X-A", "value": "{{token}}" },
                        { "key": "X-B", "value": "no", "disabled": true },
                    ],
                    "body": { "mode": "urlencoded", "urlencoded": [{ "key": "a b", "value": "1&2" }] },
                },
            }] },
        ]))
        .to_string(),
    );
    let script = &converted.script;
    assert_lines(
        script,
        &[
            "const vars = {",
            r#"base: "http://h","#,
            "...__ENV,",
            "// home",
            r#"res = http.request("GET", `${value("base")}/`, null, {"#,
            r#""Authorization": `Bearer ${value("token")}`,"#,
            r#"res = http.request("POST", `${value("base")}/orders/${value("an_id")}`, "a+b=1%262", {"#,
            r#""X-A": value("token"),"#,
        ],
    );
    assert!(!script.contains("X-B") && script.matches("Authorization").count() == 1, "{script}");
    expect!["2 × a variable has no value: set it with -e NAME=VALUE (an_id, token)"]
        .assert_eq(&converted.warnings.join("\n"));
}

#[test]
fn urls_as_objects() {
    let script = script_of(&collection(json!([{ "name": "a", "request": {
        "method": "GET",
        "url": {
            "host": ["{{base}}"],
            "path": ["orders", ":id", ":literal"],
            "variable": [{ "key": "id", "value": "{{$randomInt}}" }],
            "query": [
                { "key": "q", "value": "a b" },
                { "key": "no", "value": "1", "disabled": true },
                { "key": "at", "value": "{{$timestamp}}" },
            ],
        },
    } }])));
    assert_lines(
        &script,
        &[
            "function random(min, max) {",
            "res = http.request(\"GET\", `${value(\"base\")}/orders/${random(0, 1000)}/:literal\
             ?q=a%20b&at=${Math.floor(Date.now() / 1000)}`, null, {",
        ],
    );
}

#[test]
fn authorizations() {
    let pairs = |pairs: &[(&str, &str)]| -> Vec<Value> {
        pairs.iter().map(|(key, value)| json!({ "key": key, "value": value })).collect()
    };
    let of = |auth: Value| {
        let item = json!({ "name": "a", "request": { "url": "http://h/", "auth": auth } });
        script_of(&collection(json!([item])))
    };
    let basic = pairs(&[("username", "me"), ("password", "secret")]);
    let script = of(json!({ "type": "basic", "basic": basic }));
    assert_lines(&script, &[r#""Authorization": "Basic bWU6c2VjcmV0","#]);
    let basic = pairs(&[("username", "me"), ("password", "{{p}}")]);
    let script = of(json!({ "type": "basic", "basic": basic }));
    assert_lines(
        &script,
        &[r#""Authorization": `Basic ${encoding.b64encode(`me:${value("p")}`)}`,"#],
    );
    let key = pairs(&[("key", "X-Key"), ("value", "1")]);
    assert_lines(&of(json!({ "type": "apikey", "apikey": key })), &[r#""X-Key": "1","#]);
    let key = pairs(&[("key", "k"), ("value", "{{v}}"), ("in", "query")]);
    let script = of(json!({ "type": "apikey", "apikey": key }));
    assert!(script.contains(r#"`http://h/?k=${value("v")}`"#), "{script}");
    // Version 2.0 has an object.
    let script = of(json!({ "type": "digest", "digest": { "username": "u", "password": "p@" } }));
    assert_lines(
        &script,
        &[r#"res = http.request("GET", "http://u:p%40@h/", null, {"#, r#"auth: "digest","#],
    );
}

#[test]
fn bodies() {
    let of = |body: Value| {
        let item = json!({ "name": "a", "request": { "method": "POST", "url": "http://h/", "body": body } });
        converted(&json!({ "info": {}, "item": [item] }).to_string())
    };
    let raw = json!({ "mode": "raw", "raw": "{\"id\":{{$guid}}}", "options": { "raw": { "language": "json" } } });
    let lines = [
        r#"res = http.request("POST", "http://h/", `{"id":${crypto.randomUUID()}}`, {"#,
        r#""Content-Type": "application/json","#,
    ];
    assert_lines(&of(raw).script, &lines);
    let graphql =
        json!({ "mode": "graphql", "graphql": { "query": "{ a }", "variables": "{\"b\":1}" } });
    let line = r#"res = http.request("POST", "http://h/", "{\"query\":\"{ a }\",\"variables\":{\"b\":1}}", {"#;
    assert_lines(&of(graphql).script, &[line]);
    let fields = json!([
        { "key": "a", "value": "1", "type": "text" },
        { "key": "f", "src": "/data/x.png", "type": "file", "contentType": "image/png" },
    ]);
    let form = of(json!({ "mode": "formdata", "formdata": fields }));
    assert_lines(
        &form.script,
        &[
            "const file1 = open(\"/data/x.png\", 'b');",
            r#"res = http.request("POST", "http://h/", { "a": "1", "f": http.file(file1, "x.png", "image/png") });"#,
        ],
    );
    expect!["1 × a file is read by the script, from its folder (/data/x.png)"]
        .assert_eq(&form.warnings.join("\n"));
    let text = of(json!({ "mode": "formdata", "formdata": [{ "key": "a", "value": "1" }] })).script;
    assert!(text.contains("name=\\\"a\\\"\\r\\n\\r\\n1\\r\\n"), "{text}");
    let file = of(json!({ "mode": "file", "file": { "src": "a.bin" } })).script;
    assert!(file.contains("\"http://h/\", file1, {"), "{file}");
}

/// The lines into which a test script is translated.
fn of_script(code: &str) -> (String, Vec<String>) {
    let event = json!({ "listen": "test", "script": { "exec": code.lines().collect::<Vec<_>>() } });
    let item = json!({ "name": "login", "request": { "url": "http://h/" }, "event": [event] });
    let converted = converted(&json!({ "info": {}, "item": [item] }).to_string());
    (converted.script, converted.warnings)
}

#[test]
fn simple_scripts_are_translated() {
    let (script, warnings) = of_script(
        "// Keep the token.\n\
         pm.environment.set('token', pm.response.json().access_token)\n\
         var data = JSON.parse(responseBody);\n\
         if (data.id > 0) {\n  postman.setGlobalVariable(\"an id\", data.id);\n}\n\
         pm.test(\"Status is 200\", function () { pm.response.to.have.status(200); });\n\
         pm.test('fast', () => { pm.expect(pm.response.responseTime).to.be.below(200); });\n\
         pm.test('name', () => {\n  const json = pm.response.json();\n  pm.expect(json.name).to.eql('Ann');\n});\n\
         tests['ok'] = responseCode.code === 200;",
    );
    assert_lines(
        &script,
        &[
            "attempt(\"login\", () => {",
            "vars.token = res.json().access_token;",
            "var data = res.json();",
            "if (data.id > 0) {",
            "vars.an_id = data.id;",
            "check(res, { \"Status is 200\": () => res.status === 200 });",
            "check(res, { \"fast\": () => res.timings.duration < 200 });",
            "check(res, { \"name\": () => holds(() => { const json = res.json(); return json.name === 'Ann'; }) });",
            "check(res, { \"ok\": () => res.status === 200 });",
            "});",
        ],
    );
    assert!(warnings.is_empty(), "{warnings:?}");
    assert!(!script.contains("status below 400"), "{script}");
}

#[test]
fn tests_with_statements_throw_what_they_do_not_expect() {
    let (script, warnings) = of_script(
        "const json = pm.response.json();\n\
         pm.test('tokens', function () {\n  pm.expect(json).to.have.property('token');\n  \
         if (json.token) {\n    pm.environment.set('token', json.token);\n  }\n});",
    );
    assert_lines(
        &script,
        &[
            "const json = res.json();",
            "check(res, { \"tokens\": () => holds(() => {",
            "if (!(json['token'] !== undefined)) throw new Error('not as expected');",
            "vars.token = json.token;",
            "return true;",
            "}) });",
        ],
    );
    assert!(warnings.is_empty(), "{warnings:?}");
}

#[test]
fn other_scripts_are_quoted() {
    let (script, warnings) = of_script(
        "const moment = require('moment');\n\
         pm.environment.set('now', moment().format());\n\
         pm.test('ok', () => pm.response.to.be.ok);",
    );
    assert_lines(
        &script,
        &[
            "// Not translated, of the test script of \"login\":",
            "//   const moment = require('moment');",
            "//   pm.environment.set('now', moment().format());",
            "check(res, { \"ok\": () => res.status === 200 });",
        ],
    );
    expect![
        "1 × a Postman script is translated only in part: the rest is quoted in comments (login)"
    ]
    .assert_eq(&warnings.join("\n"));
}

#[test]
fn a_folders_script_is_quoted_once() {
    let event =
        json!([{ "listen": "prerequest", "script": { "exec": "pm.sendRequest('http://a')" } }]);
    let items = json!([
        { "name": "a", "request": "http://h/a" },
        { "name": "b", "request": "http://h/b" },
    ]);
    let collection = json!({ "info": { "name": "c" }, "event": event, "item": items });
    let converted = converted(&collection.to_string());
    assert_eq!(converted.script.matches("sendRequest").count(), 1, "{}", converted.script);
    assert_eq!(converted.warnings.len(), 1, "{:?}", converted.warnings);
}
