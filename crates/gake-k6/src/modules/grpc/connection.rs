//! The connection of a client.

use gake_wire::Client;

use crate::user::clock::UserClock;
use crate::user::vu::Vu;

/// The method of the standard health check.
pub(super) const HEALTH_CHECK: &str = "/grpc.health.v1.Health/Check";

#[derive(Debug)]
pub(super) struct GrpcConnection {
    pub(super) client: Client<UserClock>,
    /// As the script wrote it.
    pub(super) address: String,
    /// `http://HOST:PORT` or `https://HOST:PORT`.
    pub(super) origin: String,
    pub(super) authority: Option<String>,
    /// Maximum bytes of a received message.
    pub(super) max_receive: usize,
}

impl GrpcConnection {
    /// The metadata of a call: the script's own, and defaults.
    pub(super) fn metadata(&self, vu: &Vu, own: &[(String, String)]) -> Vec<(String, String)> {
        let mut metadata = own.to_vec();
        let has_agent = metadata.iter().any(|(known, _)| known == "user-agent");
        let agent = &vu.test.settings().user_agent;
        if !agent.is_empty() && !has_agent {
            metadata.push(("user-agent".to_owned(), agent.clone()));
        }
        if let Some(authority) = &self.authority {
            metadata.push(("host".to_owned(), authority.clone()));
        }
        metadata
    }
}
