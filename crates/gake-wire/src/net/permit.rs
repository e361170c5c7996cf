//! Which connections may be opened, and how many at once.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use gake_core::record::Fault;

use crate::net::address::Address;

/// A connection to a target that is not allowed.
pub(crate) const NO_TARGET: Fault = Fault::NotAllowed("its target is outside --allow");

/// A connection beyond those that may be open at once.
const NO_MORE: Fault = Fault::NotAllowed("the connections are more than --max-connections");

/// Whether connections to this address of this host, as the URL names it, may be opened.
type Allows = Box<dyn Fn(&str, IpAddr) -> bool + Send + Sync>;

/// Which connections may be opened, and how many may be open at once, over all workers. Without one,
/// any may.
pub struct ConnectionPermit {
    allows: Allows,
    most: usize,
    open: AtomicUsize,
}

impl ConnectionPermit {
    /// Permits connections to what `allows` an address of a host, at most `most` at once.
    #[must_use]
    pub fn new(
        allows: impl Fn(&str, IpAddr) -> bool + Send + Sync + 'static,
        most: Option<usize>,
    ) -> Self {
        let most = most.unwrap_or(usize::MAX);
        Self { allows: Box::new(allows), most, open: AtomicUsize::new(0) }
    }

    /// Whether every one of these addresses of `host` may be connected to.
    pub(crate) fn allows(&self, host: &str, addresses: &[Address]) -> bool {
        addresses.iter().all(|address| match address {
            Address::Tcp(address) => (self.allows)(host, address.ip()),
            Address::Unix(_) => false,
        })
    }

    /// A connection that may be open as long as what is returned lives.
    pub(crate) fn take(self: &Arc<Self>) -> Result<PermittedConnection, Fault> {
        let more = |open: usize| (open < self.most).then_some(open + 1);
        self.open.fetch_update(Relaxed, Relaxed, more).map_err(|_| NO_MORE)?;
        Ok(PermittedConnection(Arc::clone(self)))
    }
}

impl fmt::Debug for ConnectionPermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionPermit").field("most", &self.most).finish_non_exhaustive()
    }
}

/// One of the connections that may be open.
#[derive(Debug)]
pub(crate) struct PermittedConnection(Arc<ConnectionPermit>);

impl Drop for PermittedConnection {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_are_open_than_may_be() {
        let permit = Arc::new(ConnectionPermit::new(|_, _| true, Some(2)));
        let first = permit.take().unwrap();
        let second = permit.take().unwrap();
        assert_eq!(permit.take().unwrap_err(), NO_MORE);
        drop(first);
        let third = permit.take();
        assert!(third.is_ok() && permit.take().is_err());
        drop((second, third));
        assert_eq!(permit.open.load(Relaxed), 0);
    }

    #[test]
    fn one_address_that_is_not_allowed_is_enough() {
        let permit = ConnectionPermit::new(|host, ip| host == "h" && ip.is_loopback(), None);
        let tcp = |text: &str| Address::Tcp(text.parse().unwrap());
        assert!(permit.allows("h", &[tcp("127.0.0.1:1"), tcp("[::1]:1")]));
        assert!(!permit.allows("h", &[tcp("127.0.0.1:1"), tcp("10.0.0.1:1")]));
        assert!(!permit.allows("other", &[tcp("127.0.0.1:1")]));
        assert!(!permit.allows("h", &[Address::Unix("/tmp/s".into())]));
    }
}
