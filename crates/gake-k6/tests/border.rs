//! Values of every kind cross the border between script and engine: each is taken or refused.

#![allow(clippy::expect_used, missing_docs)] // the helpers are tests too

#[path = "border/harness.rs"]
mod harness;

use gake_k6::user::script_user::CallEnd;
use harness::{Crossed, cross};

/// Values that some taker may not expect.
const VALUES: &[&str] = &[
    "undefined",
    "null",
    "NaN",
    "-0",
    "1e308 * 10",
    "10n ** 40n",
    "Symbol('s')",
    "'\\ud800'",
    "'a\\0b'",
    "'x'.repeat(100_000)",
    "() => {}",
    "async () => { throw 1 }",
    "Promise.reject(new Error('no'))",
    "new Array(4_000_000_000)",
    "Object.assign([], { length: 3, extra: 1 })",
    "new Proxy({}, { get() { throw new Error('trap') }, ownKeys() { return ['a'] } })",
    "new Proxy([], { get: () => Infinity })",
    "({ get a() { throw 1 }, toString() { throw 2 }, toJSON() { throw 3 } })",
    "({ valueOf: () => ({}), toString: () => ({}) })",
    "({ __proto__: null, constructor: 1 })",
    "(() => { const o = {}; o.o = o; return o })()",
    "(() => { let o = {}; for (let i = 0; i < 1e4; i++) o = [o]; return o })()",
    "(() => { let o = {}; for (let i = 0; i < 40; i++) o = [o, o]; return o })()",
    "new Uint8Array(new ArrayBuffer(8), 4)",
    "new DataView(new ArrayBuffer(8), 1, 3)",
    "structuredClone ? 1 : 2",
    "new Date(NaN)",
    "new Map([[1, { a: new Set([2]) }]])",
    "new WeakRef({})",
    "/(a+)+$/g",
    "class A extends Error { constructor() { super(); throw this } }; A",
    "({ method: 'GET\\r\\nX: y', url: 'http://[::', body: { a: [1, { b: 2 }] }, params: { timeout: -1 } })",
    "({ headers: { 'a\\nb': 'c\\r\\nd', '': '' }, cookies: { a: { value: {}, replace: 1 } } })",
    "[['GET', 'http://a b/'], { url: null }, 7, []]",
    "globalThis",
    "arguments",
    "throw 1",
];

#[test]
fn values_of_every_kind_are_taken_or_refused() {
    for value in VALUES {
        let crossed = cross(value);
        assert!(
            !matches!(crossed, Crossed::Ended(CallEnd::NoData(_))),
            "{value}: only setup's data is judged: {crossed:?}"
        );
    }
    assert_eq!(cross("1"), Crossed::Ended(CallEnd::Returned(None)));
}
