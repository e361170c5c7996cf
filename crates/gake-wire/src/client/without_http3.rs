//! What stands for HTTP/3 in a build without the feature `http3`: settings that are never there, and
//! a transport of which there is no value.

use std::sync::Arc;

use gake_core::clock::{Clock, Nanos};
use gake_core::record::{Answer, Exchange, Fault};

use crate::client::dial::Dialer;
use crate::client::request::PreparedRequest;
use crate::client::transport::{AnyTransport, Timing, Transport, TransportError};
use crate::codec::http1::Visitor;
use crate::codec::http2::ConnectionLimits;
use crate::tls::facts::ConnectionFacts;

/// Settings of QUIC.
#[derive(Debug, Clone)]
pub(crate) enum QuicSettings {}

impl QuicSettings {
    pub(crate) fn new(_: Arc<rustls::ClientConfig>, _: &ConnectionLimits) -> Option<Self> {
        None
    }
}

/// A connection of HTTP/3.
#[derive(Debug)]
pub(crate) enum Http3 {}

impl Http3 {
    pub(crate) fn facts(&self) -> &ConnectionFacts {
        match *self {}
    }

    pub(crate) async fn until_ended(&self) {
        match *self {}
    }
}

impl Transport for Http3 {
    fn capacity(&self) -> usize {
        match *self {}
    }

    async fn exchange<C: Clock, V: Visitor>(
        &self,
        _: &PreparedRequest,
        _: &mut Exchange,
        _: &Timing<'_, C>,
        _: &mut V,
    ) -> Result<Answer, TransportError> {
        match *self {}
    }
}

impl<C: Clock + Clone + 'static> Dialer<C> {
    pub(crate) async fn open_quic(
        &self,
        _: (u32, Option<&PreparedRequest>),
        _: Option<u16>,
        _: Nanos,
        _: &mut Exchange,
    ) -> Result<AnyTransport, Fault> {
        Err(Fault::Quic("this build has no HTTP/3"))
    }

    pub(crate) async fn open_alternative(
        &self,
        _: u32,
        _: u16,
        _: Nanos,
        _: &mut Exchange,
    ) -> Option<AnyTransport> {
        None
    }
}
