//! The samples of HTTP requests, and their tags.

use std::borrow::Cow;

use gake_core::record::Exchange;

use super::response_facts::ResponseFacts;
use super::script_request::ScriptRequest;
use crate::metrics::BuiltinMetric;
use crate::user::series_index::TagSource;
use crate::user::vu::Vu;

/// Records the samples of one request.
pub(super) fn record(
    vu: &Vu,
    request: &ScriptRequest,
    url: &str,
    response: &ResponseFacts,
    exchange: &Exchange,
) {
    let expected = match response.is_challenge {
        true => Some(true),
        false => request.expected.judge(response.status),
    };
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

/// The system tags of a request.
const SYSTEM_TAGS: [&str; 10] = [
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

struct HttpTags<'a> {
    vu: &'a Vu,
    request: &'a ScriptRequest,
    url: &'a str,
    response: &'a ResponseFacts,
    expected: Option<bool>,
}

impl TagSource for HttpTags<'_> {
    fn tag(&self, key: &str) -> Option<Cow<'_, str>> {
        let Self { vu, request, url, response, expected } = self;
        let own = || {
            let own = request.tags.iter().rev().find(|(known, _)| known == key);
            own.map_or_else(|| vu.tag(key), |(_, value)| Some(value.as_str().into()))
        };
        if SYSTEM_TAGS.contains(&key) && !vu.test.has_system_tag(key) {
            let name = request.name.as_deref().filter(|_| key == "name");
            return name.map_or_else(own, |name| Some(name.into()));
        }
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
            "expected_response" => expected.map(|is| if is { "true" } else { "false" }.into()),
            _ => own(),
        }
    }

    fn keys(&self) -> Vec<String> {
        let system = SYSTEM_TAGS.into_iter().filter(|tag| self.vu.test.has_system_tag(tag));
        let own = self.request.tags.iter().map(|(name, _)| name.clone());
        system.map(str::to_owned).chain(own).chain(self.vu.keys()).collect()
    }
}
