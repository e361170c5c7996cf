//! The samples of HTTP requests, and their tags.

use std::borrow::Cow;

use gake_core::record::Exchange;

use super::response_facts::ResponseFacts;
use super::script_request::ScriptRequest;
use crate::metrics::BuiltinMetric;
use crate::user::request_tags::RequestTags;
use crate::user::vu::Vu;

/// Records the samples of one request.
pub(super) fn record(
    vu: &Vu,
    request: &ScriptRequest,
    url: &str,
    response: &ResponseFacts,
    exchange: &Exchange,
) {
    let expected = request.expected.judge(response.status);
    let expected = expected.map(|expected| response.expected.unwrap_or(expected));
    let set = vu.series_index.tag_set(&HttpTags { vu, request, url, response, expected });
    let timings = &response.timings;
    vu.record(BuiltinMetric::HttpReqs, &set, 1.0);
    if expected == Some(false) && response.status > 0 && vu.test.settings().failed_bodies {
        vu.pending.failed_body(response.status, response.body.as_deref().unwrap_or_default());
    }
    if let Some(expected) = expected {
        vu.record(BuiltinMetric::HttpReqFailed, &set, f64::from(!expected));
    }
    for (metric, span) in [
        (BuiltinMetric::HttpReqDuration, timings.duration()),
        (BuiltinMetric::HttpReqBlocked, timings.blocked),
        (BuiltinMetric::HttpReqConnecting, timings.connecting),
        (BuiltinMetric::HttpReqTlsHandshaking, timings.tls),
        (BuiltinMetric::HttpReqSending, timings.sending),
        (BuiltinMetric::HttpReqWaiting, timings.waiting),
        (BuiltinMetric::HttpReqReceiving, timings.receiving),
    ] {
        vu.record(metric, &set, span as f64);
    }
    vu.count_traffic(exchange.bytes_out, exchange.bytes_in);
}

/// Records a request that the end of the test interrupted, neither ok nor failed. k6 omits it.
pub(super) fn record_unfinished(vu: &Vu, request: &ScriptRequest, url: &str, exchange: &Exchange) {
    let response = ResponseFacts::failed(request, 1000, "request canceled".to_owned());
    let set = vu.series_index.tag_set(&HttpTags {
        vu,
        request,
        url,
        response: &response,
        expected: None,
    });
    vu.record(BuiltinMetric::HttpReqs, &set, 1.0);
    vu.count_traffic(exchange.bytes_out, exchange.bytes_in);
}

struct HttpTags<'a> {
    vu: &'a Vu,
    request: &'a ScriptRequest,
    url: &'a str,
    response: &'a ResponseFacts,
    expected: Option<bool>,
}

impl RequestTags for HttpTags<'_> {
    const SYSTEM: &'static [&'static str] = &[
        "method",
        "url",
        "name",
        "status",
        "proto",
        "tls_version",
        "error",
        "error_code",
        "expected_response",
        "ip",
    ];

    fn vu(&self) -> &Vu {
        self.vu
    }

    fn own(&self) -> &[(String, String)] {
        &self.request.tags
    }

    fn name(&self) -> Option<&str> {
        self.request.name.as_deref()
    }

    fn system(&self, key: &str) -> Option<Cow<'_, str>> {
        let Self { request, url, response, expected, .. } = self;
        match key {
            "method" => Some((&*response.method).into()),
            "url" | "name" => Some(request.name.as_deref().unwrap_or(url).into()),
            "status" => Some(response.status.to_string().into()),
            "proto" => (!response.proto.is_empty()).then(|| response.proto.into()),
            "tls_version" => response.tls_version().map(Cow::Borrowed),
            "error" => (!response.error.is_empty()).then(|| response.error.as_str().into()),
            "error_code" => {
                (response.error_code > 0).then(|| response.error_code.to_string().into())
            }
            "ip" => response.peer.map(|peer| peer.ip().to_string().into()),
            _ => expected.map(|is| if is { "true" } else { "false" }.into()),
        }
    }
}
