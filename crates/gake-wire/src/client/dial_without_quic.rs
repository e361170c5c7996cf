//! Stubs for a build without the feature `http3`.

use gake_core::clock::{Clock, Nanos};
use gake_core::record::{Exchange, Fault};

use crate::client::dial::Dialer;
use crate::client::request::PreparedRequest;
use crate::client::transport::AnyTransport;

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
