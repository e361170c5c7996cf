//! OpenAPI and Swagger descriptions.

use expect_test::expect;
use serde_json::json;

use super::{assert_lines, converted, script_of};

#[test]
fn a_description() {
    let script = script_of(&json!({
        "openapi": "3.0.0",
        "servers": [{ "url": "https://api/v1/" }],
        "paths": { "/pets/{id}": {
            "get": { "summary": "A pet", "responses": { "404": {}, "200": {} } },
            "put": {
                "requestBody": { "content": { "application/json": { "example": { "n": 1 } } } },
                "responses": { "204": {} },
            },
        } },
    }));
    assert_lines(
        &script,
        &[
            r#"BASE_URL: "https://api/v1","#,
            "// A pet",
            r#"res = http.request("GET", `${value("BASE_URL")}/pets/${value("id")}`, null);"#,
            r#"check(res, { "GET {BASE_URL}/pets/{id}: status 200": (r) => r.status === 200 });"#,
            r#"res = http.request("PUT", `${value("BASE_URL")}/pets/${value("id")}`, "{\"n\":1}", {"#,
            r#""Content-Type": "application/json","#,
            r#"check(res, { "PUT {BASE_URL}/pets/{id}: status 204": (r) => r.status === 204 });"#,
        ],
    );
}

#[test]
fn a_description_in_yaml() {
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
  /first:
    get: {}
";
    let script = converted(description).script;
    assert_lines(
        &script,
        &[
            "// A pet, by its number",
            r#"res = http.request("POST", `${value("BASE_URL")}/pets/${value("id")}`, "{\"name\":\"Rex\",\"tags\":[\"a\",\"b: c\"]}", {"#,
            r#"res = http.request("HEAD", `${value("BASE_URL")}/pets/${value("id")}`, null);"#,
            // In the order of the text.
            r#"res = http.request("GET", `${value("BASE_URL")}/first`, null);"#,
        ],
    );
}

#[test]
fn parameters_and_security() {
    let parameters = json!([
        { "name": "id", "in": "path", "required": true, "schema": { "type": "integer", "minimum": 7 } },
        { "name": "kind", "in": "query", "required": true, "schema": { "enum": ["a b", "c"] } },
        { "name": "tags", "in": "query", "required": true, "example": ["x", "y"], "schema": { "type": "array" } },
        { "name": "flat", "in": "query", "required": true, "explode": false, "example": [1, "a b"] },
        { "name": "bars", "in": "query", "required": true, "explode": false, "style": "pipeDelimited", "example": [1, 2] },
        { "name": "free", "in": "query", "required": true, "schema": { "type": "string" } },
        { "name": "optional", "in": "query", "example": 1 },
        { "name": "X-Trace", "in": "header", "required": true, "schema": { "default": "on" } },
        { "name": "sid", "in": "cookie", "required": true, "example": "s" },
    ]);
    let description = json!({
        "openapi": "3.1.0",
        "servers": [{ "url": "{scheme}://{host}/v1", "variables": { "scheme": { "default": "http" }, "host": { "default": "h" } } }],
        "security": [{ "key": [] }],
        "paths": {
            "/a/{id}": { "parameters": parameters, "get": {} },
            "/b": { "get": { "security": [{ "token": [] }] } },
            "/c": { "get": { "security": [] } },
            "/d": { "get": { "security": [{ "login": [] }] } },
        },
        "components": { "securitySchemes": {
            "key": { "type": "apiKey", "in": "cookie", "name": "k" },
            "token": { "type": "oauth2" },
            "login": { "type": "http", "scheme": "basic" },
        } },
    });
    let converted = converted(&description.to_string());
    assert_lines(
        &converted.script,
        &[
            r#"BASE_URL: "http://h/v1","#,
            r#"free: "string","#,
            r#"res = http.request("GET", `${value("BASE_URL")}/a/7?kind=a%20b&tags=x&tags=y&flat=1,a%20b&bars=1%7C2&free=${value("free")}`, null, {"#,
            r#""X-Trace": "on","#,
            r#""Cookie": `sid=s; k=${value("key")}`,"#,
            r#""Authorization": `Bearer ${value("token")}`,"#,
            r#"res = http.request("GET", `${value("BASE_URL")}/c`, null);"#,
            r#""Authorization": `Basic ${encoding.b64encode(`${value("username")}:${value("password")}`)}`,"#,
        ],
    );
    assert!(!converted.script.contains("optional"), "{}", converted.script);
    expect![[r#"
        1 × a parameter without an example has a placeholder: set it with -e NAME=VALUE (free)
        4 × a variable has no value: set it with -e NAME=VALUE (key, password, token, ...)"#]]
    .assert_eq(&converted.warnings.join("\n"));
}

#[test]
fn bodies_by_their_schemas() {
    let pet = json!({
        "type": "object",
        "required": ["name", "owner", "age"],
        "properties": {
            "id": { "type": "integer", "readOnly": true },
            "name": { "type": "string", "example": "Rex" },
            "age": { "type": "integer", "minimum": 3 },
            "owner": { "$ref": "#/components/schemas/Owner" },
            "note": { "type": "string" },
        },
    });
    let owner = json!({ "allOf": [{ "type": "object", "properties": { "mail": { "type": "string", "format": "email" } } }] });
    let upload = json!({ "properties": { "f": { "type": "string", "format": "binary" }, "n": { "type": "integer" } } });
    let content = |kind: &str, schema: serde_json::Value| json!({ "requestBody": { "content": { kind: { "schema": schema } } } });
    let reference = json!({ "$ref": "#/components/schemas/Pet" });
    let script = script_of(&json!({
        "openapi": "3.0.0",
        "paths": {
            "/a": { "post": content("application/json", reference.clone()) },
            "/b": { "post": content("application/x-www-form-urlencoded", json!({ "properties": { "x": { "default": "1 2" } } })) },
            "/c": { "post": content("multipart/form-data", upload) },
        },
        "components": { "schemas": { "Pet": pet, "Owner": owner } },
    }));
    for body in [
        r#"/a`, "{\"age\":3,\"name\":\"Rex\",\"owner\":{\"mail\":\"user@example.com\"}}", {"#,
        r#"/b`, "x=1+2", {"#,
        r#"/c`, { "f": http.file("sample", "sample.txt", "application/octet-stream"), "n": "1" });"#,
    ] {
        assert!(script.contains(body), "{body}: {script}");
    }
}

#[test]
fn swagger() {
    let body = json!({ "name": "b", "in": "body", "schema": { "properties": { "a": { "type": "boolean" } } } });
    let field = json!({ "name": "f", "in": "formData", "type": "string", "default": "x" });
    let file = json!({ "name": "up", "in": "formData", "type": "file" });
    let script = script_of(&json!({
        "swagger": "2.0",
        "host": "h:8080", "basePath": "/v2/", "schemes": ["https"],
        "securityDefinitions": { "k": { "type": "apiKey", "in": "query", "name": "api_key" } },
        "paths": {
            "/a": { "post": { "parameters": [body], "security": [{ "k": [] }] } },
            "/b": { "post": { "parameters": [field], "consumes": ["application/x-www-form-urlencoded"] } },
            "/c": { "post": { "parameters": [field, file], "consumes": ["multipart/form-data"] } },
        },
    }));
    assert_lines(
        &script,
        &[
            r#"BASE_URL: "https://h:8080/v2","#,
            r#"res = http.request("POST", `${value("BASE_URL")}/a?api_key=${value("k")}`, "{\"a\":true}", {"#,
            r#"res = http.request("POST", `${value("BASE_URL")}/b`, "f=x", {"#,
            r#"res = http.request("POST", `${value("BASE_URL")}/c`, { "f": "x", "up": http.file("sample", "sample.txt", "application/octet-stream") });"#,
        ],
    );
}

#[test]
fn circles_of_references_end() {
    let script = script_of(&json!({
        "openapi": "3.0.0",
        "paths": { "/a": { "post": { "requestBody": { "content": { "application/json": {
            "schema": { "$ref": "#/components/schemas/A" } } } } } } },
        "components": { "schemas": {
            "A": { "type": "object", "properties": { "a": { "$ref": "#/components/schemas/A" } } },
            "B": { "$ref": "#/components/schemas/B" },
        } },
    }));
    assert!(script.contains("/a`, \"{"), "{script}");
}
