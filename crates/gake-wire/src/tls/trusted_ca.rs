//! Servers that present a trusted certificate of a CA as their own.
//!
//! A self-signed certificate made by `openssl req -x509` is one of a CA. webpki refuses it as a
//! server's, even if it is itself trusted; curl, Go and browsers accept it.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};

/// Delegates to another verifier, and accepts a CA's certificate if it is itself trusted.
#[derive(Debug)]
pub(crate) struct TrustedCaVerifier {
    pub(crate) inner: Arc<dyn ServerCertVerifier>,
    pub(crate) trusted: Vec<CertificateDer<'static>>,
}

/// Whether a certificate was refused only because it is one of a CA. webpki finds its validity in
/// time before.
pub(crate) fn is_of_ca(error: &CertificateError) -> bool {
    matches!(error, CertificateError::Other(why) if why.to_string().contains("CaUsedAsEndEntity"))
}

impl ServerCertVerifier for TrustedCaVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match self.inner.verify_server_cert(end_entity, intermediates, name, ocsp_response, now) {
            Err(Error::InvalidCertificate(why))
                if is_of_ca(&why) && self.trusted.iter().any(|known| known == end_entity) =>
            {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, name)?;
                Ok(ServerCertVerified::assertion())
            }
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, Certificate, CertificateParams, IsCa, KeyPair, date_time_ymd};

    use super::super::TlsOptions;
    use super::*;

    /// A self-signed certificate of a CA for `a.test`, as `openssl req -x509` makes it.
    fn self_signed(last_year: i32) -> Certificate {
        let mut params = CertificateParams::new(vec!["a.test".to_owned()]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(last_year, 1, 1);
        params.self_signed(&KeyPair::generate().unwrap()).unwrap()
    }

    /// Verifies `shown` for a name, if `trusted` is given by the user.
    fn verified(shown: &Certificate, trusted: &Certificate, name: &'static str) -> Option<Error> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ca.pem");
        std::fs::write(&path, trusted.pem()).unwrap();
        let options = TlsOptions { cacert: vec![path], ..TlsOptions::default() };
        let verifier = options.verifier(&Arc::new(options.provider())).unwrap();
        let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(1_767_225_600));
        let name = ServerName::try_from(name).unwrap();
        verifier.verify_server_cert(shown.der(), &[], &name, &[], now).err()
    }

    #[test]
    fn a_trusted_certificate_of_a_ca_is_accepted_for_its_names_and_time() {
        let (shown, other, expired) = (self_signed(2100), self_signed(2100), self_signed(2021));
        let reason = |error: Option<Error>| match error {
            Some(Error::InvalidCertificate(reason)) => reason,
            other => panic!("{other:?}"),
        };
        assert_eq!(verified(&shown, &shown, "a.test"), None);
        let name = reason(verified(&shown, &shown, "b.test"));
        assert!(matches!(name, CertificateError::NotValidForNameContext { .. }), "{name:?}");
        let time = reason(verified(&expired, &expired, "a.test"));
        assert!(matches!(time, CertificateError::ExpiredContext { .. }), "{time:?}");
        assert!(is_of_ca(&reason(verified(&shown, &other, "a.test"))));
    }
}
