//! TLS settings: roots, client certificate, server name.

pub(crate) mod ech;
pub(crate) mod facts;
pub(crate) mod handshakes;
pub(crate) mod key_log;
pub(crate) mod protocol;
pub(crate) mod stapling;
pub(crate) mod stream_options;
pub(crate) mod trusted_ca;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use self::facts::{TlsVersion, suite_name};
use self::key_log::TlsKeyLog;
use self::stapling::StaplingVerifier;
use self::trusted_ca::TrustedCaVerifier;
use crate::tls::protocol::Protocol;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{EchMode, EchStatus, ResolvesClientCert, WebPkiServerVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::sign::CertifiedKey;
use rustls::{
    ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme, SupportedProtocolVersion,
};

/// TLS options of the user.
#[derive(Debug, Clone, Default)]
pub struct TlsOptions {
    /// Accept any certificate.
    pub insecure: bool,
    /// Trust the certificates in these PEM files instead of the system's.
    pub cacert: Vec<PathBuf>,
    /// Trust the certificates in these PEM texts, too. What is not PEM in them is ignored.
    pub authorities: Vec<String>,
    /// A client certificate chain in PEM.
    pub cert: Option<PathBuf>,
    /// Its key in PEM; by default in the certificate's file.
    pub key: Option<PathBuf>,
    /// Client certificates; a server gets the first whose issuer it accepts. Used without `cert`.
    pub identities: Vec<TlsIdentity>,
    /// The only version to offer; both by default.
    pub version: Option<TlsVersion>,
    /// Offer only these cipher suites of TLS 1.2, by the names of [`tls12_suites`]; all by default.
    pub suites: Option<Vec<String>>,
    /// Offer only these cipher suites of any version, by the names of [`tls_suites`], in order of
    /// preference; the library's if empty.
    pub ciphers: Vec<String>,
    /// Receives the secrets of every session.
    pub key_log: Option<Arc<TlsKeyLog>>,
    /// Encrypt the hello (ECH) by the configurations in this file; `grease` sends a fake one.
    pub ech: Option<PathBuf>,
    /// Resume sessions. Otherwise every connection makes a full handshake.
    pub session_tickets: bool,
    /// Resume sessions, and send replayable requests as early data (0-RTT) where the server allows
    /// it: over HTTP/1.1 with TLS 1.3, and HTTP/3.
    pub early_data: bool,
}

static TLS12: [&SupportedProtocolVersion; 1] = [&rustls::version::TLS12];
static TLS13: [&SupportedProtocolVersion; 1] = [&rustls::version::TLS13];

/// A client certificate in memory.
#[derive(Clone)]
pub struct TlsIdentity {
    /// The chain in PEM, the client's own certificate first.
    pub certificates: String,
    /// Its key in PEM.
    pub key: String,
}

impl fmt::Debug for TlsIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsIdentity").finish_non_exhaustive()
    }
}

/// The IANA names of the supported cipher suites of TLS 1.2.
pub fn tls12_suites() -> impl Iterator<Item = &'static str> {
    let suites = rustls::crypto::aws_lc_rs::ALL_CIPHER_SUITES.iter();
    suites.filter(|suite| suite.tls13().is_none()).filter_map(|suite| suite.suite().as_str())
}

/// The IANA names of the supported cipher suites.
pub fn tls_suites() -> impl Iterator<Item = String> {
    let suites = rustls::crypto::aws_lc_rs::ALL_CIPHER_SUITES.iter();
    suites.filter_map(|suite| suite.suite().as_str()).map(suite_name)
}

/// Why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A PEM file cannot be used.
    #[error("{} cannot be used as {role}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Its purpose.
        role: &'static str,
        /// The error.
        reason: String,
    },
    /// A name that no certificate can have.
    #[error("{0:?} is not a name that a certificate can have")]
    ServerName(String),
    /// A key without a certificate.
    #[error("--key requires --cert, the certificate of the client key")]
    KeyAlone,
    /// A certificate or key that is not PEM.
    #[error("{0} is not PEM: {1}")]
    Pem(&'static str, String),
    /// Certificate and key do not match.
    #[error("the client certificate cannot be used: {0}")]
    Client(rustls::Error),
    /// The library cannot be set up.
    #[error("TLS cannot be set up: {0}")]
    Library(rustls::Error),
}

impl TlsOptions {
    /// The options for a proxy: the same trust, and nothing that is meant for the target.
    pub(crate) fn for_proxy(&self) -> Self {
        let Self { insecure, cacert, authorities, version, suites, ciphers, key_log, .. } =
            self.clone();
        Self { insecure, cacert, authorities, version, suites, ciphers, key_log, ..Self::default() }
    }

    /// The client settings for connections that speak `protocol`.
    ///
    /// # Errors
    /// A file cannot be read or has the wrong content.
    pub fn config(&self, protocol: Protocol) -> Result<Arc<ClientConfig>, TlsError> {
        seed_random();
        let provider = Arc::new(self.provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider));
        let builder = match &self.ech {
            // This implies TLS 1.3.
            Some(path) => builder.with_ech(hello(path)?),
            None => builder.with_protocol_versions(self.versions()),
        };
        let builder = builder.map_err(TlsError::Library)?;
        let verifier = StaplingVerifier(self.verifier(&provider)?);
        let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
        let mut config = match self.client_certificate()? {
            None if !self.identities.is_empty() => {
                let keys = self.identities.iter().map(|identity| identity.loaded(&provider));
                let keys = keys.collect::<Result<_, _>>()?;
                builder.with_client_cert_resolver(Arc::new(AcceptedCertResolver { keys }))
            }
            Some((chain, key)) => {
                builder.with_client_auth_cert(chain, key).map_err(TlsError::Client)?
            }
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = protocol.alpn();
        if let Some(log) = &self.key_log {
            config.key_log = Arc::clone(log) as Arc<dyn rustls::KeyLog>;
        }
        // Every connection stands for a new client without a session to resume; and a session store
        // is a lock shared by workers.
        if !self.session_tickets && !self.early_data {
            config.resumption = rustls::client::Resumption::disabled();
        }
        Ok(Arc::new(config))
    }

    fn verifier(
        &self,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Arc<dyn ServerCertVerifier>, TlsError> {
        let provider = Arc::clone(provider);
        if self.insecure {
            return Ok(Arc::new(InsecureVerifier { provider }));
        }
        let trusted = self.trusted()?;
        let roots = Arc::new(self.roots(&trusted)?);
        match WebPkiServerVerifier::builder_with_provider(roots, provider).build() {
            Ok(inner) => {
                let trusted = trusted.into_iter().map(|(_, certificate)| certificate);
                let trusted = trusted.chain(self.authorities()).collect();
                Ok(Arc::new(TrustedCaVerifier { inner, trusted }))
            }
            Err(error) => Err(TlsError::Library(rustls::Error::General(error.to_string()))),
        }
    }

    fn provider(&self) -> CryptoProvider {
        let mut provider = rustls::crypto::aws_lc_rs::default_provider();
        if let Some(suites) = &self.suites {
            provider.cipher_suites.retain(|suite| {
                let name = suite.suite().as_str();
                suite.tls13().is_some() || suites.iter().any(|wanted| Some(wanted.as_str()) == name)
            });
        }
        if !self.ciphers.is_empty() {
            let all = std::mem::take(&mut provider.cipher_suites);
            let named = |name: &String| {
                let is_it = |suite: &&rustls::SupportedCipherSuite| {
                    suite.suite().as_str().map(suite_name).as_ref() == Some(name)
                };
                all.iter().find(is_it).copied()
            };
            provider.cipher_suites = self.ciphers.iter().filter_map(named).collect();
        }
        provider
    }

    fn versions(&self) -> &'static [&'static SupportedProtocolVersion] {
        match self.version {
            None => rustls::DEFAULT_VERSIONS,
            Some(TlsVersion::Tls12) => &TLS12,
            Some(TlsVersion::Tls13) => &TLS13,
        }
    }

    /// The certificates that the user trusts, each with its file.
    fn trusted(&self) -> Result<Vec<(&Path, CertificateDer<'static>)>, TlsError> {
        let mut trusted = Vec::new();
        for path in &self.cacert {
            let certificates = certificates(path, TRUSTED)?;
            trusted
                .extend(certificates.into_iter().map(|certificate| (path.as_path(), certificate)));
        }
        Ok(trusted)
    }

    fn authorities(&self) -> impl Iterator<Item = CertificateDer<'static>> {
        let texts = self.authorities.iter().map(String::as_bytes);
        texts.flat_map(CertificateDer::pem_slice_iter).flatten()
    }

    fn roots(
        &self,
        trusted: &[(&Path, CertificateDer<'static>)],
    ) -> Result<RootCertStore, TlsError> {
        let mut roots = RootCertStore::empty();
        for (path, certificate) in trusted {
            let added = roots.add(certificate.clone());
            added.map_err(|error| file_error(path, TRUSTED, &error))?;
        }
        roots.add_parsable_certificates(self.authorities());
        if !self.cacert.is_empty() || !self.authorities.is_empty() {
            return Ok(roots);
        }
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            // For containers without certificates.
            roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        }
        Ok(roots)
    }

    #[allow(clippy::type_complexity, reason = "the pair rustls wants")]
    fn client_certificate(
        &self,
    ) -> Result<Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>, TlsError> {
        let Some(cert) = &self.cert else {
            return if self.key.is_some() { Err(TlsError::KeyAlone) } else { Ok(None) };
        };
        let chain = certificates(cert, "a client certificate")?;
        let path = self.key.as_ref().unwrap_or(cert);
        let pem = read(path, "a client key")?;
        let key = PrivateKeyDer::from_pem_slice(&pem)
            .map_err(|error| file_error(path, "a client key", &error))?;
        Ok(Some((chain, key)))
    }

    /// The ECH status of a completed handshake: a rejection fails the handshake.
    pub(crate) fn ech_once_open(&self) -> EchStatus {
        match &self.ech {
            None => EchStatus::NotOffered,
            Some(path) if path.as_os_str() == GREASE => EchStatus::Grease,
            Some(_) => EchStatus::Accepted,
        }
    }
}

/// Seeds the process's random numbers before a run; every set-up of TLS does.
///
/// Where the library collects entropy of its own (the workspace's `.cargo/config.toml` turns that off,
/// which a build from a registry does not see), it does so at the first draw, for about 30 ms: during
/// the run the first handshake would pay for it, and delay the arrivals of its worker.
pub fn seed_random() {
    // An error would repeat at the first handshake, which reports it.
    let _ = aws_lc_rs::rand::fill(&mut [0]);
}

/// The role of the files of `cacert`.
const TRUSTED: &str = "trusted certificates";

/// Requests a fake ECH extension instead of naming a file.
const GREASE: &str = "grease";

/// The ECH mode for a file of configurations, or for [`GREASE`].
fn hello(path: &Path) -> Result<EchMode, TlsError> {
    if path.as_os_str() == GREASE {
        return ech::grease().map_err(TlsError::Library);
    }
    let role = "configurations of ECH";
    ech::encrypted(&read(path, role)?).map_err(|error| file_error(path, role, &error))
}

/// Maximum bytes of a PEM file: the system's bundles have less than 1 MiB.
const PEM_BYTES_MAX: u64 = 16 << 20;

fn certificates(path: &Path, role: &'static str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let chain = CertificateDer::pem_slice_iter(&read(path, role)?)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| file_error(path, role, &error))?;
    if chain.is_empty() {
        return Err(file_error(path, role, &"it holds no PEM certificate"));
    }
    Ok(chain)
}

fn read(path: &Path, role: &'static str) -> Result<Vec<u8>, TlsError> {
    gake_files::read(path, role, PEM_BYTES_MAX).map_err(|error| match error.io() {
        // TlsError::File adds the path.
        Some(error) => file_error(path, role, error),
        None => file_error(path, role, &error),
    })
}

fn file_error(path: &Path, role: &'static str, reason: &impl ToString) -> TlsError {
    TlsError::File { path: path.to_owned(), role, reason: reason.to_string() }
}

impl TlsIdentity {
    fn loaded(&self, provider: &CryptoProvider) -> Result<Arc<CertifiedKey>, TlsError> {
        let chain = CertificateDer::pem_slice_iter(self.certificates.as_bytes())
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| TlsError::Pem("a client certificate", error.to_string()))?;
        if chain.is_empty() {
            let why = "it holds no certificate".to_owned();
            return Err(TlsError::Pem("a client certificate", why));
        }
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes())
            .map_err(|error| TlsError::Pem("a client key", error.to_string()))?;
        CertifiedKey::from_der(chain, key, provider).map(Arc::new).map_err(TlsError::Client)
    }
}

/// Selects the first certificate whose issuer the server accepts.
#[derive(Debug)]
struct AcceptedCertResolver {
    keys: Vec<Arc<CertifiedKey>>,
}

impl ResolvesClientCert for AcceptedCertResolver {
    fn resolve(&self, issuers: &[&[u8]], schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        // A certificate contains its issuer's name in the same DER encoding.
        let names = |certificate: &CertificateDer<'_>, issuer: &[u8]| {
            memchr::memmem::find(certificate, issuer).is_some()
        };
        let is_accepted = |key: &CertifiedKey| {
            let chain = || key.cert.iter();
            issuers.is_empty() || chain().any(|one| issuers.iter().any(|name| names(one, name)))
        };
        let mut keys = self.keys.iter();
        let fits =
            |key: &&Arc<CertifiedKey>| key.key.choose_scheme(schemes).is_some() && is_accepted(key);
        keys.find(fits).cloned()
    }

    fn has_certs(&self) -> bool {
        !self.keys.is_empty()
    }
}

/// Accepts any certificate, for `--insecure`. Signatures are still verified, to keep the cost of a
/// handshake realistic.
#[derive(Debug)]
struct InsecureVerifier {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for InsecureVerifier {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// A copy of the settings for connections that speak `protocol`.
pub(crate) fn speaking(config: &Arc<ClientConfig>, protocol: Protocol) -> Arc<ClientConfig> {
    let mut config = ClientConfig::clone(config);
    config.alpn_protocols = protocol.alpn();
    Arc::new(config)
}

/// A copy of the settings without resumption: each connection makes a full handshake.
pub(crate) fn without_resumption(config: &Arc<ClientConfig>) -> Arc<ClientConfig> {
    let mut config = ClientConfig::clone(config);
    config.resumption = rustls::client::Resumption::disabled();
    Arc::new(config)
}

/// A copy of the settings, with the same session store, for connections that send early data.
pub(crate) fn with_early_data(config: &Arc<ClientConfig>) -> Arc<ClientConfig> {
    let mut config = ClientConfig::clone(config);
    config.enable_early_data = true;
    Arc::new(config)
}
