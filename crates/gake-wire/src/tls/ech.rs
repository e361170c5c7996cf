//! Encrypted Client Hello: hides the server name on the wire.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::Error;
use rustls::client::{EchConfig, EchGreaseConfig, EchMode};
use rustls::crypto::aws_lc_rs::hpke;
use rustls::crypto::hpke::Hpke as _;
use rustls::pki_types::EchConfigListBytes;
use rustls::pki_types::pem::PemObject as _;

/// A GREASE extension: it looks like an encrypted hello.
pub(crate) fn grease() -> Result<EchMode, Error> {
    let suite = hpke::DH_KEM_X25519_HKDF_SHA256_AES_128;
    let (key, _) = suite.generate_key_pair()?;
    Ok(EchGreaseConfig::new(suite, key).into())
}

/// A hello encrypted by one of the configurations in a file.
pub(crate) fn encrypted(file: &[u8]) -> Result<EchMode, Error> {
    EchConfig::new(list(file), hpke::ALL_SUPPORTED_SUITES).map(EchMode::from)
}

/// The configuration list in a file: binary, PEM, or base64 as DNS tools show it.
fn list(file: &[u8]) -> EchConfigListBytes<'static> {
    if let Ok(list) = EchConfigListBytes::from_pem_slice(file) {
        return list;
    }
    STANDARD.decode(file.trim_ascii()).unwrap_or_else(|_| file.to_vec()).into()
}
