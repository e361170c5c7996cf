//! The header that marks copies, and its signature.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use aws_lc_rs::hmac;
use http::header::{self, HeaderName};
use http::{HeaderValue, Method};

use super::ConfigError;
use super::error::{header_name, header_value, value};

/// The default header that marks copies.
pub(crate) const MARKER: &str = "x-gake-shadow";

/// Headers that clients and proxies use themselves, and that therefore cannot mark copies.
const TAKEN: &[HeaderName] = &[
    header::ACCEPT,
    header::ACCEPT_ENCODING,
    header::ACCEPT_LANGUAGE,
    header::AUTHORIZATION,
    header::CACHE_CONTROL,
    header::CONNECTION,
    header::CONTENT_ENCODING,
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    header::COOKIE,
    header::EXPECT,
    header::FORWARDED,
    header::HOST,
    header::IF_MATCH,
    header::IF_MODIFIED_SINCE,
    header::IF_NONE_MATCH,
    header::IF_RANGE,
    header::IF_UNMODIFIED_SINCE,
    header::ORIGIN,
    header::RANGE,
    header::REFERER,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::USER_AGENT,
    header::VIA,
];

/// Lower case, with `-` for every other character: names as lenient servers compare them.
pub(crate) fn fold(name: &str) -> String {
    let plain =
        |byte: u8| if byte.is_ascii_alphanumeric() { byte.to_ascii_lowercase() } else { b'-' };
    name.bytes().map(|byte| char::from(plain(byte))).collect()
}

/// Parses a marker: `Name: value`, or `none`. The header is removed from clients' requests.
///
/// # Errors
/// When it is not a header, or one that ordinary requests use.
pub fn parse_marker(text: &str) -> Result<Option<(HeaderName, HeaderValue)>, ConfigError> {
    if text == "none" {
        return Ok(None);
    }
    let (name, content) = text
        .split_once(':')
        .ok_or_else(|| value("marker", text, "write a header as 'Name: value', or none"))?;
    let (name, content) = (header_name(name.trim())?, header_value(content.trim())?);
    let is_ours = name.as_str() == "x-real-ip" || name.as_str().starts_with("x-forwarded-");
    if TAKEN.contains(&name) || is_ours {
        let reason = "the marker is removed from clients' requests, and they need this header; choose another name";
        return Err(value("marker", text, reason));
    }
    Ok(Some((name, content)))
}

/// Signs markers, so that services can verify that a request is a copy.
#[derive(Clone)]
pub struct MarkerSecret(hmac::Key);

impl fmt::Debug for MarkerSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MarkerSecret(..)")
    }
}

impl MarkerSecret {
    /// Minimum bytes of a secret: a shorter one could be guessed.
    pub const BYTES_LEAST: usize = 16;

    /// A secret shared with the services.
    ///
    /// # Errors
    /// When it is shorter than [`BYTES_LEAST`](Self::BYTES_LEAST).
    pub fn new(secret: &str) -> Result<Self, ConfigError> {
        let secret = secret.trim();
        if secret.len() < Self::BYTES_LEAST {
            return Err(ConfigError::MarkerSecret(Self::BYTES_LEAST));
        }
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes())))
    }

    /// The marker's value for one copy: `VALUE;t=UNIX_SECONDS;hmac=HEX`, where the HMAC (SHA-256)
    /// is over the lines `VALUE`, `t`, method and target, each with its line feed.
    pub(crate) fn sign(
        &self,
        marker: &HeaderValue,
        time: SystemTime,
        method: &Method,
        target: &str,
    ) -> HeaderValue {
        let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let mut context = hmac::Context::with_key(&self.0);
        for line in [marker.as_bytes(), seconds.to_string().as_bytes(), method.as_str().as_bytes()]
        {
            context.update(line);
            context.update(b"\n");
        }
        context.update(target.as_bytes());
        context.update(b"\n");
        let tag = context.sign();
        let hex: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        let signed = [marker.as_bytes(), format!(";t={seconds};hmac={hex}").as_bytes()].concat();
        // Concatenated valid values are a valid value.
        HeaderValue::from_bytes(&signed).unwrap_or_else(|_| marker.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_marker_must_not_be_a_common_header() {
        assert!(parse_marker("X-Copy: 1").unwrap().is_some());
        assert!(parse_marker("none").unwrap().is_none());
        for bad in ["User-Agent: x", "cookie: a=1", "X-Forwarded-For: 1", "Host: h", "x", "a b: c"]
        {
            assert!(parse_marker(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_signature_equals_openssls() {
        // printf '1\n1700000000\nGET\n/a?b\n' | openssl dgst -sha256 -hmac 0123456789abcdef
        let secret = MarkerSecret::new("0123456789abcdef\n").unwrap();
        let time = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let signed = secret.sign(&HeaderValue::from_static("1"), time, &Method::GET, "/a?b");
        assert_eq!(
            signed,
            "1;t=1700000000;hmac=88fae4f3e7425a56f917a1e627ced2e43a302320898bd5cd2336a356eafcb06b"
        );
        assert!(MarkerSecret::new("short").is_err());
        assert!(!format!("{secret:?}").contains("0123"));
    }
}
