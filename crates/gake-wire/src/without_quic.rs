//! A stub for a build without the feature `http3`: settings without values.

use std::sync::Arc;

use gake_codec::http2::ConnectionLimits;

#[derive(Debug, Clone)]
pub(crate) enum QuicSettings {}

impl QuicSettings {
    pub(crate) fn new(_: Arc<rustls::ClientConfig>, _: &ConnectionLimits) -> Option<Self> {
        None
    }
}
