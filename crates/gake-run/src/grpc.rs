//! gRPC calls: the schema of the method, and its encoded messages.

use std::sync::Arc;
use std::time::Duration;

use gake_core::schedule::Slice;
use gake_core::spec::{FieldPath, GrpcSpec, RunSpec};
use gake_engine::RunClock;
use gake_wire::{
    Client, GrpcError, GrpcMethod, GrpcReflection, GrpcSchema, HttpRequest, Location, Network,
    Protocol, basic_authorization, grpc_call, grpc_frame,
};
use tokio::runtime::{Builder, LocalOptions};

use crate::{RunError, connection};

/// Time limit for all responses of the server's reflection.
const REFLECTION_TIMEOUT: Duration = Duration::from_secs(10);

/// A gRPC method and its server.
pub(crate) struct GrpcTarget<'a> {
    spec: &'a RunSpec,
    grpc: &'a GrpcSpec,
    location: Location,
    at: &'a FieldPath,
}

impl<'a> GrpcTarget<'a> {
    /// The method that the scenario at `at` calls.
    pub(crate) fn new(
        spec: &'a RunSpec,
        grpc: &'a GrpcSpec,
        at: &'a FieldPath,
    ) -> Result<Self, RunError> {
        let location = Location::parse_grpc(&grpc.url);
        let location = location.map_err(|error| RunError::spec(at.key("url"), error))?;
        Ok(Self { spec, grpc, location, at })
    }

    pub(crate) fn name(&self) -> String {
        self.location.grpc_url()
    }

    /// The call and its method, with this metadata and the messages in `json`. The compiled `set`
    /// defines the method; without it, .proto files or the server's reflection do.
    pub(crate) fn call(
        &self,
        metadata: &[(String, String)],
        set: Option<&[u8]>,
        json: &[u8],
    ) -> Result<(HttpRequest, GrpcMethod), RunError> {
        let schema = match set {
            Some(set) => self.compiled(set)?,
            None => self.schema(metadata)?,
        };
        let method = schema.method(&self.location.target);
        let method = method.map_err(|error| RunError::spec(self.at.key("url"), error))?;
        let refuse = |why: String| RunError::spec(self.at.key("body"), why);
        let json = std::str::from_utf8(json).map_err(|_| refuse("it is not UTF-8".to_owned()))?;
        let messages = match method.is_client_streaming() {
            true => method.encode_stream(json),
            false => method.encode(json).map(|message| vec![message]),
        };
        let messages = messages.map_err(|error| refuse(error.to_string()))?;
        let body = messages.iter().flat_map(|message| grpc_frame(message)).collect();
        // `grpc` becomes `http`, and `grpcs` becomes `https`.
        let url = format!("http{}", &self.grpc.url.trim()["grpc".len()..]);
        let timeout = self.spec.connection.timeout;
        Ok((grpc_call(url, metadata, timeout, body), method))
    }

    fn compiled(&self, set: &[u8]) -> Result<GrpcSchema, RunError> {
        let mut schema = GrpcSchema::default();
        let added = schema.add_set(set);
        added.map_err(|error| RunError::spec(self.at.key("proto_set"), error))?;
        Ok(schema)
    }

    fn schema(&self, metadata: &[(String, String)]) -> Result<GrpcSchema, RunError> {
        let GrpcSpec { proto, proto_paths, .. } = self.grpc;
        if !proto.is_empty() {
            let read = GrpcSchema::read(proto, proto_paths);
            return read.map_err(|error| RunError::spec(self.at.key("proto"), error));
        }
        // On its own thread, since the caller's may already have a runtime.
        let schema = std::thread::scope(|scope| {
            let reflect = || {
                let runtime = Builder::new_current_thread()
                    .enable_all()
                    .build_local(LocalOptions::default())
                    .map_err(|error| RunError::cannot(error.to_string()))?;
                runtime.block_on(self.reflected(metadata))
            };
            scope.spawn(reflect).join()
        });
        schema.unwrap_or_else(|_| {
            Err(RunError::cannot("the server's reflection panicked".to_owned()))
        })
    }

    /// The metadata of reflection requests, with the user of the URL unless it contains
    /// credentials.
    fn authorized(&self, metadata: &[(String, String)]) -> Vec<(String, String)> {
        let mut metadata = metadata.to_vec();
        let is_given = metadata.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
        if let Some(user) = self.location.user.as_deref().filter(|_| !is_given) {
            metadata.push(basic_authorization(user));
        }
        metadata
    }

    /// The schema from the server's reflection.
    async fn reflected(&self, metadata: &[(String, String)]) -> Result<GrpcSchema, RunError> {
        let mut settings = connection::settings(&self.spec.connection, true, (1, 1))?;
        settings.protocol = Protocol::Http2;
        let (resolver, tls) = (connection::resolver(self.spec)?, connection::tls(&self.spec.tls)?);
        let cannot =
            |error: &dyn std::fmt::Display| RunError::cannot(format!("{}: {error}", self.name()));
        let network = Network::new(&resolver, &tls, settings).and_then(Network::to_any_origin);
        let network = network.map_err(|error| cannot(&error))?;
        let clock = RunClock::starting_in(0);
        let client = Client::new(Arc::new(network), Slice::WHOLE, clock);
        let whole = self.location.to_string();
        let origin = whole.strip_suffix(&self.location.target).unwrap_or(&whole).to_owned();
        let metadata = self.authorized(metadata);
        let reflection = GrpcReflection::new(&client, origin, &metadata, REFLECTION_TIMEOUT);
        let service = self.location.target.trim_start_matches('/').split('/').next();
        reflection.schema(service).await.map_err(|error| match error {
            error @ GrpcError::NoReflection => RunError::spec(self.at.key("url"), error),
            error => cannot(&error),
        })
    }
}
