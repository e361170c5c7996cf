//! A transport without values, for a build without the feature `http3`.

use gake_core::clock::Clock;
use gake_core::record::{Exchange, ResponseSummary};

use super::interface::{Timing, Transport, TransportError};
use crate::client::request::PreparedRequest;
use crate::client::visitor::ExchangeVisitor;
use crate::tls::facts::ConnectionFacts;

#[derive(Debug)]
pub(crate) enum Http3 {}

impl Http3 {
    pub(crate) fn facts(&self) -> &ConnectionFacts {
        match *self {}
    }

    pub(crate) fn retire(&self) {
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
}

impl Http3 {
    pub(crate) async fn exchange<C: Clock, V: ExchangeVisitor>(
        &self,
        _: &PreparedRequest,
        _: &mut Exchange,
        _: &Timing<'_, C>,
        _: &mut V,
    ) -> Result<ResponseSummary, TransportError> {
        match *self {}
    }
}
