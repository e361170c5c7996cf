//! Scripts that compute: what an iteration does beside its requests.

/// Kinds of work that load scripts do, each with what precedes its loop, and an iteration's body.
pub const KINDS: [(&str, &str, &str); 12] = [
    ("empty loop", "", "let n = 0; for (let i = 0; i < 3e6; i++) n += i & 7; return n;"),
    (
        "JSON",
        "const rows = Array.from({ length: 500 }, (_, i) => ({ id: i, name: 'row ' + i, tags: ['a', 'b'] }));",
        "let n = 0; for (let i = 0; i < 100; i++) n += JSON.parse(JSON.stringify(rows)).length; return n;",
    ),
    (
        "sorting",
        "const numbers = Array.from({ length: 20000 }, (_, i) => (i * 7919) % 20011);",
        "let n = 0; for (let i = 0; i < 8; i++) n += [...numbers].sort((a, b) => a - b)[5]; return n;",
    ),
    (
        "Map",
        "",
        "const map = new Map(); for (let i = 0; i < 3e5; i++) map.set('k' + (i % 5000), i); return map.size;",
    ),
    (
        "objects",
        "",
        "let last = {}; for (let i = 0; i < 3e5; i++) last = { a: i, b: last.a, c: [i] }; return last.a;",
    ),
    (
        "strings",
        "",
        "let n = 0; for (let i = 0; i < 1e5; i++) n += `user-${i}`.toUpperCase().split('-')[1].length; return n;",
    ),
    (
        "regular expressions",
        "const text = 'token=abc123; id=42; '.repeat(50);",
        "let n = 0; for (let i = 0; i < 500; i++) for (const m of text.matchAll(/id=(\\d+)/g)) n += +m[1]; return n;",
    ),
    (
        "closures",
        "const list = Array.from({ length: 1000 }, (_, i) => i);",
        "let n = 0; for (let i = 0; i < 300; i++) n += list.map((x) => x * 2).filter((x) => x % 3).reduce((a, b) => a + b, 0); return n;",
    ),
    (
        "classes",
        "class Point { constructor(x) { this.x = x; } get double() { return this.x * 2; } move(by) { this.x += by; return this; } }",
        "let n = 0; for (let i = 0; i < 3e5; i++) n += new Point(i).move(1).double; return n;",
    ),
    (
        "typed arrays",
        "",
        "const bytes = new Uint8Array(1e6); for (let i = 0; i < bytes.length; i++) bytes[i] = i * 31; return bytes[77];",
    ),
    (
        "hashes",
        "import crypto from 'k6/crypto';",
        "let n = 0; for (let i = 0; i < 20000; i++) n += crypto.sha256('user ' + i, 'hex').length; return n;",
    ),
    (
        "base64",
        "import encoding from 'k6/encoding';",
        "let n = 0; for (let i = 0; i < 50000; i++) n += encoding.b64encode('user ' + i).length; return n;",
    ),
];

/// The script of a kind.
pub fn script(before: &str, body: &str) -> String {
    format!("{before}\nexport default function () {{ {body} }}\n")
}
