//! Alternative services: where an origin's answers say that it speaks HTTP/3 (RFC 7838).

use std::cell::RefCell;

/// What a thread knows of the alternatives of its origins. They are kept for the run.
#[derive(Debug, Default)]
pub(crate) struct Alternatives {
    /// By the number of the origin.
    ports: RefCell<Vec<Offer>>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Offer {
    #[default]
    None,
    /// HTTP/3 on this port.
    Port(u16),
    /// One that could not be connected to; it is not tried again.
    Failed,
}

impl Alternatives {
    /// The port on which an origin offers HTTP/3.
    #[inline]
    pub(crate) fn port(&self, origin: u32) -> Option<u16> {
        match self.ports.borrow().get(origin as usize) {
            Some(Offer::Port(port)) => Some(*port),
            _ => None,
        }
    }

    /// An answer of an origin offers HTTP/3 on a port.
    pub(crate) fn offers(&self, origin: u32, port: u16) {
        self.set(origin, |offer| if *offer == Offer::None { Offer::Port(port) } else { *offer });
    }

    /// No connection could be opened there.
    pub(crate) fn fails(&self, origin: u32) {
        self.set(origin, |_| Offer::Failed);
    }

    fn set(&self, origin: u32, next: impl FnOnce(&Offer) -> Offer) {
        let (mut ports, origin) = (self.ports.borrow_mut(), origin as usize);
        if origin >= ports.len() {
            ports.resize(origin + 1, Offer::None);
        }
        ports[origin] = next(&ports[origin]);
    }
}

/// The port on which a value of `Alt-Svc` offers HTTP/3 on the same host, if it does. Other hosts
/// are not followed: they are other targets.
pub(crate) fn http3_port(value: &[u8]) -> Option<u16> {
    let value = std::str::from_utf8(value).ok()?;
    value.split(',').find_map(|service| {
        let service = service.split(';').next()?.trim();
        service.strip_prefix("h3=\":")?.strip_suffix('"')?.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offer_is_read() {
        for (value, port) in [
            ("h3=\":443\"; ma=86400", Some(443)),
            ("h2=\":80\", h3=\":8443\"", Some(8443)),
            ("h3-29=\":443\"", None),
            ("h3=\"other.example:443\"", None),
            ("clear", None),
            ("h3=\":99999\"", None),
        ] {
            assert_eq!(http3_port(value.as_bytes()), port, "{value}");
        }
    }

    #[test]
    fn an_offer_that_failed_is_not_taken_up_again() {
        let alternatives = Alternatives::default();
        assert_eq!(alternatives.port(2), None);
        alternatives.offers(2, 443);
        assert_eq!((alternatives.port(2), alternatives.port(1)), (Some(443), None));
        alternatives.fails(2);
        alternatives.offers(2, 443);
        assert_eq!(alternatives.port(2), None);
    }
}
