//! TLS settings from k6's options.

use gake_k6::options::K6Options;
use serde_json::Value;

use super::{ScriptTls, TlsIdentity, TlsVersion, tls12_suites};

/// TLS versions by k6's names, the oldest first.
const VERSIONS: [&str; 5] = ["ssl3.0", "tls1.0", "tls1.1", "tls1.2", "tls1.3"];

/// Suffixes of cipher suites that Go supports and this client does not: without authenticated
/// encryption, or without forward secrecy.
const OLD_SUITES: [&str; 4] = ["_CBC_SHA", "_CBC_SHA256", "_RC4_128_SHA", "_EDE_CBC_SHA"];

/// The TLS settings of a script.
///
/// # Errors
/// An option that is not valid or not supported, by name.
pub(super) fn tls(options: &K6Options) -> Result<ScriptTls, String> {
    let version = version(options)?;
    let suites = match options.tls_cipher_suites.as_deref() {
        None | Some([]) => None,
        Some(requested) => Some(suites(requested)?.0),
    };
    if version == Some(TlsVersion::Tls12) && suites.as_ref().is_some_and(Vec::is_empty) {
        return Err("the option tlsCipherSuites is not supported: gake has none of its suites \
                    for TLS 1.2"
            .to_owned());
    }
    Ok(ScriptTls { version, suites, identities: identities(options)? })
}

/// The TLS 1.2 suites that this client supports, and those that it does not. As in k6, the suites
/// of TLS 1.3 cannot be chosen.
fn suites(requested: &[String]) -> Result<(Vec<String>, Vec<&str>), String> {
    let (mut supported, mut unsupported) = (Vec::new(), Vec::new());
    for name in requested {
        let is_old =
            name.starts_with("TLS_RSA_") || OLD_SUITES.iter().any(|end| name.ends_with(end));
        let is_new =
            ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"]
                .contains(&name.as_str());
        if tls12_suites().any(|suite| suite == name) {
            supported.push(name.clone());
        } else if is_old {
            unsupported.push(name.as_str());
        } else if !is_new {
            return Err(format!("unknown cipher suite '{name}'"));
        }
    }
    Ok((supported, unsupported))
}

/// A warning about suites of `tlsCipherSuites` that are not supported.
pub(super) fn warnings(options: &K6Options) -> Vec<String> {
    let fetches = options.tls_aia_fetch == Some(true);
    let aia = fetches.then(|| {
        "the option tlsAIAFetch is not supported: a server must send its intermediate certificates, \
         or connections to it fail"
            .to_owned()
    });
    suite_warning(options).into_iter().chain(aia).collect()
}

fn suite_warning(options: &K6Options) -> Option<String> {
    let (_, unsupported) = suites(options.tls_cipher_suites.as_deref()?).ok()?;
    (!unsupported.is_empty())
        .then(|| format!("cipher suites that gake does not have: {}", unsupported.join(", ")))
}

/// The certificates of `tlsAuth`.
fn identities(options: &K6Options) -> Result<Vec<TlsIdentity>, String> {
    let list = match &options.tls_auth {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(list)) => list,
        Some(_) => return Err("the option tlsAuth is not an array of certificates".to_owned()),
    };
    let identity = |(number, one): (usize, &Value)| {
        let text = |key: &str| one.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        let wrong = |why: &str| format!("the option tlsAuth[{number}] {why}");
        if text("password").is_some() {
            return Err(wrong(
                "has a password: decrypt its key with openssl pkey -in KEY -out PLAIN",
            ));
        }
        let pem = |key: &str| text(key).filter(|text| text.contains("-----BEGIN "));
        match (pem("cert"), pem("key")) {
            (Some(cert), Some(key)) => {
                Ok(TlsIdentity { certificates: cert.to_owned(), key: key.to_owned() })
            }
            _ => Err(wrong("needs cert and key, both in PEM")),
        }
    };
    list.iter().enumerate().map(identity).collect()
}

/// The only supported version in the range `tlsVersion`; `None` for both.
///
/// # Errors
/// When it names an unknown version, or contains no supported one.
fn version(options: &K6Options) -> Result<Option<TlsVersion>, String> {
    let Some(requested) = options.tls_version.as_ref().filter(|requested| !requested.is_null())
    else {
        return Ok(None);
    };
    let index = |value: Option<&Value>, otherwise: usize| match value {
        None | Some(Value::Null) => Ok(otherwise),
        Some(value) => {
            let known = value.as_str().and_then(|name| VERSIONS.iter().position(|v| *v == name));
            known.ok_or_else(|| format!("unknown TLS version '{value}'"))
        }
    };
    let (least, most) = match requested {
        Value::Object(range) => (index(range.get("min"), 0)?, index(range.get("max"), 4)?),
        one => (index(Some(one), 0)?, index(Some(one), 4)?),
    };
    match (least..=most).contains(&3) {
        true if most >= 4 => Ok(None),
        true => Ok(Some(TlsVersion::Tls12)),
        false if least <= 4 && most >= 4 => Ok(Some(TlsVersion::Tls13)),
        false => Err("the option tlsVersion is not supported: gake has TLS 1.2 and 1.3".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn with_tls(requested: Value) -> Result<Option<TlsVersion>, String> {
        version(&K6Options { tls_version: Some(requested), ..K6Options::default() })
    }

    #[test]
    fn versions_of_tls_are_a_range() {
        assert_eq!(with_tls(json!("tls1.2")), Ok(Some(TlsVersion::Tls12)));
        assert_eq!(with_tls(json!("tls1.3")), Ok(Some(TlsVersion::Tls13)));
        assert_eq!(with_tls(json!({ "min": "tls1.0", "max": "tls1.3" })), Ok(None));
        assert_eq!(with_tls(json!({ "max": "tls1.2" })), Ok(Some(TlsVersion::Tls12)));
        assert_eq!(with_tls(json!({ "min": "tls1.3" })), Ok(Some(TlsVersion::Tls13)));
        for refused in [json!("tls1.1"), json!({ "max": "tls1.0" }), json!("tls2"), json!(3)] {
            assert!(with_tls(refused.clone()).is_err(), "{refused}");
        }
    }

    #[test]
    fn suites_of_tls_1_2_can_be_chosen() {
        let names =
            |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let good = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256";
        let old = "TLS_RSA_WITH_AES_128_CBC_SHA";
        let requested = names(&[good, old, "TLS_AES_128_GCM_SHA256"]);
        let options = K6Options { tls_cipher_suites: Some(requested), ..K6Options::default() };
        assert_eq!(tls(&options).unwrap().suites, Some(names(&[good])));
        assert!(suite_warning(&options).unwrap().ends_with(old));
        let only_old = K6Options {
            tls_cipher_suites: Some(names(&[old])),
            tls_version: Some(json!("tls1.2")),
            ..K6Options::default()
        };
        assert!(tls(&only_old).unwrap_err().contains("tlsCipherSuites"));
        let unknown = K6Options { tls_cipher_suites: Some(names(&["X"])), ..K6Options::default() };
        assert!(tls(&unknown).unwrap_err().contains("'X'"));
    }

    #[test]
    fn certificates_have_a_key() {
        const PEM: &str = "-----BEGIN CERTIFICATE-----";
        let with = |value| K6Options { tls_auth: Some(value), ..K6Options::default() };
        let good = json!([{ "domains": ["a.test"], "cert": PEM, "key": PEM }]);
        assert_eq!(tls(&with(good)).unwrap().identities.len(), 1);
        for (wrong, part) in [
            (json!([{ "cert": PEM }]), "needs cert and key"),
            (json!([{ "cert": "C", "key": PEM }]), "PEM"),
            (json!([{ "cert": "C", "key": "K", "password": "x" }]), "decrypt"),
            (json!("C"), "not an array"),
        ] {
            let error = tls(&with(wrong)).unwrap_err();
            assert!(error.contains(part) && error.contains("tlsAuth"), "{error}");
        }
    }
}
