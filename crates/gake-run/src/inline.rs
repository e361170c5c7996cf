//! Inlining of files into a spec, for other machines.

use std::sync::Arc;

use gake_core::spec::{
    BodySpec, GrpcSpec, RequestDefaults, RequestSource, RequestSpec, RunSpec, ScenarioSpec,
};
use gake_wire::WeightedRequest;

use crate::LoadedRequests;
use crate::requests::{GrpcCall, RequestSet};

impl LoadedRequests {
    /// The spec with the contents of the files and standard input that its requests were read from.
    /// Recordings, and requests made during the run, are left as they are.
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
    // The message is already part of the spec.
    let is_websocket = matches!(scenario.source, RequestSource::WebSocket(_));
    let is_made_later =
        is_websocket || set.order.is_some() || set.trace.is_some() || set.feed.is_some();
    if is_made_later || set.requests.has_opaque() {
        return scenario.clone();
    }
    // A check of reply messages needs the definitions.
    if let (RequestSource::Grpc(grpc), Some(call), Some(_)) =
        (&scenario.source, &set.call, &scenario.expect_body)
    {
        return defined(scenario, grpc, call);
    }
    ScenarioSpec {
        source: RequestSource::Requests(set.requests.iter().map(request).collect()),
        // Already part of each request.
        request: RequestDefaults::default(),
        stream: scenario.stream || set.is_stream,
        ..scenario.clone()
    }
}

/// The scenario with the gRPC definitions and messages in the spec.
fn defined(scenario: &ScenarioSpec, grpc: &GrpcSpec, call: &GrpcCall) -> ScenarioSpec {
    let set = BodySpec::Bytes(call.method.definitions().into());
    let source = GrpcSpec { url: grpc.url.clone(), proto_set: Some(set), ..GrpcSpec::default() };
    let mut scenario = scenario.clone();
    scenario.source = RequestSource::Grpc(source);
    scenario.request.body = Some(BodySpec::Bytes(Arc::clone(&call.json)));
    scenario
}

fn request(one: WeightedRequest) -> RequestSpec {
    let request = one.request;
    RequestSpec {
        name: one.label,
        method: Some(request.method),
        url: request.url,
        headers: request.headers,
        body: request.body.map(BodySpec::Bytes),
        weight: one.weight,
    }
}
