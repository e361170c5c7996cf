//! Random scripts, made of parts that can be left out one by one.

use super::tables::*;

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
            "executor: 'constant-arrival-rate', rate: 2, duration: '1250ms', preAllocatedVUs: 1",
        ]);
        let more = self.of(&[
            "",
            "tags: { mine: 'yes' }",
            "env: { OWN: 'value' }",
            "exec: 'other'",
            "gracefulStop: '0s'",
            "gracefulStop: '2s', exec: 'default'",
        ]);
        let more = if self.below(32) == 0 { "exec: 'missing'" } else { more };
        format!("s{number}: {{ {executor}, {more} }}")
    }

    fn threshold(&mut self) -> String {
        let (metric, bound) = match self.below(16) {
            0 => (self.of(METRICS), self.of(BOUNDS)),
            _ => self.of(THRESHOLDS).split_once(' ').unwrap_or_default(),
        };
        match self.below(4) {
            0 => format!("'{metric}': [{{ threshold: '{bound}', abortOnFail: false }}]"),
            1 => format!("'{metric}': ['{bound}', '{bound}']"),
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
                    "json('body')",
                    "url",
                    "request.headers['Content-Type']",
                    "status_text",
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
