//! Tests the comparison on simulated applications with known differences.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use serde_json::{Value, json};

use super::judge::{FieldVerdict, Pace, ShadowReport, Terms, judge};
use super::*;
use crate::exchange::{BackendResponse, CapturedBody, CapturedRequest, RequestIds};

fn redactor() -> Redactor {
    Redactor::new([1; 16], gake_text::redact::SecretNames::default())
}

struct App {
    random: Xoshiro256PlusPlus,
    /// Relative additional latency.
    slower: f64,
    price: i64,
    /// One in this number of responses is an error.
    errors: Option<u64>,
}

impl App {
    fn new(seed: u64) -> Self {
        let random = Xoshiro256PlusPlus::seed_from_u64(seed);
        Self { random, slower: 0.0, price: 5, errors: None }
    }

    fn below(&mut self, n: u64) -> u64 {
        self.random.next_u64() % n
    }

    fn response(&mut self, target: &str) -> (u16, Value, u64) {
        let id: u64 = target.rsplit('/').next().unwrap().parse().unwrap();
        let body = json!({
            "id": id,
            "at": format!("2026-11-22T01:02:{:02}.{:06}Z", self.below(60), self.below(1_000_000)),
            "trace": format!("{:016x}", self.random.next_u64()),
            "variant": self.below(3),
            "items": (0..4).map(|n| json!({"id": n, "price": self.price, "stock": self.below(2)}))
                .collect::<Vec<_>>(),
            "note": if self.below(10) == 0 { Value::Null } else { json!("fine") },
        });
        // Roughly log-normal around 10 ms.
        let noise: f64 = (0..4).map(|_| self.below(1_000) as f64 / 1_000.0 - 0.5).sum();
        let time = 1e7 * (noise / 2.0).exp() * (1.0 + self.slower);
        let failed =
            self.errors.is_some_and(|one_in| self.random.next_u64().is_multiple_of(one_in));
        let status = if failed { 500 } else { 200 };
        (status, body, time as u64)
    }
}

fn outcome(app: &mut App, role: Role, target: &str) -> BackendOutcome {
    let (status, body, time) = app.response(target);
    let bytes = Bytes::from(body.to_string());
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    headers.insert("x-node", HeaderValue::from_str(&app.below(9).to_string()).unwrap());
    let len = bytes.len() as u64;
    let body = CapturedBody { bytes, truncated: false, len };
    BackendOutcome {
        name: Arc::from(role.name()),
        role,
        result: Ok(BackendResponse {
            status: StatusCode::from_u16(status).unwrap(),
            headers,
            body,
        }),
        connect_ns: 0,
        first_byte_ns: Some(time),
        total_ns: time,
    }
}

/// One request to all backends.
fn exchange(
    target: &str,
    master: &mut App,
    shadow: &mut App,
    secondary: Option<&mut App>,
) -> MirroredExchange {
    let mut backends =
        vec![outcome(master, Role::Master, target), outcome(shadow, Role::Shadow, target)];
    backends.extend(secondary.map(|app| outcome(app, Role::Secondary, target)));
    let request = CapturedRequest {
        method: Method::GET,
        uri: format!("{target}?token=t0p").parse().unwrap(),
        headers: HeaderMap::new(),
        body: CapturedBody::default(),
    };
    MirroredExchange {
        ids: RequestIds::default(),
        received_unix_ns: 0,
        client: None,
        request,
        backends,
    }
}

/// Compares `requests` requests to two endpoints; `change` applies to the shadow of the second.
fn compared(seed: u64, requests: u64, noise: bool, change: impl Fn(&mut App)) -> ShadowComparison {
    let rules = ComparisonRules::default();
    let mut comparison = ShadowComparison::new("shadow");
    let mut apps: Vec<App> = (0..4).map(|n| App::new(seed * 4 + n)).collect();
    change(&mut apps[3]);
    let [master, plain, secondary, shadow] = &mut apps[..] else { unreachable!() };
    for n in 0..requests {
        let (target, shadow) = if n % 2 == 0 {
            (format!("/users/{n}"), &mut *plain)
        } else {
            (format!("/orders/{n}"), &mut *shadow)
        };
        let secondary = noise.then_some(&mut *secondary);
        comparison.observe(&exchange(&target, master, shadow, secondary), &rules, &redactor());
    }
    comparison
}

fn judged(comparison: &ShadowComparison) -> ShadowReport {
    judge(comparison, &ComparisonRules::default(), Terms::default())
}

fn names(report: &ShadowReport, verdict: FieldVerdict) -> Vec<String> {
    let mut names: Vec<_> = (report.of(verdict))
        .map(|found| format!("{} {} {}", found.endpoint, found.path, found.kind))
        .collect();
    names.sort();
    names
}

#[test]
fn known_differences_are_found_and_nothing_else() {
    let comparison = compared(1, 20_000, true, |shadow| {
        shadow.price = 6;
        shadow.errors = Some(1_000);
        shadow.slower = 0.2;
    });
    let report = judged(&comparison);
    let orders = "GET /orders/{id}";
    assert_eq!(
        names(&report, FieldVerdict::Real),
        [format!("{orders} $.items[*].price value"), format!("{orders} status value")]
    );
    assert!(names(&report, FieldVerdict::Noise).contains(&format!("{orders} $.at value")));
    assert!(report.differs);
    let slower: Vec<_> = report.with_pace(Pace::Slower).collect();
    assert_eq!(slower.len(), 1);
    let ratio = slower[0].latency.ratio.unwrap();
    assert_eq!(slower[0].name, orders);
    assert!(ratio.low < 1.2 && 1.2 < ratio.high && ratio.high - ratio.low < 0.05, "{ratio:?}");
    let price = report.of(FieldVerdict::Real).find(|found| found.path.contains("price")).unwrap();
    let example = price.example.as_ref().unwrap();
    assert_eq!((&*example.expected, &*example.actual), ("5", "6"));
    assert_eq!(&*example.request, format!("GET /orders/1?token={}", redactor().tag(b"t0p")));
    // If the status differs, nothing else is compared.
    assert!(price.rate > 0.99 && price.shadow < price.exchanges, "{price:?}");
    expect_test::expect![[r#"
        shadow against master: 20,000 requests to 2 endpoints compared, 20,000 of them also with secondary
        2 differences, 1 endpoint slower

        Real differences (2): the shadow differs from the master more often than two masters do
          GET /orders/{id}  $.items[*].price value  99.86 % (9,986 of 10,000, two masters 0 of 10,000, false discovery rate < 0.001)
              expected 5, got 6
              GET /orders/1?token=redacted-a31663e2dd260ee0
          GET /orders/{id}  status value  0.14 % (14 of 10,000, two masters 0 of 10,000, false discovery rate < 0.001)
              expected 200, got 500
              GET /orders/1923?token=redacted-a31663e2dd260ee0

        Noise (12): two masters differ as well
          GET /users/{id}  $.note type  19 % (1,897 of 10,000, two masters 1,826 of 10,000)
          GET /users/{id}  $.variant value  67 % (6,677 of 10,000, two masters 6,635 of 10,000)
          GET /users/{id}  header x-node value  89 % (8,899 of 10,000, two masters 8,860 of 10,000)
          GET /orders/{id}  $.note type  18 % (1,821 of 10,000, two masters 1,788 of 10,000)
          GET /orders/{id}  $.at value  99.86 % (9,986 of 10,000, two masters 10,000 of 10,000)
          GET /orders/{id}  $.items[*].stock value  94 % (9,383 of 10,000, two masters 9,385 of 10,000)
          GET /orders/{id}  $.trace value  99.86 % (9,986 of 10,000, two masters 10,000 of 10,000)
          GET /orders/{id}  $.variant value  66 % (6,629 of 10,000, two masters 6,675 of 10,000)
          GET /orders/{id}  header x-node value  89 % (8,865 of 10,000, two masters 8,891 of 10,000)
          GET /users/{id}  $.at value  100 % (10,000 of 10,000, two masters 10,000 of 10,000)
          GET /users/{id}  $.items[*].stock value  94 % (9,362 of 10,000, two masters 9,388 of 10,000)
          GET /users/{id}  $.trace value  100 % (10,000 of 10,000, two masters 10,000 of 10,000)

        Time to the response's head
          endpoint          requests        master p50 p99        shadow p50 p99  shadow / secondary (95 %)
          GET /orders/{id}     10000     10.0 ms   19.0 ms     12.0 ms   23.4 ms  1.19 (1.18 to 1.21)  slower
          GET /users/{id}      10000     9.92 ms   18.8 ms     10.0 ms   19.2 ms  0.99 (0.98 to 1.00)

        Status: master → shadow
            200 → 200              19,986
            200 → 500                  14

        Rules that ignore noise and likely noise, for --rules FILE:

        [[ignore]]
        endpoint = "GET /orders/{id}"
        paths = [
          "$.at",
          "$.items[*].stock",
          "$.note",
          "$.trace",
          "$.variant",
          "header x-node",
        ]

        [[ignore]]
        endpoint = "GET /users/{id}"
        paths = [
          "$.at",
          "$.items[*].stock",
          "$.note",
          "$.trace",
          "$.variant",
          "header x-node",
        ]
    "#]].assert_eq(&show::text(&report));
}

#[test]
fn identical_backends_with_noise_are_rarely_called_different() {
    const RUNS: u64 = 200;
    let found = (0..RUNS)
        .filter(|run| {
            let report = judged(&compared(100 + run, 200, true, |_| {}));
            let paced =
                report.with_pace(Pace::Slower).count() + report.with_pace(Pace::Faster).count();
            report.of(FieldVerdict::Real).count() + paced > 0
        })
        .count();
    // Every discovery is false, so a run has one with probability 0.05 at most:
    // binomial(200, 0.05) exceeds 25 with probability 1e-5.
    assert!(found <= 25, "{found} of {RUNS} runs");
}

#[test]
fn rare_differences_are_unproven() {
    let mut comparison = compared(7, 2_000, true, |_| {});
    let mut apps = [App::new(71), App::new(72), App::new(73)];
    for n in 0..2 {
        apps[1].errors = Some(1);
        let [master, shadow, secondary] = &mut apps;
        let exchange = exchange(&format!("/users/{n}"), master, shadow, Some(secondary));
        comparison.observe(&exchange, &ComparisonRules::default(), &redactor());
    }
    let report = judged(&comparison);
    assert_eq!(names(&report, FieldVerdict::Unproven), ["GET /users/{id} status value"]);
    assert!(!report.differs);
}

#[test]
fn without_a_second_instance_all_differences_are_reported_and_rules_suggested() {
    let comparison = compared(3, 500, false, |shadow| shadow.price = 7);
    let report = judged(&comparison);
    assert!(report.differs && report.of(FieldVerdict::Real).count() == 0);
    let untested = names(&report, FieldVerdict::Untested);
    assert!(untested.contains(&"GET /orders/{id} $.items[*].price value".to_owned()));
    assert!(untested.contains(&"GET /users/{id} $.at value".to_owned()));
    assert!(report.suggestions.contains("\"$.at\", # looks like an instant"));
    assert!(report.suggestions.contains("\"$.trace\", # looks like an identifier"));
    assert!(!report.suggestions.contains("price"));
    expect_test::expect![[r#"
        shadow against master: 500 requests to 2 endpoints compared
        13 differences

        Differences (13): not tested against noise: no second instance of the master
          GET /orders/{id}  $.at value  100 % (250 of 250, looks like an instant)
              expected "2026-11-22T01:02:00.993612Z", got "2026-11-22T01:02:21.737298Z"
              GET /orders/1?token=redacted-a31663e2dd260ee0
          GET /orders/{id}  $.items[*].price value  100 % (250 of 250)
              expected 5, got 7
              GET /orders/1?token=redacted-a31663e2dd260ee0
          GET /orders/{id}  $.trace value  100 % (250 of 250, looks like an identifier)
              expected "64d488cf1eb0c9bd", got "b29b280a898f6a18"
              GET /orders/1?token=redacted-a31663e2dd260ee0
          GET /users/{id}  $.at value  100 % (250 of 250, looks like an instant)
              expected "2026-11-22T01:02:39.289580Z", got "2026-11-22T01:02:47.230197Z"
              GET /users/0?token=redacted-a31663e2dd260ee0
          GET /users/{id}  $.trace value  100 % (250 of 250, looks like an identifier)
              expected "aca9fa9617bc6394", got "929ec7d09572781c"
              GET /users/0?token=redacted-a31663e2dd260ee0
          GET /orders/{id}  $.items[*].stock value  94 % (235 of 250)
              expected 1, got 0
              GET /orders/1?token=redacted-a31663e2dd260ee0
          GET /users/{id}  $.items[*].stock value  93 % (233 of 250)
              expected 0, got 1
              GET /users/0?token=redacted-a31663e2dd260ee0
          GET /orders/{id}  header x-node value  92 % (230 of 250)
              expected 1, got 2
              GET /orders/1?token=redacted-a31663e2dd260ee0
          GET /users/{id}  header x-node value  90 % (226 of 250)
              expected 4, got 8
              GET /users/0?token=redacted-a31663e2dd260ee0
          GET /orders/{id}  $.variant value  67 % (168 of 250)
              expected 2, got 0
              GET /orders/3?token=redacted-a31663e2dd260ee0
          GET /users/{id}  $.variant value  67 % (168 of 250)
              expected 0, got 1
              GET /users/2?token=redacted-a31663e2dd260ee0
          GET /orders/{id}  $.note type  15 % (38 of 250)
              expected null, got "fine"
              GET /orders/5?token=redacted-a31663e2dd260ee0
          GET /users/{id}  $.note type  15 % (37 of 250)
              expected "fine", got null
              GET /users/26?token=redacted-a31663e2dd260ee0

        Time to the response's head
          endpoint          requests        master p50 p99        shadow p50 p99  shadow / master (95 %)
          GET /orders/{id}       250     10.2 ms   18.4 ms     10.1 ms   21.0 ms  0.99 (0.95 to 1.07)  not judged
          GET /users/{id}        250     9.92 ms   18.8 ms     10.3 ms   19.2 ms  1.02 (0.95 to 1.08)  not judged
          Not judged: only the master is on the clients' path; --noise adds a second instance that gets requests as the shadow does

        Rules that ignore noise and likely noise, for --rules FILE:

        [[ignore]]
        endpoint = "GET /orders/{id}"
        paths = [
          "$.at", # looks like an instant
          "$.trace", # looks like an identifier
        ]

        [[ignore]]
        endpoint = "GET /users/{id}"
        paths = [
          "$.at", # looks like an instant
          "$.trace", # looks like an identifier
        ]
    "#]].assert_eq(&show::text(&report));
    // The suggestions parse as rules, and ignore these differences.
    let rules = ComparisonRules::parse(&report.suggestions).unwrap();
    let again = judge(&comparison, &rules, Terms::default());
    assert!(
        !names(&again, FieldVerdict::Untested).contains(&"GET /users/{id} $.at value".to_owned())
    );
    assert!(again.ignored > 900);
}

#[test]
fn without_a_second_instance_latency_is_not_judged() {
    for slower in [-0.5, 0.0, 1.0] {
        let report = judged(&compared(3, 2_000, false, |shadow| shadow.slower = slower));
        assert!(report.with_pace(Pace::Untested).count() == report.endpoints.len(), "{slower}");
        assert!(report.endpoints.iter().all(|endpoint| endpoint.latency.q == 1.0), "{slower}");
    }
}

#[test]
fn a_later_clock_reading_is_no_difference() {
    let mut comparison = ShadowComparison::new("shadow");
    let mut apps = [App::new(1), App::new(2), App::new(3)];
    for n in 0..300u64 {
        let [master, shadow, secondary] = &mut apps;
        let mut exchange = exchange("/users/1", master, shadow, Some(secondary));
        // The second instance reads the same second as the master in two of three exchanges, the
        // shadow in none.
        for (outcome, second) in exchange.backends.iter_mut().zip([0, 1, u64::from(n % 3 == 0)]) {
            let Ok(response) = &mut outcome.result else { unreachable!() };
            let body = json!({"at": format!("2026-11-22T01:02:{second:02}Z")}).to_string();
            response.body.len = body.len() as u64;
            response.body.bytes = Bytes::from(body);
        }
        comparison.observe(&exchange, &ComparisonRules::default(), &redactor());
    }
    let report = judged(&comparison);
    assert!(names(&report, FieldVerdict::Noise).contains(&"GET /users/{id} $.at value".to_owned()));
    assert!(!report.differs, "{}", show::text(&report));
}

#[test]
fn differences_within_the_tolerance_do_not_count() {
    let comparison = compared(5, 6_000, true, |shadow| shadow.errors = Some(100));
    let at = |tolerance| {
        let terms = Terms { tolerance, ..Terms::default() };
        judge(&comparison, &ComparisonRules::default(), terms).differs
    };
    assert!(at(0.0) && at(0.005) && !at(0.02));
}

#[test]
fn merged_comparisons_equal_the_whole() {
    let rules = ComparisonRules::default();
    let mut apps: Vec<App> = (0..3).map(App::new).collect();
    let mut whole = ShadowComparison::new("shadow");
    let mut slices = vec![ShadowComparison::new("shadow"); 3];
    for n in 0..900 {
        let [master, shadow, secondary] = &mut apps[..] else { unreachable!() };
        let exchange = exchange(&format!("/users/{n}"), master, shadow, Some(secondary));
        whole.observe(&exchange, &rules, &redactor());
        slices[n * 3 / 900].observe(&exchange, &rules, &redactor());
    }
    let folder = tempfile::tempdir().unwrap();
    let read = |(n, slice): (usize, &ShadowComparison)| {
        let path = folder.path().join(format!("{n}.json"));
        file::write(&path, std::slice::from_ref(slice)).unwrap();
        file::read(&path).unwrap().remove(0)
    };
    let again: Vec<_> = slices.iter().enumerate().map(read).collect();
    assert_eq!(
        again.iter().map(|c| &c.endpoints).collect::<Vec<_>>(),
        slices.iter().map(|c| &c.endpoints).collect::<Vec<_>>()
    );
    let joined = file::join(again);
    assert_eq!(joined.len(), 1);
    assert_eq!(joined[0].endpoints, whole.endpoints);
    assert_eq!(judged(&joined[0]), judged(&whole));
}

#[test]
fn memory_is_bounded() {
    let rules = ComparisonRules::default();
    let mut comparison = ShadowComparison::new("shadow");
    let mut master = App::new(1);
    for n in 0..3_000u64 {
        let word: String = n.to_string().bytes().map(|b| (b - b'0' + b'a') as char).collect();
        let mut distinct = exchange("/users/1", &mut master, &mut App::new(2), None);
        distinct.request.uri = format!("/{}/{word}/x/{word}", word.len()).parse().unwrap();
        distinct.request.method = Method::from_bytes(format!("M{}", n % 400).as_bytes()).unwrap();
        if let Ok(response) = &mut distinct.backends[1].result {
            let members: serde_json::Map<_, _> =
                (0..300).map(|m| (format!("{word}{m}x"), json!(m))).collect();
            response.body.bytes = Bytes::from(Value::from(members).to_string());
            response.body.len = response.body.bytes.len() as u64;
        }
        comparison.observe(&distinct, &rules, &redactor());
    }
    assert!(comparison.endpoints.len() <= ENDPOINTS_MAX + 1);
    assert!(comparison.endpoints.values().all(|endpoint| endpoint.fields.len() <= 200));
    assert_eq!(comparison.exchanges(), 3_000);
    let report = judged(&comparison);
    assert!(report.fields_lost > 0);
    assert!(show::text(&report).lines().count() < 2_000);
}

#[test]
fn requests_not_sent_to_the_shadow_are_not_compared() {
    let mut comparison = ShadowComparison::new("shadow");
    let mut skipped = exchange("/users/1", &mut App::new(1), &mut App::new(2), None);
    skipped.backends[1].result = Err(BackendFailure::NotSent("shed_queue"));
    comparison.observe(&skipped, &ComparisonRules::default(), &redactor());
    skipped.backends[1].result =
        Err(BackendFailure::Fault(gake_core::record::Fault::ConnectRefused));
    skipped.backends[1].first_byte_ns = None;
    comparison.observe(&skipped, &ComparisonRules::default(), &redactor());
    assert_eq!((comparison.skipped, comparison.exchanges()), (1, 1));
    let report = judged(&comparison);
    assert_eq!(report.statuses, [("200".into(), "connect_refused".into(), 1)]);
    assert_eq!(names(&report, FieldVerdict::Untested), ["GET /users/{id} status value"]);
}
