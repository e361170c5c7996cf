//! The static table of HPACK (RFC 7541, appendix A).

/// Entries of the static table; the indices of the dynamic table follow.
pub(super) const STATIC_LEN: usize = TABLE.len();

/// Names and values; the first has index 1.
#[rustfmt::skip]
const TABLE: [(&str, &str); 61] = [
    (":authority", ""), (":method", "GET"), (":method", "POST"), (":path", "/"),
    (":path", "/index.html"), (":scheme", "http"), (":scheme", "https"), (":status", "200"),
    (":status", "204"), (":status", "206"), (":status", "304"), (":status", "400"),
    (":status", "404"), (":status", "500"), ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"), ("accept-language", ""), ("accept-ranges", ""),
    ("accept", ""), ("access-control-allow-origin", ""), ("age", ""), ("allow", ""),
    ("authorization", ""), ("cache-control", ""), ("content-disposition", ""),
    ("content-encoding", ""), ("content-language", ""), ("content-length", ""),
    ("content-location", ""), ("content-range", ""), ("content-type", ""), ("cookie", ""),
    ("date", ""), ("etag", ""), ("expect", ""), ("expires", ""), ("from", ""), ("host", ""),
    ("if-match", ""), ("if-modified-since", ""), ("if-none-match", ""), ("if-range", ""),
    ("if-unmodified-since", ""), ("last-modified", ""), ("link", ""), ("location", ""),
    ("max-forwards", ""), ("proxy-authenticate", ""), ("proxy-authorization", ""), ("range", ""),
    ("referer", ""), ("refresh", ""), ("retry-after", ""), ("server", ""), ("set-cookie", ""),
    ("strict-transport-security", ""), ("transfer-encoding", ""), ("user-agent", ""),
    ("vary", ""), ("via", ""), ("www-authenticate", ""),
];

pub(super) fn entry(index: usize) -> Option<(&'static str, &'static str)> {
    TABLE.get(index.checked_sub(1)?).copied()
}

/// The index of a field, or of the first field with its name; 0 for an unknown name.
pub(super) fn find(name: &str, value: &[u8]) -> (usize, bool) {
    let mut named = 0;
    for (at, (known, text)) in TABLE.iter().enumerate() {
        if *known != name {
            continue;
        }
        if text.as_bytes() == value && !value.is_empty() {
            return (at + 1, true);
        }
        if named == 0 {
            named = at + 1;
        }
    }
    (named, false)
}
