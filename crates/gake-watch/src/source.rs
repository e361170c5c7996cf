//! Sources of the target's levels.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use gake_core::record::MACHINE;
use gake_sql::{Dsn, DsnError, SqlKind};
use gake_text::redact::{Redacted, Redactor, SecretNames};

/// A source of levels, as the user writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchSource {
    /// `pid:1234`: a process of this machine.
    Process(i32),
    /// `port:8080`: the processes of this machine that listen on the port.
    Port(u16),
    /// `prometheus:URL`, with optional metrics after a `#`; by default the known ones.
    Prometheus {
        /// The endpoint.
        url: String,
        /// Names of metrics, optionally with labels in braces.
        metrics: Vec<String>,
    },
    /// `actuator:URL`: the base of Spring Boot Actuator, `http://host:8080/actuator`.
    Actuator(String),
    /// `mysql://...` or `postgres://...`: a database behind the target.
    Database(Dsn),
    /// The generator's machine, read in every run; users cannot write it.
    Machine {
        /// The addresses under load.
        targets: Vec<SocketAddr>,
        /// Whether to read what the targets use when they are processes of this machine.
        usage: bool,
        /// Whether the first reading has what they use, for which their search takes thousands of
        /// system calls; else the second, which follows soon.
        at_first: bool,
        /// Connections that open without a slow search for a local port, if there is such a limit.
        ports: Option<usize>,
    },
}

impl WatchSource {
    /// Whether it is read from this machine, which is fast.
    #[must_use]
    pub fn is_local(&self) -> bool {
        matches!(self, Self::Process(_) | Self::Port(_) | Self::Machine { .. })
    }

    /// Whether it has counters to read right before and after a run: the growth in a short run may
    /// fall between two regular readings.
    #[must_use]
    pub fn has_counters(&self) -> bool {
        matches!(self, Self::Database(_) | Self::Machine { .. })
    }
}

/// Why a text is not a source.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// Unknown kind.
    #[error(
        "it is not a valid source: write pid:1234, port:8080, prometheus:http://host:9100/metrics, \
         actuator:http://host:8080/actuator, mysql://USER:PASSWORD@HOST or \
         postgres://USER:PASSWORD@HOST"
    )]
    Kind,
    /// Not a valid number.
    #[error("{kind}:{value}: {value:?} is not a valid {what}")]
    Number {
        /// The kind of source.
        kind: &'static str,
        /// The text as written.
        value: String,
        /// The expected kind of number.
        what: &'static str,
    },
    /// Not a URL.
    #[error("{0:?} is not a valid URL: write it with http:// or https://")]
    Url(Redacted),
    /// Not a valid database URL.
    #[error("the database to watch: {0}")]
    Dsn(#[from] DsnError),
}

impl FromStr for WatchSource {
    type Err = SourceError;

    fn from_str(text: &str) -> Result<Self, SourceError> {
        let (kind, rest) = text.split_once(':').ok_or(SourceError::Kind)?;
        match kind {
            "pid" => match rest.parse() {
                Ok(pid) if pid > 0 => Ok(Self::Process(pid)),
                _ => Err(number("pid", rest, "process id")),
            },
            "port" => match rest.parse() {
                Ok(port) if port > 0 => Ok(Self::Port(port)),
                _ => Err(number("port", rest, "port")),
            },
            "prometheus" => {
                let (url, metrics) = rest.split_once('#').unwrap_or((rest, ""));
                Ok(Self::Prometheus { url: checked(url)?, metrics: split(metrics) })
            }
            "actuator" => Ok(Self::Actuator(checked(rest)?.trim_end_matches('/').to_owned())),
            "mysql" | "mariadb" => Ok(Self::Database(Dsn::parse(SqlKind::MySql, rest)?)),
            "postgres" | "postgresql" => Ok(Self::Database(Dsn::parse(SqlKind::Postgres, rest)?)),
            _ => Err(SourceError::Kind),
        }
    }
}

fn number(kind: &'static str, value: &str, what: &'static str) -> SourceError {
    SourceError::Number { kind, value: value.to_owned(), what }
}

fn checked(url: &str) -> Result<String, SourceError> {
    let is_http = url.starts_with("http://") || url.starts_with("https://");
    if is_http { Ok(url.to_owned()) } else { Err(SourceError::Url(without_secrets(url))) }
}

/// Splits names at commas outside of braces.
fn split(names: &str) -> Vec<String> {
    let mut depth = 0_u32;
    let parts = names.split(|c| {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    parts.map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

impl fmt::Display for WatchSource {
    /// The name in readings: a URL is without its user, its password and other secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process(pid) => write!(f, "pid:{pid}"),
            Self::Port(port) => write!(f, "port:{port}"),
            Self::Prometheus { url, .. } => write!(f, "prometheus:{}", without_secrets(url)),
            Self::Actuator(url) => write!(f, "actuator:{}", without_secrets(url)),
            Self::Database(dsn) => dsn.fmt(f),
            Self::Machine { .. } => f.write_str(MACHINE),
        }
    }
}

/// A URL without its user, with masks for the secrets in its query.
pub(crate) fn without_secrets(url: &str) -> Redacted {
    let authority =
        url.split_once("://").map_or("", |(_, rest)| rest.split('/').next().unwrap_or_default());
    let plain = match authority.rsplit_once('@') {
        Some((user, _)) => url.replacen(&format!("{user}@"), "", 1),
        None => url.to_owned(),
    };
    Redactor::masking(SecretNames::default()).target(&plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_parsed_and_shown() {
        for (text, shown) in [
            ("pid:12", "pid:12"),
            ("port:8080", "port:8080"),
            ("prometheus:http://h:9100/metrics#a,b{x=\"1,2\"}", "prometheus:http://h:9100/metrics"),
            ("prometheus:http://me:pw@h/m", "prometheus:http://h/m"),
            ("prometheus:http://h/m?token=pw&n=1", "prometheus:http://h/m?token=[redacted]&n=1"),
            ("actuator:https://h/actuator/", "actuator:https://h/actuator"),
            ("mysql://me:pw@h:3307", "mysql://h:3307"),
            ("postgresql://me:pw@h/shop", "postgres://h:5432"),
        ] {
            assert_eq!(text.parse::<WatchSource>().unwrap().to_string(), shown, "{text}");
        }
        let Ok(WatchSource::Prometheus { metrics, .. }) =
            "prometheus:http://h#a,b{x=\"1,2\"}".parse()
        else {
            panic!("not a prometheus source");
        };
        assert_eq!(metrics, ["a", "b{x=\"1,2\"}"]);
    }

    #[test]
    fn invalid_sources() {
        for (text, expected) in [
            ("8080", "port:8080"),
            ("pid:x", "process id"),
            ("pid:-1", "process id"),
            ("port:0", "port"),
            ("port:70000", "port"),
            ("prometheus:host/metrics", "http://"),
            ("redis:http://h", "it is not a valid source"),
            ("oracle://me:pw@h", "it is not a valid source"),
            ("mysql://me:pw@h:0", "port"),
            ("mysql:me:pw@h", "mysql://USER"),
        ] {
            let error = text.parse::<WatchSource>().unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
            assert!(!error.contains("pw"), "{text}: {error}");
        }
    }
}
