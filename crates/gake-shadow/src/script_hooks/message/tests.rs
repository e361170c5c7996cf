//! Round trips through script values, and invalid ones.

use super::*;

const IDS: RequestIds = RequestIds { id: 7, connection: 3, sequence: 2 };

fn sample() -> HookRequest {
    let mut headers = HeaderMap::new();
    for (name, value) in [("a", "1"), ("set", "x"), ("b", "2"), ("set", "y"), ("set", "z")] {
        headers.append(name, value.parse().unwrap());
    }
    headers.insert("raw", HeaderValue::from_bytes(&[b'c', 0xff, 0x80]).unwrap());
    let body = Some(Bytes::from_static(b"\xffbody"));
    HookRequest {
        method: Method::POST,
        uri: "/a%20b//?x=1&&y".parse().unwrap(),
        headers,
        body,
        ids: IDS,
    }
}

fn changed(returned: Value, how: BodyFormat) -> Result<HookRequest, String> {
    let mut request = sample();
    change(&mut request, returned, how)?;
    Ok(request)
}

#[test]
fn an_untouched_request_survives_the_round_trip() {
    for how in [BodyFormat::Text, BodyFormat::Bytes] {
        let same = changed(request(&sample(), how), how).unwrap();
        assert_eq!(format!("{same:?}"), format!("{:?}", sample()));
    }
    let nothing = changed(Value::Null, BodyFormat::None).unwrap();
    assert_eq!(format!("{nothing:?}"), format!("{:?}", sample()));
}

#[test]
fn headers_are_an_object_and_repeated_ones_an_array() {
    let seen = request(&sample(), BodyFormat::None);
    assert_eq!(seen.get("body"), None);
    let headers = seen.get("headers").unwrap();
    assert_eq!(headers.get("a"), Some(&Value::text("1")));
    let set = ["x", "y", "z"].map(Value::text).to_vec();
    assert_eq!(headers.get("set"), Some(&Value::List(set)));
    assert_eq!(headers.get("raw"), Some(&Value::text("c\u{ff}\u{80}")));
}

#[test]
fn only_returned_properties_are_replaced() {
    let headers = Value::map([
        ("N", Value::Number(7.0)),
        ("gone", Value::Null),
        ("two", Value::List(vec![Value::text("1"), Value::text("2")])),
    ]);
    let returned = Value::map([
        ("headers", headers),
        ("uri", Value::text("/new?q")),
        ("body", Value::text("ö")),
    ]);
    let request = changed(returned, BodyFormat::Text).unwrap();
    assert_eq!((request.method, request.uri.to_string()), (Method::POST, "/new?q".to_owned()));
    assert_eq!(request.body.unwrap(), "ö".as_bytes());
    let headers: Vec<_> = request.headers.iter().map(|(n, v)| (n.as_str(), v.as_bytes())).collect();
    assert_eq!(headers.len(), 3);
    for one in [("n", b"7"), ("two", b"1"), ("two", b"2")] {
        assert!(headers.contains(&(one.0, &one.1[..])), "{headers:?}");
    }
}

#[test]
fn an_invalid_return_value_changes_nothing() {
    let header = |name: &str, value: Value| Value::map([("headers", Value::map([(name, value)]))]);
    let mut errors = Vec::new();
    for returned in [
        Value::text("request"),
        Value::map([("method", Value::text("A B"))]),
        Value::map([("method", Value::Null)]),
        Value::map([("uri", Value::text("no path"))]),
        Value::map([("uri", Value::text("http://other/"))]),
        Value::map([("uri", Value::text("/a b"))]),
        Value::map([("headers", Value::List(vec![]))]),
        Value::map([("header", Value::map([]))]),
        Value::map([("body", Value::Number(1.0))]),
        header("a b", Value::text("x")),
        header("a", Value::text("x\r\ny: z")),
        header("a", Value::text("€")),
        header("a", Value::map([])),
    ] {
        let mut request = sample();
        errors.push(change(&mut request, returned.clone(), BodyFormat::Text).unwrap_err());
        assert_eq!(format!("{request:?}"), format!("{:?}", sample()), "{returned:?}");
    }
    let mut head = HookRequest { body: None, ..sample() };
    let body = Value::map([("body", Value::text("x"))]);
    errors.push(change(&mut head, body, BodyFormat::None).unwrap_err());
    expect_test::expect![[r#"
        must return a request or undefined
        returned the method "A B"
        returned a method that is not a string
        returned the uri "no path", which is not a path
        returned the uri "http://other/", which is not a path
        returned the uri "/a b", which is not a path
        returned headers that are not an object
        returned "header"; a request has method, uri, headers and body
        returned a body that is neither a string nor a Uint8Array
        returned a header called "a b"
        returned an invalid value for a
        returned an invalid value for a
        returned an invalid value for a
        returned a body; options.requestBody must be "text" or "bytes""#]]
    .assert_eq(&errors.join("\n"));
}

#[test]
fn a_selection_is_a_word_or_names() {
    assert_eq!(selection(Value::Null), Ok(Selection::All));
    assert_eq!(selection(Value::text("all")), Ok(Selection::All));
    assert_eq!(selection(Value::text("race")), Ok(Selection::Race));
    assert_eq!(selection(Value::List(vec![])), Ok(Selection::Names(vec![])));
    let names = Value::List(vec![Value::text("a"), Value::text("b")]);
    assert_eq!(selection(names), Ok(Selection::Names(vec!["a".to_owned(), "b".to_owned()])));
    for wrong in [Value::text("sandbox"), Value::Bool(true), Value::List(vec![Value::Null])] {
        let error = selection(wrong).unwrap_err();
        expect_test::expect![[r#"must return "all", "race" or an array of names"#]]
            .assert_eq(&error);
    }
}
