//! gRPC calls.

use super::super::error::{FieldPath, SpecError};
use super::super::{GrpcSpec, HttpVersion, RequestSource, ScenarioDraft};
use super::scenario::ScenarioResolver;

/// Whether a scenario calls gRPC, which needs HTTP/2.
pub(super) fn is_grpc(scenario: &ScenarioDraft) -> bool {
    scenario.url.as_deref().is_some_and(GrpcSpec::has_scheme)
}

impl ScenarioResolver<'_> {
    /// The gRPC source, if `url` has its scheme.
    pub(super) fn grpc(&mut self) -> Result<Option<RequestSource>, SpecError> {
        let proto = std::mem::take(&mut self.draft.proto);
        let proto_set = self.draft.proto_set.take().map(|set| set.0);
        let proto_paths = std::mem::take(&mut self.draft.proto_paths);
        if !is_grpc(&self.draft) {
            let given = [
                ("proto", proto.is_empty()),
                ("proto_set", proto_set.is_none()),
                ("proto_paths", proto_paths.is_empty()),
            ];
            return match given.into_iter().find(|(_, is_empty)| !is_empty) {
                Some((key, _)) => {
                    Err(self.refuse(key, "it needs a URL that begins with grpc:// or grpcs://"))
                }
                None => Ok(None),
            };
        }
        let Some(url) = self.draft.url.take() else { return Ok(None) };
        if proto.is_empty() && !proto_paths.is_empty() {
            return Err(self.refuse("proto_paths", "it needs proto"));
        }
        if proto_set.is_some() && !proto.is_empty() {
            return Err(self.refuse("proto_set", "it replaces proto: leave one of them out"));
        }
        self.without(&["method"], "a gRPC call is always a POST")?;
        let refuse = |key, problem| {
            Err(SpecError::new(FieldPath::root().key("connection").key(key), problem))
        };
        if self.connection.http != HttpVersion::Http2 {
            return refuse("http", "gRPC needs HTTP/2");
        }
        if self.connection.max_redirects > 0 {
            return refuse("max_redirects", "gRPC calls follow no redirects");
        }
        Ok(Some(RequestSource::Grpc(GrpcSpec { url, proto, proto_set, proto_paths })))
    }
}
