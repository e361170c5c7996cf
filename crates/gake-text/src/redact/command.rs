//! Command lines: which flags hold secrets, and a line without them.

use super::Redactor;

/// Flags of gake and of the tools it behaves as that take a user and password.
const CREDENTIALS: [&str; 4] = ["--user", "-a", "-A", "-P"];

/// Flags of these tools that take a header.
const HEADERS: [&str; 3] = ["-H", "--header", "-header"];

/// Flags whose values may hold secrets among other things.
const MAY_HOLD: &[&str] = &[
    "--user",
    "--header",
    "--data",
    "--form",
    "--proxy",
    "--sink",
    "--watch",
    "--reconcile",
    "--db",
    "--annotate",
    "--secret-source",
    "--env",
];

/// Whether errors about a long flag must not quote its value.
#[must_use]
pub fn may_hold_secrets(flag: &str) -> bool {
    MAY_HOLD.contains(&flag)
}

pub(super) fn line(words: &[String], redactor: &Redactor) -> String {
    let program = words.first().map_or("gake", |path| path.rsplit('/').next().unwrap_or("gake"));
    let mut shown = vec![program.to_owned()];
    let mut before = "";
    for word in words.iter().skip(1) {
        shown.push(quoted(&hidden(before, word, redactor)));
        before = word;
    }
    shown.join(" ")
}

/// Redacts a word of the command line; `before` is the word before it, of which it may be the
/// value.
fn hidden(before: &str, word: &str, redactor: &Redactor) -> String {
    let is_credentials = |flag: &str| {
        let name = flag.strip_prefix("--").unwrap_or_default();
        !redactor.is_off() && (CREDENTIALS.contains(&flag) || redactor.is_secret_name(name))
    };
    if is_credentials(before) && !word.starts_with('-') {
        return redactor.replacement(word.as_bytes());
    }
    if let Some((flag, value)) = word.split_once('=')
        && is_credentials(flag)
    {
        return format!("{flag}={}", redactor.replacement(value.as_bytes()));
    }
    if let (Some(flag @ ("-H" | "-F")), Some(value)) = (word.get(..2), word.get(2..))
        && !value.is_empty()
    {
        return format!("{flag}{}", hidden(flag, value, redactor));
    }
    if let Some(shown) = nats(before, word, redactor) {
        return shown;
    }
    if let Some((name, value)) = word.split_once(':')
        && HEADERS.contains(&before)
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    {
        let value = value.trim_start();
        let value = redactor.header(name, value.as_bytes());
        return format!("{name}: {}", value.text().0);
    }
    redactor.text(word).0
}

/// Redacts the URL of a NATS server, in which a token looks like a user name.
fn nats(before: &str, word: &str, redactor: &Redactor) -> Option<String> {
    let (flag, url) = match before {
        "--nats" => ("", word),
        _ => ("--nats=", word.strip_prefix("--nats=")?),
    };
    let (scheme, rest) = url.split_once("://")?;
    let (credentials, host) = rest.rsplit_once('@').filter(|_| !redactor.is_off())?;
    Some(format!("{flag}{scheme}://{}@{host}", redactor.replacement(credentials.as_bytes())))
}

/// Quotes a word unless it is plain.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+./:,@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::super::SecretNames;
    use super::*;

    fn redactor() -> Redactor {
        Redactor::new([1; 16], SecretNames::default())
    }

    fn shown(line: &[&str]) -> String {
        let words: Vec<_> = line.iter().map(|word| (*word).to_owned()).collect();
        line_of(&words)
    }

    fn line_of(words: &[String]) -> String {
        redactor().command_line(words).into_inner()
    }

    #[test]
    fn secrets_are_hidden() {
        let tag = |value: &str| redactor().tag(value.as_bytes()).into_inner();
        let s3 = tag("s3");
        let line = ["gake", "-H", "Authorization: Bearer s3", "-H", "X-Api-Key:s3", "-H", "A: b"];
        assert_eq!(
            shown(&line),
            format!("gake -H 'Authorization: Bearer {s3}' -H 'X-Api-Key: {s3}' -H 'A: b'")
        );
        let line = ["hey", "-a", "me:s3", "--user=me:s3", "http://me:s3@h:80/a@b?token=s3"];
        let user = tag("me:s3");
        assert_eq!(
            shown(&line),
            format!("hey -a {user} --user={user} 'http://me:{s3}@h:80/a@b?token={s3}'")
        );
        let line =
            ["gake", "--nats", "nats://s3@h:4222", "--nats=tls://me:s3@h", "--nats", "nats://h"];
        assert_eq!(
            shown(&line),
            format!("gake --nats nats://{s3}@h:4222 --nats=tls://{user}@h --nats nats://h")
        );
        let line =
            ["gake", "-d", r#"{"password":"s3"}"#, "--marker-secret", "s3", "--record-secrets"];
        let body = format!(r#"'{{"password":"{s3}"}}'"#);
        assert_eq!(shown(&line), format!("gake -d {body} --marker-secret {s3} --record-secrets"));
    }

    #[test]
    fn words_that_are_no_secrets_are_kept() {
        // `-u` is a number of users in gake and k6, not a user name.
        assert_eq!(shown(&["gake", "run", "s.js", "-u", "10"]), "gake run s.js -u 10");
        // A host and its port are not a header.
        assert_eq!(shown(&["gake", "localhost:8080"]), "gake localhost:8080");
    }

    #[test]
    fn forms_and_attached_values_are_read() {
        for line in ["-F|pin=4711", "-Fpin=4711", "--form|pin=4711", "--form=pin=4711"] {
            let words: Vec<_> = ["gake"].into_iter().chain(line.split('|')).collect();
            assert!(!shown(&words).contains("4711"), "{}", shown(&words));
        }
        let header = shown(&["gake", "-HX-Api-Key: s3"]);
        let s3 = redactor().tag(b"s3");
        assert_eq!(header, format!("gake '-HX-Api-Key: {}'", &*s3));
    }
}
