//! Removes headers that clients may not send.
//!
//! - The header that marks copies: services skip mails and payments for copies, so clients could
//!   suppress them.
//! - Names with `_` and other characters that many servers treat as `-`: to such a server
//!   `Transfer_Encoding` is `Transfer-Encoding`, unseen by proxies.

use http::header::{
    CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, HOST, HeaderMap,
    HeaderName, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};

use crate::config::{Config, MARKER, fold};
use crate::proxy::policy::forwarded::is_forwarding_header;

/// Fields without meaning in trailers, which are dangerous to servers that merge trailers with the
/// head.
const FORBIDDEN_TRAILERS: &[HeaderName] = &[
    CONNECTION,
    CONTENT_ENCODING,
    CONTENT_LENGTH,
    CONTENT_TYPE,
    EXPECT,
    HOST,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

#[derive(Debug)]
pub(crate) struct InboundFilter {
    /// The folded names of the markers.
    markers: Vec<String>,
    underscores_in_headers: bool,
}

impl InboundFilter {
    pub(crate) fn new(config: &Config) -> Self {
        let markers = config.shadows.iter().filter_map(|shadow| shadow.marker.as_ref());
        let markers = markers.map(|(name, _)| name.as_str());
        // Always including the default one, which services may recognise.
        let mut markers: Vec<String> = markers.chain([MARKER]).map(fold).collect();
        markers.sort_unstable();
        markers.dedup();
        Self { markers, underscores_in_headers: config.underscores_in_headers }
    }

    /// Removes trailers that clients may not send. Returns the number of ambiguous names.
    pub(crate) fn clean_trailers(&self, trailers: &mut HeaderMap) -> u64 {
        let mut refused: Vec<HeaderName> = Vec::new();
        let mut odd = 0;
        for name in trailers.keys() {
            let is_odd = !self.underscores_in_headers && is_odd(name.as_str());
            let is_reserved = self.is_marker(name.as_str()) || is_forwarding_header(name.as_str());
            if is_odd || is_reserved || FORBIDDEN_TRAILERS.contains(name) {
                odd += u64::from(is_odd);
                refused.push(name.clone());
            }
        }
        for name in refused {
            trailers.remove(name);
        }
        odd
    }

    /// Whether ambiguous names are passed on.
    pub(crate) fn keeps_odd_names(&self) -> bool {
        self.underscores_in_headers
    }

    /// Whether a name of letters, digits and `-` is a marker.
    pub(crate) fn is_marked(&self, name: &str) -> bool {
        self.markers.iter().any(|marker| marker.eq_ignore_ascii_case(name))
    }

    /// Whether any name, folded, is a marker.
    pub(crate) fn is_marker(&self, name: &str) -> bool {
        let same = |marker: &&String| marker.len() == name.len();
        self.markers.iter().filter(same).any(|marker| fold(name) == *marker)
    }
}

/// Whether a name has characters other than letters, digits and `-`.
fn is_odd(name: &str) -> bool {
    !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;
    use crate::config::{Backend, Shadow, parse_marker};

    fn inbound(markers: &[&str], keep: bool) -> InboundFilter {
        let backend = |name: &str| Backend::new(name, "http://h").unwrap();
        let mut config = Config::new(backend("m"));
        config.underscores_in_headers = keep;
        for (number, marker) in markers.iter().enumerate() {
            let mut shadow = Shadow::new(backend(&format!("s{number}")));
            shadow.marker = parse_marker(marker).unwrap();
            config.shadows.push(shadow);
        }
        InboundFilter::new(&config)
    }

    fn left(inbound: &InboundFilter, names: &[&str]) -> Vec<String> {
        let mut headers = HeaderMap::new();
        for name in names {
            headers.append(
                HeaderName::from_bytes(name.as_bytes()).unwrap(),
                HeaderValue::from_static("1"),
            );
        }
        inbound.clean_trailers(&mut headers);
        let mut left: Vec<_> = headers.keys().map(ToString::to_string).collect();
        left.sort();
        left
    }

    #[test]
    fn markers_are_removed_in_every_spelling() {
        let spellings = [
            "X-Gake-Shadow",
            "X_Gake_Shadow",
            "x-gake_shadow",
            "X.Gake.Shadow",
            "x~gake`shadow",
            "x-gake-shadowy",
        ];
        for keep in [false, true] {
            let inbound = inbound(&["X-Gake-Shadow: 1", "none", "X-Copy: yes"], keep);
            assert_eq!(left(&inbound, &spellings), ["x-gake-shadowy"]);
            assert!(left(&inbound, &["X-COPY", "x_copy"]).is_empty());
        }
        let usual = inbound(&["none"], false);
        assert_eq!(left(&usual, &["X-Gake-Shadow", "X-Copy"]), ["x-copy"]);
    }

    #[test]
    fn ambiguous_names_are_removed_by_default() {
        let names = ["Transfer_Encoding", "x.y", "x-content-length", "x-1"];
        assert_eq!(left(&inbound(&[], false), &names), ["x-1", "x-content-length"]);
        assert_eq!(left(&inbound(&[], true), &names).len(), 4);
    }

    #[test]
    fn forbidden_trailers_are_removed() {
        let inbound = inbound(&["X-Gake-Shadow: 1"], false);
        let mut trailers = HeaderMap::new();
        for name in ["x-sum", "host", "transfer-encoding", "x-forwarded-for", "x-gake-shadow"] {
            trailers.insert(name, HeaderValue::from_static("1"));
        }
        inbound.clean_trailers(&mut trailers);
        assert_eq!(trailers.keys().collect::<Vec<_>>(), ["x-sum"]);
    }
}
