//! TLS settings of one stream, which change the run's.

use std::sync::Arc;

use rustls::ClientConfig;

use crate::tls::protocol::Protocol;
use crate::tls::{TlsError, TlsIdentity, TlsOptions};

/// TLS settings of one stream, which change the run's.
#[derive(Debug, Clone, Default)]
pub struct StreamTlsOptions {
    /// Trust the certificates in these PEM texts instead of the run's. Texts that are not PEM are
    /// ignored, as in Go.
    pub authorities: Vec<String>,
    /// The client certificate.
    pub identity: Option<TlsIdentity>,
    /// Accept any certificate.
    pub insecure: bool,
}

impl StreamTlsOptions {
    /// The settings of a run, changed by these; `ready` is the run's own configuration.
    pub(crate) fn config(
        &self,
        run: &TlsOptions,
        ready: Option<&Arc<ClientConfig>>,
    ) -> Result<ClientConfig, TlsError> {
        let is_changed = self.insecure || self.identity.is_some() || !self.authorities.is_empty();
        if let Some(config) = ready.filter(|_| !is_changed) {
            return Ok(ClientConfig::clone(config));
        }
        let mut options = run.clone();
        options.insecure |= self.insecure;
        options.identities.splice(0..0, self.identity.clone());
        if !self.authorities.is_empty() {
            options.cacert.clear();
            options.authorities.clone_from(&self.authorities);
        }
        options.config(Protocol::Http1).map(Arc::unwrap_or_clone)
    }
}
