//! The URL of a database: protocol, address, credentials.

use std::fmt;
use std::path::PathBuf;

/// The protocol of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SqlKind {
    /// MySQL and MariaDB.
    MySql,
    /// PostgreSQL.
    Postgres,
}

/// `mysql://USER:PASSWORD@HOST:PORT/DATABASE`, or `postgres://`. Without a host, the path is a Unix
/// socket, and the option `dbname` names the database.
#[derive(Clone, PartialEq, Eq)]
pub struct Dsn {
    pub(super) kind: SqlKind,
    pub(super) address: ServerAddress,
    pub(super) user: String,
    /// Never shown.
    pub(super) password: String,
    pub(super) database: Option<String>,
    pub(super) tls: TlsMode,
    /// Whether it is a script's: as with drivers of Go, any server may have the password, and errors
    /// have their texts.
    pub(super) is_script: bool,
    /// More of MySQL's capabilities.
    pub(super) capabilities: u32,
    /// More of PostgreSQL's parameters.
    pub(super) parameters: Vec<(String, String)>,
}

/// A login of a script, which opens connections and starts TLS by itself.
#[derive(Clone, Default)]
pub struct ScriptLogin {
    /// The user.
    pub user: String,
    /// Never shown.
    pub password: String,
    /// The database; PostgreSQL's default is the user's.
    pub database: Option<String>,
    /// Whether to encrypt: never, if offered, always.
    pub tls: Option<LoginTls>,
    /// MySQL: whether a text may have several statements.
    pub several_statements: bool,
    /// MySQL: whether an update counts rows that it found, changed or not.
    pub found_rows: bool,
    /// PostgreSQL: more parameters of the session.
    pub parameters: Vec<(String, String)>,
}

/// When a login is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginTls {
    /// If the server offers it.
    Offered,
    /// Always.
    Required,
    /// Always, with a certificate for the host that the system trusts.
    Verified,
}

impl fmt::Debug for ScriptLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptLogin").field("user", &self.user).finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum TlsMode {
    /// If a server on another machine offers it; the certificate is not checked.
    #[default]
    Offered,
    /// Never.
    Off,
    /// Always; the certificate is not checked.
    Required,
    /// Always, with a certificate for the host that the system, or this PEM file, trusts.
    Verified(Option<PathBuf>),
}

/// The address of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ServerAddress {
    /// A host by name or address, and a port.
    Host(String, u16),
    /// A Unix socket.
    Socket(PathBuf),
}

/// Why a DSN is invalid. Never contains the password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DsnError {
    /// Not a URL.
    #[error("write it as {0}://USER:PASSWORD@HOST:PORT, or {0}://USER@/PATH/OF/SOCKET")]
    Form(&'static str),
    /// An invalid port.
    #[error("its port is not a number from 1 to 65535")]
    Port,
    /// `%` without two hexadecimal digits, or not UTF-8.
    #[error("its user or password is not percent-encoded: write % as %25, @ as %40")]
    Encoding,
    /// An unknown option.
    #[error(
        "its options are sslmode=disable, prefer, require or verify-full, sslrootcert=FILE and \
         dbname=NAME"
    )]
    Option,
}

impl SqlKind {
    fn scheme(self) -> &'static str {
        match self {
            Self::MySql => "mysql",
            Self::Postgres => "postgres",
        }
    }

    fn port(self) -> u16 {
        match self {
            Self::MySql => 3306,
            Self::Postgres => 5432,
        }
    }
}

impl Dsn {
    /// Parses a DSN after the scheme and its colon.
    ///
    /// # Errors
    /// If it is not a URL, or has an unknown option.
    pub fn parse(kind: SqlKind, rest: &str) -> Result<Self, DsnError> {
        let form = DsnError::Form(kind.scheme());
        let rest = rest.strip_prefix("//").ok_or_else(|| form.clone())?;
        let (rest, options) = rest.split_once('?').unwrap_or((rest, ""));
        let DsnOptions { tls, database: named } = self::options(options)?;
        // A password may contain unencoded slashes; a host contains no @.
        let (credentials, address) = rest.rsplit_once('@').unwrap_or(("", rest));
        let (user, password) = credentials.split_once(':').unwrap_or((credentials, ""));
        let (user, password) = (decoded(user)?, decoded(password)?);
        let (authority, path) = match address.find('/') {
            Some(at) => address.split_at(at),
            None => (address, ""),
        };
        let default_user = match kind {
            SqlKind::MySql => "root",
            SqlKind::Postgres => "postgres",
        };
        let user = if user.is_empty() { default_user.to_owned() } else { user };
        let database = path.trim_matches('/');
        let (address, database) = match authority {
            "" if path.len() > 1 => (ServerAddress::Socket(socket(kind, path)), ""),
            "" => return Err(form),
            authority => (host(kind, authority, form)?, database),
        };
        let in_path = Some(database).filter(|name| !name.is_empty()).map(decoded).transpose()?;
        let database = named.or(in_path);
        let (is_script, capabilities, parameters) = (false, 0, Vec::new());
        Ok(Self {
            kind,
            address,
            user,
            password,
            database,
            tls,
            is_script,
            capabilities,
            parameters,
        })
    }

    /// The DSN of a script's connection to a server at `host`.
    #[must_use]
    pub fn of_script(kind: SqlKind, host: &str, port: u16, login: ScriptLogin) -> Self {
        const FOUND_ROWS: u32 = 0x2;
        const MULTI_STATEMENTS: u32 = 0x1_0000;
        const MULTI_RESULTS: u32 = 0x6_0000;
        let flag = |is_set: bool, flag: u32| if is_set { flag } else { 0 };
        let capabilities = MULTI_RESULTS
            | flag(login.several_statements, MULTI_STATEMENTS)
            | flag(login.found_rows, FOUND_ROWS);
        Self {
            kind,
            address: ServerAddress::Host(host.to_owned(), port),
            user: login.user,
            password: login.password,
            database: login.database,
            tls: match login.tls {
                None => TlsMode::Off,
                Some(LoginTls::Offered) => TlsMode::Offered,
                Some(LoginTls::Required) => TlsMode::Required,
                Some(LoginTls::Verified) => TlsMode::Verified(None),
            },
            is_script: true,
            capabilities,
            parameters: login.parameters,
        }
    }

    /// The protocol.
    pub fn kind(&self) -> SqlKind {
        self.kind
    }

    /// The database, if specified.
    pub fn database(&self) -> Option<&str> {
        self.database.as_deref()
    }

    /// Whether to encrypt a connection; `offered`: the server supports it.
    ///
    /// # Errors
    /// When encryption is required, and the server does not offer it.
    pub(super) fn encrypts(&self, offered: bool) -> Result<bool, String> {
        match (&self.address, &self.tls) {
            (ServerAddress::Socket(_), _) | (_, TlsMode::Off) => Ok(false),
            (_, TlsMode::Offered) => Ok(offered && (self.is_script || !self.is_here())),
            (_, TlsMode::Required | TlsMode::Verified(_)) if offered => Ok(true),
            _ if self.is_script => Err(match self.kind {
                SqlKind::MySql => "TLS requested but server does not support TLS".to_owned(),
                SqlKind::Postgres => "pq: SSL is not enabled on the server".to_owned(),
            }),
            _ => Err("the server offers no TLS, which sslmode requires".to_owned()),
        }
    }

    /// Whether the password may be sent in the clear: no eavesdropper, no impostor.
    pub(super) fn is_private(&self) -> bool {
        self.is_script || self.is_here() || matches!(self.tls, TlsMode::Verified(_))
    }

    /// Whether the server is on this machine, without resolving names.
    pub(super) fn is_here(&self) -> bool {
        match &self.address {
            ServerAddress::Socket(_) => true,
            ServerAddress::Host(host, _) => {
                host == "localhost"
                    || host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
            }
        }
    }
}

struct DsnOptions {
    tls: TlsMode,
    database: Option<String>,
}

/// Parses the options, named as in the clients of PostgreSQL and MySQL.
fn options(text: &str) -> Result<DsnOptions, DsnError> {
    let (mut mode, mut roots, mut database) = (None, None, None);
    for option in text.split('&').filter(|option| !option.is_empty()) {
        let (name, value) = option.split_once('=').ok_or(DsnError::Option)?;
        match name.to_ascii_lowercase().as_str() {
            "sslmode" | "ssl-mode" => mode = Some(value.to_ascii_lowercase()),
            "sslrootcert" | "ssl-ca" => roots = Some(PathBuf::from(decoded(value)?)),
            "dbname" => database = Some(decoded(value)?),
            _ => return Err(DsnError::Option),
        }
    }
    let tls = match (mode.as_deref(), roots) {
        (None | Some("verify-full" | "verify_identity"), roots @ Some(_)) => {
            TlsMode::Verified(roots)
        }
        (Some("verify-full" | "verify_identity"), None) => TlsMode::Verified(None),
        (None | Some("prefer" | "preferred"), None) => TlsMode::Offered,
        (Some("disable" | "disabled"), None) => TlsMode::Off,
        (Some("require" | "required"), None) => TlsMode::Required,
        _ => return Err(DsnError::Option),
    };
    Ok(DsnOptions { tls, database })
}

fn host(kind: SqlKind, authority: &str, form: DsnError) -> Result<ServerAddress, DsnError> {
    // Go's driver has `user:password@tcp(host:3306)/`.
    if authority.contains(['(', ')', ' ']) {
        return Err(form);
    }
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']').ok_or_else(|| form.clone())?,
        None => match authority.find(':') {
            Some(at) => authority.split_at(at),
            None => (authority, ""),
        },
    };
    let port = match port.strip_prefix(':') {
        Some(port) => port.parse().ok().filter(|port| *port > 0).ok_or(DsnError::Port)?,
        None if port.is_empty() => kind.port(),
        None => return Err(form),
    };
    if host.is_empty() {
        return Err(form);
    }
    Ok(ServerAddress::Host(host.to_owned(), port))
}

/// The path of a socket. For PostgreSQL, it may be the directory.
fn socket(kind: SqlKind, path: &str) -> PathBuf {
    let path = PathBuf::from(path);
    match kind {
        SqlKind::Postgres if path.is_dir() => path.join(".s.PGSQL.5432"),
        _ => path,
    }
}

fn decoded(text: &str) -> Result<String, DsnError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = rest.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let is_hex = |text: &&str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let digits = digits.filter(is_hex).ok_or(DsnError::Encoding)?;
        bytes.push(u8::from_str_radix(digits, 16).map_err(|_| DsnError::Encoding)?);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).map_err(|_| DsnError::Encoding)
}

impl fmt::Display for Dsn {
    /// The address, without credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = self.kind.scheme();
        match &self.address {
            ServerAddress::Host(host, port) if host.contains(':') => {
                write!(f, "{scheme}://[{host}]:{port}")
            }
            ServerAddress::Host(host, port) => write!(f, "{scheme}://{host}:{port}"),
            ServerAddress::Socket(path) => write!(f, "{scheme}://{}", path.display()),
        }
    }
}

impl fmt::Debug for Dsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Dsn({self})")
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn mysql(rest: &str) -> Result<Dsn, DsnError> {
        Dsn::parse(SqlKind::MySql, rest)
    }

    #[test]
    fn a_dsn_is_parsed_and_shown_without_credentials() {
        let dsn = mysql("//me:p%40%2fss@db.example:3307/shop").unwrap();
        assert_eq!((dsn.user.as_str(), dsn.password.as_str()), ("me", "p@/ss"));
        assert_eq!(dsn.to_string(), "mysql://db.example:3307");
        assert!(!format!("{dsn:?}").contains("ss@"));
        assert!(!dsn.is_here());
        let dsn = mysql("//[::1]").unwrap();
        assert_eq!((dsn.to_string().as_str(), dsn.user.as_str()), ("mysql://[::1]:3306", "root"));
        assert!(dsn.is_here());
        let dsn = mysql("//root@/run/mysqld/mysqld.sock").unwrap();
        assert_eq!(dsn.address, ServerAddress::Socket("/run/mysqld/mysqld.sock".into()));
        assert_eq!(dsn.database, None);
        let dsn = mysql("//root@/run/mysqld/mysqld.sock?dbname=my%20shop").unwrap();
        assert_eq!(dsn.database.as_deref(), Some("my shop"));
        let dsn = Dsn::parse(SqlKind::Postgres, "//me@h/shop?sslmode=disable").unwrap();
        assert_eq!(dsn.database.as_deref(), Some("shop"));
        assert_eq!(dsn.address, ServerAddress::Host("h".to_owned(), 5432));
    }

    #[test]
    fn options_determine_encryption() {
        let encrypts = |rest: &str| {
            let dsn = mysql(rest).unwrap();
            (dsn.encrypts(true).ok(), dsn.encrypts(false).ok(), dsn.is_private())
        };
        assert_eq!(encrypts("//me@h"), (Some(true), Some(false), false));
        assert_eq!(encrypts("//me@localhost"), (Some(false), Some(false), true));
        assert_eq!(encrypts("//me@h?sslmode=disable"), (Some(false), Some(false), false));
        assert_eq!(encrypts("//me@localhost?ssl-mode=REQUIRED"), (Some(true), None, true));
        assert_eq!(encrypts("//me@h?sslmode=require"), (Some(true), None, false));
        assert_eq!(encrypts("//me@h?sslmode=verify-full"), (Some(true), None, true));
        assert_eq!(encrypts("//me@/socket?sslmode=require"), (Some(false), Some(false), true));
        let dsn = mysql("//me@h?ssl-ca=/etc/my%20ca.pem").unwrap();
        assert_eq!(dsn.tls, TlsMode::Verified(Some("/etc/my ca.pem".into())));
    }

    #[test]
    fn errors_do_not_contain_the_password() {
        let mut errors = String::new();
        for rest in [
            "me:secret@h",
            "//me:secret@tcp(h:3306)/db",
            "//me:secret@",
            "//me:secret@h:0",
            "//me:secret@h:http",
            "//me:secret%@h",
            "//me:secret%+f@h",
            "//me:secret%ff@h",
            "//me:secret@h?sslmode=sometimes",
            "//me:secret@h?sslmode=require&sslrootcert=ca.pem",
            "//me:secret@h?charset=utf8",
            "//me:secret@[::1",
        ] {
            let error = mysql(rest).unwrap_err().to_string();
            assert!(!error.contains("secret"), "{rest}: {error}");
            errors += &format!("{error}\n");
        }
        expect![[r#"
            write it as mysql://USER:PASSWORD@HOST:PORT, or mysql://USER@/PATH/OF/SOCKET
            write it as mysql://USER:PASSWORD@HOST:PORT, or mysql://USER@/PATH/OF/SOCKET
            write it as mysql://USER:PASSWORD@HOST:PORT, or mysql://USER@/PATH/OF/SOCKET
            its port is not a number from 1 to 65535
            its port is not a number from 1 to 65535
            its user or password is not percent-encoded: write % as %25, @ as %40
            its user or password is not percent-encoded: write % as %25, @ as %40
            its user or password is not percent-encoded: write % as %25, @ as %40
            its options are sslmode=disable, prefer, require or verify-full, sslrootcert=FILE and dbname=NAME
            its options are sslmode=disable, prefer, require or verify-full, sslrootcert=FILE and dbname=NAME
            its options are sslmode=disable, prefer, require or verify-full, sslrootcert=FILE and dbname=NAME
            write it as mysql://USER:PASSWORD@HOST:PORT, or mysql://USER@/PATH/OF/SOCKET
        "#]].assert_eq(&errors);
    }
}
