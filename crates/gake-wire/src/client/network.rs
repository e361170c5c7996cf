//! The network shared by all clients of a run: origins, TLS, settings.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use gake_codec::http1::request::{RenderedRequest, RequestError};
use gake_codec::http2::{RequestTemplate, SharedFields};
use gake_codec::websocket::{MessageFrame, UpgradeRequest};
use gake_core::record::Fault;
use rustls::ClientConfig;
use rustls::client::EchStatus;

use crate::client::early::EarlySettings;
use crate::client::error::WireError;
use crate::client::lookups::Lookups;
use crate::client::origin::{DiscoveredOrigins, Origin};
use crate::client::request::{HttpMessage, HttpRequest, PreparedRequest};
use crate::client::settings::ClientSettings;
use crate::net::address::{Address, Resolver};
use crate::net::location::{Location, LocationError, LocationParser, Scheme};
use crate::net::permit::{ConnectionPermit, PermittedConnection};
use crate::net::ports::LocalPorts;
use crate::net::proxy_rules::ProxyRules;
use crate::quic::QuicSettings;
use crate::tls::protocol::Protocol;
use crate::tls::stream_options::StreamTlsOptions;
use crate::tls::{self, TlsError, TlsOptions};

/// TCP's initial congestion window: ten segments (RFC 6928) of the usual size.
const INITIAL_WINDOW: usize = 14_000;

/// Maximum number of distinct sets of shared fields.
const FIELDS_MAX: usize = 64;

/// The fault of a request made during the run that is invalid.
const BAD_REQUEST: Fault = Fault::Malformed("request");

/// Origins with their addresses, TLS and settings, shared by the clients of a run.
#[derive(Debug)]
pub struct Network {
    /// The origins known before the run, by number.
    pub origins: Vec<Origin>,
    /// The settings.
    pub settings: ClientSettings,
    /// Sentences for the user to read before the run.
    pub notes: Vec<String>,
    pub(crate) tls: Option<Arc<ClientConfig>>,
    /// For proxies behind TLS.
    pub(crate) proxy_tls: Option<Arc<ClientConfig>>,
    pub(crate) quic: Option<QuicSettings>,
    pub(crate) early: EarlySettings,
    pub(crate) upgrade: Option<Arc<UpgradeRequest>>,
    /// Whether every prepared request fits into [`INITIAL_WINDOW`].
    pub(crate) is_small: bool,
    /// The system's local ports, if known.
    pub(crate) ports: Option<LocalPorts>,
    /// The sources of connections to loopback if one address has too few ports.
    pub(crate) loopback_sources: Vec<IpAddr>,
    /// Whether the load is recorded by address: an origin has several, or may get others.
    pub(crate) counts_addresses: bool,
    pub(crate) lookups: Arc<Lookups>,
    numbers: HashMap<(Scheme, String, u16), u32>,
    tls_options: TlsOptions,
    discovered: DiscoveredOrigins,
    /// Header fields shared by HTTP/2 requests.
    fields: Vec<Arc<SharedFields>>,
}

impl Network {
    /// A network without origins.
    ///
    /// # Errors
    /// A source address or a TLS file cannot be used. TLS files are read when the first request may
    /// need them.
    pub fn new(
        resolver: &Resolver,
        tls: &TlsOptions,
        settings: ClientSettings,
    ) -> Result<Self, WireError> {
        if resolver.unix_socket.is_none() {
            settings.sources.check()?;
        }
        // Redirects and feeds may lead to any origin.
        let is_open = settings.max_redirects > 0 || settings.feed.is_some();
        let ports = LocalPorts::read();
        let loopback_sources = match ports {
            Some(ports) if settings.sources.is_default() => {
                ports.loopback_sources(planned_connections(&settings))
            }
            _ => Vec::new(),
        };
        let lookups = Lookups::new(resolver.clone(), &settings);
        let has_tls_proxy = resolver.proxy.as_ref().is_some_and(ProxyRules::has_tls);
        let proxy_tls = has_tls_proxy.then(|| tls.for_proxy().config(Protocol::Http1));
        let network = Self {
            ports,
            loopback_sources,
            origins: Vec::new(),
            fields: Vec::new(),
            notes: Vec::new(),
            tls: None,
            proxy_tls: proxy_tls.transpose()?,
            quic: None,
            early: EarlySettings::default(),
            upgrade: None,
            is_small: true,
            counts_addresses: false,
            numbers: HashMap::new(),
            tls_options: tls.clone(),
            discovered: DiscoveredOrigins::new(Arc::clone(&lookups)),
            lookups,
            settings,
        };
        if is_open { network.to_any_origin() } else { Ok(network) }
    }

    /// Sets up TLS for origins discovered during the run.
    ///
    /// # Errors
    /// A TLS file cannot be used.
    pub fn to_any_origin(mut self) -> Result<Self, WireError> {
        self.set_up_tls()?;
        Ok(self)
    }

    fn set_up_tls(&mut self) -> Result<(), WireError> {
        if self.tls.is_some() {
            return Ok(());
        }
        let protocol = self.settings.protocol;
        let tls = self.tls_options.config(protocol)?;
        if protocol.may_be_http3() {
            let quic = tls::speaking(&tls, Protocol::Http3);
            let resumes = self.tls_options.early_data;
            let quic = if resumes { quic } else { tls::without_resumption(&quic) };
            self.quic = QuicSettings::new(quic, &self.settings.connection_limits());
            if self.quic.is_none() {
                return Err(WireError::Http3(match cfg!(feature = "http3") {
                    true => "needs TLS 1.3 and the cipher suite TLS_AES_128_GCM_SHA256",
                    false => "is not in this build, which lacks the feature `http3`",
                }));
            }
        }
        if self.tls_options.early_data {
            self.early = EarlySettings::new(&tls, &self.settings);
        }
        self.tls = Some(tls);
        Ok(())
    }

    /// A network with the same settings and no origins, for HTTP/2 only. Only a proxy for everything
    /// carries it: k6's gRPC takes none from the environment.
    #[must_use]
    pub fn of_http2(&self) -> Self {
        let settings = ClientSettings { protocol: Protocol::Http2, ..self.settings.clone() };
        let tls = self.tls.as_ref().map(|config| tls::speaking(config, Protocol::Http2));
        let resolver = &self.lookups.resolver;
        let lookups = match resolver.proxy {
            Some(ProxyRules::PerScheme { .. }) => {
                let mut resolver = resolver.clone();
                resolver.proxy = None;
                Lookups::new(resolver, &settings)
            }
            _ => Arc::clone(&self.lookups),
        };
        let discovered = DiscoveredOrigins::new(Arc::clone(&lookups));
        Self { lookups, discovered, ..self.without_origins(settings, tls) }
    }

    /// The same network, but all its connections go to one address.
    #[must_use]
    pub fn at(&self, address: SocketAddr) -> Self {
        let origins = self.origins.iter().map(|origin| origin.at(Address::Tcp(address)));
        let origins = origins.collect();
        Self { origins, ..self.without_origins(self.settings.clone(), self.tls.clone()) }
    }

    fn without_origins(&self, settings: ClientSettings, tls: Option<Arc<ClientConfig>>) -> Self {
        Self {
            ports: self.ports,
            loopback_sources: self.loopback_sources.clone(),
            origins: Vec::new(),
            fields: Vec::new(),
            notes: Vec::new(),
            tls,
            proxy_tls: self.proxy_tls.clone(),
            quic: None,
            early: EarlySettings::default(),
            upgrade: None,
            is_small: true,
            counts_addresses: false,
            numbers: HashMap::new(),
            tls_options: self.tls_options.clone(),
            discovered: DiscoveredOrigins::new(Arc::clone(&self.lookups)),
            lookups: Arc::clone(&self.lookups),
            settings,
        }
    }

    /// Prepares a request before the run, and registers its origin. Blocks for name resolution.
    ///
    /// # Errors
    /// The request is invalid, or its origin cannot be resolved.
    pub fn prepare(&mut self, request: &HttpRequest) -> Result<PreparedRequest, WireError> {
        let location = self.location(&request.url, &mut LocationParser::default())?;
        self.prepare_at(request, location)
    }

    /// Parses the URL of a request, or of a WebSocket if that is the protocol.
    pub(crate) fn location(
        &self,
        url: &str,
        parser: &mut LocationParser,
    ) -> Result<Location, LocationError> {
        match self.settings.protocol {
            Protocol::WebSocket => Location::parse_websocket(url),
            _ => parser.parse(url).cloned(),
        }
    }

    /// As [`prepare`](Self::prepare), for a parsed URL.
    pub(crate) fn prepare_at(
        &mut self,
        request: &HttpRequest,
        location: Location,
    ) -> Result<PreparedRequest, WireError> {
        if location.scheme == Scheme::Https {
            self.set_up_tls()?;
        } else if self.settings.protocol == Protocol::Http3 {
            return Err(WireError::Http3("has no clear text: write https://"));
        }
        let origin = self.origin(&location)?;
        let message = HttpMessage::new(request, location);
        if self.settings.protocol == Protocol::WebSocket {
            let upgrade = message.upgrade()?;
            if self.upgrade.replace(Arc::new(upgrade)).is_some() {
                return Err(WireError::WebSocket(request.url.clone()));
            }
        }
        self.note_forbidden_headers(&message);
        let mut request = self.encode(origin, message)?;
        if let Some(http2) = &mut request.http2 {
            self.share(http2);
        }
        self.is_small &= request.rendered.len() <= INITIAL_WINDOW;
        Ok(request)
    }

    /// Prepares a request during the run; its origin may be new.
    ///
    /// # Errors
    /// `malformed` for an invalid request, or the fault in resolving its origin.
    pub async fn make(&self, request: &HttpRequest) -> Result<PreparedRequest, Fault> {
        let location = Location::parse(&request.url).map_err(|_| BAD_REQUEST)?;
        self.make_at(request, location).await
    }

    /// As [`make`](Self::make); the query is sent as the URL has it.
    pub(crate) async fn make_as_written(
        &self,
        request: &HttpRequest,
    ) -> Result<PreparedRequest, Fault> {
        let location = Location::parse_with_written_query(&request.url).map_err(|_| BAD_REQUEST)?;
        self.make_at(request, location).await
    }

    async fn make_at(
        &self,
        request: &HttpRequest,
        location: Location,
    ) -> Result<PreparedRequest, Fault> {
        let origin = self.locate(&location).await?;
        self.encode(origin, HttpMessage::new(request, location)).map_err(|_| BAD_REQUEST)
    }

    /// Encodes a request for every protocol that connections to its origin may speak.
    pub(crate) fn encode(
        &self,
        origin: u32,
        message: HttpMessage,
    ) -> Result<PreparedRequest, RequestError> {
        let rendered = self.render(&message)?;
        let may_be_http2 = match self.settings.protocol {
            // Only TLS negotiates.
            Protocol::Negotiated | Protocol::Advertised => message.location.scheme == Scheme::Https,
            protocol => protocol.may_be_http2(),
        };
        let may_be_http3 =
            self.settings.protocol.may_be_http3() && message.location.scheme == Scheme::Https;
        let http3 = may_be_http3.then(|| Box::new(message.stream_request()));
        let http2 = may_be_http2.then(|| Box::new(message.template()));
        let is_websocket = self.settings.protocol == Protocol::WebSocket;
        let websocket = is_websocket.then(|| Box::new(MessageFrame::new(message.body.as_deref())));
        let message = self.kept(message);
        Ok(PreparedRequest { origin, rendered, http2, http3, websocket, message })
    }

    /// Makes a request use the shared fields of an earlier one, if equal.
    fn share(&mut self, request: &mut RequestTemplate) {
        match self.fields.iter().find(|known| known.as_ref() == request.shared().as_ref()) {
            Some(known) => request.share(known),
            None if self.fields.len() < FIELDS_MAX => {
                self.fields.push(Arc::clone(request.shared()))
            }
            None => {}
        }
    }

    /// Adds a note for each header that HTTP/2 or HTTP/3 forbids.
    fn note_forbidden_headers(&mut self, message: &HttpMessage) {
        let version = match self.settings.protocol {
            Protocol::Http2 => "HTTP/2",
            Protocol::Http3 => "HTTP/3",
            _ => return,
        };
        for name in message.forbidden_headers() {
            let note = format!("{version} has no header {name}: it is not sent");
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
    }

    pub(crate) fn render(&self, message: &HttpMessage) -> Result<RenderedRequest, RequestError> {
        let proxy = self.lookups.resolver.proxy.as_ref();
        let proxy = proxy.and_then(|rules| rules.proxy_for(&message.location));
        message.render(self.settings.version, self.settings.keepalive, proxy)
    }

    /// Whether connections may go to a proxy.
    pub(crate) fn has_proxy(&self) -> bool {
        self.lookups.resolver.proxy.is_some()
    }

    /// A note on the sources of connections to loopback if one address has too few ports.
    pub(crate) fn source_note(&self) -> Option<String> {
        let (first, last) = (self.loopback_sources.first()?, self.loopback_sources.last()?);
        let addresses = self.origins.iter().flat_map(|origin| &origin.addresses);
        let is_loopback = |to: &Address| matches!(to, Address::Tcp(to) if is_loopback(to.ip()));
        let target = addresses.into_iter().find(|to| is_loopback(to))?;
        Some(format!(
            "connections to {target} come from {first} to {last}: one source address has too few \
             local ports"
        ))
    }

    /// Whether the local ports of a single source address limit the connections to each address.
    #[must_use]
    pub fn has_one_source(&self) -> bool {
        let is_spread = |address: &Address| match address {
            Address::Tcp(to) => is_loopback(to.ip()) && !self.loopback_sources.is_empty(),
            Address::Unix(_) => true,
        };
        let mut addresses = self.origins.iter().flat_map(|origin| &origin.addresses);
        self.settings.sources.addresses.len() < 2 && !addresses.all(is_spread)
    }

    /// The connections that find a local port quickly, if a single source address limits them.
    #[must_use]
    pub fn quick_ports(&self) -> Option<usize> {
        let addresses = self.origins.iter().map(|origin| origin.addresses.len()).sum::<usize>();
        let ports = self.ports.filter(|_| self.has_one_source())?;
        Some(ports.per_source() * addresses)
    }

    /// All TCP addresses of a request's origin.
    #[must_use]
    pub fn addresses(&self, request: &PreparedRequest) -> Vec<IpAddr> {
        let all = |origin: &Origin| {
            let addresses = origin.addresses.iter();
            let tcp = addresses.filter_map(|address| match address {
                Address::Tcp(address) => Some(address.ip()),
                Address::Unix(_) => None,
            });
            tcp.collect()
        };
        match self.origins.get(request.origin as usize) {
            Some(origin) => all(origin),
            None => self.discovered(request.origin).map_or_else(Vec::new, |origin| all(&origin)),
        }
    }

    /// Whether new connections are expected to carry concurrent exchanges.
    pub(crate) fn expects_multiplexing(&self) -> bool {
        match self.settings.protocol {
            Protocol::Http1 | Protocol::WebSocket => false,
            Protocol::Http2 | Protocol::Http3 => true,
            Protocol::Negotiated | Protocol::Advertised => self.origins.iter().any(Origin::is_tls),
        }
    }

    /// Whether connections to origin `number` use TLS.
    pub(crate) fn is_tls(&self, number: u32) -> bool {
        match self.origins.get(number as usize) {
            Some(origin) => origin.is_tls(),
            None => self.discovered(number).is_some_and(|origin| origin.is_tls()),
        }
    }

    fn kept(&self, message: HttpMessage) -> Option<Box<HttpMessage>> {
        (self.settings.max_redirects > 0).then(|| Box::new(message))
    }

    /// The number of the origin of `location`, resolved if it is new.
    pub(crate) async fn locate(&self, location: &Location) -> Result<u32, Fault> {
        if let Some(known) = self.origins.iter().position(|origin| origin.holds(location)) {
            return Ok(known as u32);
        }
        Ok((self.origins.len() + self.discovered.number(location).await?) as u32)
    }

    /// The TLS configuration of a stream.
    pub(crate) fn tls_for_streams(&self, own: &StreamTlsOptions) -> Result<ClientConfig, TlsError> {
        own.config(&self.tls_options, self.tls.as_ref())
    }

    /// Takes a permit for a connection, if connections are limited.
    pub(crate) fn permitted(&self) -> Result<Option<PermittedConnection>, Fault> {
        self.settings.permit.as_ref().map(ConnectionPermit::take).transpose()
    }

    pub(crate) fn ech_once_open(&self) -> EchStatus {
        self.tls_options.ech_once_open()
    }

    pub(crate) fn discovered(&self, number: u32) -> Option<Arc<Origin>> {
        self.discovered.get((number as usize).checked_sub(self.origins.len())?)
    }

    fn origin(&mut self, location: &Location) -> Result<u32, WireError> {
        if self.origins.last().is_some_and(|last| last.holds(location)) {
            return Ok(self.origins.len() as u32 - 1);
        }
        let key = (location.scheme, location.host.clone(), location.port);
        if let Some(&known) = self.numbers.get(&key) {
            return Ok(known);
        }
        let (origin, refusing) = Origin::resolve(location, &self.lookups)?;
        self.counts_addresses |= origin.addresses.len() > 1 || self.lookups.are_repeated();
        if let (Some(first), false) = (origin.addresses.first(), refusing.is_empty()) {
            let refusing: Vec<_> = refusing.iter().map(ToString::to_string).collect();
            let host = &location.host;
            self.notes.push(format!("{host} is {first}; {} does not respond", refusing.join(", ")));
        }
        let number = self.origins.len() as u32;
        self.origins.push(origin);
        self.numbers.insert(key, number);
        Ok(number)
    }
}

/// The configured number of connections to one target.
fn planned_connections(settings: &ClientSettings) -> usize {
    let load = if settings.connections == usize::MAX { 0 } else { settings.connections };
    load + settings.idle_connections
}

/// Whether all of 127.0.0.0/8 are possible sources for this target.
pub(crate) fn is_loopback(address: IpAddr) -> bool {
    address.is_ipv4() && address.is_loopback()
}
