//! A spec whose requests are in itself, for other machines.

use std::sync::Arc;

use gake_core::spec::{
    BodySpec, GrpcSpec, RequestDefaults, RequestSource, RequestSpec, RunSpec, ScenarioSpec,
};
use gake_wire::WeightedRequest;

use crate::LoadedRequests;
use crate::requests::{GrpcCall, RequestSet};

impl LoadedRequests {
    /// The same run, without the files and the standard input that its requests were read from. A
    /// recording, and what a program makes during the run, stays what it is.
    #[must_use]
    pub fn inlined(&self, spec: &RunSpec) -> RunSpec {
        let scenarios = spec.scenarios.iter().zip(&self.sets);
        let scenarios = scenarios.map(|(scenario, set)| match set {
            Some(set) => inlined(scenario, set),
            None => scenario.clone(),
        });
        let scenarios = scenarios.collect();
        RunSpec { scenarios, ..spec.clone() }
    }
}

fn inlined(scenario: &ScenarioSpec, set: &RequestSet) -> ScenarioSpec {
    // Its message is in the spec itself.
    let is_websocket = matches!(scenario.source, RequestSource::WebSocket(_));
    let is_made_later =
        is_websocket || set.order.is_some() || set.trace.is_some() || set.feed.is_some();
    if is_made_later || set.requests.iter().any(|one| !one.request.opaque.is_empty()) {
        return scenario.clone();
    }
    // Only the definitions say what the messages of replies are.
    if let (RequestSource::Grpc(grpc), Some(call), Some(_)) =
        (&scenario.source, &set.call, &scenario.expect_body)
    {
        return defined(scenario, grpc, call);
    }
    ScenarioSpec {
        source: RequestSource::Requests(set.requests.iter().map(request).collect()),
        // Each request has them already.
        request: RequestDefaults::default(),
        stream: scenario.stream || set.is_stream,
        ..scenario.clone()
    }
}

/// The same calls, with the definitions and the messages in the spec.
fn defined(scenario: &ScenarioSpec, grpc: &GrpcSpec, call: &GrpcCall) -> ScenarioSpec {
    let set = BodySpec::Bytes(call.method.definitions().into());
    let source = GrpcSpec { url: grpc.url.clone(), proto_set: Some(set), ..GrpcSpec::default() };
    let mut scenario = scenario.clone();
    scenario.source = RequestSource::Grpc(source);
    scenario.request.body = Some(BodySpec::Bytes(Arc::clone(&call.json)));
    scenario
}

fn request(one: &WeightedRequest) -> RequestSpec {
    let request = &one.request;
    RequestSpec {
        name: one.label.clone(),
        method: Some(request.method.clone()),
        url: request.url.clone(),
        headers: request.headers.clone(),
        body: request.body.clone().map(BodySpec::Bytes),
        weight: one.weight,
    }
}
