//! Where a client is connected to.

use gake_wire::Client;

use crate::user::clock::UserClock;

/// The method of the standard health check.
pub(super) const HEALTH_CHECK: &str = "/grpc.health.v1.Health/Check";

/// Where a client is connected to.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) client: Client<UserClock>,
    /// As the script wrote it.
    pub(super) address: String,
    /// `http://HOST:PORT` or `https://HOST:PORT`.
    pub(super) origin: String,
    pub(super) authority: Option<String>,
    /// Maximum bytes of a received message.
    pub(super) max_receive: usize,
}
