//! Connecting to a backend.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock};

use gake_core::record::Fault;
use gake_wire::{Address, Resolver, fault};
use http::HeaderValue;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::config::{Backend, HostPolicy};
use crate::proxy::congestion;
use crate::proxy::policy::loop_detector;
use crate::proxy::start_error::ProxyStartError;
use crate::proxy::stream::SocketStream;

/// TLS settings by protocol.
pub(crate) struct BackendTls {
    pub(crate) http1: Arc<ClientConfig>,
    pub(crate) http2: Arc<ClientConfig>,
}

/// A backend's addresses and TLS settings, shared by all threads.
#[derive(Debug)]
pub(crate) struct BackendTarget {
    pub(crate) backend: Backend,
    /// The `Host` to set; `None` keeps the client's.
    pub(crate) host: Option<HeaderValue>,
    /// The backend's own host and port.
    pub(crate) own_host: HeaderValue,
    tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
    addresses: RwLock<Arc<[SocketAddr]>>,
    next_address: AtomicUsize,
}

impl BackendTarget {
    /// Resolves the backend's name. Blocks.
    pub(crate) fn new(backend: &Backend, tls: &BackendTls) -> Result<Self, ProxyStartError> {
        let origin = &backend.origin;
        let bad =
            |reason: String| ProxyStartError::Backend { name: backend.name.to_string(), reason };
        let addresses =
            resolve(&origin.host, origin.port).map_err(|error| bad(error.to_string()))?;
        let own_host =
            HeaderValue::from_str(&origin.authority()).map_err(|error| bad(error.to_string()))?;
        let host = match &backend.host {
            HostPolicy::Preserve => None,
            HostPolicy::Backend => Some(own_host.clone()),
            HostPolicy::Literal(value) => Some(value.clone()),
        };
        let tls = if backend.is_tls() {
            let name = ServerName::try_from(origin.host.clone())
                .map_err(|error| bad(error.to_string()))?;
            let config = if backend.http2 { &tls.http2 } else { &tls.http1 };
            Some((Arc::clone(config), name))
        } else {
            None
        };
        Ok(Self {
            backend: backend.clone(),
            host,
            own_host,
            tls,
            addresses: RwLock::new(addresses.into()),
            next_address: AtomicUsize::new(0),
        })
    }

    fn addresses(&self) -> Arc<[SocketAddr]> {
        Arc::clone(&self.addresses.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether a connection to it reaches the listener at `listen`.
    pub(crate) fn is_at(&self, listen: SocketAddr) -> bool {
        self.addresses().iter().any(|address| loop_detector::is_same_endpoint(listen, *address))
    }

    /// Resolves the name again. Blocks. On an error the old addresses remain.
    pub(crate) fn refresh(&self) {
        let origin = &self.backend.origin;
        if origin.host.parse::<IpAddr>().is_ok() {
            return;
        }
        if let Ok(addresses) = resolve(&origin.host, origin.port) {
            *self.addresses.write().unwrap_or_else(PoisonError::into_inner) = addresses.into();
        }
    }

    /// Opens a connection, rotating over the addresses and trying the next after a failure.
    pub(crate) async fn connect(&self) -> Result<SocketStream, Fault> {
        let addresses = self.addresses();
        let first = self.next_address.fetch_add(1, Relaxed);
        let mut failed = Fault::Dns;
        for step in 0..addresses.len() {
            let address = addresses[first.wrapping_add(step) % addresses.len()];
            match TcpStream::connect(address).await {
                Ok(stream) => {
                    congestion::send_at_once(&stream, address.ip());
                    return self.secure(stream).await;
                }
                Err(error) => failed = fault::of_connect(&error),
            }
        }
        Err(failed)
    }

    async fn secure(&self, stream: TcpStream) -> Result<SocketStream, Fault> {
        // Requests are single writes, which Nagle's algorithm would delay.
        stream.set_nodelay(true).map_err(|error| fault::of_connect(&error))?;
        let Some((config, name)) = &self.tls else { return Ok(SocketStream::Plain(stream)) };
        let connector = TlsConnector::from(Arc::clone(config));
        match connector.connect(name.clone(), stream).await {
            Ok(stream) => {
                let stream = SocketStream::Tls(Box::new(stream.into()));
                if self.backend.http2 && !stream.has_chosen_http2() {
                    return Err(Fault::Tls("the peer does not offer HTTP/2"));
                }
                Ok(stream)
            }
            Err(error) => Err(fault::of_handshake(&error)),
        }
    }
}

fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>, gake_wire::ResolveError> {
    let addresses = Resolver::default().resolve(host, port)?;
    let tcp = |address| match address {
        Address::Tcp(address) => Some(address),
        Address::Unix(_) => None,
    };
    Ok(addresses.into_iter().filter_map(tcp).collect())
}
