//! Limits on the targets and the number of connections.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use gake_core::record::Fault;

use crate::net::address::Address;

/// The fault of a connection to a target that is not allowed.
pub(crate) const NO_TARGET: Fault = Fault::NotAllowed("its target is outside --allow");

/// The fault of a connection beyond the limit.
const TOO_MANY: Fault = Fault::NotAllowed("the limit --max-connections is reached");

/// Whether the address of a host, as named in the URL, is allowed.
type AddressFilter = Box<dyn Fn(&str, IpAddr) -> bool + Send + Sync>;

/// Limits the targets and the number of open connections, over all workers.
pub struct ConnectionPermit {
    allows: AddressFilter,
    most: usize,
    open: AtomicUsize,
}

impl ConnectionPermit {
    /// Permits connections to addresses of a host that `allows` returns true for, at most `most` at
    /// a time.
    #[must_use]
    pub fn new(
        allows: impl Fn(&str, IpAddr) -> bool + Send + Sync + 'static,
        most: Option<usize>,
    ) -> Self {
        let most = most.unwrap_or(usize::MAX);
        Self { allows: Box::new(allows), most, open: AtomicUsize::new(0) }
    }

    /// Whether all these addresses of `host` are allowed.
    pub(crate) fn allows(&self, host: &str, addresses: &[Address]) -> bool {
        addresses.iter().all(|address| match address {
            Address::Tcp(address) => (self.allows)(host, address.ip()),
            Address::Unix(_) => false,
        })
    }

    /// Permits one more connection, for as long as the returned guard lives.
    pub(crate) fn take(self: &Arc<Self>) -> Result<PermittedConnection, Fault> {
        let more = |open: usize| (open < self.most).then_some(open + 1);
        self.open.fetch_update(Relaxed, Relaxed, more).map_err(|_| TOO_MANY)?;
        Ok(PermittedConnection(Arc::clone(self)))
    }
}

impl fmt::Debug for ConnectionPermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionPermit").field("most", &self.most).finish_non_exhaustive()
    }
}

/// Counts as an open connection until it is dropped.
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
    fn open_connections_are_limited() {
        let permit = Arc::new(ConnectionPermit::new(|_, _| true, Some(2)));
        let first = permit.take().unwrap();
        let second = permit.take().unwrap();
        assert_eq!(permit.take().unwrap_err(), TOO_MANY);
        drop(first);
        let third = permit.take();
        assert!(third.is_ok() && permit.take().is_err());
        drop((second, third));
        assert_eq!(permit.open.load(Relaxed), 0);
    }

    #[test]
    fn all_addresses_must_be_allowed() {
        let permit = ConnectionPermit::new(|host, ip| host == "h" && ip.is_loopback(), None);
        let tcp = |text: &str| Address::Tcp(text.parse().unwrap());
        assert!(permit.allows("h", &[tcp("127.0.0.1:1"), tcp("[::1]:1")]));
        assert!(!permit.allows("h", &[tcp("127.0.0.1:1"), tcp("10.0.0.1:1")]));
        assert!(!permit.allows("other", &[tcp("127.0.0.1:1")]));
        assert!(!permit.allows("h", &[Address::Unix("/tmp/s".into())]));
    }
}
