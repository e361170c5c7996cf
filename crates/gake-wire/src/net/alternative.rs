//! Alternative services (RFC 7838): responses that advertise HTTP/3.

use std::cell::RefCell;

/// The alternatives of the origins of one thread, kept for the whole run.
#[derive(Debug, Default)]
pub(crate) struct Alternatives {
    /// By the number of the origin.
    services: RefCell<Vec<AlternativeService>>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum AlternativeService {
    #[default]
    None,
    /// HTTP/3 on this port.
    Port(u16),
    /// Connecting failed; it is not tried again.
    Failed,
}

impl Alternatives {
    /// The port on which an origin advertises HTTP/3.
    #[inline]
    pub(crate) fn port(&self, origin: u32) -> Option<u16> {
        match self.services.borrow().get(origin as usize) {
            Some(AlternativeService::Port(port)) => Some(*port),
            _ => None,
        }
    }

    /// A response of an origin advertises HTTP/3 on a port.
    pub(crate) fn advertise(&self, origin: u32, port: u16) {
        let mut services = self.services.borrow_mut();
        let service = entry(&mut services, origin);
        if *service == AlternativeService::None {
            *service = AlternativeService::Port(port);
        }
    }

    /// Connecting to the alternative of an origin failed.
    pub(crate) fn fail(&self, origin: u32) {
        *entry(&mut self.services.borrow_mut(), origin) = AlternativeService::Failed;
    }
}

fn entry(services: &mut Vec<AlternativeService>, origin: u32) -> &mut AlternativeService {
    let origin = origin as usize;
    if origin >= services.len() {
        services.resize(origin + 1, AlternativeService::None);
    }
    &mut services[origin]
}

/// The port on which an `Alt-Svc` value advertises HTTP/3. Other hosts are ignored: they would be
/// other targets.
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
    fn alt_svc_values() {
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
    fn a_failed_alternative_is_not_retried() {
        let alternatives = Alternatives::default();
        assert_eq!(alternatives.port(2), None);
        alternatives.advertise(2, 443);
        assert_eq!((alternatives.port(2), alternatives.port(1)), (Some(443), None));
        alternatives.fail(2);
        alternatives.advertise(2, 443);
        assert_eq!(alternatives.port(2), None);
    }
}
