//! PostgreSQL's data source name: a URL, or `name=value` pairs.

use std::time::Duration;

use gake_sql::{LoginTls, SqlKind};
use gake_wire::{StreamTlsOptions, TlsIdentity, percent_decoded};
use url::Url;

use super::target::SqlTarget;

/// Parameters of the driver that have no effect here.
const WITHOUT_EFFECT: [&str; 14] = [
    "binary_parameters",
    "client_encoding",
    "datestyle",
    "disable_prepared_binary_result",
    "fallback_application_name",
    "krbspn",
    "krbsrvname",
    "load_balance_hosts",
    "passfile",
    "ssl_max_protocol_version",
    "ssl_min_protocol_version",
    "sslnegotiation",
    "sslsni",
    "target_session_attrs",
];

/// Reads a file of PEM.
pub(super) type ReadFile<'a> = &'a dyn Fn(&str) -> Result<String, String>;

/// Parses a name. Errors do not contain its password.
pub(super) fn parse(dsn: &str, file: ReadFile<'_>) -> Result<SqlTarget, String> {
    let is_url = ["postgres://", "postgresql://"].iter().any(|start| dsn.starts_with(start));
    let pairs = if is_url { of_url(dsn)? } else { of_pairs(dsn)? };
    let mut target = SqlTarget::new(SqlKind::Postgres, "localhost", 5432);
    // As Go's driver: encrypted unless the name says otherwise, by any certificate.
    let (mut mode, mut roots) = ("require".to_owned(), None);
    let (mut certificate, mut key) = (None, None);
    for (name, value) in pairs {
        match name.as_str() {
            "host" | "hostaddr" => target.take_host(value.split(',').next().unwrap_or_default()),
            "port" => target.take_port(value.split(',').next().unwrap_or_default())?,
            "user" => target.login.user = value,
            "password" => target.login.password = value,
            "dbname" | "database" => target.login.database = Some(value),
            "sslmode" => mode = value,
            "sslrootcert" => roots = Some(value).filter(|path| path != "system"),
            "sslcert" => certificate = Some(value),
            "sslkey" => key = Some(value),
            "sslinline" => {}
            "connect_timeout" => {
                let seconds = value.parse::<u64>().map_err(|_| {
                    format!("pq: wrong value for \"connect_timeout\": {value:?} is no number")
                })?;
                target.timeout = Some(Duration::from_secs(seconds)).filter(|_| seconds > 0);
            }
            known if WITHOUT_EFFECT.contains(&known) => {}
            _ => target.login.parameters.push((name, value)),
        }
    }
    if target.host.starts_with('/') || target.host.starts_with('@') {
        return Err("gake reaches PostgreSQL by TCP, not by a Unix socket".to_owned());
    }
    if target.login.user.is_empty() {
        target.login.user = "postgres".to_owned();
    }
    take_mode(&mut target, &mode, roots.as_deref(), file)?;
    if let (Some(certificate), Some(key)) = (certificate, key) {
        let (certificates, key) = (file(&certificate)?, file(&key)?);
        target.tls.identity = Some(TlsIdentity { certificates, key });
    }
    Ok(target)
}

fn take_mode(
    target: &mut SqlTarget,
    mode: &str,
    roots: Option<&str>,
    file: ReadFile<'_>,
) -> Result<(), String> {
    let authorities = roots.map(file).transpose()?.into_iter().collect();
    target.login.tls = match mode {
        "disable" | "allow" => None,
        "prefer" => Some(LoginTls::Offered),
        "require" | "verify-ca" | "verify-full" => Some(LoginTls::Required),
        _ => {
            return Err(format!(
                "pq: wrong value for \"sslmode\": {mode:?} is not supported; supported values are \
                 disable, allow, prefer, require, verify-full, or verify-ca"
            ));
        }
    };
    // With roots, `require` checks the certificate, too.
    let insecure = mode == "prefer" || (mode == "require" && roots.is_none());
    target.tls = StreamTlsOptions { authorities, insecure, ..StreamTlsOptions::default() };
    Ok(())
}

fn of_url(text: &str) -> Result<Vec<(String, String)>, String> {
    let url = Url::parse(text).map_err(|error| format!("pq: parse the URL: {error}"))?;
    let mut pairs = Vec::new();
    let mut add = |name: &str, value: String| {
        if !value.is_empty() {
            pairs.push((name.to_owned(), value));
        }
    };
    add("user", percent_decoded(url.username()));
    add("password", url.password().map(percent_decoded).unwrap_or_default());
    add("host", url.host_str().map(percent_decoded).unwrap_or_default());
    add("port", url.port().map(|port| port.to_string()).unwrap_or_default());
    add("dbname", percent_decoded(url.path().trim_start_matches('/')));
    for (name, value) in url.query_pairs() {
        add(&name, value.into_owned());
    }
    Ok(pairs)
}

/// `name=value` pairs; a value may be in quotes, with `\` before a quote.
fn of_pairs(text: &str) -> Result<Vec<(String, String)>, String> {
    let mut pairs = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let Some((name, after)) = rest.split_once('=') else {
            return Err("pq: missing \"=\" after a name in the connection string".to_owned());
        };
        let mut value = String::new();
        let mut chars = after.trim_start().char_indices().peekable();
        let after = after.trim_start();
        let is_quoted = after.starts_with('\'');
        if is_quoted {
            chars.next();
        }
        let mut end = after.len();
        let mut is_closed = !is_quoted;
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => value.extend(chars.next().map(|(_, c)| c)),
                '\'' if is_quoted => {
                    (end, is_closed) = (at + 1, true);
                    break;
                }
                c if !is_quoted && c.is_whitespace() => {
                    end = at;
                    break;
                }
                c => value.push(c),
            }
        }
        if !is_closed {
            return Err("pq: unterminated quoted string literal in connection string".to_owned());
        }
        pairs.push((name.trim().to_owned(), value));
        rest = after[end..].trim_start();
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn parsed(dsn: &str) -> Result<SqlTarget, String> {
        parse(dsn, &|path| Ok(format!("PEM of {path}")))
    }

    #[test]
    fn urls_and_pairs_are_read() {
        let url = parsed("postgres://me:p%40ss@h:5433/shop?sslmode=disable&search_path=a").unwrap();
        let pairs = "user=me password='p@ss' host=h port=5433 dbname=shop sslmode=disable \
                     search_path=a";
        for target in [url, parsed(pairs).unwrap()] {
            assert_eq!((target.host.as_str(), target.port), ("h", 5433));
            let login = &target.login;
            assert_eq!((login.user.as_str(), login.password.as_str()), ("me", "p@ss"));
            assert_eq!((login.database.as_deref(), login.tls), (Some("shop"), None));
            assert_eq!(login.parameters, [("search_path".to_owned(), "a".to_owned())]);
        }
        let target = parsed("host='my \\'host' sslrootcert=ca.pem sslmode=verify-full").unwrap();
        assert_eq!(target.host, "my 'host");
        assert_eq!(target.tls.authorities, ["PEM of ca.pem"]);
        let target = parsed("").unwrap();
        assert!(target.tls.insecure && target.login.tls == Some(LoginTls::Required));
        assert_eq!(parsed("postgres://[::1]/").unwrap().host, "::1");
    }

    #[test]
    fn errors_of_names_hold_no_password() {
        let mut errors = String::new();
        for dsn in [
            "postgres://me:secret@h:port/",
            "password=secret host",
            "password='secret",
            "password=secret sslmode=maybe",
            "password=secret host=/run/postgresql",
            "password=secret connect_timeout=soon",
        ] {
            let error = parsed(dsn).unwrap_err();
            assert!(!error.contains("secret"), "{error}");
            errors += &format!("{error}\n");
        }
        expect![[r#"
            pq: parse the URL: invalid port number
            pq: missing "=" after a name in the connection string
            pq: unterminated quoted string literal in connection string
            pq: wrong value for "sslmode": "maybe" is not supported; supported values are disable, allow, prefer, require, verify-full, or verify-ca
            gake reaches PostgreSQL by TCP, not by a Unix socket
            pq: wrong value for "connect_timeout": "soon" is no number
        "#]]
        .assert_eq(&errors);
    }
}
