//! A spec whose requests are in itself, for other machines.

use gake_core::spec::{
    BodySpec, RequestDefaults, RequestSource, RequestSpec, RunSpec, ScenarioSpec,
};
use gake_wire::WeightedRequest;

use crate::LoadedRequests;
use crate::requests::RequestSet;

impl LoadedRequests {
    /// The same run, without the files and the standard input that its requests were read from. A
    /// recording, and what a program makes during the run, stays what it is.
    #[must_use]
    pub fn inlined(&self, spec: &RunSpec) -> RunSpec {
        let scenarios = spec.scenarios.iter().zip(&self.sets);
        let scenarios = scenarios.map(|(scenario, set)| inlined(scenario, set)).collect();
        RunSpec { scenarios, ..spec.clone() }
    }
}

fn inlined(scenario: &ScenarioSpec, set: &RequestSet) -> ScenarioSpec {
    // Its message is in the spec itself.
    let is_websocket = matches!(scenario.source, RequestSource::WebSocket(_));
    let is_made_later =
        is_websocket || set.order.is_some() || set.trace.is_some() || set.feed.is_some();
    // Only the definitions say what a message is.
    let is_decoded = set.method.is_some() && scenario.expect_body.is_some();
    if is_decoded || is_made_later || set.requests.iter().any(|one| !one.request.opaque.is_empty())
    {
        return scenario.clone();
    }
    ScenarioSpec {
        source: RequestSource::Requests(set.requests.iter().map(request).collect()),
        // Each request has them already.
        request: RequestDefaults::default(),
        ..scenario.clone()
    }
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
