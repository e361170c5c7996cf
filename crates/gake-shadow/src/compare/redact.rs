//! What must not be shown, in examples and in recordings.

use serde_json::Value;

/// Headers whose values are secrets.
pub const SECRET_HEADERS: &[&str] =
    &["authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key", "x-auth-token"];

/// Parts of names of members and parameters whose values are secrets, without `-` and `_`.
const SECRET_NAMES: &[&str] = &[
    "password",
    "passwd",
    "secret",
    "token",
    "apikey",
    "authorization",
    "credential",
    "signature",
    "privatekey",
    "sessionid",
    "cvv",
    "iban",
    "creditcard",
    "cardnumber",
];

/// What stands for a secret.
pub const REDACTED: &str = "[redacted]";

/// Whether the name of a member or a parameter says that its value is a secret.
#[must_use]
pub fn is_secret_name(name: &str) -> bool {
    let plain: String =
        name.chars().filter(|c| c.is_alphanumeric()).map(|c| c.to_ascii_lowercase()).collect();
    SECRET_NAMES.iter().any(|secret| plain.contains(secret)) || plain == "sig" || plain == "pin"
}

/// A document without its secrets.
pub(super) fn json(value: &Value) -> Value {
    match value {
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| {
                let value = if is_secret_name(name) { REDACTED.into() } else { json(value) };
                (name.clone(), value)
            })
            .collect::<serde_json::Map<_, _>>()
            .into(),
        Value::Array(all) => all.iter().map(json).collect::<Vec<_>>().into(),
        other => other.clone(),
    }
}

/// A request target without the secrets in its query.
#[must_use]
pub fn target(target: &str) -> String {
    let Some((path, query)) = target.split_once('?') else { return target.to_owned() };
    let parameters = query.split('&').map(|parameter| match parameter.split_once('=') {
        Some((name, _)) if is_secret_name(name) => format!("{name}={REDACTED}"),
        _ => parameter.to_owned(),
    });
    format!("{path}?{}", parameters.collect::<Vec<_>>().join("&"))
}

/// The value of a header as it may be shown.
pub(super) fn header(name: &str, value: &str) -> String {
    if SECRET_HEADERS.contains(&name) { REDACTED.to_owned() } else { value.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_in_a_query_are_redacted() {
        assert_eq!(target("/a?x=1&access_token=abc&y"), "/a?x=1&access_token=[redacted]&y");
        assert_eq!(target("/a"), "/a");
        assert!(is_secret_name("userPassword") && is_secret_name("X-Api-Key"));
        assert!(!is_secret_name("price") && !is_secret_name("pinned"));
    }
}
