//! Where a script's statements go, and how connections to it begin.

use std::time::Duration;

use gake_sql::{Dsn, ScriptLogin, SqlKind};
use gake_wire::StreamTlsOptions;

/// A server and a login.
#[derive(Debug, Clone)]
pub(super) struct SqlTarget {
    pub(super) kind: SqlKind,
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) login: ScriptLogin,
    pub(super) tls: StreamTlsOptions,
    /// The time that connecting may take.
    pub(super) timeout: Option<Duration>,
    /// Statements that come first.
    pub(super) first: Vec<String>,
    /// Whether MySQL's times are times, and not bytes.
    pub(super) parses_time: bool,
}

impl SqlTarget {
    pub(super) fn new(kind: SqlKind, host: &str, port: u16) -> Self {
        Self {
            kind,
            host: host.to_owned(),
            port,
            login: ScriptLogin::default(),
            tls: StreamTlsOptions::default(),
            timeout: None,
            first: Vec::new(),
            parses_time: false,
        }
    }

    pub(super) fn dsn(&self) -> Dsn {
        Dsn::of_script(self.kind, &self.host, self.port, self.login.clone())
    }

    /// Takes `host:port`, or a host.
    pub(super) fn take_address(&mut self, address: &str) -> Result<(), String> {
        match address.rsplit_once(':') {
            Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
                self.take_host(host);
                self.take_port(port)
            }
            _ => {
                self.take_host(address);
                Ok(())
            }
        }
    }

    pub(super) fn take_host(&mut self, host: &str) {
        self.host = host.trim_matches(['[', ']']).to_owned();
    }

    pub(super) fn take_port(&mut self, port: &str) -> Result<(), String> {
        self.port =
            port.parse().map_err(|_| format!("dial tcp: lookup tcp/{port}: unknown port"))?;
        Ok(())
    }
}
