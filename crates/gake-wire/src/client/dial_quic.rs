//! Opening HTTP/3 connections.

use std::net::{IpAddr, SocketAddr};

use gake_codec::http3::StreamRequest;
use gake_core::clock::{Clock, Nanos, nanos};
use gake_core::record::{Exchange, Fault};

use crate::client::dial::Dialer;
use crate::client::early;
use crate::client::meter::bump;
use crate::client::network::{Network, is_loopback};
use crate::client::request::PreparedRequest;
use crate::client::transport::{AnyTransport, Http3};
use crate::net::address::Address;
use crate::net::fault;
use crate::quic::{self, EarlyCall, EarlyEnd};
use crate::tls::facts::{ConnectionFacts, TlsFacts};
use crate::tls::handshakes::Handshake;

impl<C: Clock + Clone + 'static> Dialer<C> {
    /// Opens an HTTP/3 connection to an origin, on `port` if it is another one. The handshake counts
    /// as connecting. The request may be sent as early data.
    pub(crate) async fn open_quic(
        &self,
        (number, request): (u32, Option<&PreparedRequest>),
        port: Option<u16>,
        begun: Nanos,
        exchange: &mut Exchange,
    ) -> Result<AnyTransport, Fault> {
        let Network { quic, early, settings, .. } = &*self.network;
        let discovered;
        let origin = match self.network.origins.get(number as usize) {
            Some(origin) => origin,
            None => {
                discovered = self.network.discovered(number).ok_or(Fault::Dns)?;
                &*discovered
            }
        };
        let (Some(quic), Some(name)) = (quic, &origin.server_name) else {
            return Err(Fault::Tls("TLS was not set up for this origin"));
        };
        let (Address::Tcp(mut peer), turn) = self.address(number, origin).await? else {
            return Err(Fault::Quic("HTTP/3 goes over UDP"));
        };
        peer.set_port(port.unwrap_or(peer.port()));
        let source = self.udp_source(peer, turn);
        let permitted = self.network.permitted()?;
        let socket = settings.sources.udp_socket(peer, source);
        let socket = socket.map_err(|error| fault::of_connect(&error))?;
        let request = request.and_then(|request| request.http3.as_deref());
        let (quic, request) = match (&early.quic, request) {
            (Some(early), Some(request)) => (early, Some(request)),
            _ => (quic, None),
        };
        let bytes = request.map_or(0, StreamRequest::len);
        let sent: &mut dyn FnMut() = &mut || early::note(exchange, bytes, self.clock.now());
        let early = request.map(move |request| EarlyCall { request, sent });
        let name = name.to_str();
        let connected = quic::connect(quic, socket, (peer, &name), early).await;
        let (opened, early) = connected.inspect_err(|_| self.has_failed(peer))?;
        let guard = self.meter.opened(permitted);
        let connect = self.clock.now() - begun;
        exchange.connect = Some(exchange.connect.unwrap_or(0) + connect);
        let is_early_accepted = early.as_ref().map(|end| matches!(end, EarlyEnd::Accepted(..)));
        let is_resumed = is_early_accepted == Some(true);
        let tls = TlsFacts::of_quic(self.network.ech_once_open(), is_resumed);
        self.meter.handshake(Handshake { facts: tls, is_stapled: None, is_early_accepted });
        let peer = Some(peer);
        let facts = ConnectionFacts { peer, is_http2: false, is_http3: true, tls: Some(tls) };
        let limits = settings.connection_limits();
        let http3 = Http3::new(opened, limits, facts, !settings.keepalive, guard);
        if let Some(EarlyEnd::Accepted(send, recv)) = early {
            http3.has_sent((send, recv));
        }
        Ok(AnyTransport::Http3(http3))
    }

    /// Opens an HTTP/3 connection to an advertised port. If that takes more than half the connect
    /// time-out, the alternative is marked as failed, and TCP has the other half.
    pub(crate) async fn open_alternative(
        &self,
        number: u32,
        port: u16,
        begun: Nanos,
        exchange: &mut Exchange,
    ) -> Option<AnyTransport> {
        let timeouts = &self.network.settings.timeouts;
        // Also below the request's time-out: a request that ends earlier would never mark it.
        let half = nanos(timeouts.connect.min(timeouts.total)) / 2;
        let limit = self.clock.now().saturating_add(half);
        let opened = tokio::select! {
            biased;
            opened = self.open_quic((number, None), Some(port), begun, exchange) => opened.ok(),
            () = self.clock.sleep_until(limit) => None,
        };
        if opened.is_none() {
            self.alternatives.fail(number);
            bump(&self.meter.http3_fallbacks);
        }
        opened
    }

    /// The source of connection number `turn` to `peer`, unless the system chooses.
    fn udp_source(&self, peer: SocketAddr, turn: usize) -> Option<IpAddr> {
        let own = &self.network.settings.sources.addresses;
        let sources = match own.is_empty() && is_loopback(peer.ip()) {
            true => &self.network.loopback_sources,
            false => own,
        };
        let mut fitting = sources.iter().filter(|source| source.is_ipv4() == peer.is_ipv4());
        let count = fitting.clone().count();
        fitting.nth(turn.checked_rem(count)?).copied()
    }
}
