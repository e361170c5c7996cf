//! Stubs for a build without the feature `grpc`: reading a schema is an error, and methods do not
//! exist.

use std::convert::Infallible;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::time::Duration;

use gake_core::clock::Clock;

use super::GrpcError;
use crate::Client;

const ABSENT: &str = "this build has no gRPC: it lacks the feature `grpc`";

/// An empty schema.
#[derive(Debug, Clone, Default)]
pub struct GrpcSchema(());

/// A type without values.
#[derive(Debug, Clone)]
pub struct GrpcMethod(Infallible);

fn absent<T>() -> Result<T, GrpcError> {
    Err(GrpcError::Definitions(ABSENT.to_owned()))
}

impl GrpcSchema {
    /// Fails.
    ///
    /// # Errors
    /// Always.
    pub fn read(_: &[PathBuf], _: &[PathBuf]) -> Result<Self, GrpcError> {
        absent()
    }

    /// Fails.
    ///
    /// # Errors
    /// Always.
    pub fn compile(
        _: &[String],
        _: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Result<Self, GrpcError> {
        absent()
    }

    /// Fails.
    ///
    /// # Errors
    /// Always.
    pub fn add_set(&mut self, _: &[u8]) -> Result<(), GrpcError> {
        absent()
    }

    /// Always empty.
    pub fn methods(&self) -> impl Iterator<Item = GrpcMethod> {
        std::iter::empty()
    }

    /// Fails.
    ///
    /// # Errors
    /// Always.
    pub fn method(&self, _: &str) -> Result<GrpcMethod, GrpcError> {
        absent()
    }
}

#[expect(missing_docs, reason = "there is no method: nothing here is ever called")]
impl GrpcMethod {
    pub fn path(&self) -> String {
        match self.0 {}
    }
    pub fn definitions(&self) -> Vec<u8> {
        match self.0 {}
    }
    pub fn package(&self) -> String {
        match self.0 {}
    }
    pub fn service(&self) -> String {
        match self.0 {}
    }
    pub fn name(&self) -> &str {
        match self.0 {}
    }
    pub fn is_client_streaming(&self) -> bool {
        match self.0 {}
    }
    pub fn is_server_streaming(&self) -> bool {
        match self.0 {}
    }
    pub fn encode(&self, _: &str) -> Result<Vec<u8>, GrpcError> {
        match self.0 {}
    }
    pub fn encode_stream(&self, _: &str) -> Result<Vec<Vec<u8>>, GrpcError> {
        match self.0 {}
    }
    pub fn decode(&self, _: &[u8]) -> Result<String, GrpcError> {
        match self.0 {}
    }
    pub(crate) fn returns(&self, _: &[u8], _: impl Fn(&[u8]) -> bool) -> bool {
        match self.0 {}
    }
}

/// A reflection without a schema.
#[derive(Debug)]
pub struct GrpcReflection<'a, C>(PhantomData<&'a C>);

impl<'a, C: Clock + Clone + 'static> GrpcReflection<'a, C> {
    /// Ignores its arguments.
    #[must_use]
    pub fn new(_: &'a Client<C>, _: String, _: &'a [(String, String)], _: Duration) -> Self {
        Self(PhantomData)
    }

    /// Fails.
    ///
    /// # Errors
    /// Always.
    pub async fn schema(self, _: Option<&str>) -> Result<GrpcSchema, GrpcError> {
        absent()
    }
}
