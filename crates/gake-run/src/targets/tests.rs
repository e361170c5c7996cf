//! The formats in detail, and their errors.

use std::io::{BufReader, Read};

use expect_test::expect;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

const SAMPLE: &str = "# comments are allowed
GET http://127.0.0.1:8081/
X-Case: Kept-As-Is
Accept: text/plain

POST http://127.0.0.1:8095/ok
Content-Type: application/json
@body.json

GET http://127.0.0.1:8095/204
GET http://127.0.0.1:8095/truncated
";

fn parse(text: &str) -> Result<Vec<Target>, String> {
    Targets::detect(text.as_bytes()).and_then(Targets::read_all).map_err(|error| error.to_string())
}

fn one(text: &str) -> Target {
    let mut all = parse(text).unwrap();
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

fn owned(headers: &[(&str, &str)]) -> Vec<(String, String)> {
    headers.iter().map(|&(n, v)| (n.to_owned(), v.to_owned())).collect()
}

#[test]
fn http_sample() {
    let file = |path| TargetBody::File(PathBuf::from(path));
    let target = |line, method, url, headers: &[_], body| Target {
        headers: owned(headers),
        body,
        line,
        ..Target::new(method, url)
    };
    let expected = [
        target(
            2,
            "GET",
            "http://127.0.0.1:8081/",
            &[("X-Case", "Kept-As-Is"), ("Accept", "text/plain")],
            TargetBody::None,
        ),
        target(
            6,
            "POST",
            "http://127.0.0.1:8095/ok",
            &[("Content-Type", "application/json")],
            file("body.json"),
        ),
        target(10, "GET", "http://127.0.0.1:8095/204", &[], TargetBody::None),
        target(11, "GET", "http://127.0.0.1:8095/truncated", &[], TargetBody::None),
    ];
    assert_eq!(parse(SAMPLE).unwrap(), expected);
    assert_eq!(parse(&SAMPLE.replace('\n', "\r\n")).unwrap(), expected);
    assert_eq!(parse(SAMPLE.trim_end()).unwrap(), expected);
}

#[test]
fn http_details() {
    let target = one("  PURGE   http://a/b c \n# x\n  a-B :  c:d \n\t#\nHOST : e\n@ dir/f g ");
    assert_eq!((target.method.as_str(), target.url.as_str()), ("PURGE", "http://a/b c"));
    assert_eq!(target.headers, owned(&[("a-B", "c:d"), ("HOST", "e")]));
    assert_eq!(target.body, TargetBody::File(PathBuf::from(" dir/f g")));
    let all = parse("\u{feff}GET http://a\nX: y\nPOST http://b\n@f\nPUT http://c\n#end").unwrap();
    let methods: Vec<_> = all.iter().map(|t| t.method.as_str()).collect();
    assert_eq!(methods, ["GET", "POST", "PUT"]);
    assert_eq!(all[0].headers, owned(&[("X", "y")]));
}

#[test]
fn a_url_is_a_target() {
    let targets = parse("# list\nhttp://a/x\nhttps://b:1/?y=1\nX-Own: 1\nGET http://c/\n").unwrap();
    let found: Vec<_> =
        targets.iter().map(|one| (one.method.as_str(), one.url.as_str(), one.line)).collect();
    assert_eq!(
        found,
        [("GET", "http://a/x", 2), ("GET", "https://b:1/?y=1", 3), ("GET", "http://c/", 5)]
    );
    assert_eq!(targets[1].headers, owned(&[("X-Own", "1")]));
}

#[test]
fn http_weights_and_labels() {
    let text = "# gake: weight=3 label=checkout\n# a comment\n\nGET http://a\nX: y\n\
                #gake:label=\"two words\"\n# gake: weight=7\nGET http://b\n\n# gakeless\nGET http://c";
    let marks: Vec<_> = parse(text).unwrap().into_iter().map(|t| (t.weight, t.label)).collect();
    let label = |text: &str| Some(text.to_owned());
    assert_eq!(marks, [(3, label("checkout")), (7, label("two words")), (1, None)]);
}

#[test]
fn json_details() {
    let target = one(
        r#" {"url":"http://a","x":{"y":[1]},"method":"POST","body":"Rk9P","header":{"b":["1","2"],"A":["3"],"c":null},"weight":2,"label":"l"} "#,
    );
    assert_eq!(target.headers, owned(&[("b", "1"), ("b", "2"), ("A", "3")]));
    assert_eq!(target.body, TargetBody::Bytes(b"FOO".to_vec()));
    assert_eq!((target.weight, target.label.as_deref(), target.line), (2, Some("l"), 1));
    let all = parse(
        "\n\n{\"method\":\"GET\",\"url\":\"/\"}\r\n \n{\"method\":\"GET\",\"url\":\"/\",\"body\":null,\"header\":null}",
    );
    let lines: Vec<_> = all.unwrap().into_iter().map(|t| (t.line, t.body)).collect();
    assert_eq!(lines, [(3, TargetBody::None), (5, TargetBody::None)]);
}

#[test]
fn faults_are_sentences_with_a_line() {
    let get = "GET http://a\n";
    let cases = [
        ("", "there is no target in the file"),
        ("\n # only comments\n\n", "there is no target in the file"),
        ("GET", r#"line 1: expected "METHOD URL", found "GET""#),
        ("\n\nhello\n", r#"line 3: expected "METHOD URL", found "hello""#),
        ("get http://a", r#"line 1: expected an HTTP method such as GET, found "get""#),
        ("A: b\n", r#"line 1: expected "METHOD URL", found "A: b""#),
        ("GET http://a\x01", r#"line 1: expected a URL, found "http://a\u{1}""#),
        ("GET http://a\nx", r#"line 2: expected "Name: value", found "x""#),
        ("GET http://a\nx:", r#"line 2: expected "Name: value", found "x:""#),
        ("GET http://a\n: x", r#"line 2: expected "Name: value", found ": x""#),
        ("GET http://a\nx y: z", r#"line 2: expected "Name: value", found "x y: z""#),
        ("GET http://a\nx: a\0b", r#"line 2: expected "Name: value", found "x: a\0b""#),
        ("GET http://a\n@\n", "line 2: expected a file name after the @"),
        ("GET http://a\n@f\nx: y", r#"line 3: expected "METHOD URL", found "x: y""#),
        (
            "GET http://a\n\n# gake: weight=1\n\n",
            r##"line 3: no target follows the "# gake:" comment"##,
        ),
        ("# gake: weight=0\nGET http://a", "line 1: a weight must be at least 1"),
        (
            "# gake: weight=1 color=red\nGET http://a",
            r##"line 1: expected weight=NUMBER or label=NAME after "# gake:", found "color=red""##,
        ),
        ("{", "line 1: EOF while parsing an object (column 1)"),
        ("{\"method\":\"GET\",\"url\":\"/\"}\n[]", "line 2: expected a JSON object (column 1)"),
        (r#"{"url":"/"}"#, r#"line 1: the key "method" is missing or empty"#),
        (r#"{"method":"GET","url":""}"#, r#"line 1: the key "url" is missing or empty"#),
        (
            r#"{"method":"G T","url":"/"}"#,
            r#"line 1: expected an HTTP method such as GET, found "G T""#,
        ),
        (r#"{"method":"GET","url":"/","weight":0}"#, "line 1: a weight must be at least 1"),
        (
            r#"{"method":"GET","url":"/","header":{"a":["b\r\nc"]}}"#,
            r#"line 1: expected "Name: value", found "a: b\r\nc""#,
        ),
        (
            r#"{"method":"GET","url":"/","body":"Rk9"}"#,
            "line 1: the body is not base64: Invalid padding",
        ),
        (
            r#"{"method":"GET","url":"/","header":{"a":"b"}}"#,
            r#"line 1: invalid type: string "b", expected a sequence (column 43)"#,
        ),
    ];
    for (text, sentence) in cases {
        assert_eq!(parse(text).unwrap_err(), sentence, "{text:?}");
    }
    for bad in [
        "",
        "weight",
        "weight=x",
        "weight=-1",
        "label=",
        "label=\"x",
        "label=\"x\"y",
        "label=a label=b",
    ] {
        let error = parse(&format!("# gake: {bad}\n{get}")).unwrap_err();
        assert!(error.starts_with("line 1: expected weight="), "{bad}: {error}");
    }
    let long = parse(&"x".repeat(1_000_000)).unwrap_err();
    assert!(long.len() < 120 && long.ends_with("x\" ..."), "{long}");
}

#[test]
fn faults_of_the_reader() {
    let bad = b"GET http://a\nX: \xff\n".as_slice();
    let error = Targets::new(bad, TargetFormat::Http).read_all().unwrap_err();
    expect!["line 2: the line is not UTF-8 text"].assert_eq(&error.to_string());
    let endless = BufReader::new(std::io::repeat(b'x'));
    let error = Targets::detect(endless).unwrap_err();
    expect!["line 1: the line is longer than 64 MiB"].assert_eq(&error.to_string());
    #[derive(Debug)]
    struct FailingReader;
    impl Read for FailingReader {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("no disk"))
        }
    }
    let error = Targets::detect(BufReader::new(FailingReader)).unwrap_err();
    expect!["line 1: the file cannot be read: no disk"].assert_eq(&error.to_string());
}

#[test]
fn an_error_ends_the_iteration() {
    let mut targets = Targets::new("bad\nGET http://a\n".as_bytes(), TargetFormat::Http);
    assert!(targets.next().unwrap().is_err());
    assert!(targets.next().is_none());
}

fn write_http(target: &Target, apart: bool) -> String {
    let mut out = String::from("\n");
    if target.weight != 1 {
        out += &format!("# gake: weight={}\n", target.weight);
    }
    if let Some(label) = &target.label {
        out += &format!("# gake: label=\"{label}\"\n");
    }
    out += &format!("{} {}\n", target.method, target.url);
    for (name, value) in &target.headers {
        out += &format!("{name}: {value}\n");
    }
    if let TargetBody::File(path) = &target.body {
        out += &format!("@{}\n", path.display());
    }
    out + if apart { "\n# a comment\n" } else { "" }
}

fn write_json(target: &Target) -> String {
    use base64::Engine;
    let mut object = serde_json::json!({
        "method": target.method,
        "url": target.url,
        "weight": target.weight,
        "label": target.label,
    });
    if let TargetBody::Bytes(body) = &target.body {
        object["body"] = base64::engine::general_purpose::STANDARD.encode(body).into();
    }
    // Names are unique, so that the order within the object is known.
    let headers: Vec<_> = target.headers.iter().map(|(n, v)| format!("{n:?}:[{v:?}]")).collect();
    let text = object.to_string();
    format!("{},\"header\":{{{}}}}}\n", &text[..text.len() - 1], headers.join(","))
}

prop_compose! {
    fn target()(
        method in "[A-Z]{1,10}",
        url in "https?://[a-z0-9.]{1,20}(:[0-9]{1,5})?/[!-~]{0,20}",
        values in vec("[!-~]([ -~]{0,20}[!-~])?", 0..4),
        weight in 1..5_u32,
        label in proptest::option::of("[a-z][a-z ]{0,8}"),
        body in proptest::option::of("[a-z/.]{1,10}"),
    ) -> (Target, Option<String>) {
        let headers =
            values.into_iter().enumerate().map(|(i, value)| (format!("x-H{i}"), value)).collect();
        (Target { headers, weight, label, ..Target::new(&method, &url) }, body)
    }
}

fn without_lines(targets: Result<Vec<Target>, String>) -> Result<Vec<Target>, String> {
    targets.map(|all| all.into_iter().map(|t| Target { line: 0, ..t }).collect())
}

proptest! {
    #[test]
    fn what_is_written_is_read(all in vec((target(), any::<bool>()), 1..6)) {
        let (mut http, mut json) = (String::new(), String::new());
        let (mut of_http, mut of_json) = (Vec::new(), Vec::new());
        for ((target, body), apart) in all {
            let mut from_file = target.clone();
            let mut inline = target;
            if let Some(body) = body {
                from_file.body = TargetBody::File(PathBuf::from(&body));
                inline.body = TargetBody::Bytes(body.into_bytes());
            }
            http += &write_http(&from_file, apart);
            json += &write_json(&inline);
            of_http.push(from_file);
            of_json.push(inline);
        }
        prop_assert_eq!(without_lines(parse(&http)), Ok(of_http));
        prop_assert_eq!(without_lines(parse(&json)), Ok(of_json));
    }

    #[test]
    fn arbitrary_bytes_do_no_harm(bytes in vec(any::<u8>(), 0..200)) {
        for format in [TargetFormat::Http, TargetFormat::Json] {
            let _ = Targets::new(bytes.as_slice(), format).read_all();
        }
        let _ = Targets::detect(bytes.as_slice()).map(Targets::read_all);
    }

    #[test]
    fn arbitrary_lines_do_no_harm(text in "((GET |@|#|# gake: |[a-z]+: |\\{\"method\":)?[ -~]{0,9}\n){0,9}") {
        if let Err(error) = parse(&text) {
            let line = error.strip_prefix("line ").and_then(|rest| rest.split_once(": "));
            let Some((line, fault)) = line else {
                prop_assert_eq!(error, "there is no target in the file");
                return Ok(());
            };
            let line: usize = line.parse().unwrap();
            prop_assert!((1..=text.lines().count()).contains(&line), "{}", error);
            let known = ["expected ", "no target follows ", "a weight ", "the key "];
            let is_json = fault.ends_with(')') && fault.contains(" (column ");
            prop_assert!(known.iter().any(|start| fault.starts_with(start)) || is_json, "{}", error);
        }
    }
}
