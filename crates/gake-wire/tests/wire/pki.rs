//! Certificates made for the tests, and servers that use them.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd,
};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

/// A certificate authority, with its files in a directory of its own.
pub struct Pki {
    directory: tempfile::TempDir,
    authority: Certificate,
    issuer: Issuer<'static, KeyPair>,
}

/// The variations of a server's certificate and behaviour.
#[derive(Debug, Clone, Copy, Default)]
pub struct Kind {
    pub expired: bool,
    pub wants_client: bool,
    pub tls12: bool,
    pub alpn: Option<&'static [u8]>,
}

/// The authority of all tests.
pub fn pki() -> &'static Pki {
    static PKI: OnceLock<Pki> = OnceLock::new();
    PKI.get_or_init(|| Pki::new("ours"))
}

impl Pki {
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let authority = params.self_signed(&key).unwrap();
        let pki = Self {
            directory: tempfile::tempdir().unwrap(),
            authority,
            issuer: Issuer::new(params, key),
        };
        pki.file("ca.pem", pki.authority.pem());
        let (client, key) = pki.certificate("client.test", false);
        pki.file("client.pem", client.pem());
        pki.file("client.key", key.serialize_pem());
        pki.file("both.pem", client.pem() + &key.serialize_pem());
        pki
    }

    /// Writes a file and returns its path.
    pub fn file(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    pub fn path(&self, name: &str) -> PathBuf {
        Path::new(self.directory.path()).join(name)
    }

    fn certificate(&self, name: &str, expired: bool) -> (Certificate, KeyPair) {
        let names = vec![name.to_owned(), "127.0.0.1".to_owned()];
        let mut params = CertificateParams::new(names).unwrap();
        if expired {
            params.not_before = date_time_ymd(2001, 1, 1);
            params.not_after = date_time_ymd(2002, 1, 1);
        }
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &self.issuer).unwrap(), key)
    }

    /// The settings of a server named `shop.test`.
    pub fn server(&self, kind: Kind) -> Arc<ServerConfig> {
        let (certificate, key) = self.certificate("shop.test", kind.expired);
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let versions: &[_] =
            if kind.tls12 { &[&rustls::version::TLS12] } else { rustls::DEFAULT_VERSIONS };
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(versions)
            .unwrap();
        let builder = if kind.wants_client {
            let mut roots = RootCertStore::empty();
            roots.add(self.authority.der().clone()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
            builder.with_client_cert_verifier(verifier.build().unwrap())
        } else {
            builder.with_no_client_auth()
        };
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let mut config = builder.with_single_cert(vec![certificate.der().clone()], key).unwrap();
        config.alpn_protocols = vec![kind.alpn.unwrap_or(b"http/1.1").to_vec()];
        Arc::new(config)
    }
}
