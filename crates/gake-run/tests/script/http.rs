//! `k6/http`: requests, their responses and their samples.

use gake_k6::test::LogLevel;
use gake_run::spec::Load;

use crate::support::{Metric, ScriptCase, lab};

#[test]
fn a_request_and_a_check_are_counted() {
    let lab = lab();
    let mut case = ScriptCase::new(
        "const res = http.get('BASE/fast');
         check(res, { 'is 200': (r) => r.status === 200, 'is 404': (r) => r.status === 404 });
         sleep(0.001);",
    );
    case.load = Load::Shared { users: 4, iterations: 40 };
    let ran = case.run(Some(&lab));
    let counts = ran.run().tally.counts;
    assert_eq!((counts.started, counts.sent, counts.ok), (40, 40, 40));
    assert_eq!(lab.shutdown().requests, 40);
    assert_eq!(ran.metric("http_reqs", []), Metric { samples: 40, sum: 40.0 });
    assert_eq!(ran.metric("http_req_failed", []), Metric { samples: 40, sum: 0.0 });
    assert_eq!(ran.metric("http_req_duration", [("expected_response", "true")]).samples, 40);
    assert_eq!(ran.metric("iterations", []), Metric { samples: 40, sum: 40.0 });
    let check = |name| ran.metric("checks", [("check", name)]);
    assert_eq!(check("is 200"), Metric { samples: 40, sum: 40.0 });
    assert_eq!(check("is 404"), Metric { samples: 40, sum: 0.0 });
    assert_eq!(ran.metric("data_received", []).sum, counts.bytes_in as f64);
    assert_eq!(ran.messages(LogLevel::Warning), [""; 0]);
}

#[test]
fn a_response_has_its_parts() {
    let lab = lab();
    let ran = ScriptCase::new(
        r#"const res = http.post('BASE/echo', { b: 'x y', a: [1, 2] }, { headers: { 'X-Own': 'z' } });
           console.log(res.status, res.status_text, res.proto, res.error_code, res.error);
           console.log(res.body === res.body, typeof res.body, res.headers === res.headers);
           console.log(res.request.method, res.request.body, res.request.headers['Content-Type'][0]);
           console.log(res.timings.duration > 0, res.timings.waiting > 0, res.url.endsWith('/echo'));
           console.log(Object.keys(JSON.parse(JSON.stringify(res))).length);
           const none = http.get('BASE/status/404', { responseType: 'none' });
           console.log(none.status, none.body, none.error_code);
           const bytes = http.get('BASE/bytes/5', { responseType: 'binary' });
           console.log(bytes.body.byteLength);"#,
    )
    .run(Some(&lab));
    assert_eq!(
        ran.messages(LogLevel::Info),
        [
            "200 200 OK HTTP/1.1 0 ",
            "true string true",
            "POST a=1&a=2&b=x+y application/x-www-form-urlencoded",
            "true true true",
            "16",
            "404 null 1404",
            "5",
        ]
    );
    assert_eq!(ran.metric("http_req_failed", []), Metric { samples: 3, sum: 1.0 });
}

#[test]
fn a_failed_request_returns_its_error() {
    let ran = ScriptCase::new(
        "const res = http.get('http://127.0.0.1:1/x');
         console.log(res.status, res.error_code, res.error, res.body);
         console.log(http.get('nothing://x').error_code);
         try { http.get('http://127.0.0.1:1/', { throw: true }) } catch (e) { console.log(e.message) }",
    )
    .run(None);
    assert_eq!(
        ran.messages(LogLevel::Info),
        [
            "Request Failed",
            "0 1212 dial: connection refused null",
            "Request Failed",
            "1000",
            "Get \"http://127.0.0.1:1/\": dial tcp 127.0.0.1:1: connect: connection refused",
        ]
    );
    assert_eq!(ran.metric("http_reqs", []).samples, 3);
    assert_eq!(ran.metric("http_req_failed", [("expected_response", "false")]).sum, 3.0);
    let counts = ran.run().tally.counts;
    assert_eq!(counts.ok + counts.failed + counts.unfinished, counts.sent);
}

#[test]
fn a_time_out_ends_a_request() {
    let lab = lab();
    let ran = ScriptCase::new(
        "const res = http.get('BASE/hang', { timeout: 50 });
         console.log(res.status, res.error_code, res.error);
         console.log(http.get('BASE/hang', { timeout: '60ms' }).error_code);",
    )
    .run(Some(&lab));
    let lines = ran.messages(LogLevel::Info);
    assert_eq!((lines[1], lines[3]), ("0 1050 request timeout", "1050"));
}

#[test]
fn a_batch_goes_side_by_side() {
    let lab = lab();
    let ran = ScriptCase::new(
        "const start = Date.now();
         const list = http.batch(['BASE/delay/200ms', ['GET', 'BASE/delay/200ms'],
                                  { method: 'POST', url: 'BASE/delay/200ms' }]);
         console.log(list.map((r) => r.status).join(), Array.isArray(list));
         const named = http.batch({ a: 'BASE/delay/200ms', b: { url: 'BASE/status/500' } });
         console.log(named.a.status, named.b.status, Date.now() - start < 800);",
    )
    .run(Some(&lab));
    assert_eq!(ran.messages(LogLevel::Info), ["200,200,200 true", "200 500 true"]);
    assert_eq!(lab.shutdown().requests, 5);
}

#[test]
fn promises_are_waited_for() {
    let lab = lab();
    let ran = ScriptCase::of(
        "import http from 'k6/http';
         export default async function () {
           const [a, b] = await Promise.all([
             http.asyncRequest('GET', 'BASE/delay/20ms'), http.asyncRequest('GET', 'BASE/fast')]);
           console.log(a.status, b.status);
           setTimeout(() => console.log('timer'), 5);
           throw new Error('rejected');
         }",
    )
    .run(Some(&lab));
    // As in k6, timers do not outlive the iteration.
    assert_eq!(ran.messages(LogLevel::Info)[0], "200 200");
    assert!(!ran.messages(LogLevel::Info).contains(&"timer"), "{:?}", ran.log);
    assert!(
        ran.messages(LogLevel::Error)[0].contains("(in promise) Error: rejected"),
        "{:?}",
        ran.log
    );
    assert_eq!(ran.metric("http_reqs", []).samples, 2);
}

#[test]
fn tags_select_what_thresholds_ask_for() {
    let lab = lab();
    let mut case = ScriptCase::new(
        "http.get('BASE/fast', { tags: { kind: 'a' } });
         http.get(http.url`BASE/fast?${1}`);
         group('outer', () => group('inner', () => http.get('BASE/fast', { tags: { name: 'n' } })));",
    );
    case.keys = vec!["kind".to_owned(), "name".to_owned(), "status".to_owned()];
    let ran = case.run(Some(&lab));
    let base = format!("http://{}", lab.addr());
    let count = |tag: (&str, &str)| ran.metric("http_reqs", [tag]).samples;
    assert_eq!(count(("kind", "a")), 1);
    let template = format!("{base}/fast?${{}}");
    assert_eq!(count(("name", template.as_str())), 1);
    assert_eq!(count(("name", "n")), 1);
    assert_eq!(count(("group", "::outer::inner")), 1);
    assert_eq!(count(("status", "200")), 3);
    assert_eq!(ran.metric("group_duration", []).samples, 2);
}

#[test]
fn expected_statuses_are_the_scripts() {
    let lab = lab();
    let ran = ScriptCase::new(
        "http.get('BASE/status/404', { responseCallback: http.expectedStatuses(404) });
         http.get('BASE/fast', { responseCallback: http.expectedStatuses({ min: 300, max: 399 }) });
         http.get('BASE/fast', { responseCallback: null });
         http.setResponseCallback(http.expectedStatuses(500));
         http.get('BASE/status/500');",
    )
    .run(Some(&lab));
    assert_eq!(ran.metric("http_req_failed", []), Metric { samples: 3, sum: 1.0 });
    assert_eq!(ran.metric("http_reqs", []).samples, 4);
}
