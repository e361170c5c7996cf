//! Digest authentication (RFC 7616).

use std::fmt::Write;

use aws_lc_rs::digest::{SHA256, digest};
use gake_js::crypto::hex;
use gake_wire::basic_authorization_as_given;
use md5::Md5;
use url::Url;

use super::credentials;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Credentials {
    pub(super) user: String,
    pub(super) password: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DigestHash {
    Md5,
    Sha256,
}

impl DigestHash {
    fn of(self, text: &str) -> String {
        use md5::Digest as _;
        match self {
            Self::Md5 => hex(&Md5::digest(text)),
            Self::Sha256 => hex(digest(&SHA256, text.as_bytes()).as_ref()),
        }
    }
}

impl Credentials {
    /// Removes the user and password from a URL.
    pub(super) fn taken_from(url: &mut Url) -> Option<Self> {
        let (user, password) = credentials::decoded(url);
        if user.is_empty() && password.is_empty() {
            return None;
        }
        url.set_username("").and_then(|()| url.set_password(None)).ok()?;
        Some(Self { user, password })
    }

    /// The `Authorization` header of basic authentication.
    pub(super) fn basic(&self) -> String {
        basic_authorization_as_given(&format!("{}:{}", self.user, self.password)).1
    }

    /// The `Authorization` header for a challenge; `None` if the challenge is not supported.
    pub(super) fn respond(&self, challenge: &str, method: &str, url: &Url) -> Option<String> {
        let mut random = [0; 16];
        aws_lc_rs::rand::fill(&mut random).ok()?;
        self.respond_with(challenge, method, url, &hex(&random))
    }

    fn respond_with(
        &self,
        challenge: &str,
        method: &str,
        url: &Url,
        cnonce: &str,
    ) -> Option<String> {
        let (scheme, fields) = challenge.trim().split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("digest") {
            return None;
        }
        let fields = fields_of(fields);
        let field = |name: &str| fields.iter().find(|(known, _)| known == name).map(|(_, v)| v);
        let (realm, nonce) = (field("realm")?, field("nonce")?);
        let algorithm = field("algorithm").map_or("MD5", String::as_str);
        let (hash, is_session) = match algorithm.to_ascii_lowercase().as_str() {
            "md5" => (DigestHash::Md5, false),
            "md5-sess" => (DigestHash::Md5, true),
            "sha-256" => (DigestHash::Sha256, false),
            "sha-256-sess" => (DigestHash::Sha256, true),
            _ => return None,
        };
        let qop = match field("qop") {
            Some(list) => Some(list.split(',').map(str::trim).find(|option| *option == "auth")?),
            None => None,
        };
        let uri = &url[url::Position::BeforePath..url::Position::AfterQuery];
        let Self { user, password } = self;
        let mut a1 = hash.of(&format!("{user}:{realm}:{password}"));
        if is_session {
            a1 = hash.of(&format!("{a1}:{nonce}:{cnonce}"));
        }
        let a2 = hash.of(&format!("{method}:{uri}"));
        let response = match qop {
            Some(qop) => hash.of(&format!("{a1}:{nonce}:00000001:{cnonce}:{qop}:{a2}")),
            None => hash.of(&format!("{a1}:{nonce}:{a2}")),
        };
        let mut header = format!(
            "Digest username=\"{user}\", realm=\"{realm}\", nonce=\"{nonce}\", uri=\"{uri}\", \
             algorithm={algorithm}, response=\"{response}\""
        );
        if let Some(qop) = qop {
            let _ = write!(header, ", qop={qop}, nc=00000001, cnonce=\"{cnonce}\"");
        }
        if let Some(opaque) = field("opaque") {
            let _ = write!(header, ", opaque=\"{opaque}\"");
        }
        Some(header)
    }
}

/// The comma-separated fields of a challenge: `name=value` or `name="value"`.
fn fields_of(mut text: &str) -> Vec<(String, String)> {
    let mut fields = Vec::new();
    while let Some((name, rest)) = text.split_once('=') {
        let name = name.trim_matches([' ', ',']).to_ascii_lowercase();
        let (value, rest) = match rest.strip_prefix('"') {
            Some(rest) => rest.split_once('"').unwrap_or((rest, "")),
            None => rest.split_once(',').unwrap_or((rest, "")),
        };
        fields.push((name, value.trim().to_owned()));
        text = rest;
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 7616, section 3.9.1.
    #[test]
    fn responses_follow_the_standard() {
        let mut url: Url =
            "http://Mufasa:Circle%20of%20Life@www.example.org/dir/index.html".parse().unwrap();
        let credentials = Credentials::taken_from(&mut url).unwrap();
        assert_eq!(url.as_str(), "http://www.example.org/dir/index.html");
        let cnonce = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ";
        for (algorithm, response) in [
            ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
            ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
        ] {
            let challenge = format!(
                "Digest realm=\"http-auth@example.org\", qop=\"auth, auth-int\", \
                 algorithm={algorithm}, nonce=\"7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v\", \
                 opaque=\"FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS\""
            );
            let header = credentials.respond_with(&challenge, "GET", &url, cnonce).unwrap();
            assert!(header.contains(response), "{header}");
            assert!(header.contains("uri=\"/dir/index.html\""), "{header}");
        }
        assert_eq!(credentials.respond("Basic realm=\"x\"", "GET", &url), None);
    }
}
