//! Scripts as they are loaded.

use std::io::Write;

use super::*;
use crate::testing::words;
use crate::wrk::options::Tool;

/// The script loaded against a listener that only accepts.
fn load(text: &str, line: &str) -> Result<LuaScript, String> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/a?b", listener.local_addr().unwrap());
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let path = file.path().to_str().unwrap();
    let line = format!("-s x.lua {}", line.replace("URL", &url));
    let options = WrkOptions::read(Tool::Wrk, &words(&line)).unwrap();
    LuaScript::load(path, &options).map_err(|why| why.replace(path, "x.lua"))
}

fn request(script: &LuaScript, thread: usize) -> String {
    String::from_utf8(script.threads[thread].request().unwrap()).unwrap()
}

#[test]
fn each_thread_has_its_state_and_setup_reaches_all() {
    let script = load(
        "local n = 0\n\
         function setup(thread) n = n + 1; thread:set('t', {id = n, list = {1, 'x'}}) end\n\
         function init(args) wrk.headers['X'] = args[0]:sub(1, 7) .. args[1]; id = t.id end\n\
         function request() id = id + 10; return wrk.format(nil, '/' .. id) end",
        "-t2 -H A:b URL -- c",
    )
    .unwrap();
    // The first request of the first thread was the check.
    assert!(request(&script, 0).starts_with("GET /21 HTTP/1.1\r\n"));
    let second = request(&script, 1);
    assert!(second.starts_with("GET /12 HTTP/1.1\r\n"), "{second}");
    for line in ["\r\nA: b\r\n", "\r\nX: http://c\r\n", "\r\nHost: 127.0.0.1:"] {
        assert!(second.contains(line), "{second}");
    }
    assert!(script.is_dynamic && !script.wants_response && !script.has_delay);
    let handle = ThreadHandle(Arc::clone(&script.threads[1]));
    script.main.globals().set("thread", handle).unwrap();
    let text = "return thread:get('t').list[2] .. thread:get('id') .. tostring(thread:get('no'))";
    assert_eq!(script.main.load(text).eval::<String>().unwrap(), "x12nil");
    let text = "thread:stop() thread:set('f', print)";
    let error = script.main.load(text).exec().unwrap_err().to_string();
    assert!(error.contains("cannot transfer 'function' to thread"), "{error}");
    assert!(script.threads[1].is_stopped() && !script.threads[0].is_stopped());
}

#[test]
fn a_static_request_is_made_of_the_table() {
    let text = "wrk.method = 'POST'; wrk.body = 'a=b'; wrk.headers['C'] = 1";
    let script = load(text, "-t1 URL").unwrap();
    let request = request(&script, 0);
    assert!(request.starts_with("POST /a?b HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("\r\nContent-Length: 3\r\n") && request.ends_with("\r\n\r\na=b"));
    assert!(!script.is_dynamic && script.responses == 1);
    let text = "request = function() return wrk.format() .. wrk.format('PUT', '/', {}, 'b') end";
    assert_eq!(load(text, "-t1 URL").unwrap().responses, 2);
}

#[test]
fn what_luajit_has_and_lua_lacks() {
    let text = "local f = string.format\n\
        assert(f('%s %s %5.1f %d', nil, true, 1.25, 3) == 'nil true   1.2 3')\n\
        assert(f('%s', setmetatable({}, {__tostring = function() return 'T' end})) == 'T')\n\
        assert(bit.band(7, 14, 12) == 4 and bit.bor(1, 8) == 9 and bit.bxor(5, 1) == 4)\n\
        assert(bit.lshift(1, 31) == -2147483648 and bit.rshift(-1, 28) == 15)\n\
        assert(bit.tohex(255) == '000000ff' and bit.bnot(0) == -1 and bit.rol(1, 33) == 2)";
    load(text, "-t1 URL").unwrap();
    let why = load("x = 1\n('%d'):format('a')", "-t1 URL").unwrap_err();
    assert!(why.starts_with("x.lua:2: bad argument"), "{why}");
}

#[test]
fn errors_have_file_and_line() {
    for (text, expected) in [
        ("\nx = = 1", "x.lua:2: unexpected symbol near '='"),
        ("\n\nfoo()", "x.lua:3: attempt to call global 'foo' (a nil value)"),
        ("function init()\nerror('no') end", "x.lua:2: no"),
        ("function setup(t)\nt:set('f', print) end", "x.lua:2: cannot transfer"),
        ("function init()\nwrk.lookup('h', 'gopher') end", "x.lua:2: unable to resolve h:gopher"),
        ("function request() return 'GET' end", "x.lua: request() returned no whole HTTP request"),
        ("function request() return nil end", "string"),
    ] {
        let why = load(text, "-t1 URL").unwrap_err();
        assert!(why.contains(expected), "{text:?}: {why}");
    }
}

#[test]
fn a_target_is_taken_apart_as_written() {
    let of = |url| Target::of(url).map(|t| (t.scheme, t.host, t.port, t.path)).unwrap();
    let own = |text: &str| text.to_owned();
    assert_eq!(of("https://u@h/x?y"), (own("https"), own("h"), None, own("/x?y")));
    assert_eq!(of("http://[::1]:80"), (own("http"), own("::1"), Some(own("80")), own("/")));
}
