//! Calls of scripts: results, limits, errors.

#![allow(clippy::unwrap_used)] // the helpers are tests too

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use expect_test::expect;
use gake_script::{
    ConsoleSink, Export, ScriptError, ScriptLimits, ScriptSource, ScriptThreads, Value,
};

/// For tests that are not about time, on a busy machine.
const LONG: Duration = Duration::from_secs(60);
/// For scripts that never end.
const SHORT: Duration = Duration::from_millis(200);

fn silent() -> ConsoleSink {
    Arc::new(|_, _| {})
}

fn start(text: &str) -> Result<ScriptThreads, ScriptError> {
    ScriptThreads::start(
        &ScriptSource::text("hooks.js", text),
        ScriptLimits::default(),
        1,
        &silent(),
    )
}

fn call(threads: &ScriptThreads, arguments: Vec<Value>) -> Result<Value, String> {
    threads.call("f", arguments, LONG).map_err(|error| error.to_string())
}

fn returned(text: &str) -> Result<Value, String> {
    call(&start(text).unwrap(), vec![])
}

#[test]
fn values_survive_a_round_trip() {
    let identity = start("export function f(x) { return x }").unwrap();
    for value in [
        Value::Null,
        Value::Bool(true),
        Value::Number(1.5),
        Value::Number(-9e15),
        Value::text("zwölf\0€\u{1f600}"),
        Value::Bytes(Bytes::from_static(&[0, 255, 1])),
        Value::List(vec![Value::Null, Value::List(vec![]), Value::text("")]),
        Value::map([("b", Value::Number(1.0)), ("a", Value::map([]))]),
        // Names that all objects inherit.
        Value::map([("__proto__", Value::text("x")), ("constructor", Value::Bool(false))]),
    ] {
        assert_eq!(call(&identity, vec![value.clone()]), Ok(value));
    }
}

#[test]
fn exports_are_known() {
    let script = start(
        "export const options = {body: 'text', names: ['a']}; export let f = () => 1;
         export const odd = Symbol(); const own = 1; await null; export class C {}",
    )
    .unwrap();
    let options =
        Value::map([("body", Value::text("text")), ("names", Value::List(vec![Value::text("a")]))]);
    assert_eq!(script.export("options"), Some(&Export::Value(options)));
    assert_eq!(script.export("f"), Some(&Export::Function));
    assert_eq!(script.export("odd"), Some(&Export::Other));
    assert_eq!(script.export("own"), None);
}

#[test]
fn promises_are_awaited_unless_they_never_settle() {
    let soon = "export async function f() { await null; await 0; return 7 }";
    assert_eq!(returned(soon), Ok(Value::Number(7.0)));
    let never = "export const f = () => new Promise(() => {})";
    expect!["f returned a promise that never settles"].assert_eq(&returned(never).unwrap_err());
    let rejected = "export async function f() {\n throw new TypeError('no') }";
    assert_eq!(returned(rejected), Err("hooks.js:2:8: TypeError: no".to_owned()));
}

#[test]
fn state_persists_between_calls() {
    let counter = start("let n = 0; export const f = () => ++n").unwrap();
    assert_eq!(call(&counter, vec![]), Ok(Value::Number(1.0)));
    assert_eq!(call(&counter, vec![]), Ok(Value::Number(2.0)));
}

#[test]
fn exceptions_have_a_place_and_a_stack() {
    let source = "const g = () => {\n  null.x;\n};\nexport function f() { g() }";
    let script = start(source).unwrap();
    let Err(ScriptError::Thrown(exception)) = script.call("f", vec![], LONG) else {
        panic!("it returned")
    };
    assert_eq!(exception.place, "hooks.js:2:8");
    assert!(exception.message.starts_with("TypeError: "), "{exception}");
    assert_eq!(exception.stack.lines().count(), 2, "{}", exception.stack);
    for (thrown, message) in [
        ("'a string'", "a string"),
        ("{toString() { throw 1 }}", "a value that cannot be shown"),
        ("Object.create(null)", "a value that cannot be shown"),
        ("undefined", "undefined"),
    ] {
        let source = format!("export function f() {{ throw {thrown} }}");
        assert_eq!(returned(&source), Err(message.to_owned()), "{thrown}");
    }
}

#[test]
fn an_exception_does_not_leak_into_the_next_call() {
    let script = start("export function f(x) { if (x) throw x; return 'fine' }").unwrap();
    for _ in 0..3 {
        assert!(call(&script, vec![Value::text("bad")]).is_err());
        assert_eq!(call(&script, vec![]), Ok(Value::text("fine")));
    }
}

#[test]
fn invalid_scripts_are_rejected_with_a_place() {
    for (text, message) in [
        ("let a = 1;\nlet b = ;\n", "hooks.js:2:9: SyntaxError: "),
        ("\nthrow new RangeError('early')", "hooks.js:2:7: RangeError: early"),
        ("await new Promise(() => {})", "hooks.js returned a promise that never settles"),
    ] {
        let error = start(text).unwrap_err().to_string();
        assert!(error.starts_with(message), "{text:?}: {error}");
    }
}

#[test]
fn endless_calls_are_interrupted_and_the_next_call_works() {
    for endless in [
        "for (;;);",
        "for (;;) { try { for (;;); } catch {} finally { continue } }",
        "const again = () => Promise.resolve().then(again); return again()",
        "/(x+x+)+y/.test('x'.repeat(100))",
        "return { get x() { for (;;); } }",
        "return new Proxy({}, { ownKeys() { for (;;); } })",
    ] {
        let source = format!("export function f(x) {{ if (x) return x; {endless} }}");
        let script = start(&source).unwrap();
        let error = script.call("f", vec![], SHORT).unwrap_err();
        assert!(matches!(error, ScriptError::Late { .. }), "{endless}: {error}");
        // Interrupted, not abandoned: the same thread serves the next call.
        assert_eq!(call(&script, vec![Value::Number(1.0)]), Ok(Value::Number(1.0)), "{endless}");
    }
}

#[test]
fn an_endless_script_is_not_loaded() {
    let limits = ScriptLimits { load: SHORT, ..ScriptLimits::default() };
    let error = |text| {
        let source = ScriptSource::text("s.js", text);
        let error = ScriptThreads::start(&source, limits, 1, &silent()).unwrap_err();
        error.to_string() + "\n"
    };
    let texts = ["for (;;);", "const a = () => Promise.resolve().then(a); await a()"];
    expect![[r#"
        s.js took longer than 200ms
        s.js took longer than 200ms
    "#]]
    .assert_eq(&texts.map(error).concat());
}

#[test]
fn memory_is_bounded_and_freed() {
    for bomb in [
        "const a = []; for (;;) a.push(new Array(1000).fill(1))",
        "let s = 'x'; for (;;) s += s + Math.random()",
        "return new Uint8Array(1 << 30)",
        "return 'x'.repeat(1 << 29)",
    ] {
        let source = format!("export function f(x) {{ if (x) return x; {bomb} }}");
        let script = start(&source).unwrap();
        let error = script.call("f", vec![], LONG).unwrap_err();
        assert!(matches!(error, ScriptError::Thrown(_)), "{bomb}: {error}");
        assert_eq!(call(&script, vec![Value::text("x")]), Ok(Value::text("x")), "{bomb}");
    }
}

#[test]
fn recursion_is_bounded() {
    let deep = "let a = []; for (let i = 0; i < 1e5; i++) a = [a]; return";
    for bomb in [
        "const g = (x) => g(x + 1) + 1; g(0)".to_owned(),
        "const o = { toString() { return `${o}` } }; `${o}`".to_owned(),
        format!("{deep} JSON.stringify(a)"),
        format!("{deep} a"),
        "return JSON.parse('['.repeat(1e6))".to_owned(),
        "new RegExp('('.repeat(1e5) + ')'.repeat(1e5)).test('')".to_owned(),
    ] {
        let source = format!("export function f(x) {{ if (x) return x; {bomb} }}");
        let script = start(&source).unwrap();
        script.call("f", vec![], LONG).unwrap_err();
        assert_eq!(call(&script, vec![Value::Bool(true)]), Ok(Value::Bool(true)), "{bomb}");
    }
}

#[test]
fn values_without_an_equivalent_are_rejected() {
    let values = [
        "() => 1",
        "10n",
        "new Array(4e9)",
        "(() => { const a = []; a[0] = a; return a })()",
        "'\\ud800'",
    ];
    let error = |value| {
        let source = format!("export function f() {{ return {value} }}");
        returned(&source).expect_err(value) + "\n"
    };
    expect![[r#"
        f returned a function, a symbol or a BigInt
        f returned a function, a symbol or a BigInt
        f returned too many values
        f returned a value that is nested too deeply
        f returned a string that is not Unicode (half of a surrogate pair)
    "#]]
    .assert_eq(&values.map(error).concat());
    let odd = "export const f = () => ({a: 1, g() {}, b: undefined, [Symbol()]: 1})";
    assert_eq!(returned(odd), Ok(Value::map([("a", Value::Number(1.0))])));
}

#[test]
fn a_script_has_no_access_to_the_machine() {
    let seen = "export const f = () => [typeof require, typeof process, typeof std, typeof os, \
                typeof fetch, typeof setTimeout].join()";
    assert_eq!(returned(seen), Ok(Value::text(["undefined"; 6].join(","))));
    for module in ["std", "os", "qjs:std", "./other.js", "/etc/passwd"] {
        let error = start(&format!("import * as x from '{module}'")).unwrap_err().to_string();
        assert!(error.contains("cannot import modules"), "{error}");
    }
}

#[test]
fn imports_stay_below_the_folder() {
    let outside = tempfile::tempdir().unwrap();
    let folder = outside.path().join("hooks");
    std::fs::create_dir_all(folder.join("lib")).unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    write("lib/a.js", "import { b } from '../b.js'; export const a = b + 1");
    write("b.js", "export const b = 1");
    write("bad.js", "export const = 1");
    std::fs::write(outside.path().join("secret.js"), "export const b = 2").unwrap();
    std::os::unix::fs::symlink(outside.path().join("secret.js"), folder.join("link.js")).unwrap();
    let main = folder.join("main.js");
    let load = |text: &str| {
        std::fs::write(&main, text).unwrap();
        let script = ScriptThreads::start(
            &ScriptSource::file(&main)?,
            ScriptLimits::default(),
            1,
            &silent(),
        )?;
        script.call("f", vec![], LONG)
    };

    let good = load("import { a } from './lib/a.js'; export const f = () => a");
    assert_eq!(good.unwrap(), Value::Number(2.0));
    let later = load("export const f = async () => (await import('./lib/a.js')).a");
    assert_eq!(later.unwrap(), Value::Number(2.0));
    for (from, message) in [
        ("../secret.js", "outside the script's folder"),
        ("./link.js", "outside the script's folder"),
        ("./lib/../../secret.js", "outside the script's folder"),
        ("/etc/passwd", "starts with ./"),
        ("lodash", "starts with ./"),
        ("./none.js", "No such file"),
        ("./bad.js", "bad.js:1:14: SyntaxError"),
    ] {
        let error = load(&format!("import '{from}'; export const f = 1")).unwrap_err().to_string();
        assert!(error.contains(message), "{from}: {error}");
    }
    let missing = ScriptSource::file(&folder.join("none.js")).unwrap_err().to_string();
    assert!(missing.starts_with("cannot read ") && missing.contains("none.js"), "{missing}");
}

#[test]
fn console_lines_go_to_the_sink() {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&lines);
    let sink: ConsoleSink = Arc::new(move |level, line: &str| {
        kept.lock().unwrap().push(format!("{level:?}: {line}"));
    });
    let text = "console.log('a', 1, null, undefined, true, 2n, Symbol('s'));
        console.warn({a: [1]}, [], 'x'.repeat(10000)); console.error(new TypeError('t'));
        const o = {}; o.o = o; console.log(o, Object.create(null)); console.info();";
    ScriptThreads::start(&ScriptSource::text("s.js", text), ScriptLimits::default(), 1, &sink)
        .unwrap();
    let lines = lines.lock().unwrap();
    assert_eq!(lines[0], "Log: a 1 null undefined true 2 s");
    assert!(lines[1].starts_with("Warn: {\"a\":[1]} [] xxx") && lines[1].ends_with("x ..."));
    assert!(lines[1].len() < 9000);
    assert!(
        lines[2].starts_with("Error: TypeError: t\n    at <anonymous> (s.js:2:"),
        "{}",
        lines[2]
    );
    assert_eq!(lines[3..], ["Log: [object] {}", "Log: "]);
}

#[test]
fn calls_do_not_wait_beyond_the_limit_for_busy_threads() {
    let script = ScriptThreads::start(
        &ScriptSource::text("s.js", "export const f = (x) => { while (x); return 1 }"),
        ScriptLimits::default(),
        2,
        &silent(),
    )
    .unwrap();
    let started = Instant::now();
    let late = std::thread::scope(|scope| {
        let call = || script.call("f", vec![Value::Bool(true)], SHORT).unwrap_err();
        let calls: Vec<_> = (0..8).map(|_| scope.spawn(call)).collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect::<Vec<_>>()
    });
    // In sequence, they would have taken 8 times as long, or forever.
    assert!(started.elapsed() < LONG, "{:?}", started.elapsed());
    assert!(
        late.iter().all(|error| matches!(error, ScriptError::Late { .. } | ScriptError::Busy(_))),
        "{late:?}"
    );
    assert_eq!(call(&script, vec![]), Ok(Value::Number(1.0)));
}
