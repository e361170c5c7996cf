//! Redaction of secrets in all positions, and robustness against hostile input.

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use canaries::{HEADERS, PARAMETERS};

mod canaries;
mod planted;

const JWT: &str = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1g";

fn redactor() -> Redactor {
    Redactor::new([7; 16], SecretNames::default())
}

fn tag(value: &str) -> String {
    redactor().tag(value.as_bytes()).into_inner()
}

fn text(text: &str) -> String {
    redactor().text(text).into_inner()
}

fn header(name: &str, value: &str) -> String {
    String::from_utf8(redactor().header(name, value.as_bytes()).into_inner().into_owned()).unwrap()
}

fn body(kind: &str, body: &str) -> String {
    String::from_utf8(redactor().body(kind, body.as_bytes()).into_inner().into_owned()).unwrap()
}

#[test]
fn places_in_files_are_no_secrets() {
    let frame = "TypeError: x\n\tat f (file:///t/cookie-token.js:3:10)\n\tat file:///t/auth.ts:7";
    assert_eq!(text(frame), frame);
    assert!(!text("file:///t/token:s3cr3t").contains("s3cr3t"));
    assert!(!text("/token.txt:s3cr3t").contains("s3cr3t"));
}

#[test]
fn parameters_are_hidden_by_name() {
    let more = ["pass%77ord", "user%5Bpassword%5D", "X-Amz-Signature", "sig"];
    for name in PARAMETERS.into_iter().chain(more) {
        let hidden = redactor().target(&format!("/a/b?x=1&{name}=s3cr3t&y=2")).into_inner();
        assert_eq!(hidden, format!("/a/b?x=1&{name}={}&y=2", tag("s3cr3t")));
        for target in [
            format!("/a?{name}=s3cr3t"),
            format!("/a;{name}=s3cr3t/b?x"),
            format!("/a#x=1&{name}=s3cr3t"),
            format!("https://h/cb?{name}=s3cr3t#y"),
            format!("/a?x=1;{name}=s3cr3t"),
            format!("/go?to=https%3A%2F%2Fh%2F%3F{}%3Ds3cr3t%26y%3D1", name.replace('%', "%25")),
        ] {
            let hidden = redactor().target(&target).into_inner();
            assert!(!hidden.contains("s3cr3t") && hidden.contains("redacted-"), "{hidden}");
        }
        assert!(!header("Location", &format!("https://h/cb?{name}=s3cr3t")).contains("s3cr3t"));
        assert!(!header("Referer", &format!("https://h/cb#{name}=s3cr3t&a")).contains("s3cr3t"));
        let form = body("application/x-www-form-urlencoded", &format!("a=1&{name}=s3cr3t&b=+2"));
        assert_eq!(form, format!("a=1&{name}={}&b=+2", tag("s3cr3t")));
    }
    for plain in [
        "/",
        "/a/b?page=2&sort=price&q=monkey+author&country_code=DE",
        "//a/../b?x=%2f&&y",
        "/a?token&key=&password=",
        "*",
        "/a?redirect=https%3A%2F%2Fh%2Fx%3Fa%3Db",
    ] {
        assert_eq!(redactor().target(plain), plain);
    }
    assert_eq!(*redactor().target("/a?token=x%20y"), format!("/a?token={}", tag("x y")));
    assert_eq!(*redactor().target(&format!("/reset/{JWT}/x")), format!("/reset/{}/x", tag(JWT)));
    assert_eq!(
        *redactor().target("http://me:s3cr3t@h/a"),
        format!("http://me:{}@h/a", tag("s3cr3t"))
    );
}

#[test]
fn headers_are_hidden_by_name() {
    for name in HEADERS.into_iter().chain(["x-api-key", "X-Auth-Token"]) {
        assert_eq!(header(name, "s3cr3t"), tag("s3cr3t"), "{name}");
    }
    assert_eq!(header("Authorization", "Bearer abc.def"), format!("Bearer {}", tag("abc.def")));
    assert_eq!(header("authorization", "abc"), tag("abc"));
    assert_eq!(
        header("Cookie", "a=1; lang=en; b="),
        format!("a={}; lang={}; b=", tag("1"), tag("en"))
    );
    assert_eq!(
        header("Set-Cookie", "sid=s3cr3t; Path=/; HttpOnly"),
        format!("sid={}; Path=/; HttpOnly", tag("s3cr3t"))
    );
    assert_eq!(header("Cookie", "s3cr3t"), tag("s3cr3t"));
    for (name, plain) in [
        ("Host", "shop.test:8080"),
        ("Accept", "text/html, */*;q=0.8"),
        ("Date", "Sun, 22 Nov 2026 10:37:30 GMT"),
        ("Access-Control-Allow-Credentials", "true"),
        ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ("Idempotency-Key", "6f9619ff"),
        ("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:1.0) Gecko/20100101"),
        ("Content-Type", "multipart/form-data; boundary=----WebKitFormBoundary7MA4YWxkTrZu0gW"),
        ("X-Request-Id", "6f9619ff-8b86-d011-b42d-00c04fc964ff"),
    ] {
        assert_eq!(header(name, plain), plain);
    }
    assert_eq!(
        header("X-Debug", r#"{"token":"s3cr3t"}"#),
        format!(r#"{{"token":"{}"}}"#, tag("s3cr3t"))
    );
    let bytes = [b"a\xe9\xff; token=".as_slice(), b"s\xe9cret"].concat();
    let hidden = redactor().header("x-odd", &bytes).into_inner().into_owned();
    assert!(hidden.starts_with(b"a\xe9\xff; token=redacted-"), "{}", hidden.escape_ascii());
}

#[test]
fn members_are_hidden_at_any_depth_and_the_rest_is_kept() {
    let s = tag("s3cr3t");
    for (written, expected) in [
        (r#"{"password":"s3cr3t"}"#, format!(r#"{{"password":"{s}"}}"#)),
        (
            r#" [ {"a" : {"b":[{"apiKey":"s3cr3t","n":1.50}]}} ]"#,
            format!(r#" [ {{"a" : {{"b":[{{"apiKey":"{s}","n":1.50}}]}}}} ]"#),
        ),
        (
            r#"{"credentials":{"user":"s3cr3t","all":["s3cr3t",true,null]}}"#,
            format!(r#"{{"credentials":{{"user":"{s}","all":["{s}",true,null]}}}}"#),
        ),
        (r#"{"pass\u0077ord":"s3cr\u0033t"}"#, format!(r#"{{"pass\u0077ord":"{s}"}}"#)),
        (
            r#"{"name":"password","value":"s3cr3t"}"#,
            format!(r#"{{"name":"password","value":"{s}"}}"#),
        ),
        (r#"{"value":"s3cr3t","key":"api_key"}"#, format!(r#"{{"value":"{s}","key":"api_key"}}"#)),
        (r#"{"key":"color","value":"red"}"#, r#"{"key":"color","value":"red"}"#.to_owned()),
        (r#"{"key":"s3cr3t"}"#, format!(r#"{{"key":"{s}"}}"#)),
        (
            r#"{"state":"active","code":"NOT_FOUND","n":{"code":404}}"#,
            r#"{"state":"active","code":"NOT_FOUND","n":{"code":404}}"#.to_owned(),
        ),
        (
            r#"{"max_tokens":100,"token_type":"bearer","auth":false}"#,
            r#"{"max_tokens":100,"token_type":"bearer","auth":false}"#.to_owned(),
        ),
        (r#"{"state":"s3cr3t"}"#, format!(r#"{{"state":"{s}"}}"#)),
        ("{\"a\":1}\n{\"token\":\"s3cr3t\"}\n", format!("{{\"a\":1}}\n{{\"token\":\"{s}\"}}\n")),
        // Truncated.
        (r#"{"token":"s3cr3t"#, format!(r#"{{"token":"{s}"#)),
        (r#"{"a":[1,{"key":"s3cr3t""#, format!(r#"{{"a":[1,{{"key":"{s}""#)),
        (r#"{"a":1,"pass"#, r#"{"a":1,"pass"#.to_owned()),
        // Documents and other text in strings.
        (
            r#"{"body":"{\"token\":\"s3cr3t\",\"x\":\"\\\"\"}"}"#,
            format!(r#"{{"body":"{{\"token\":\"{s}\",\"x\":\"\\\"\"}}"}}"#),
        ),
        (
            r#"{"query":"mutation { login(user: \"me\", password: \"s3cr3t\") { id } }"}"#,
            format!(
                r#"{{"query":"mutation {{ login(user: \"me\", password: \"{s}\") {{ id }} }}"}}"#
            ),
        ),
        (
            r#"{"url":"https://h/?token=s3cr3t&a=b"}"#,
            format!(r#"{{"url":"https://h/?token={s}&a=b"}}"#),
        ),
    ] {
        assert_eq!(body("application/json", written), expected);
        assert_eq!(body("", written), expected, "by its looks");
    }
    let numbers =
        body("application/json", r#"{"pin":1234,"cvv": 123,"n":1234,"card":4111111111111111}"#);
    let numbers: Value = serde_json::from_str(&numbers).unwrap();
    assert!(numbers["pin"] != 1234 && numbers["pin"].to_string().len() == 4, "{numbers}");
    assert!(numbers["cvv"] != 123 && numbers["n"] == 1234, "{numbers}");
    assert!(numbers["card"].is_u64() && numbers["card"] != 4_111_111_111_111_111_u64, "{numbers}");
}

#[test]
fn secrets_in_other_text_are_hidden() {
    let s = tag("s3cr3t");
    for (written, expected) in [
        ("password: s3cr3t\nuser: me\n", format!("password: {s}\nuser: me\n")),
        ("token = 's3cr3t', x = 1", format!("token = '{s}', x = 1")),
        ("[INFO] session=s3cr3t ok", format!("[INFO] session={s} ok")),
        (
            "Authorization: Bearer s3cr3t\r\nHost: h",
            format!("Authorization: {}\r\nHost: h", tag("Bearer s3cr3t")),
        ),
        ("x-auth: Bearer s3cr3t, y", format!("x-auth: Bearer {s}, y")),
        ("curl --password s3cr3t --retry 3", format!("curl --password {s} --retry 3")),
        ("--api-key=s3cr3t", format!("--api-key={s}")),
        ("<a><Password>s3cr3t</Password></a>", format!("<a><Password>{s}</Password></a>")),
        (
            "<w:Password Type=\"x\"><![CDATA[s3cr3t]]></w:Password>",
            format!("<w:Password Type=\"x\"><![CDATA[{s}]]></w:Password>"),
        ),
        (
            "<input type=hidden name=\"csrf_token\" value=\"s3cr3t\">",
            format!("<input type=hidden name=\"csrf_token\" value=\"{s}\">"),
        ),
        (
            "<meta content='s3cr3t' name='csrf-token'>",
            format!("<meta content='{s}' name='csrf-token'>"),
        ),
        (
            "<property name=\"password\">s3cr3t</property>",
            format!("<property name=\"password\">{s}</property>"),
        ),
        ("<user token=\"s3cr3t\" id=\"1\"/>", format!("<user token=\"{s}\" id=\"1\"/>")),
        ("postgres://app:s3cr3t@db:5432/x", format!("postgres://app:{s}@db:5432/x")),
        ("see https://s3cr3t@github.com/a", format!("see https://{s}@github.com/a")),
        ("password=\ns3cr3t\nuser=me", format!("password=\n{s}\nuser=me")),
        ("password:\r\n  s3cr3t\r\n", format!("password:\r\n  {s}\r\n")),
        ("token: |-\n  s3cr3t\nuser: me", format!("token: |-\n  {s}\nuser: me")),
        ("password:\nuser: me", "password:\nuser: me".to_owned()),
        ("password=\nuser=me", "password=\nuser=me".to_owned()),
        (
            "<c><password><v>s3cr3t</v></password><d>e</d></c>",
            format!("<c><password>{}</password><d>e</d></c>", tag("<v>s3cr3t</v>")),
        ),
        ("exit code=1, state: open", "exit code=1, state: open".to_owned()),
        ("a author: me, monkey=1 10:37:30", "a author: me, monkey=1 10:37:30".to_owned()),
    ] {
        assert_eq!(text(written), expected);
    }
    assert_eq!(text(&format!("got {JWT}.")), format!("got {}", tag(&format!("{JWT}."))));
    assert_eq!(text("card 4111 1111 1111 1111!"), format!("card {}!", tag("4111 1111 1111 1111")));
}

#[test]
fn form_fields_are_hidden_by_name() {
    let form = "--B\r\nContent-Disposition: form-data; name=\"password\"\r\n\r\ns3cr3t\r\n\
                --B\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nplain\r\n\
                --B\r\nContent-Disposition: form-data; name=\"j\"\r\nContent-Type: application/json\r\n\
                \r\n{\"token\":\"s3cr3t\"}\r\n--B--\r\n";
    let hidden = body("multipart/form-data; boundary=\"B\"", form);
    assert_eq!(hidden, form.replace("s3cr3t", &tag("s3cr3t")));
    for name in ["NAME=\"password\"", "name = password", "name*=UTF-8''pass%77ord"] {
        let form = form.replacen("name=\"password\"", name, 1);
        let hidden = body("multipart/form-data; boundary=\"B\"", &form);
        assert_eq!(hidden, form.replace("s3cr3t", &tag("s3cr3t")), "{name}");
    }
}

#[test]
fn binary_data_keeps_its_length() {
    let card = [&[0_u8, 1, 2, 255][..], b" 4111111111111111 ", &[0, 3]].concat();
    let hidden = redactor().body("application/octet-stream", &card).into_inner().into_owned();
    assert_eq!(hidden.len(), card.len());
    assert!(!hidden.windows(16).any(|part| part == b"4111111111111111"));
    let plain = [0_u8, 200, 7];
    assert_eq!(redactor().body("", &plain).changed(), None);
}

#[test]
fn bodies_that_are_no_text_are_redacted() {
    let secret = b"s3cr3t-Value";
    let holds = |body: &[u8]| body.windows(secret.len()).any(|part| part == secret);
    let wide = |text: &str, mark: &[u8], little: bool| {
        let units = text.encode_utf16();
        let bytes = units.flat_map(|u| if little { u.to_le_bytes() } else { u.to_be_bytes() });
        [mark, &bytes.collect::<Vec<_>>()].concat()
    };
    for (text, mark, little) in [
        ("{\"password\":\"s3cr3t-Value\",\"a\":1}", &b"\xff\xfe"[..], true),
        ("{\"password\":\"s3cr3t-Value\"}", b"\xfe\xff", false),
        ("<p><password>s3cr3t-Value</password></p>", b"", true),
        ("user=me&password=s3cr3t-Value", b"", false),
    ] {
        let written = wide(text, mark, little);
        let hidden = redactor().body("", &written).changed().unwrap();
        let expected = wide(&text.replace("s3cr3t-Value", &tag("s3cr3t-Value")), mark, little);
        assert_eq!(hidden, expected, "{text}");
        let plain = wide("{\"a\":\"plain\"}", mark, little);
        assert_eq!(redactor().body("", &plain).changed(), None);
    }
    // MessagePack and CBOR: {"id": 7, "password": "s3cr3t-Value"}.
    let pack = [b"\x82\xa2id\x07\xa8password\xac", &secret[..]].concat();
    let cbor = [b"\xa2\x62id\x07\x68password\x6c", &secret[..]].concat();
    let long = [b"\x81\xd9\x08password\xc5\x00\x0c", &secret[..]].concat();
    for body in [pack, cbor, long] {
        let hidden = redactor().body("application/octet-stream", &body).changed().unwrap();
        assert!(!holds(&hidden) && hidden.len() == body.len(), "{hidden:?}");
        assert_eq!(hidden[..body.len() - 12], body[..body.len() - 12]);
    }
    // Protocol Buffers: fields 1 and 14, whose key is printable, after the frame of gRPC.
    for key in [0x0a, 0x72] {
        let message = [&[0, 0, 0, 0, 16, 0x08, 0x07, key, 12][..], secret].concat();
        let hidden = redactor().body("application/grpc+proto", &message).changed().unwrap();
        assert!(!holds(&hidden) && hidden[..9] == message[..9], "{hidden:?}");
        assert_eq!(hidden.len(), message.len());
    }
    let printable =
        [&[0, 0, 0, 0, 36, 0x72, b' '][..], b"s3cr3t-Value of thirty-two bytes"].concat();
    let hidden = redactor().body("application/grpc", &printable).changed().unwrap();
    assert!(!holds(&hidden) && hidden[..7] == printable[..7], "{hidden:?}");
}

#[test]
fn credentials_are_hidden_after_their_scheme() {
    for name in ["X-Upstream", "Forwarded-Authz", "x"] {
        assert_eq!(header(name, "Bearer s3cr3t"), format!("Bearer {}", tag("s3cr3t")));
        assert_eq!(header(name, "basic bWU6czNjcg=="), format!("basic {}", tag("bWU6czNjcg==")));
    }
    assert_eq!(text("sent Bearer abc123def!"), format!("sent Bearer {}", tag("abc123def!")));
    for prose in ["the bearer of this", "basic auth", "Basic realm here", "a Bearer token."] {
        assert_eq!(text(prose), prose);
    }
}

#[test]
fn a_mask_is_the_same_everywhere() {
    let mask = Redactor::masking(SecretNames::default());
    for (written, expected) in [
        (
            "https://me:s3cr3t@h/a?token=s3cr3t&b=1",
            "https://me:[redacted]@h/a?token=[redacted]&b=1",
        ),
        ("password: s3cr3t", "password: [redacted]"),
        ("x: Bearer s3cr3t", "x: Bearer [redacted]"),
        ("{\"pin\":4711,\"token\":\"a\"}", "{\"pin\":1111,\"token\":\"[redacted]\"}"),
        ("http://****:****@h/", "http://****:****@h/"),
    ] {
        assert_eq!(mask.text(written), expected);
        assert_eq!(mask.text(expected), expected, "idempotent");
    }
    let message = "Get \"https://h/?token=s3cr3t\": refused, password: asked";
    assert_eq!(mask.urls(message), "Get \"https://h/?token=[redacted]\": refused, password: asked");
}

#[test]
fn equal_values_stay_equal_under_one_key() {
    let other = Redactor::new([8; 16], SecretNames::default());
    assert_eq!(redactor().tag(b"a"), redactor().tag(b"a"));
    assert_ne!(redactor().tag(b"a"), redactor().tag(b"b"));
    assert_ne!(redactor().tag(b"a"), other.tag(b"a"));
    assert_eq!(header("X-Token", "v"), tag("v"));
    assert_eq!(*redactor().target("/?token=v"), format!("/?token={}", tag("v")));
    assert!(is_redacted(tag("v").as_bytes()) && !is_redacted(b"redacted-0123"));
    assert!(!format!("{:?}", redactor()).contains('7'));
}

#[test]
fn names_can_be_configured_and_redaction_turned_off() {
    let list = |name: &str| vec![name.to_owned()];
    let custom = Redactor::new([7; 16], SecretNames::new(&list("customer"), &list("token")));
    assert_eq!(*custom.target("/?customer=1&token=2"), format!("/?customer={}&token=2", tag("1")));
    assert_eq!(*custom.header("Token", b"x"), b"x"[..]);
    let keeps = Redactor::new([7; 16], SecretNames::new(&[], &list("lang")));
    assert_eq!(
        *keeps.header("cookie", b"lang=en; a=1"),
        *format!("lang=en; a={}", tag("1")).as_bytes()
    );
    let off = Redactor::off();
    assert_eq!(*off.header("authorization", b"x"), b"x"[..]);
    assert_eq!(
        (off.target("/?token=x"), off.text("token=x")),
        (Redacted::plain("/?token=x"), Redacted::plain("token=x"))
    );
    assert!(!off.is_secret_name("password") && off.is_off());
}

#[test]
fn deep_and_hostile_documents_are_read_in_one_pass() {
    // Quadratic time would take minutes for each.
    let n = 1 << 17;
    for piece in [
        "[",
        "{\"a\":",
        "eyJ-",
        "sk-",
        "a=",
        "token=",
        "<a ",
        "<",
        "://",
        "%25",
        "a=%",
        "AKIA-",
        "\\",
        "\"",
        "a:\"",
        "'",
        "4 ",
        "cookies_on=",
        "preauthorization: ",
        "a b=c ",
        "-----BEGIN PRIVATE KEY-----",
        "--a ",
        "a=\\\"",
        "<![CDATA[",
        "&",
        "1",
    ] {
        let hostile = piece.repeat(n / piece.len());
        let begun = std::time::Instant::now();
        for kind in ["", "application/x-www-form-urlencoded", "multipart/form-data; boundary=a"] {
            let _ = redactor().body(kind, hostile.as_bytes());
        }
        let _ = redactor().target(&hostile);
        assert!(begun.elapsed().as_secs() < 30, "{piece}: {:?}", begun.elapsed());
    }
    let deep = format!("{}{}", "[".repeat(100_000), "\"s3cr3t\"");
    assert!(!body("application/json", &deep).contains("s3cr3t"), "deeply nested values are hidden");
}

proptest! {
    #[test]
    fn a_secret_member_is_hidden_anywhere(
        path in prop::collection::vec(("x[0-9]{1,6}", any::<bool>()), 0..6),
        name in prop::sample::select(vec!["password", "accessToken", "X-Api-Key", "session"]),
        secret in "[A-Za-z0-9\"\\\\é\n]{8,30}",
        strings in 0..3_usize,
        pretty in any::<bool>(),
    ) {
        let secret = format!("zQ{secret}Qz");
        let mut value = serde_json::json!({ name: secret });
        for (at, (key, list)) in path.iter().enumerate() {
            value = if *list { serde_json::json!([1, value]) } else { serde_json::json!({ key.clone(): value }) };
            if at < strings {
                value = serde_json::json!({ "inner": value.to_string() });
            }
        }
        let written =
            if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
        let written = written.unwrap();
        let hidden = body("application/json", &written);
        prop_assert!(!hidden.contains("zQ") && hidden.contains(&tag(&secret)), "{hidden}");
        prop_assert!(serde_json::from_str::<Value>(&hidden).is_ok(), "{hidden}");
        prop_assert_eq!(body("application/json", &hidden), hidden.clone(), "idempotent");
        // Truncated anywhere, the secret does not show.
        for cut in (0..written.len()).filter(|cut| written.is_char_boundary(*cut)) {
            let hidden = body("application/json", &written[..cut]);
            prop_assert!(!hidden.contains("zQ"), "{} -> {hidden}", &written[..cut]);
        }
    }

    #[test]
    fn any_bytes_are_accepted(bytes in prop::collection::vec(any::<u8>(), 0..300), which in 0..4_usize) {
        let kind = ["", "application/json", "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=a"][which];
        let once = redactor().body(kind, &bytes).into_inner().into_owned();
        prop_assert_eq!(redactor().body(kind, &once).is_empty(), once.is_empty());
        let _ = redactor().header("x", &bytes);
        let text = String::from_utf8_lossy(&bytes);
        let _ = (redactor().target(&text), redactor().text(&text), redactor().json(&text, true));
    }

    #[test]
    fn redaction_is_idempotent(
        pieces in prop::collection::vec(prop::sample::select(vec![
            "token=s3cr3t", "a=b", "password: 's3 cr3t'", "Authorization: Bearer s3cr3t\n",
            "<p token=\"s3cr3t\" a='1'/>", "<password>s3cr3t</password>", "\"key\": \"s3cr3t\"",
            "https://me:s3cr3t@h/a?code=s3cr3t#state=s3cr3t", "--secret s3cr3t", "x", "cookie: a=1\n",
            "r=https%3A%2F%2Fh%2F%3Ftoken%3Ds3cr3t", "4111111111111111",
        ]), 0..8),
        separator in prop::sample::select(vec![" ", "\n", " & ", ", "]),
    ) {
        let written = pieces.join(separator);
        let once = text(&written);
        prop_assert!(!once.contains("cr3t") && !once.contains("1111"), "{written} -> {once}");
        prop_assert_eq!(text(&once), once.clone(), "{}", written);
    }
}
