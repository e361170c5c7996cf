//! The URL of a request, checked as k6 does.

use gake_go::url::{authority_of, normalized};
use url::{ParseError, Url};

use super::credentials::masked;

/// k6's error code for an invalid URL.
pub(super) const BAD_URL: u32 = 1020;
const BAD_PORT: u32 = 1210;
const NO_SUCH_HOST: u32 = 1101;

/// Parses the URL of a request.
///
/// # Errors
/// k6's error code and message.
pub(super) fn checked(text: &str) -> Result<Url, (u32, String)> {
    let unsupported = |scheme: &str| (1000, format!("unsupported protocol scheme \"{scheme}\""));
    let bad = |why: &str| (BAD_URL, format!("invalid URL: parse {:?}: {why}", masked(text)));
    normalized(text).map_err(|why| bad(&why))?;
    match Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(url),
        Ok(_) => Err(unsupported(text.split_once(':').map_or("", |(scheme, _)| scheme))),
        Err(ParseError::RelativeUrlWithoutBase) => Err(unsupported("")),
        Err(ParseError::InvalidPort) => {
            let port = authority_of(text).rsplit_once(':').map_or("", |(_, port)| port);
            // What precedes a good one is then the name, as in `a:1:2`.
            if port.parse::<u16>().is_ok() {
                return Err((NO_SUCH_HOST, "lookup: no such host".to_owned()));
            }
            Err((BAD_PORT, format!("dial tcp: address {port}: invalid port")))
        }
        // Go looks such a name up.
        Err(ParseError::IdnaError | ParseError::InvalidDomainCharacter) => {
            Err((NO_SUCH_HOST, "lookup: no such host".to_owned()))
        }
        Err(error) => Err(bad(&error.to_string())),
    }
}
