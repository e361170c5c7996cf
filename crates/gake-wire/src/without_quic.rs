//! What stands for QUIC in a build without the feature `http3`: settings that are never there.

use std::sync::Arc;

use gake_codec::http2::ConnectionLimits;

/// Settings of QUIC.
#[derive(Debug, Clone)]
pub(crate) enum QuicSettings {}

impl QuicSettings {
    pub(crate) fn new(_: Arc<rustls::ClientConfig>, _: &ConnectionLimits) -> Option<Self> {
        None
    }
}
