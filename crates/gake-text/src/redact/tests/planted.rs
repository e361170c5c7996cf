//! Secrets of random letters in all places of all forms: none is left.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::time::Duration;

use super::canaries::{HEADERS, PARAMETERS};
use super::*;

/// Secrets of each form and name.
const SECRETS: usize = 4;

/// Where a form is redacted.
#[derive(Debug, Clone, Copy)]
enum Channel {
    /// As a body of this type.
    Body(&'static str),
    Text,
    Target,
    Header(&'static str),
}

use Channel::{Body, Header, Target, Text};

const JSON: Channel = Body("application/json");
const XML: Channel = Body("application/xml");
const FORM: Channel = Body("application/x-www-form-urlencoded");
const MULTIPART: Channel = Body("multipart/form-data; boundary=b");

/// Forms, with NAME for the name of a secret and SECRET for its value.
const NAMED: &[(Channel, &str)] = &[
    (JSON, r#"{"NAME":"SECRET"}"#),
    (JSON, r#"{"a":[1,{"b":{"NAME":"SECRET","c":2}}]}"#),
    (JSON, r#"{"NAME":["SECRET"]}"#),
    (JSON, r#"{"NAME":{"value":"SECRET"}}"#),
    (JSON, r#"{"NAME":{"SECRET":1}}"#),
    (JSON, "{\n  \"NAME\" :\n    \"SECRET\"\n}"),
    (JSON, r#"{"text":"{\"NAME\":\"SECRET\"}"}"#),
    (JSON, r#"{"name":"NAME","value":"SECRET"}"#),
    (JSON, r#"[{"key":"NAME","val":1},{"NAME":"SECRET"}"#),
    (JSON, r#"{"url":"https://h/x?NAME=SECRET&b=2"}"#),
    (Body("application/x-ndjson"), "{\"a\":1}\n{\"NAME\":\"SECRET\"}\n"),
    (Body(""), r#"{"NAME":"SECRET"}"#),
    (FORM, "a=1&NAME=SECRET&b=2"),
    (FORM, "NAME=SECRET"),
    (FORM, "user%5BNAME%5D=SECRET"),
    (FORM, "user[NAME]=SECRET"),
    (MULTIPART, "--b\r\nContent-Disposition: form-data; name=\"NAME\"\r\n\r\nSECRET\r\n--b--\r\n"),
    (MULTIPART, "--b\r\nContent-Disposition: form-data; NaMe=\"NAME\"\r\n\r\nSECRET\r\n--b--\r\n"),
    (MULTIPART, "--b\r\ncontent-disposition: form-data; name*=UTF-8''NAME\r\n\r\nSECRET\r\n--b--"),
    (
        MULTIPART,
        "--b\r\nContent-Disposition: form-data; name=NAME\r\n\r\nline\r\nSECRET\r\n--b--\r\n",
    ),
    (XML, "<a><NAME>SECRET</NAME></a>"),
    (XML, "<a><NAME>\n  SECRET\n</NAME></a>"),
    (XML, "<a><NAME><v>SECRET</v></NAME></a>"),
    (XML, "<a><NAME><![CDATA[SECRET]]></NAME></a>"),
    (XML, "<a NAME=\"SECRET\"/>"),
    (XML, "<a NAME='SECRET'>x</a>"),
    (XML, "<x:NAME xmlns:x=\"u\">SECRET</x:NAME>"),
    (XML, "<input name=\"NAME\" value=\"SECRET\">"),
    (Body("text/html"), "<form><input type=hidden name=\"NAME\" value=\"SECRET\"></form>"),
    (Body("application/yaml"), "a: 1\nNAME: SECRET\n"),
    (Body("text/plain"), "NAME=SECRET\n"),
    (Body("text/plain"), "NAME: SECRET\n"),
    (Text, "NAME=SECRET"),
    (Text, "the request failed: NAME=SECRET, retrying"),
    (Text, "sent {\"NAME\": \"SECRET\"} to h"),
    (Text, "GET http://h:80/a?x=1&NAME=SECRET failed"),
    (Text, "NAME: SECRET"),
    (Target, "/a/b?NAME=SECRET"),
    (Target, "/a/b?x=1&NAME=SECRET&y=2"),
    (Target, "/a/b?x=1;NAME=SECRET"),
    (Target, "/a/b?user%5BNAME%5D=SECRET"),
    (Target, "/cb#NAME=SECRET"),
    (Target, "http://h/?NAME=SECRET"),
    (Header("Cookie"), "a=1; NAME=SECRET; b=2"),
    (Header("Set-Cookie"), "NAME=SECRET; Path=/; HttpOnly"),
    (Header("Location"), "https://h/cb?NAME=SECRET"),
    (Header("Referer"), "https://h/cb?a=1&NAME=SECRET"),
    (Header("Link"), "<https://h/p?NAME=SECRET>; rel=next"),
];

/// Forms that are secret whatever their names.
const UNNAMED: &[(Channel, &str)] = &[
    (Target, "http://user:SECRET@h/"),
    (Text, "cannot connect to https://user:SECRET@h:8443/x"),
    (Text, "postgres://me:SECRET@db:5432/x is down"),
    (Text, "Authorization: Bearer SECRET"),
    (Text, "Authorization: Basic SECRET"),
    (Text, "curl -H 'Authorization: Bearer SECRET' https://h/"),
    (Header("Authorization"), "Bearer SECRET"),
    (Header("Authorization"), "SECRET"),
    (Header("Proxy-Authorization"), "Basic SECRET"),
    (Header("X-Unknown"), "Bearer SECRET"),
    (Header("Location"), "https://me:SECRET@h/"),
    (
        Body("text/plain"),
        "-----BEGIN PRIVATE KEY-----\nSECRET\nSECRET\n-----END PRIVATE KEY-----\n",
    ),
    (JSON, r#"{"key":"-----BEGIN PRIVATE KEY-----\nSECRET\n-----END PRIVATE KEY-----\n"}"#),
    (Text, "-----BEGIN RSA PRIVATE KEY-----\nSECRET\nSECRET\n-----END RSA PRIVATE KEY-----"),
    (Text, "-----BEGIN OPENSSH PRIVATE KEY-----\nSECRET\nSECRET and no end"),
];

fn redacted(channel: Channel, form: &str) -> String {
    let redactor = redactor();
    let bytes = match channel {
        Body(kind) => redactor.body(kind, form.as_bytes()).into_inner(),
        Header(name) => redactor.header(name, form.as_bytes()).into_inner(),
        Text => Cow::Owned(redactor.text(form).into_inner().into_bytes()),
        Target => Cow::Owned(redactor.target(form).into_inner().into_bytes()),
    };
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Letters that no form contains by itself.
fn secrets(seed: &mut u64) -> Vec<String> {
    const LETTERS: &[u8] = b"ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789";
    let mut next = || {
        *seed =
            seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*seed >> 33) as usize
    };
    let mut secret = || {
        let length = 12 + next() % 29;
        (0..length).map(|_| char::from(LETTERS[next() % LETTERS.len()])).collect()
    };
    (0..SECRETS).map(|_| secret()).collect()
}

#[test]
fn no_planted_secret_is_left() {
    let mut seed = 42;
    let mut left = String::new();
    let mut look = |channel: Channel, form: &str, name: &str| {
        for secret in secrets(&mut seed) {
            let planted = form.replace("NAME", name).replace("SECRET", &secret);
            let shown = redacted(channel, &planted);
            if shown.contains(&secret) {
                let _ = writeln!(left, "{channel:?}: {planted:?}");
                return;
            }
        }
    };
    for (channel, form) in NAMED {
        // Lower-case words are elements and parameters in any of the forms.
        for name in PARAMETERS.iter().filter(|name| !UNSURE.contains(name)) {
            look(*channel, form, name);
        }
    }
    for (channel, form) in UNNAMED {
        look(*channel, form, "");
    }
    for name in HEADERS {
        look(Header(name), "SECRET", "");
        look(Text, &format!("{name}: SECRET"), "");
    }
    assert_eq!(left, "");
}

/// Pieces of text of which hostile text is repeated.
const PIECES: &[&str] = &[
    "a:",
    "a=",
    "code:",
    "code=",
    "token:",
    "state=",
    "cookie:",
    "x authorization:",
    "--token ",
    "-----BEGIN ",
    "-----BEGIN PRIVATE KEY-----",
    "eyJ",
    "eyJ.",
    "://",
    "a://b@",
    "a:\"",
    "a='",
    "a=\\\"",
    "%3D",
    "a=%41",
    "a:%41",
    "<a ",
    "<password>",
    "<password><a></",
    "</",
    "<a b='",
    "<![CDATA[",
    "{\"a\":",
    "[",
    "\"",
    "\\",
    "{",
    "bearer ",
    "bearer b",
    "4",
    "4 1",
    "sk-",
    "y",
    "z",
    "\u{d9}",
    "\0",
    "\n",
    "\r\n\r\n",
    "--b",
    "--b\r\n\r\n",
    "a:\n",
    " ",
    ";",
    "&a[",
    "#",
    "é",
];

/// The time that this thread has run.
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(stat.split(' ').next().unwrap().parse().unwrap())
}

/// Time grows with the text, not with its square: a log line, a body or a header of a megabyte would
/// hold a thread for minutes.
#[test]
fn hostile_text_takes_linear_time() {
    const BYTES: usize = 64 << 10;
    // Ten times as long as the slowest takes; the square took seconds.
    const LIMIT: Duration = Duration::from_secs(1);
    for piece in PIECES {
        let text = piece.repeat(BYTES / piece.len());
        let began = cpu_time();
        for channel in [Text, Body("application/octet-stream")] {
            redacted(channel, &text);
        }
        let took = cpu_time() - began;
        assert!(took < LIMIT, "{piece:?}: {took:?}");
    }
}

/// Words that are secrets only as parameters of a URL or form.
const UNSURE: [&str; 6] = ["code", "auth", "otp", "session", "state", "key"];
