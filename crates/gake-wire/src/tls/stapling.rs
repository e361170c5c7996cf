//! Detects stapled OCSP statuses.
//!
//! rustls shows them only to the verifier, which all connections share. Since a handshake is verified
//! while a thread polls it, the verifier records the status in a thread-local variable, which the
//! poller takes.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};

thread_local! {
    static STAPLED: Cell<Option<bool>> = const { Cell::new(None) };
}

/// Delegates to another verifier, and records whether a status was stapled.
#[derive(Debug)]
pub(crate) struct StaplingVerifier(pub(crate) Arc<dyn ServerCertVerifier>);

/// Drives a handshake, and returns whether the server stapled a status: `None` without a certificate,
/// as in a resumed session.
pub(crate) async fn watched<F: Future>(handshake: F) -> (F::Output, Option<bool>) {
    let mut handshake = pin!(handshake);
    let mut is_stapled = None;
    let output = poll_fn(|cx| {
        STAPLED.set(None);
        let polled = handshake.as_mut().poll(cx);
        is_stapled = STAPLED.take().or(is_stapled);
        polled
    })
    .await;
    (output, is_stapled)
}

impl ServerCertVerifier for StaplingVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        STAPLED.set(Some(!ocsp_response.is_empty()));
        self.0.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }

    fn root_hint_subjects(&self) -> Option<&[DistinguishedName]> {
        self.0.root_hint_subjects()
    }
}
