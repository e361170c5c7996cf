//! Native work of the engine ends at a call's deadline, wherever it is.

// The published QuickJS does not interrupt it.
#![cfg(patched_quickjs)]
#![allow(clippy::unwrap_used, missing_docs)] // the helpers are tests too

use std::sync::Arc;
use std::time::{Duration, Instant};

use gake_script::{ConsoleSink, ScriptError, ScriptLimits, ScriptSource, ScriptThreads};

/// Time limit of a call that never returns.
const LIMIT: Duration = Duration::from_millis(50);

/// Until the thread takes the next call, on a busy machine. Without interrupts each entry takes
/// minutes at least.
const FREE: Duration = Duration::from_secs(20);

/// What scripts below share. `far` has elements at no place: all loops over it are slow paths.
const PRELUDE: &str = "
    const far = { length: 2 ** 53 - 1 };
    const wide = new Array(2 ** 32 - 2);
    const proto = Array.prototype;
    const typed = Object.getPrototypeOf(Uint8Array.prototype);
    const text = 'a'.repeat(2e7);
    const needle = 'a'.repeat(1e7) + 'b';
    const endless = () => Iterator.from({ next: () => ({ done: false, value: 1 }) });
    const setLike = { size: 1, has: () => false, keys: () => endless() };
    const forever = (step) => { for (;;) step(); };
";

/// A loop whose length a script decides, and what does not end in it.
const NATIVE: &[(&str, &str)] = &[
    ("sort", "proto.sort.call(far)"),
    (
        "sort of numbers",
        "const a = []; for (let i = 0; i < 1e6; i++) a.push(i % 1000); forever(() => a.sort())",
    ),
    ("reverse", "proto.reverse.call(far)"),
    ("splice", "proto.splice.call({ length: 2 ** 53 - 2 }, 1, 0, 1)"),
    ("join", "proto.join.call(far, '')"),
    ("join of a wide array", "wide.join('')"),
    ("toString", "wide.toString()"),
    ("toLocaleString", "proto.toLocaleString.call(far)"),
    (
        "concat",
        "const c = { length: 2 ** 53 - 1, [Symbol.isConcatSpreadable]: true }; [].concat(c)",
    ),
    ("copyWithin", "proto.copyWithin.call(far, 1, 0)"),
    ("unshift", "proto.unshift.call({ length: 2 ** 53 - 2 }, 1)"),
    ("shift", "proto.shift.call(far)"),
    (
        "flat",
        "const l = new Proxy([], { get: (t, k) => k === 'length' ? 2 ** 53 - 1 : undefined, has: () => false }); proto.flat.call(l)",
    ),
    ("flatMap", "wide.flatMap((x) => x)"),
    ("fill", "proto.fill.call(far, 0)"),
    ("indexOf", "proto.indexOf.call(far, 1)"),
    ("includes", "proto.includes.call(far, 1)"),
    ("lastIndexOf", "proto.lastIndexOf.call(far, 1)"),
    ("slice", "proto.slice.call(wide, 0)"),
    ("forEach", "proto.forEach.call(far, (x) => x)"),
    ("some", "proto.some.call(far, (x) => x)"),
    ("reduce", "proto.reduce.call(far, (x) => x)"),
    ("reduceRight", "proto.reduceRight.call(far, (x) => x)"),
    ("find", "proto.find.call(far, () => false)"),
    ("findLast", "proto.findLast.call(far, () => false)"),
    ("from", "Array.from.call(function () { return {}; }, far)"),
    (
        "from of an iterator",
        "Array.from.call(function () { return new Proxy({}, { defineProperty: () => true }); }, endless())",
    ),
    ("indexOf of long texts", "const a = Array(1e6).fill(needle + 'x'); a.indexOf(needle + 'y')"),
    ("includes of long texts", "const a = Array(1e6).fill(needle + 'x'); a.includes(needle + 'y')"),
    (
        "lastIndexOf of long texts",
        "const a = Array(1e6).fill(needle + 'x'); a.lastIndexOf(needle + 'y')",
    ),
    ("sort of long texts", "const a = []; for (let i = 0; i < 1e5; i++) a.push(needle); a.sort()"),
    ("String indexOf", "text.indexOf(needle)"),
    ("String lastIndexOf", "text.lastIndexOf('b' + 'a'.repeat(1e7))"),
    ("String includes", "text.includes(needle)"),
    ("String split", "text.split(needle)"),
    ("String replace", "text.replace(needle, '')"),
    ("String replaceAll", "text.replaceAll(needle, '')"),
    ("String normalize", "forever(() => '\\u0301\\u0323'.repeat(1e5).normalize('NFD'))"),
    (
        "String localeCompare",
        "const m = '\\u0301\\u0323'.repeat(1e5); forever(() => m.localeCompare(m + 'a'))",
    ),
    ("String repeat", "forever(() => 'ab'.repeat(1e7))"),
    ("String padStart", "forever(() => ''.padStart(1e7, 'ab'))"),
    ("String comparison", "const a = needle + 'x', b = needle + 'y'; forever(() => a < b)"),
    ("RegExp", "/(a+)+$/.test('a'.repeat(100) + 'b')"),
    ("RegExp replace", "forever(() => text.replace(/a/g, 'b'))"),
    (
        "JSON.stringify of a list",
        "JSON.stringify(new Proxy([], { get: (t, k) => k === 'length' ? 2 ** 53 - 1 : undefined }))",
    ),
    ("JSON.parse", "const t = '[' + '1,'.repeat(5e5) + '1]'; forever(() => JSON.parse(t))"),
    ("Iterator drop", "[].values().constructor; endless().drop(1e15).next()"),
    ("Iterator every", "endless().every(() => true)"),
    ("Iterator forEach", "endless().forEach(() => {})"),
    ("Iterator reduce", "endless().reduce((a) => a)"),
    (
        "spread of a wide array's values",
        "Math.max(...(function* () { for (;;) yield* wide.keys(); })().filter(() => false))",
    ),
    ("destructuring of native iterators", "const [a] = wide.values().filter(() => false)"),
    ("Map of pairs", "new Map(endless().map(() => [1, 1]))"),
    ("Set of values", "new Set(endless())"),
    ("Set isSupersetOf", "new Set([1]).isSupersetOf(setLike)"),
    ("Set isDisjointFrom", "new Set([2, 3]).isDisjointFrom(setLike)"),
    ("Object.fromEntries", "Object.fromEntries(endless().map(() => [1, 1]))"),
    (
        "Object.groupBy",
        "Object.groupBy({ length: 1, [Symbol.iterator]: endless }, () => { throw 1; }); forever(() => {})",
    ),
    ("Promise.all", "Promise.all({ [Symbol.iterator]: endless })"),
    ("typed sort", "forever(() => new Float64Array(4e6).map(Math.random).sort())"),
    ("typed sort by a function", "new Float64Array(4e6).map(Math.random).sort((a, b) => a - b)"),
    ("typed fill", "const t = new Uint8Array(5e7); forever(() => t.fill(1))"),
    ("typed reverse", "const t = new Uint8Array(5e7); forever(() => t.reverse())"),
    ("typed indexOf", "const t = new Float32Array(1e7); forever(() => t.indexOf(1))"),
    (
        "typed set",
        "const t = new Uint8Array(2e7), u = new Float32Array(5e6); forever(() => t.set(u))",
    ),
    ("typed join", "forever(() => new Uint8Array(1e6).join(''))"),
    ("typed from a list", "forever(() => Uint8Array.from(Array(1e6)))"),
    ("typed copyWithin", "const t = new Uint8Array(5e7); forever(() => t.copyWithin(1, 0))"),
    ("BigInt power", "const big = 3n ** 60000n; forever(() => big * big)"),
    (
        "BigInt division",
        "const big = 3n ** 500000n, half = 3n ** 250000n; forever(() => big / half)",
    ),
    ("BigInt toString", "const big = 3n ** 600000n; forever(() => big.toString(7))"),
    ("BigInt of a text", "const t = '7'.repeat(3e5); forever(() => BigInt(t))"),
    ("encodeURIComponent", "forever(() => encodeURIComponent('%'.repeat(1e6)))"),
    ("escape", "forever(() => escape('%'.repeat(1e6)))"),
    (
        "Proxy chain",
        "let p = {}; for (let i = 0; i < 200; i++) p = new Proxy(p, {}); forever(() => p.x)",
    ),
    (
        "prototype cycle by proxies",
        "const p = new Proxy({}, { getPrototypeOf: () => p }); p instanceof Array; forever(() => {})",
    ),
    (
        "own arguments of a bound chain",
        "forever(() => Reflect.apply(Math.max, null, { length: 65000 }))",
    ),
    (
        "array-like of a getter",
        "proto.at.call(far, 1); forever(() => proto.toSpliced.call({ length: 1e6 }, 0, 1))",
    ),
    ("with", "forever(() => proto.with.call({ length: 1e6 }, 0, 1))"),
    ("toReversed", "forever(() => proto.toReversed.call({ length: 1e6 }))"),
    ("toSorted", "forever(() => proto.toSorted.call({ length: 1e6 }))"),
    ("String.raw", "String.raw({ raw: far })"),
    ("parsing of many tokens", "const t = '1;'.repeat(3e6); forever(() => eval(t))"),
    ("parsing of what is read ahead", "eval('['.repeat(1e6))"),
    ("classes of a RegExp", "new RegExp('[^a-z\\\\p{L}]'.repeat(1e5), 'iu')"),
    (
        "a long chain of prototypes",
        "let p = {}; for (let i = 0; i < 1e6; i++) p = Object.create(p); forever(() => p.x + ('y' in p))",
    ),
    ("functions of the host", "forever(() => console.log('slow'))"),
    (
        "Error of a deep stack",
        "const f = (n) => n ? f(n - 1) : new Error().stack; forever(() => f(100))",
    ),
];

#[test]
fn native_loops_end_at_the_deadline() {
    let only = std::env::var("NATIVE").unwrap_or_default();
    // Ten thousand such calls in a row would take minutes.
    let slow: ConsoleSink = Arc::new(|_, _| std::thread::sleep(Duration::from_millis(20)));
    let mut stuck = Vec::new();
    for (name, call) in NATIVE.iter().filter(|(name, _)| name.contains(&only)) {
        let text = format!(
            "{PRELUDE} export function f() {{ {call}; }} export function g() {{ return 1; }}"
        );
        let script = ScriptSource::text("native.js", &text);
        let limits = ScriptLimits { memory: 256 << 20, load: FREE, ..ScriptLimits::default() };
        let threads = ScriptThreads::start(&script, limits, 1, &slow);
        let threads = threads.unwrap();
        let ended = threads.call("f", vec![], LIMIT);
        // It may also fail: for the heap, or a length.
        let began = Instant::now();
        let next = threads.call("g", vec![], FREE);
        if next.is_err() {
            stuck.push(format!("{name}: {next:?}"));
        }
        eprintln!(
            "{name}: {:?}, then free in {:?}",
            ended.map_err(|e| e.to_string()),
            began.elapsed()
        );
        if matches!(next, Err(ScriptError::Gone)) {
            break;
        }
    }
    assert!(stuck.is_empty(), "{}", stuck.join("\n"));
}
