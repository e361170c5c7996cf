//! The static table of QPACK (RFC 9204, appendix A).

/// Names and values; the first has index 0.
#[rustfmt::skip]
const TABLE: [(&str, &str); 99] = [
    (":authority", ""), (":path", "/"), ("age", "0"), ("content-disposition", ""),
    ("content-length", "0"), ("cookie", ""), ("date", ""), ("etag", ""), ("if-modified-since", ""),
    ("if-none-match", ""), ("last-modified", ""), ("link", ""), ("location", ""), ("referer", ""),
    ("set-cookie", ""), (":method", "CONNECT"), (":method", "DELETE"), (":method", "GET"),
    (":method", "HEAD"), (":method", "OPTIONS"), (":method", "POST"), (":method", "PUT"),
    (":scheme", "http"), (":scheme", "https"), (":status", "103"), (":status", "200"),
    (":status", "304"), (":status", "404"), (":status", "503"), ("accept", "*/*"),
    ("accept", "application/dns-message"), ("accept-encoding", "gzip, deflate, br"),
    ("accept-ranges", "bytes"), ("access-control-allow-headers", "cache-control"),
    ("access-control-allow-headers", "content-type"), ("access-control-allow-origin", "*"),
    ("cache-control", "max-age=0"), ("cache-control", "max-age=2592000"),
    ("cache-control", "max-age=604800"), ("cache-control", "no-cache"),
    ("cache-control", "no-store"), ("cache-control", "public, max-age=31536000"),
    ("content-encoding", "br"), ("content-encoding", "gzip"),
    ("content-type", "application/dns-message"), ("content-type", "application/javascript"),
    ("content-type", "application/json"), ("content-type", "application/x-www-form-urlencoded"),
    ("content-type", "image/gif"), ("content-type", "image/jpeg"), ("content-type", "image/png"),
    ("content-type", "text/css"), ("content-type", "text/html; charset=utf-8"),
    ("content-type", "text/plain"), ("content-type", "text/plain;charset=utf-8"),
    ("range", "bytes=0-"), ("strict-transport-security", "max-age=31536000"),
    ("strict-transport-security", "max-age=31536000; includesubdomains"),
    ("strict-transport-security", "max-age=31536000; includesubdomains; preload"),
    ("vary", "accept-encoding"), ("vary", "origin"), ("x-content-type-options", "nosniff"),
    ("x-xss-protection", "1; mode=block"), (":status", "100"), (":status", "204"),
    (":status", "206"), (":status", "302"), (":status", "400"), (":status", "403"),
    (":status", "421"), (":status", "425"), (":status", "500"), ("accept-language", ""),
    ("access-control-allow-credentials", "FALSE"), ("access-control-allow-credentials", "TRUE"),
    ("access-control-allow-headers", "*"), ("access-control-allow-methods", "get"),
    ("access-control-allow-methods", "get, post, options"),
    ("access-control-allow-methods", "options"),
    ("access-control-expose-headers", "content-length"),
    ("access-control-request-headers", "content-type"), ("access-control-request-method", "get"),
    ("access-control-request-method", "post"), ("alt-svc", "clear"), ("authorization", ""),
    ("content-security-policy", "script-src 'none'; object-src 'none'; base-uri 'none'"),
    ("early-data", "1"), ("expect-ct", ""), ("forwarded", ""), ("if-range", ""), ("origin", ""),
    ("purpose", "prefetch"), ("server", ""), ("timing-allow-origin", "*"),
    ("upgrade-insecure-requests", "1"), ("user-agent", ""), ("x-forwarded-for", ""),
    ("x-frame-options", "deny"), ("x-frame-options", "sameorigin"),
];

pub(super) fn entry(index: usize) -> Option<(&'static str, &'static str)> {
    TABLE.get(index).copied()
}

/// The index of a field, with `true`, or of the first field with its name.
pub(super) fn find(name: &str, value: &[u8]) -> Option<(usize, bool)> {
    let is_whole = |(known, text): &(&str, &str)| *known == name && text.as_bytes() == value;
    let whole = TABLE.iter().position(is_whole).map(|at| (at, true));
    whole.or_else(|| TABLE.iter().position(|(known, _)| *known == name).map(|at| (at, false)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_have_the_indices_of_the_rfc() {
        for (index, name, value) in [
            (0, ":authority", ""),
            (14, "set-cookie", ""),
            (25, ":status", "200"),
            (35, "access-control-allow-origin", "*"),
            (46, "content-type", "application/json"),
            (62, "x-xss-protection", "1; mode=block"),
            (71, ":status", "500"),
            (84, "authorization", ""),
            (86, "early-data", "1"),
            (92, "server", ""),
            (95, "user-agent", ""),
            (98, "x-frame-options", "sameorigin"),
        ] {
            assert_eq!(entry(index), Some((name, value)), "{index}");
        }
        assert_eq!(entry(99), None);
        assert!((0..TABLE.len()).all(|at| !TABLE[..at].contains(&TABLE[at])), "each once");
    }
}
