//! The network: what all clients of a run share to reach their origins.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use gake_codec::http1::request::{RenderedRequest, RequestError};
use gake_codec::http2::{RequestTemplate, SharedFields};
use gake_codec::websocket::{MessageFrame, UpgradeRequest};
use gake_core::record::Fault;
use rustls::ClientConfig;
use rustls::client::EchStatus;

use crate::client::early::EarlySettings;
use crate::client::error::WireError;
use crate::client::origin::{DiscoveredOrigins, Origin};
use crate::client::request::{HttpRequest, Message, PreparedRequest};
use crate::client::settings::Settings;
use crate::net::address::{Address, Resolver};
use crate::net::location::{Location, LocationError, Scheme};
use crate::net::permit::{ConnectionPermit, PermittedConnection};
use crate::net::ports::LocalPorts;
use crate::net::proxy::HttpProxy;
use crate::quic::QuicSettings;
use crate::tls::protocol::Protocol;
use crate::tls::{self, TlsOptions};

/// Bytes that a new connection may send before it hears of the peer: ten segments (RFC 6928) of
/// the usual size.
const INITIAL_WINDOW: usize = 14_000;

/// Different sets of shared fields that are looked for; a connection's table has room for one.
const FIELDS_MAX: usize = 64;

/// A request made during the run that cannot be sent.
const BAD_REQUEST: Fault = Fault::Malformed("request");

/// Origins with their addresses, TLS, and how connections are made and used.
#[derive(Debug)]
pub struct Network {
    /// The origins known before the run, by number.
    pub origins: Vec<Origin>,
    /// How connections are made and used.
    pub settings: Settings,
    /// What the user should know before the run, in sentences.
    pub notes: Vec<String>,
    pub(crate) tls: Option<Arc<ClientConfig>>,
    /// How connections of HTTP/3 are opened, when they may be.
    pub(crate) quic: Option<QuicSettings>,
    pub(crate) early: EarlySettings,
    /// What opens the sessions of a WebSocket.
    pub(crate) upgrade: Option<Arc<UpgradeRequest>>,
    /// Whether every prepared request fits into a connection's initial window.
    pub(crate) is_small: bool,
    /// The system's local ports, when it names them.
    pub(crate) ports: Option<LocalPorts>,
    /// Where connections to loopback come from when one address has too few ports for them.
    pub(crate) loopback_sources: Vec<IpAddr>,
    numbers: HashMap<(Scheme, String, u16), u32>,
    resolver: Resolver,
    tls_options: TlsOptions,
    discovered: DiscoveredOrigins,
    /// Header fields that requests of HTTP/2 share.
    fields: Vec<Arc<SharedFields>>,
}

impl Network {
    /// A network without origins.
    ///
    /// # Errors
    /// When a source address or a TLS file cannot be used. TLS files are read as soon as a request
    /// needs them: now when any may.
    pub fn new(
        resolver: &Resolver,
        tls: &TlsOptions,
        settings: Settings,
    ) -> Result<Self, WireError> {
        if resolver.unix_socket.is_none() {
            settings.sources.check()?;
        }
        // A redirect, and a request yet to be made, may lead to any origin.
        let is_open = settings.max_redirects > 0 || settings.feed.is_some();
        let ports = LocalPorts::read();
        let loopback_sources = match ports {
            Some(ports) if settings.sources.is_default() => {
                ports.loopback_sources(planned_connections(&settings))
            }
            _ => Vec::new(),
        };
        let network = Self {
            ports,
            loopback_sources,
            origins: Vec::new(),
            fields: Vec::new(),
            notes: Vec::new(),
            tls: None,
            quic: None,
            early: EarlySettings::default(),
            upgrade: None,
            is_small: true,
            numbers: HashMap::new(),
            resolver: resolver.clone(),
            tls_options: tls.clone(),
            discovered: DiscoveredOrigins::new(resolver.clone(), &settings),
            settings,
        };
        if is_open { network.to_any_origin() } else { Ok(network) }
    }

    /// Allows requests made during the run to go to origins over TLS, even if none known
    /// before is.
    ///
    /// # Errors
    /// When a TLS file cannot be used.
    pub fn to_any_origin(mut self) -> Result<Self, WireError> {
        self.set_up_tls()?;
        Ok(self)
    }

    /// Reads the files of TLS, unless that is done.
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
                    false => "is not in this build: it was made without the feature `http3`",
                }));
            }
        }
        if self.tls_options.early_data {
            self.early = EarlySettings::new(&tls, &self.settings);
        }
        self.tls = Some(tls);
        Ok(())
    }

    /// A network with the same settings and no origins, whose connections speak HTTP/2 alone.
    #[must_use]
    pub fn of_http2(&self) -> Self {
        let settings = Settings { protocol: Protocol::Http2, ..self.settings.clone() };
        Self {
            ports: self.ports,
            loopback_sources: self.loopback_sources.clone(),
            origins: Vec::new(),
            fields: Vec::new(),
            notes: Vec::new(),
            tls: self.tls.as_ref().map(|config| tls::speaking(config, Protocol::Http2)),
            quic: None,
            early: EarlySettings::default(),
            upgrade: None,
            is_small: true,
            numbers: HashMap::new(),
            resolver: self.resolver.clone(),
            tls_options: self.tls_options.clone(),
            discovered: DiscoveredOrigins::new(self.resolver.clone(), &settings),
            settings,
        }
    }

    /// Prepares a request before the run, and registers its origin. Blocks for name resolution.
    ///
    /// # Errors
    /// What keeps it from being sent.
    pub fn prepare(&mut self, request: &HttpRequest) -> Result<PreparedRequest, WireError> {
        let location = self.location(&request.url)?;
        self.prepare_at(request, location)
    }

    /// Parses the URL of a request or, if that is what connections speak, of a WebSocket.
    pub(crate) fn location(&self, url: &str) -> Result<Location, LocationError> {
        match self.settings.protocol {
            Protocol::WebSocket => Location::parse_websocket(url),
            _ => Location::parse(url),
        }
    }

    /// The same, for a request whose URL is read already.
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
        let message = Message::new(request, location);
        if self.settings.protocol == Protocol::WebSocket {
            let upgrade = message.upgrade()?;
            if self.upgrade.replace(Arc::new(upgrade)).is_some() {
                return Err(WireError::WebSocket(request.url.clone()));
            }
        }
        self.note_left_out(&message);
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
    /// `malformed` when it is not HTTP, else why its origin cannot be reached.
    pub async fn make(&self, request: &HttpRequest) -> Result<PreparedRequest, Fault> {
        let location = Location::parse(&request.url).map_err(|_| BAD_REQUEST)?;
        let origin = self.locate(&location).await?;
        self.encode(origin, Message::new(request, location)).map_err(|_| BAD_REQUEST)
    }

    /// Encodes a request to an origin for what its connections may speak.
    pub(crate) fn encode(
        &self,
        origin: u32,
        message: Message,
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

    /// Lets a request have its shared fields with those before it.
    fn share(&mut self, request: &mut RequestTemplate) {
        match self.fields.iter().find(|known| known.as_ref() == request.shared().as_ref()) {
            Some(known) => request.share(known),
            None if self.fields.len() < FIELDS_MAX => {
                self.fields.push(Arc::clone(request.shared()))
            }
            None => {}
        }
    }

    /// Says once which headers HTTP/2 or HTTP/3 does not have.
    fn note_left_out(&mut self, message: &Message) {
        let version = match self.settings.protocol {
            Protocol::Http2 => "HTTP/2",
            Protocol::Http3 => "HTTP/3",
            _ => return,
        };
        for name in message.left_out() {
            let note = format!("{version} has no header {name}: it is not sent");
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
    }

    /// The bytes that HTTP/1.1 writes.
    pub(crate) fn render(&self, message: &Message) -> Result<RenderedRequest, RequestError> {
        message.render(self.settings.version, self.settings.keepalive, self.proxy())
    }

    /// Whether every connection goes to a proxy; the origins' addresses are then the proxy's.
    #[must_use]
    pub fn has_proxy(&self) -> bool {
        self.proxy().is_some()
    }

    /// The proxy that every connection goes to.
    pub(crate) fn proxy(&self) -> Option<&HttpProxy> {
        self.resolver.proxy.as_ref()
    }

    /// Where connections to loopback come from, when one address has too few ports for them.
    pub(crate) fn source_note(&self) -> Option<String> {
        let (first, last) = (self.loopback_sources.first()?, self.loopback_sources.last()?);
        let addresses = self.origins.iter().flat_map(|origin| &origin.addresses);
        let is_loopback = |to: &Address| matches!(to, Address::Tcp(to) if is_loopback(to.ip()));
        let target = addresses.into_iter().find(|to| is_loopback(to))?;
        Some(format!(
            "connections to {target} come from {first} to {last}: one source address has too few \
             local ports for them"
        ))
    }

    /// Whether the local ports of one source address bound the connections to each address: not
    /// when there are several of either, or no TCP.
    #[must_use]
    pub fn has_one_source(&self) -> bool {
        let is_spread = |address: &Address| match address {
            Address::Tcp(to) => is_loopback(to.ip()) && !self.loopback_sources.is_empty(),
            Address::Unix(_) => true,
        };
        let mut addresses = self.origins.iter().flat_map(|origin| &origin.addresses);
        self.settings.sources.addresses.len() < 2 && !addresses.all(is_spread)
    }

    /// Connections that open without a long search for a local port, when those of one source
    /// address bound them.
    #[must_use]
    pub fn quick_ports(&self) -> Option<usize> {
        let addresses = self.origins.iter().map(|origin| origin.addresses.len()).sum::<usize>();
        let ports = self.ports.filter(|_| self.has_one_source())?;
        Some(ports.per_source() * addresses)
    }

    /// Every TCP address that a request of this network may go to.
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

    /// Whether new connections are expected to carry several exchanges at once.
    pub(crate) fn expects_multiplexing(&self) -> bool {
        match self.settings.protocol {
            Protocol::Http1 | Protocol::WebSocket => false,
            Protocol::Http2 | Protocol::Http3 => true,
            Protocol::Negotiated | Protocol::Advertised => self.origins.iter().any(Origin::is_tls),
        }
    }

    fn kept(&self, message: Message) -> Option<Box<Message>> {
        (self.settings.max_redirects > 0).then(|| Box::new(message))
    }

    /// The number of the origin of `location`, which may be a new one.
    pub(crate) async fn locate(&self, location: &Location) -> Result<u32, Fault> {
        if let Some(known) = self.origins.iter().position(|origin| origin.holds(location)) {
            return Ok(known as u32);
        }
        Ok((self.origins.len() + self.discovered.number(location).await?) as u32)
    }

    /// Permits another connection, when connections need that.
    pub(crate) fn permitted(&self) -> Result<Option<PermittedConnection>, Fault> {
        self.settings.permit.as_ref().map(ConnectionPermit::take).transpose()
    }

    /// What came of an encrypted hello when a connection is open.
    pub(crate) fn ech_once_open(&self) -> EchStatus {
        self.tls_options.ech_once_open()
    }

    /// An origin that was not known before the run.
    pub(crate) fn discovered(&self, number: u32) -> Option<Arc<Origin>> {
        self.discovered.get((number as usize).checked_sub(self.origins.len())?)
    }

    fn origin(&mut self, location: &Location) -> Result<u32, WireError> {
        let place = (location.scheme, location.host.clone(), location.port);
        if let Some(&known) = self.numbers.get(&place) {
            return Ok(known);
        }
        let by = (&self.settings.sources, self.settings.permit.as_ref());
        let (origin, refusing) = Origin::resolve(location, &self.resolver, by)?;
        if let (Some(first), false) = (origin.addresses.first(), refusing.is_empty()) {
            let refusing: Vec<_> = refusing.iter().map(ToString::to_string).collect();
            let host = &location.host;
            self.notes.push(format!("{host} is {first}; {} does not answer", refusing.join(", ")));
        }
        let number = self.origins.len() as u32;
        self.origins.push(origin);
        self.numbers.insert(place, number);
        Ok(number)
    }
}

/// Connections to one target that the settings foresee.
fn planned_connections(settings: &Settings) -> usize {
    let load = if settings.connections == usize::MAX { 0 } else { settings.connections };
    load + settings.idle_connections
}

/// Whether any address of 127.0.0.0/8 reaches this one.
pub(crate) fn is_loopback(address: IpAddr) -> bool {
    address.is_ipv4() && address.is_loopback()
}
