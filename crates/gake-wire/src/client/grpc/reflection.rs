//! Server reflection: the definitions of services, from the server.
//!
//! The reflection method is a stream; each query here opens a stream of its own.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use gake_codec::http1::Visitor;
use gake_core::clock::{Clock, Nanos};
use gake_core::record::{Exchange, ExchangeEnd, Fault, GrpcStatus};
use prost_reflect::prost::Message as _;
use prost_reflect::prost::encoding::{
    WireType, decode_key, decode_varint, encode_key, encode_varint,
};
use prost_reflect::prost_types::FileDescriptorProto;

use super::error::GrpcError;
use super::grpc_call;
use super::message::{GrpcMessages, grpc_frame};
use super::schema::GrpcSchema;
use crate::client::Client;
use crate::client::visitor::ExchangeVisitor;
use crate::net::deadline::Deadline;

/// The versions of the service. Their messages are the same.
const VERSIONS: [&str; 2] = ["grpc.reflection.v1", "grpc.reflection.v1alpha"];

/// Maximum bytes of a response.
const RESPONSE_MAX: usize = 16 << 20;

/// Maximum bytes of all responses together.
const RESPONSES_MAX: usize = 4 * RESPONSE_MAX;

/// Maximum files, and services, of a server.
const FILES_MAX: usize = 1_000;

/// Field numbers of ServerReflectionRequest and ServerReflectionResponse.
mod field {
    pub(super) const FILE_BY_NAME: u32 = 3;
    pub(super) const FILE_WITH_SYMBOL: u32 = 4;
    pub(super) const LIST_SERVICES: u32 = 7;
    pub(super) const FILES: u32 = 4;
    pub(super) const SERVICES: u32 = 6;
    pub(super) const ERROR: u32 = 7;
}

/// The reflection of a server.
#[derive(Debug)]
pub struct GrpcReflection<'a, C> {
    client: &'a Client<C>,
    /// `http://HOST:PORT` or `https://HOST:PORT`.
    origin: String,
    metadata: &'a [(String, String)],
    timeout: Duration,
    version: &'static str,
    /// Bytes of all responses so far.
    received: usize,
}

impl<'a, C: Clock + Clone + 'static> GrpcReflection<'a, C> {
    /// The reflection of the server at `origin` (`http://HOST:PORT` or `https://HOST:PORT`). Queries
    /// carry `metadata` and may take `timeout` in total. The client must speak HTTP/2.
    #[must_use]
    pub fn new(
        client: &'a Client<C>,
        origin: String,
        metadata: &'a [(String, String)],
        timeout: Duration,
    ) -> Self {
        Self { client, origin, metadata, timeout, version: VERSIONS[0], received: 0 }
    }

    /// The definitions of a service, or of all services, with everything they refer to.
    ///
    /// # Errors
    /// The server has no reflection or no such service, or its responses are invalid.
    pub async fn schema(mut self, service: Option<&str>) -> Result<GrpcSchema, GrpcError> {
        let end = self.client.clock().now().saturating_add(self.timeout.as_nanos() as u64);
        let services = match service {
            Some(service) => vec![service.to_owned()],
            None => self.services(end).await?,
        };
        let mut files = DefinitionFiles::default();
        for service in services {
            files.take(&self.query(field::FILE_WITH_SYMBOL, &service, end).await?)?;
        }
        while let Some(name) = files.missing()? {
            files.take(&self.query(field::FILE_BY_NAME, &name, end).await?)?;
        }
        let mut schema = GrpcSchema::default();
        schema.add_files(files.known.into_values())?;
        Ok(schema)
    }

    /// The names of all services except reflection.
    async fn services(&mut self, end: Nanos) -> Result<Vec<String>, GrpcError> {
        let response = self.query(field::LIST_SERVICES, "*", end).await?;
        let mut names = Vec::new();
        for list in fields(&response, field::SERVICES)? {
            for service in fields(list, 1)? {
                names.extend(fields(service, 1)?.into_iter().map(text));
            }
        }
        names.retain(|name| !name.starts_with("grpc.reflection."));
        if names.len() > FILES_MAX {
            let why = format!("it has {} services, more than {FILES_MAX}", names.len());
            return Err(GrpcError::Reflection(why));
        }
        Ok(names)
    }

    /// Queries the server in the version that it has.
    async fn query(&mut self, field: u32, about: &str, end: Nanos) -> Result<Vec<u8>, GrpcError> {
        let mut message = Vec::new();
        encode_key(field, WireType::LengthDelimited, &mut message);
        encode_varint(about.len() as u64, &mut message);
        message.extend_from_slice(about.as_bytes());
        let body = grpc_frame(&message);
        let response = match self.call(body.clone(), end).await {
            Err(GrpcError::NoReflection) if self.version == VERSIONS[0] => {
                self.version = VERSIONS[1];
                self.call(body, end).await
            }
            response => response,
        }?;
        match fields(&response, field::ERROR)?.first() {
            Some(error) => {
                let reason = fields(error, 2)?.first().map(|bytes| text(bytes)).unwrap_or_default();
                Err(GrpcError::Reflection(format!("{about}: {reason}")))
            }
            None => Ok(response),
        }
    }

    async fn call(&mut self, body: Vec<u8>, end: Nanos) -> Result<Vec<u8>, GrpcError> {
        let (origin, version) = (&self.origin, self.version);
        let url = format!("{origin}/{version}.ServerReflection/ServerReflectionInfo");
        let left = |now: Nanos| Duration::from_nanos(end.saturating_sub(now));
        let now = self.client.clock().now();
        let request = grpc_call(url, self.metadata, left(now), body);
        let prepared = self.client.prepare(&request).await.map_err(GrpcError::Call)?;
        let now = self.client.clock().now();
        let mut exchange = Exchange::unfinished(now);
        let mut response = BodyCollector::default();
        let deadline = Deadline::within(now, left(now));
        self.client.exchange(&prepared, now, deadline, &mut response, &mut exchange).await;
        match exchange.end {
            ExchangeEnd::Response(answer) if matches!(answer.status, 404 | 415) => {
                return Err(GrpcError::NoReflection);
            }
            ExchangeEnd::Response(answer) if answer.status != 200 => {
                let status = answer.status;
                return Err(GrpcError::Reflection(format!("it responds with {status}")));
            }
            ExchangeEnd::Response(_) => {}
            ExchangeEnd::Fault(Fault::Grpc(GrpcStatus::UNIMPLEMENTED)) => {
                return Err(GrpcError::NoReflection);
            }
            ExchangeEnd::Fault(fault) => return Err(GrpcError::Call(fault)),
            ExchangeEnd::Unfinished => return Err(GrpcError::Call(Fault::Other(0))),
        }
        self.received += response.0.len();
        if response.0.len() > RESPONSE_MAX || self.received > RESPONSES_MAX {
            return Err(GrpcError::Reflection("its responses are too large".to_owned()));
        }
        let messages = GrpcMessages::of(&response.0)?;
        let empty = || GrpcError::Reflection("its response is empty".to_owned());
        messages.into_iter().next().ok_or_else(empty)
    }
}

/// Collects a body a little beyond [`RESPONSE_MAX`].
#[derive(Default)]
struct BodyCollector(Vec<u8>);

impl Visitor for BodyCollector {
    fn body(&mut self, bytes: &[u8]) {
        if self.0.len() <= RESPONSE_MAX {
            self.0.extend_from_slice(bytes);
        }
    }
}

impl ExchangeVisitor for BodyCollector {}

#[derive(Default)]
struct DefinitionFiles {
    known: HashMap<String, FileDescriptorProto>,
    requested: HashSet<String>,
}

impl DefinitionFiles {
    fn take(&mut self, response: &[u8]) -> Result<(), GrpcError> {
        for list in fields(response, field::FILES)? {
            for file in fields(list, 1)? {
                let file = FileDescriptorProto::decode(file).map_err(|error| malformed(&error))?;
                self.known.insert(file.name().to_owned(), file);
            }
        }
        Ok(())
    }

    /// A dependency that must be requested.
    fn missing(&mut self) -> Result<Option<String>, GrpcError> {
        let wanted = self.known.values().flat_map(|file| &file.dependency);
        let missing = wanted.filter(|name| !self.known.contains_key(*name));
        let Some(name) = missing.min().cloned() else { return Ok(None) };
        if self.known.len() > FILES_MAX || self.requested.len() >= FILES_MAX {
            let why = format!("its definitions need more than {FILES_MAX} files");
            return Err(GrpcError::Reflection(why));
        }
        if !self.requested.insert(name.clone()) {
            let why = format!("its definitions need {name}, which it does not supply");
            return Err(GrpcError::Reflection(why));
        }
        Ok(Some(name))
    }
}

fn malformed(error: &dyn std::fmt::Display) -> GrpcError {
    GrpcError::Reflection(format!("its response is malformed: {error}"))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The length-delimited values of a field of a message.
fn fields(mut message: &[u8], wanted: u32) -> Result<Vec<&[u8]>, GrpcError> {
    let mut found = Vec::new();
    while !message.is_empty() {
        let (number, wire) = decode_key(&mut message).map_err(|error| malformed(&error))?;
        let length = match wire {
            WireType::Varint => {
                decode_varint(&mut message).map_err(|error| malformed(&error))?;
                continue;
            }
            WireType::SixtyFourBit => 8,
            WireType::ThirtyTwoBit => 4,
            WireType::LengthDelimited => {
                decode_varint(&mut message).map_err(|error| malformed(&error))?
            }
            WireType::StartGroup | WireType::EndGroup => return Err(malformed(&"a group")),
        };
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let (value, rest) =
            message.split_at_checked(length).ok_or_else(|| malformed(&"it is cut short"))?;
        if number == wanted && wire == WireType::LengthDelimited {
            found.push(value);
        }
        message = rest;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(name: &str, dependency: &str) -> Vec<u8> {
        let put = |number: u32, value: &[u8]| {
            let mut bytes = Vec::new();
            encode_key(number, WireType::LengthDelimited, &mut bytes);
            encode_varint(value.len() as u64, &mut bytes);
            [bytes, value.to_vec()].concat()
        };
        let file = FileDescriptorProto {
            name: Some(name.to_owned()),
            dependency: vec![dependency.to_owned()],
            ..FileDescriptorProto::default()
        };
        put(field::FILES, &put(1, &file.encode_to_vec()))
    }

    #[test]
    fn endless_dependencies_are_bounded() {
        for is_same in [true, false] {
            let (mut files, mut requests) = (DefinitionFiles::default(), 0);
            files.take(&response("first", "0")).unwrap();
            let error = loop {
                match files.missing() {
                    Ok(name) => {
                        let name = if is_same { "first".to_owned() } else { name.unwrap() };
                        requests += 1;
                        files.take(&response(&name, &requests.to_string())).unwrap();
                    }
                    Err(error) => break error.to_string(),
                }
            };
            assert!(requests <= FILES_MAX && error.contains("more than 1000 files"), "{error}");
        }
        let mut files = DefinitionFiles::default();
        files.take(&response("a", "b")).unwrap();
        assert_eq!(files.missing(), Ok(Some("b".to_owned())));
        assert!(files.missing().unwrap_err().to_string().contains("need b"));
    }

    #[test]
    fn fields_are_found_among_others() {
        // 1: 300, 2: "ab", 3: fixed32, 2: "", 4: fixed64
        let message = [
            8, 0xac, 2, 0x12, 2, b'a', b'b', 0x1d, 0, 0, 0, 0, 0x12, 0, 0x21, 0, 0, 0, 0, 0, 0, 0,
            0,
        ];
        assert_eq!(fields(&message, 2).unwrap(), [&b"ab"[..], b""]);
        assert!(fields(&message, 3).unwrap().is_empty());
        for cut in [&message[..2], &message[..6], &[0x0b][..], &[0x12, 0xff][..]] {
            assert!(fields(cut, 2).is_err(), "{cut:?}");
        }
    }
}
