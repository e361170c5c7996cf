//! TLS with a self-made certificate.

use std::io::{self, Read};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use rustls::server::ServerSessionMemoryCache;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::{LabConfig, LabError};

/// Bytes of early data per TCP connection, where it is allowed. QUIC allows all or none.
const EARLY_BYTES: u32 = 16 << 10;

/// Resumable sessions: early data needs them stored on the server.
const SESSIONS: usize = 1 << 14;

/// The certificate of a lab that serves TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabCertificate {
    /// The certificate in PEM, for clients to trust.
    pub pem: String,
    /// SHA-256 of the certificate, as in `openssl x509 -fingerprint`: `AB:CD:...`.
    pub fingerprint: String,
}

/// The certificate and its rustls settings.
#[derive(Debug)]
pub(crate) struct TlsIdentity {
    pub(crate) certificate: LabCertificate,
    pub(crate) config: Arc<ServerConfig>,
    /// Reject the early data of every n-th connection.
    reject_every: Option<u64>,
    /// Connections so far, when some are rejected.
    accepted: AtomicU64,
}

impl TlsIdentity {
    /// A new certificate for this machine and `addr`.
    pub(crate) fn new(addr: SocketAddr, lab: &LabConfig) -> Result<TlsIdentity, LabError> {
        let failed = |error: &dyn std::fmt::Display| LabError::Certificate(error.to_string());
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let mut names: Vec<_> = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).into();
        names.extend([addr.ip().to_string(), host]);
        names.dedup();
        // A host name need not fit into a certificate.
        names.retain(|name| name.is_ascii() && !name.is_empty());
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(names).map_err(|error| failed(&error))?;
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, cert.der());
        let fingerprint: Vec<_> =
            digest.as_ref().iter().map(|byte| format!("{byte:02X}")).collect();
        let certificate = LabCertificate { pem: cert.pem(), fingerprint: fingerprint.join(":") };
        let key = PrivateKeyDer::Pkcs8(signing_key.serialize_der().into());
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|builder| {
                builder.with_no_client_auth().with_single_cert(vec![cert.der().clone()], key)
            })
            .map_err(|error| failed(&error))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        if lab.early_data {
            config.max_early_data_size = EARLY_BYTES;
            config.session_storage = ServerSessionMemoryCache::new(SESSIONS);
        }
        Ok(TlsIdentity {
            certificate,
            config: Arc::new(config),
            reject_every: lab.reject_early_data_every,
            accepted: AtomicU64::new(0),
        })
    }

    pub(crate) async fn accept<S>(&self, stream: S) -> io::Result<EarlyDataStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let rejects = self.rejects_next();
        let acceptor = TlsAcceptor::from(Arc::clone(&self.config));
        let mut stream = acceptor
            .accept_with(stream, |session| {
                if rejects {
                    session.reject_early_data();
                }
            })
            .await?;
        let mut early = Vec::new();
        if let Some(mut data) = stream.get_mut().1.early_data() {
            data.read_to_end(&mut early)?;
        }
        Ok(EarlyDataStream { stream, early: io::Cursor::new(early) })
    }

    /// Whether the next connection's early data is rejected.
    pub(crate) fn rejects_next(&self) -> bool {
        let number = || self.accepted.fetch_add(1, Relaxed) + 1;
        self.reject_every.is_some_and(|every| number().is_multiple_of(every))
    }
}

/// A TLS stream that returns its early data first.
#[derive(Debug)]
pub(crate) struct EarlyDataStream<S> {
    stream: TlsStream<S>,
    early: io::Cursor<Vec<u8>>,
}

impl<S: AsFd> AsFd for EarlyDataStream<S> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.get_ref().0.as_fd()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for EarlyDataStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.early.position() < self.early.get_ref().len() as u64 {
            return Pin::new(&mut self.early).poll_read(cx, buf);
        }
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for EarlyDataStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
