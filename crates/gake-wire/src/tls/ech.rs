//! Encrypted Client Hello: the name of the server is hidden from whoever is between.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::Error;
use rustls::client::{EchConfig, EchGreaseConfig, EchMode};
use rustls::crypto::aws_lc_rs::hpke;
use rustls::crypto::hpke::Hpke as _;
use rustls::pki_types::EchConfigListBytes;
use rustls::pki_types::pem::PemObject as _;

/// An extension that looks encrypted and says nothing.
pub(crate) fn grease() -> Result<EchMode, Error> {
    let suite = hpke::DH_KEM_X25519_HKDF_SHA256_AES_128;
    let (key, _) = suite.generate_key_pair()?;
    Ok(EchGreaseConfig::new(suite, key).into())
}

/// The hello encrypted by one of the configurations that a file holds.
pub(crate) fn encrypted(file: &[u8]) -> Result<EchMode, Error> {
    EchConfig::new(list(file), hpke::ALL_SUPPORTED_SUITES).map(EchMode::from)
}

/// The list in a file: as it is, in PEM, or in base64, as DNS records are shown.
fn list(file: &[u8]) -> EchConfigListBytes<'static> {
    if let Ok(list) = EchConfigListBytes::from_pem_slice(file) {
        return list;
    }
    STANDARD.decode(file.trim_ascii()).unwrap_or_else(|_| file.to_vec()).into()
}
