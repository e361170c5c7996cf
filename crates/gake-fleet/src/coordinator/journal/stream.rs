//! The JetStream stream of a journal, through JetStream's JSON API.

use std::time::Duration;

use async_nats::client::RequestErrorKind;
use async_nats::{Client, Request};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::json;

use crate::message::{journal_purpose, journal_subject, seal_bytes};
use crate::{FleetError, FleetToken, NatsSettings};

/// Time limit for a reply of the server.
const REPLY_MAX: Duration = Duration::from_secs(5);

/// How long JetStream keeps the entries of a journal. The empty stream stays until it is deleted.
const AGE_MAX: Duration = Duration::from_secs(24 * 3_600);

/// The stream of a run's journal.
#[derive(Debug, Clone)]
pub(crate) struct JournalStream {
    pub(crate) client: Client,
    pub(crate) nats: NatsSettings,
    pub(crate) token: FleetToken,
    pub(crate) run: String,
}

/// A reply of the server.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct StreamReply {
    /// The number of the stored message.
    pub(crate) seq: Option<u64>,
    state: StreamState,
    pub(crate) error: Option<StreamError>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct StreamState {
    first_seq: u64,
    last_seq: u64,
}

/// An error of the server.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct StreamError {
    code: u32,
    pub(crate) description: String,
}

impl StreamReply {
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }
}

impl JournalStream {
    fn name(&self) -> String {
        format!("gake-{}", self.run)
    }

    /// Creates the stream; `false` if the server has no JetStream.
    pub(crate) async fn create(&self) -> Result<bool, FleetError> {
        let name = self.name();
        let config = json!({
            "name": name,
            "subjects": [journal_subject(&self.run)],
            "retention": "limits",
            "storage": "file",
            "discard": "new",
            "max_age": AGE_MAX.as_nanos() as u64,
            "num_replicas": 1,
            "allow_direct": true,
        });
        match self.api(&format!("STREAM.CREATE.{name}"), &config).await? {
            Some(StreamReply { error: Some(error), .. }) if error.code != 503 => {
                Err(self.failed(&error.description))
            }
            Some(StreamReply { error: None, .. }) => Ok(true),
            _ => Ok(false),
        }
    }

    /// The numbers of the first and last message; `None` if there is no such stream.
    pub(crate) async fn bounds(&self) -> Result<Option<(u64, u64)>, FleetError> {
        match self.api(&format!("STREAM.INFO.{}", self.name()), &json!({})).await? {
            Some(StreamReply { error: None, state, .. }) => {
                Ok(Some((state.first_seq, state.last_seq)))
            }
            Some(StreamReply { error: Some(error), .. }) if error.code != 404 => {
                Err(self.failed(&error.description))
            }
            _ => Ok(None),
        }
    }

    /// The entry in the message with this number; `None` if it is not sealed with the token, since
    /// every client of the NATS server may publish on the subject.
    pub(crate) async fn get(&self, number: u64) -> Result<Option<Bytes>, FleetError> {
        let subject = format!("$JS.API.DIRECT.GET.{}", self.name());
        let body = serde_json::to_vec(&json!({ "seq": number })).unwrap_or_default();
        let request = Request::new().payload(body.into()).timeout(Some(REPLY_MAX));
        let reply = self.client.send_request(subject, request).await;
        let reply = reply.map_err(|error| self.nats.failed(error))?;
        if reply.status.is_some() {
            return Err(self.failed(&format!("entry {number} is missing")));
        }
        let opened = self.token.open(&journal_purpose(&self.run), &reply.payload);
        Ok(opened.map(|body| reply.payload.slice_ref(body)))
    }

    /// The entries in the messages after `after` and before `before`.
    pub(crate) async fn between(&self, after: u64, before: u64) -> Result<Vec<Bytes>, FleetError> {
        let mut entries = Vec::new();
        for number in after + 1..before {
            entries.extend(self.get(number).await?);
        }
        Ok(entries)
    }

    /// Appends an entry, and returns the number of its message.
    pub(crate) async fn append(&self, entry: &[u8]) -> Result<u64, FleetError> {
        let sealed = seal_bytes(&self.token, &journal_purpose(&self.run), entry);
        let request = Request::new().payload(sealed).timeout(Some(REPLY_MAX));
        let reply = self.client.send_request(journal_subject(&self.run), request).await;
        let reply = reply.map_err(|error| self.nats.failed(error))?;
        match StreamReply::read(&reply.payload) {
            Some(StreamReply { error: None, seq: Some(number), .. }) => Ok(number),
            Some(StreamReply { error: Some(error), .. }) => Err(self.failed(&error.description)),
            _ => Err(self.failed("its reply is not valid")),
        }
    }

    /// The subject of a request to delete it.
    pub(crate) fn delete_subject(run: &str) -> String {
        format!("$JS.API.STREAM.DELETE.gake-{run}")
    }

    pub(crate) async fn delete(&self) -> Result<(), FleetError> {
        self.api(&format!("STREAM.DELETE.{}", self.name()), &json!({})).await.map(drop)
    }

    /// Calls the API; `None` if the server has no JetStream.
    async fn api(
        &self,
        what: &str,
        body: &serde_json::Value,
    ) -> Result<Option<StreamReply>, FleetError> {
        let body = serde_json::to_vec(body).unwrap_or_default();
        let request = Request::new().payload(body.into()).timeout(Some(REPLY_MAX));
        match self.client.send_request(format!("$JS.API.{what}"), request).await {
            Ok(reply) => StreamReply::read(&reply.payload)
                .map(Some)
                .ok_or_else(|| self.failed("its reply is not valid")),
            Err(error) if error.kind() == RequestErrorKind::NoResponders => Ok(None),
            Err(error) => Err(self.nats.failed(error)),
        }
    }

    fn failed(&self, why: &str) -> FleetError {
        self.nats.failed(format!("the journal of run {}: {why}", self.run))
    }
}
