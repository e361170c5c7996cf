//! Encrypted Client Hello: the name of the server is hidden from whoever is between.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::client::{EchConfig, EchGreaseConfig, EchMode, EchStatus};
use rustls::crypto::aws_lc_rs::hpke;
use rustls::pki_types::EchConfigListBytes;
use rustls::pki_types::pem::PemObject as _;

use crate::tls::TlsError;

/// In place of a file: an extension that looks encrypted and says nothing.
const GREASE: &str = "grease";

/// What a file with configurations is called in errors.
const ROLE: &str = "configurations of ECH";

/// What is offered: the configurations in the file at `path`, or nothing if that is `grease`.
pub(crate) fn mode(path: &Path) -> Result<EchMode, TlsError> {
    if path.as_os_str() == GREASE {
        let suite = hpke::DH_KEM_X25519_HKDF_SHA256_AES_128;
        let (key, _) =
            rustls::crypto::hpke::Hpke::generate_key_pair(suite).map_err(TlsError::Library)?;
        return Ok(EchGreaseConfig::new(suite, key).into());
    }
    let list = list(&crate::tls::read(path, ROLE)?);
    let config = EchConfig::new(list, hpke::ALL_SUPPORTED_SUITES);
    config.map(EchMode::from).map_err(|error| crate::tls::file_error(path, ROLE, &error))
}

/// What came of the offer at `path` once a handshake is over: a rejection ends the handshake.
pub(crate) fn once_open(path: Option<&Path>) -> EchStatus {
    match path {
        None => EchStatus::NotOffered,
        Some(path) if path.as_os_str() == GREASE => EchStatus::Grease,
        Some(_) => EchStatus::Accepted,
    }
}

/// The list in a file: as it is, in PEM, or in base64, as DNS records are shown.
fn list(bytes: &[u8]) -> EchConfigListBytes<'static> {
    if let Ok(list) = EchConfigListBytes::from_pem_slice(bytes) {
        return list;
    }
    let text = bytes.trim_ascii();
    STANDARD.decode(text).unwrap_or_else(|_| bytes.to_vec()).into()
}
