//! Names of secrets, matched by word: `X-Api-Key`, `userPassword`, `session_id`, not `monkey` or
//! `author`.

/// Words that mark the name of a secret.
const WORDS: &[&str] = &[
    "assertion",
    "auth",
    "authentication",
    "authorization",
    "bearer",
    "cookie",
    "cookies",
    "credential",
    "credentials",
    "creds",
    "csrf",
    "cvc",
    "cvv",
    "dpop",
    "hmac",
    "iban",
    "jwt",
    "key",
    "mfa",
    "mnemonic",
    "nonce",
    "otp",
    "pan",
    "pass",
    "passcode",
    "passkey",
    "passphrase",
    "passwd",
    "password",
    "passwords",
    "pin",
    "psk",
    "pw",
    "pwd",
    "saml",
    "secret",
    "secrets",
    "sess",
    "session",
    "sessions",
    "sid",
    "sig",
    "signature",
    "ssn",
    "ticket",
    "token",
    "tokens",
    "totp",
    "verifier",
    "xsrf",
];

/// Substrings that mark the name of a secret, even without word boundaries (`accesstoken`).
const PARTS: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "accesskey",
    "privatekey",
    "authkey",
    "authorization",
    "credential",
    "signature",
    "sessionid",
    "sessid",
    "samlresponse",
    "creditcard",
    "cardnumber",
    "cardno",
    "ccnumber",
    "accountnumber",
    "2fa",
];

/// Kinds of keys that are not secret, by the word before `key`.
const PLAIN_KEYS: &[&str] = &[
    "cache",
    "foreign",
    "group",
    "hash",
    "i18n",
    "idempotency",
    "map",
    "partition",
    "primary",
    "public",
    "range",
    "routing",
    "row",
    "sort",
    "surrogate",
    "translation",
];

/// Kinds of `keys` that are secret, by the word before: `keys` by itself is mostly a list of names.
const SECRET_KEYS: &[&str] =
    &["access", "api", "auth", "encryption", "license", "private", "secret", "signing", "ssh"];

/// Kinds of codes that are secret, by the word before `code`.
const SECRET_CODES: &[&str] = &[
    "access",
    "activation",
    "auth",
    "authorization",
    "backup",
    "confirmation",
    "device",
    "invite",
    "login",
    "mfa",
    "otp",
    "pairing",
    "pass",
    "recovery",
    "reset",
    "security",
    "sms",
    "verification",
];

/// Last words of names that describe a secret: `token_type`.
const ABOUT: &[&str] = &[
    "alg",
    "algorithm",
    "algorithms",
    "allowed",
    "at",
    "count",
    "enabled",
    "dir",
    "endpoint",
    "expiration",
    "expires",
    "expiry",
    "file",
    "files",
    "in",
    "length",
    "lifetime",
    "limit",
    "max",
    "method",
    "methods",
    "min",
    "mode",
    "path",
    "policy",
    "provider",
    "remaining",
    "required",
    "size",
    "status",
    "supported",
    "timeout",
    "ttl",
    "type",
    "types",
    "uri",
    "url",
    "usage",
    "used",
    "version",
];

/// Headers that only look secret.
const PLAIN_HEADERS: &[&str] = &["sec-websocket-key", "sec-websocket-accept"];

/// The secrecy of a value, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Secrecy {
    Plain,
    Secret,
    /// Secret unless it is a number, which is a count (`tokens`).
    UnlessNumber,
    /// Secret in parameters, as in OAuth; elsewhere if it does not look like a word (`code`,
    /// `state`).
    Guess,
}

/// The built-in names of secrets, with additions and exceptions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SecretNames {
    redact: Vec<Vec<String>>,
    keep: Vec<String>,
}

impl SecretNames {
    /// Also redacts values whose names contain the words of one of `redact`, and keeps values whose
    /// whole name is one of `keep`. Ignores case and word separators.
    #[must_use]
    pub fn new(redact: &[String], keep: &[String]) -> Self {
        let redact = redact.iter().map(|name| words(name)).filter(|words| !words.is_empty());
        Self { redact: redact.collect(), keep: keep.iter().map(|name| folded(name)).collect() }
    }

    /// Whether the name is one of `keep`.
    pub(super) fn keeps(&self, name: &str) -> bool {
        self.keep.contains(&folded(name))
    }

    pub(super) fn of(&self, name: &str) -> Secrecy {
        let plain = folded(name);
        if self.keep.contains(&plain) {
            return Secrecy::Plain;
        }
        let words = words(name);
        let holds = |name: &Vec<String>| words.windows(name.len()).any(|window| window == name);
        if self.redact.iter().any(holds) {
            return Secrecy::Secret;
        }
        built_in(name, &plain, &words)
    }
}

fn built_in(name: &str, plain: &str, words: &[String]) -> Secrecy {
    let Some(last) = words.last() else { return Secrecy::Plain };
    if PLAIN_HEADERS.iter().any(|header| name.eq_ignore_ascii_case(header)) {
        return Secrecy::Plain;
    }
    if words.len() > 1 && ABOUT.contains(&last.as_str()) {
        return Secrecy::Plain;
    }
    if last == "tokens" {
        return Secrecy::UnlessNumber;
    }
    if PARTS.iter().any(|part| plain.contains(part)) || WORDS.contains(&plain) {
        return Secrecy::Secret;
    }
    for (at, word) in words.iter().enumerate() {
        let before = at.checked_sub(1).map_or("", |before| words[before].as_str());
        let secret = match word.as_str() {
            "key" => !PLAIN_KEYS.contains(&before),
            "keys" => SECRET_KEYS.contains(&before),
            "code" | "codes" => SECRET_CODES.contains(&before),
            word => WORDS.contains(&word),
        };
        if secret {
            return Secrecy::Secret;
        }
    }
    if matches!(plain, "code" | "state") { Secrecy::Guess } else { Secrecy::Plain }
}

/// Letters and digits in lower case.
fn folded(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The words of a name in lower case, split at non-letters and changes of case.
fn words(name: &str) -> Vec<String> {
    let chars: Vec<char> = name.chars().collect();
    let mut words = vec![String::new()];
    for (at, &c) in chars.iter().enumerate() {
        if !c.is_alphabetic() {
            words.push(String::new());
            continue;
        }
        let before = at.checked_sub(1).map(|before| chars[before]);
        let hump = c.is_uppercase()
            && (before.is_some_and(char::is_lowercase)
                || (before.is_some_and(char::is_uppercase)
                    && chars.get(at + 1).is_some_and(|next| next.is_lowercase())));
        if hump {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str) -> Secrecy {
        SecretNames::default().of(name)
    }

    #[test]
    fn names_are_matched_by_word() {
        for secret in [
            "token",
            "access_token",
            "accessToken",
            "accesstoken",
            "ACCESS-TOKEN",
            "api_key",
            "password",
            "userPassword",
            "user[password]",
            "password2",
            "pwd",
            "otp",
            "jwt",
            "auth",
            "session",
            "X-Access-Token",
            "X-Amz-Security-Token",
            "X-Goog-Api-Key",
            "Api-Key",
            "X-Vault-Token",
            "PRIVATE-TOKEN",
            "X-Gitlab-Token",
            "X-CSRF-Token",
            "X-Session-Id",
            "DPoP",
            "Authorization",
            "Proxy-Authorization",
            "Cookie",
            "connect.sid",
            "JSESSIONID",
            "PHPSESSID",
            "APIKey",
            "ssh_keys",
            "X-Amz-Signature",
            "sig",
            "code_verifier",
            "authCode",
            "one_time_pass_code",
            "cardNumber",
            "card[number]",
            "oauth_token",
            "key",
            "recovery-code",
            "X-Auth-Key",
            "tokens_secret",
            "aws.secret.access",
            "Ocp-Apim-Subscription-Key",
        ] {
            assert_eq!(of(secret), Secrecy::Secret, "{secret}");
        }
        for plain in [
            "",
            "-",
            "price",
            "monkey",
            "author",
            "authority",
            "keyboard",
            "turkey",
            "pinned",
            "passenger",
            "compass",
            "obsession",
            "country_code",
            "statusCode",
            "error-code",
            "keys",
            "token_type",
            "tokenExpiresAt",
            "auth_url",
            "session_timeout",
            "primary_key",
            "Surrogate-Key",
            "Idempotency-Key",
            "Sec-WebSocket-Key",
            "stateful",
            "us_state",
            "max_connections",
            "host",
            "content-length",
            "spinner",
            "design",
            "panel",
        ] {
            assert_eq!(of(plain), Secrecy::Plain, "{plain}");
        }
        assert_eq!(of("max_tokens"), Secrecy::UnlessNumber);
        assert_eq!((of("code"), of("State")), (Secrecy::Guess, Secrecy::Guess));
    }

    #[test]
    fn names_can_be_added_and_excepted() {
        let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let names =
            SecretNames::new(&list(&["customer", "tax-number", ""]), &list(&["API-Key", "state"]));
        for secret in ["customer", "customerName", "the_tax_number", "other_api_key"] {
            assert_eq!(names.of(secret), Secrecy::Secret, "{secret}");
        }
        for plain in ["api_key", "apikey", "state", "taxes", "number", "customers"] {
            assert_eq!(names.of(plain), Secrecy::Plain, "{plain}");
        }
    }
}
