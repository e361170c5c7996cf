//! MySQL's data source name: `[user[:password]@][tcp[(address)]]/database[?name=value...]`.

use std::time::Duration;

use gake_go::duration::GoDuration;
use gake_sql::{LoginTls, ScriptLogin, SqlKind};
use gake_wire::{StreamTlsOptions, percent_decoded};

use super::target::SqlTarget;

/// Parameters of the driver that have no effect here.
const WITHOUT_EFFECT: [&str; 17] = [
    "allowAllFiles",
    "allowCleartextPasswords",
    "allowFallbackToPlaintext",
    "allowNativePasswords",
    "allowOldPasswords",
    "checkConnLiveness",
    "columnsWithAlias",
    "compress",
    "connectionAttributes",
    "interpolateParams",
    "loc",
    "maxAllowedPacket",
    "readTimeout",
    "rejectReadOnly",
    "serverPubKey",
    "timeTruncate",
    "writeTimeout",
];

/// The name that `addTLS` gives to the settings of `loadTLS`.
pub(super) const CUSTOM: &str = "custom";

/// Parses a name. Errors do not contain its password.
pub(super) fn parse(dsn: &str, custom: Option<&StreamTlsOptions>) -> Result<SqlTarget, String> {
    let invalid = |why: &str| format!("invalid DSN: {why}");
    let mut target = SqlTarget::new(SqlKind::MySql, "127.0.0.1", 3306);
    if dsn.is_empty() {
        return Ok(target);
    }
    // A password and an address may contain slashes.
    let Some((before, after)) = dsn.rsplit_once('/') else {
        return Err(invalid("missing the slash separating the database name"));
    };
    let (credentials, address) = before.rsplit_once('@').unwrap_or(("", before));
    let (user, password) = credentials.split_once(':').unwrap_or((credentials, ""));
    take_address(&mut target, address)?;
    let (database, parameters) = after.split_once('?').unwrap_or((after, ""));
    target.login = ScriptLogin {
        user: user.to_owned(),
        password: password.to_owned(),
        database: Some(percent_decoded(database)).filter(|name| !name.is_empty()),
        ..ScriptLogin::default()
    };
    let (mut charset, mut collation) = (None, None);
    for parameter in parameters.split('&') {
        let Some((name, value)) = parameter.split_once('=') else { continue };
        let value = percent_decoded(&value.replace('+', " "));
        match name {
            "charset" => charset = value.split(',').next().map(str::to_owned),
            "collation" => collation = Some(value),
            "clientFoundRows" => target.login.found_rows = boolean(&value)?,
            "multiStatements" => target.login.several_statements = boolean(&value)?,
            "parseTime" => target.parses_time = boolean(&value)?,
            "timeout" => target.timeout = time(&value)?,
            "tls" => take_tls(&mut target, &value, custom)?,
            "strict" => return Err("strict mode has been removed. See https://github.com/go-sql-driver/mysql/wiki/strict-mode".to_owned()),
            known if WITHOUT_EFFECT.contains(&known) => {}
            variable => target.first.push(format!("SET {} = {value}", plain(variable)?)),
        }
    }
    if let Some(charset) = charset {
        let collation = collation.map(|name| plain(&name).map(|name| format!(" COLLATE {name}")));
        let collation = collation.transpose()?.unwrap_or_default();
        target.first.insert(0, format!("SET NAMES {}{collation}", plain(&charset)?));
    }
    Ok(target)
}

/// A name that can stand in a statement.
fn plain(name: &str) -> Result<&str, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_.@".contains(c);
    match !name.is_empty() && name.chars().all(is_plain) {
        true => Ok(name),
        false => Err(format!("invalid DSN: {name:?} is no name of a variable")),
    }
}

fn take_address(target: &mut SqlTarget, address: &str) -> Result<(), String> {
    let (net, rest) = match address.split_once('(') {
        Some((net, rest)) => (net, Some(rest)),
        None => (address, None),
    };
    match net {
        "" | "tcp" => {}
        "unix" => return Err("gake reaches MySQL by TCP, not by a Unix socket".to_owned()),
        other => return Err(format!("default addr for network '{other}' unknown")),
    }
    let Some(rest) = rest else { return Ok(()) };
    let Some(address) = rest.strip_suffix(')') else {
        let why = match rest.contains(')') {
            true => "did you forget to escape a param value?",
            false => "network address not terminated (missing closing brace)",
        };
        return Err(format!("invalid DSN: {why}"));
    };
    if !address.is_empty() {
        target.take_address(address)?;
    }
    Ok(())
}

fn take_tls(
    target: &mut SqlTarget,
    value: &str,
    custom: Option<&StreamTlsOptions>,
) -> Result<(), String> {
    let insecure = StreamTlsOptions { insecure: true, ..StreamTlsOptions::default() };
    let (when, own) = match value.to_lowercase().as_str() {
        "true" | "1" => (Some(LoginTls::Required), StreamTlsOptions::default()),
        "false" | "0" => (None, StreamTlsOptions::default()),
        "skip-verify" => (Some(LoginTls::Required), insecure),
        "preferred" => (Some(LoginTls::Offered), insecure),
        CUSTOM if custom.is_some() => {
            (Some(LoginTls::Required), custom.cloned().unwrap_or_default())
        }
        _ => return Err(format!("invalid value / unknown config name: {value}")),
    };
    target.login.tls = when;
    target.tls = own;
    Ok(())
}

fn boolean(value: &str) -> Result<bool, String> {
    match value {
        "1" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err(format!("invalid bool value: {value}")),
    }
}

fn time(value: &str) -> Result<Option<Duration>, String> {
    let time = GoDuration::parse_go(value).map_err(|error| error.to_string())?.to_std();
    Ok(Some(time).filter(|time| !time.is_zero()))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn a_name_has_all_parts() {
        let target = parse(
            "me:p/a@ss@tcp(db.test:3307)/my%20shop?multiStatements=true&tls=skip-verify&timeout=2s",
            None,
        );
        let target = target.unwrap();
        assert_eq!((target.host.as_str(), target.port), ("db.test", 3307));
        assert_eq!((target.login.user.as_str(), target.login.password.as_str()), ("me", "p/a@ss"));
        assert_eq!(target.login.database.as_deref(), Some("my shop"));
        assert!(target.login.several_statements && target.tls.insecure);
        assert_eq!(target.login.tls, Some(LoginTls::Required));
        assert_eq!(target.timeout, Some(Duration::from_secs(2)));
        let target = parse("root@tcp([::1])/?charset=utf8mb4,utf8&sql_mode=ANSI", None).unwrap();
        assert_eq!((target.host.as_str(), target.port), ("::1", 3306));
        assert_eq!(target.first, ["SET NAMES utf8mb4", "SET sql_mode = ANSI"]);
        assert_eq!(parse("/", None).unwrap().host, "127.0.0.1");
    }

    #[test]
    fn errors_of_names_hold_no_password() {
        let mut errors = String::new();
        for dsn in [
            "me:secret@tcp(h:3306)",
            "me:secret@tcp(h:3306/db",
            "me:secret@tcp(h:3306)x/db",
            "me:secret@udp/db",
            "me:secret@unix(/run/mysqld.sock)/db",
            "me:secret@tcp(h:port)/db",
            "me:secret@tcp(h)/db?tls=custom",
            "me:secret@tcp(h)/db?parseTime=yes",
            "me:secret@tcp(h)/db?a b=c",
        ] {
            let error = parse(dsn, None).unwrap_err();
            assert!(!error.contains("secret"), "{error}");
            errors += &format!("{error}\n");
        }
        expect![[r#"
            invalid DSN: missing the slash separating the database name
            invalid DSN: network address not terminated (missing closing brace)
            invalid DSN: did you forget to escape a param value?
            default addr for network 'udp' unknown
            gake reaches MySQL by TCP, not by a Unix socket
            dial tcp: lookup tcp/port: unknown port
            invalid value / unknown config name: custom
            invalid bool value: yes
            invalid DSN: "a b" is no name of a variable
        "#]]
        .assert_eq(&errors);
    }
}
