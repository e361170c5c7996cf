//! Random scripts, made of parts that can be left out one by one.

/// Where a part stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Init,
    Option,
    Scenario,
    Threshold,
    Setup,
    Body,
    Teardown,
    Summary,
}

/// A script.
#[derive(Debug, Clone)]
pub struct Script(Vec<(Place, String)>);

/// What every script begins with.
const HEAD: &str = "import http from 'k6/http';
import { check, fail, group, sleep } from 'k6';
import exec from 'k6/execution';
import crypto from 'k6/crypto';
import encoding from 'k6/encoding';
import { parseHTML } from 'k6/html';
import { Counter, Gauge, Rate, Trend } from 'k6/metrics';
import { SharedArray } from 'k6/data';
const URL = __ENV.URL;
const metrics = {
  counter: new Counter('own_counter'), gauge: new Gauge('own_gauge'),
  rate: new Rate('own_rate'), trend: new Trend('own_trend'), time: new Trend('own_time', true),
};
const list = new SharedArray('list', () => [{ a: 1 }, 'two', [3, null]]);
";

/// A reproducible source of choices (SplitMix64).
pub struct Choices(pub u64);

impl Choices {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn of<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len())]
    }

    /// A script.
    pub fn script(&mut self) -> Script {
        let mut parts = Vec::new();
        for (place, most) in [
            (Place::Init, 2),
            (Place::Option, 3),
            (Place::Scenario, 3),
            (Place::Threshold, 4),
            (Place::Setup, 2),
            (Place::Body, 7),
            (Place::Teardown, 2),
            (Place::Summary, 2),
        ] {
            for number in 0..self.below(most + 1) {
                let text = match place {
                    Place::Option => self.of(OPTIONS).to_owned(),
                    Place::Scenario => self.scenario(number),
                    Place::Threshold => self.threshold(),
                    Place::Init => self.of(INIT).to_owned(),
                    Place::Summary => self.of(SUMMARY).to_owned(),
                    Place::Setup | Place::Body | Place::Teardown => self.statement(2),
                };
                parts.push((place, text));
            }
        }
        Script(parts)
    }

    fn scenario(&mut self, number: usize) -> String {
        let executor = self.of(&[
            "executor: 'shared-iterations', vus: 2, iterations: 3",
            "executor: 'shared-iterations', iterations: 1, maxDuration: '5s'",
            "executor: 'per-vu-iterations', vus: 2, iterations: 2",
            "executor: 'per-vu-iterations', startTime: '200ms'",
            "executor: 'constant-arrival-rate', rate: 1, duration: '900ms', preAllocatedVUs: 1",
        ]);
        let more = self.of(&[
            "",
            "tags: { mine: 'yes' }",
            "env: { OWN: 'value' }",
            "exec: 'other'",
            "exec: 'missing'",
            "gracefulStop: '0s'",
        ]);
        format!("s{number}: {{ {executor}, {more} }}")
    }

    fn threshold(&mut self) -> String {
        let metric = self.of(&[
            "own_counter",
            "own_gauge",
            "own_rate",
            "own_trend",
            "own_trend{kind:a}",
            "checks",
            "checks{group:::outer}",
            "iterations",
            "http_reqs",
            "http_reqs{scenario:s0}",
            "http_req_failed{expected_response:true}",
            "group_duration{group:::outer}",
            "missing",
            "own_rate{",
        ]);
        let bound = self.of(&[
            "count>=1",
            "count<2",
            "value>0",
            "rate>=0.5",
            "rate==1",
            "max<100",
            "p(95)<50",
            "avg >= 0",
            "med<1e3",
            "min!=7",
            "p(101)<1",
            "nonsense",
        ]);
        match self.below(4) {
            0 => format!("'{metric}': [{{ threshold: '{bound}', abortOnFail: false }}]"),
            1 => format!("'{metric}': ['{bound}', 'count>0']"),
            _ => format!("'{metric}': ['{bound}']"),
        }
    }

    fn value(&mut self, depth: usize) -> String {
        match self.below(if depth == 0 { 6 } else { 8 }) {
            0..=3 => self.of(VALUES).to_owned(),
            4 | 5 => self.of(EXPRESSIONS).to_owned(),
            6 => format!("[{}, {}]", self.value(depth - 1), self.value(depth - 1)),
            _ => format!("{{ x: {}, 'y z': {} }}", self.value(depth - 1), self.value(depth - 1)),
        }
    }

    fn statement(&mut self, depth: usize) -> String {
        let value = self.value(2);
        match self.below(if depth == 0 { 9 } else { 12 }) {
            0 | 1 => {
                format!("console.{}({value});", self.of(&["log", "info", "warn", "error", "debug"]))
            }
            2 => format!("check({value}, {{ 'is {}': (v) => {} }});", self.below(3), self.value(0)),
            3 => {
                let metric = self.of(&["counter", "gauge", "rate", "trend", "time"]);
                let tags = self.of(&["", ", { kind: 'a' }", ", { kind: 7 }", ", null", ", 'x'"]);
                let amount = match self.below(3) {
                    0 => value,
                    _ => self.of(&["1", "5", "0", "true", "2.5"]).to_owned(),
                };
                format!("metrics.{metric}.add({amount}{tags});")
            }
            4 | 5 => format!(
                "console.log({}.{});",
                self.of(REQUESTS),
                self.of(&[
                    "status",
                    "error",
                    "error_code",
                    "body",
                    "url",
                    "request.headers['Content-Type']",
                    "json()",
                    "proto",
                    "headers['Content-Type']"
                ])
            ),
            6 | 7 => format!("console.log({});", self.of(FACTS)),
            8 => self.of(ENDS).to_owned(),
            9 => format!(
                "group('{}', () => {{ {} }});",
                self.of(&["outer", "a::b", "", "in ner"]),
                self.statement(depth - 1)
            ),
            10 => format!(
                "try {{ {} }} catch (e) {{ console.log(e.name, e.message); }}",
                self.statement(depth - 1)
            ),
            _ => format!(
                "if (exec.scenario.iterationInTest === 0) {{ {} }}",
                self.statement(depth - 1)
            ),
        }
    }
}

impl Script {
    /// How many parts it has.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The same without a part.
    pub fn without(&self, part: usize) -> Self {
        let mut parts = self.0.clone();
        parts.remove(part);
        Self(parts)
    }

    /// Its text.
    pub fn text(&self) -> String {
        let of = |place: Place, between: &str| {
            let parts = self.0.iter().filter(|part| part.0 == place);
            parts.map(|part| part.1.as_str()).collect::<Vec<_>>().join(between)
        };
        let group = |name: &str, place: Place| match of(place, ",\n    ") {
            none if none.is_empty() => String::new(),
            parts => format!("  {name}: {{\n    {parts}\n  }},\n"),
        };
        let function = |name: &str, place: Place| match of(place, "\n  ") {
            none if none.is_empty() => String::new(),
            parts => format!("export function {name} {{\n  {parts}\n}}\n"),
        };
        format!(
            "{HEAD}{}\nexport const options = {{\n  {}\n{}{}}};\n{}export default function (data) \
             {{\n  {}\n}}\nexport function other() {{\n  console.log('other', __ENV.OWN);\n}}\n{}{}",
            of(Place::Init, "\n"),
            of(Place::Option, "\n  "),
            group("scenarios", Place::Scenario),
            group("thresholds", Place::Threshold),
            function("setup()", Place::Setup),
            of(Place::Body, "\n  "),
            function("teardown(data)", Place::Teardown),
            function("handleSummary(data)", Place::Summary),
        )
    }
}

const OPTIONS: &[&str] = &[
    "iterations: 2,",
    "vus: 2, iterations: 3,",
    "tags: { run: 'one' },",
    "discardResponseBodies: true,",
    "throw: true,",
    "maxRedirects: 0,",
    "noCookiesReset: true,",
    "userAgent: 'fuzz',",
    "setupTimeout: '5s',",
    "minIterationDuration: '50ms',",
    "systemTags: ['status', 'method', 'name'],",
    "summaryTrendStats: ['min', 'max', 'count'],",
    "summaryTimeUnit: 'ms',",
    "noSetup: true,",
    "noTeardown: true,",
    "unknown: 1,",
    "batch: 1,",
];

const INIT: &[&str] = &[
    "console.log('init', __VU);",
    "console.warn(list.length, list[0].a, JSON.stringify(list));",
    "const other_gauge = new Gauge('other_gauge', true);",
    "try { http.get(URL) } catch (e) { console.log(e.message) }",
    "try { new Counter('bad name') } catch (e) { console.log(e.message) }",
    "try { list[0].a = 2 } catch (e) { console.log(e.name, e.message) }",
    "try { metrics.counter.add(1) } catch (e) { console.log(e.name, e.message) }",
    "try { open('missing.txt') } catch (e) { console.log(e.name) }",
    "try { open('') } catch (e) { console.log(e.message) }",
    "try { sleep(0); console.log('slept') } catch (e) { console.log(e.name, e.message) }",
    "throw new Error('in init');",
];

const SUMMARY: &[&str] = &[
    "return { stdout: Object.keys(data.metrics).filter((m) => m.startsWith('own')).join() + '\\n' };",
    "return { stdout: JSON.stringify(data.root_group.groups.map((g) => [g.name, g.path])) };",
    "return {};",
    "console.log(Object.keys(data).join(), Object.keys(data.state).join());",
    "throw new Error('in summary');",
];

const VALUES: &[&str] = &[
    "undefined",
    "null",
    "true",
    "false",
    "0",
    "-0",
    "1",
    "-1.5",
    "1e21",
    "1e-7",
    "0.1 + 0.2",
    "NaN",
    "Infinity",
    "2 ** 53",
    "''",
    "'text'",
    "'a\"b\\n\\tc'",
    "'\\u00fc\\u{1f600}'",
    "'\\\\'",
    "[]",
    "{}",
    "[1, [2, [3]]]",
    "[, 1]",
    "{ a: undefined, b: null }",
    "() => 1",
    "function named() {}",
    "class Own {}",
    "Symbol('s')",
    "/r[a-z]+/gi",
    "new Date(0)",
    "new Error('made')",
    "new TypeError('made')",
    "new Map([[1, 2]])",
    "new Set([1])",
    "new Uint8Array([1, 2])",
    "new ArrayBuffer(2)",
    "Promise.resolve(1)",
    "10n",
    "Object.create(null)",
    "new (class Own { constructor() { this.a = 1 } })()",
    "[undefined, null]",
    "{ toString() { return 'own' } }",
    "{ toJSON() { return 'json' } }",
    "new String('boxed')",
    "new Number(5)",
    "JSON",
    "Math",
    "globalThis.missing",
    "[1, 'a', true, null]",
];

const EXPRESSIONS: &[&str] = &[
    "(12345.678).toFixed(1)",
    "(255).toString(16)",
    "(1e21).toLocaleString()",
    "'abc'.at(-1)",
    "'a-b-c'.split('-')",
    "'abc'.replace(/b/, (m) => m + m)",
    "[3, 1, 2].sort()",
    "[10, 9, 1].sort()",
    "Object.entries({ b: 1, a: 2, 1: 3 })",
    "JSON.stringify({ a: [1, { b: 2 }] }, null, 2)",
    "JSON.parse('[1, 2.50, \"x\"]')",
    "parseInt('12px')",
    "parseFloat('1.5e3x')",
    "Number('0x1f')",
    "[1, 2, 3].includes(2)",
    "'x'.padStart(3, 'ab')",
    "String(Symbol('d'))",
    "typeof null",
    "encodeURIComponent('a b&\\u00fc')",
    "escape('\\u00fc b')",
    "new Date(86400000).toISOString()",
    "new Date('2024-02-30').getTime()",
    "Date.UTC(2024, 1, 29)",
    "[...'ab']",
    "[1, 2, 3, 4].reduce((a, b) => a + b)",
    "Array.from({ length: 3 }, (_, i) => i * i)",
    "new Intl.NumberFormat()",
    "'\\u00e9'.normalize('NFD').length",
    "[[1], [2]].flat()",
    "Object.fromEntries([['a', 1]])",
    "isNaN('x')",
    "Math.max()",
    "Math.round(-0.5)",
    "`t${1}`",
    "(() => { let { a, ...rest } = { a: 1, b: 2 }; return rest })()",
    "[1, 2, 3].findLast((v) => v < 3)",
    "null ?? 'default'",
    "undefined?.x",
    "'abc'.matchAll(/./g)",
    "'a1b2'.match(/\\d/g)",
    "[3, 2].toSorted()",
    "Object.groupBy([1, 2], (v) => 'k' + v)",
    "'ab'.codePointAt(1)",
    "String.raw`a\\n`",
    "new Array(3)",
    "(1234.5).toLocaleString()",
    "new Date(0).toString()",
    "new Date(0).toLocaleDateString()",
    "0.000001",
    "123456789012345680000",
    "null.x",
    "missing_name",
    "(void 0)()",
    "new 5",
    "[].reduce((a) => a)",
    "'x'.repeat(-1)",
    "JSON.parse('{')",
    "decodeURIComponent('%')",
    "new Array(-1)",
    "(5).toFixed(101)",
    "Symbol() + ''",
    "({}).x.y",
    "(() => { const c = 1; c = 2 })()",
    "new RegExp('(')",
    "BigInt(1.5)",
    "({}).f()",
    "undefined.f()",
    "x in 5",
];

const REQUESTS: &[&str] = &[
    "http.get(`${URL}/fast`)",
    "http.get(`${URL}/status/404`)",
    "http.get(`${URL}/status/500`, { tags: { kind: 'a' } })",
    "http.post(`${URL}/echo`, 'text')",
    "http.post(`${URL}/echo`, { a: 1, b: 'x y', c: [1, 2] })",
    "http.post(`${URL}/echo`, JSON.stringify({ a: 1 }), { headers: { 'Content-Type': 'application/json' } })",
    "http.put(`${URL}/echo`, null)",
    "http.patch(`${URL}/echo`, { a: null })",
    "http.del(`${URL}/echo`)",
    "http.head(`${URL}/fast`)",
    "http.options(`${URL}/fast`)",
    "http.request('get', `${URL}/fast`)",
    "http.request('POST', `${URL}/echo`, new Uint8Array([65, 66]).buffer)",
    "http.get(`${URL}/fast`, { responseType: 'none' })",
    "http.get(`${URL}/fast`, { responseType: 'binary' })",
    "http.get(`${URL}/status/404`, { responseCallback: http.expectedStatuses(404) })",
    "http.get(`${URL}/fast`, { responseCallback: null })",
    "http.get('http://127.0.0.1:1/')",
    "http.get('not a url')",
    "http.get('ftp://127.0.0.1/')",
    "http.get('')",
    "http.get()",
    "http.get(5)",
    "http.get(http.url`${URL}/status/${200}`)",
    "http.batch([`${URL}/fast`, ['GET', `${URL}/status/404`]])[1]",
    "http.batch({ a: `${URL}/fast` }).a",
    "http.get(`${URL}/fast`, { timeout: '5s', redirects: 1 })",
    "http.get(`${URL}/fast`, { headers: { 'X-A': 1, 'x-a': 2 } })",
    "http.post(`${URL}/echo`, { f: http.file('data', 'f.txt', 'text/plain') }, { headers: { 'Content-Type': 'x/y' } })",
    "http.post(`${URL}/echo`, [1, 2])",
    "http.post(`${URL}/echo`, 5)",
    "http.get(`${URL}/fast`, { cookies: { a: 'b' } })",
    "http.get(`${URL}/fast`, { compression: 'foo' })",
    "http.get(`${URL}/fast`, { auth: 'digest' })",
];

const FACTS: &[&str] = &[
    "exec.scenario.name, exec.scenario.executor",
    "exec.instance.vusActive >= 0",
    "exec.vu.idInTest > 0",
    "exec.vu.iterationInScenario >= 0",
    "exec.vu.tags",
    "exec.vu.tags.group",
    "exec.vu.metrics.tags",
    "JSON.stringify(exec.test.options.thresholds)",
    "JSON.stringify(exec.test.options.scenarios)",
    "exec.scenario.iterationInInstance >= 0",
    "__ITER >= 0, __VU > 0",
    "__ENV.OWN, typeof __ENV.PATH",
    "data",
    "typeof data",
    "list[1], list.length, list[9]",
    "JSON.stringify(list[2])",
    "(exec.vu.tags.mine = 'tag', exec.vu.tags.mine)",
    "(exec.vu.tags.bad = {}, 1)",
    "(exec.vu.metrics.metadata.m = 'x', 1)",
    "crypto.md5('a', 'hex')",
    "crypto.sha256('a', 'base64')",
    "crypto.hmac('sha1', 'k', 'd', 'hex')",
    "crypto.md5('a', 'bad')",
    "crypto.createHash('bad')",
    "crypto.hexEncode(new Uint8Array([1, 255]).buffer)",
    "encoding.b64encode('\\u00fc')",
    "encoding.b64decode('w7w=', 'std', 's')",
    "encoding.b64decode('%')",
    "encoding.b64encode('a?', 'rawurl')",
    "encoding.b64encode(null)",
    "parseHTML('<p class=x>a<b>b</b></p>').find('p').text()",
    "parseHTML('<a href=u>l</a>').find('a').attr('href')",
    "parseHTML('<ul><li>1<li>2</ul>').find('li').map((i, e) => e.text())",
    "parseHTML('<p>x').find('[').size()",
    "check(null, {})",
    "check(1, { ok: true, no: false })",
    "check(1, null)",
    "check(1)",
    "group('g')",
    "group('g', 5)",
    "sleep('x')",
    "sleep(-1)",
    "sleep(0.01)",
    "group('r', () => 'value')",
    "new Counter('late')",
    "http.cookieJar().cookiesForURL(URL)",
    "http.cookieJar().set(URL, 'a', 'b')",
    "http.expectedStatuses()",
    "http.expectedStatuses({ min: 200 })",
    "http.setResponseCallback(http.expectedStatuses({ min: 200, max: 299 }, 404))",
];

const ENDS: &[&str] = &[
    "throw new Error('thrown');",
    "throw 'text';",
    "throw { a: 1 };",
    "throw null;",
    "fail('failed');",
    "fail();",
    "return { a: [1, 'x'], b: undefined };",
    "return 5;",
    "return;",
    "exec.test.abort('enough');",
    "exec.test.abort();",
    "exec.test.fail('bad');",
    "missing_function();",
    "Promise.reject(new Error('rejected'));",
    "setTimeout(() => console.log('later'), 10);",
];
