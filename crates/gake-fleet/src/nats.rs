//! The connection to NATS.

use std::path::PathBuf;
use std::time::Duration;

use async_nats::{Client, ConnectOptions};

use crate::FleetError;

/// How long the server may take to answer at first.
const PATIENCE: Duration = Duration::from_secs(5);

/// Between two attempts to connect again.
const AGAIN: Duration = Duration::from_millis(250);

/// Messages that may wait for one reader. Past that NATS drops them, and they are sent again.
const WAITING: usize = 65_536;

/// How the NATS server is reached.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NatsSettings {
    /// Its URL: `nats://HOST:PORT`, or `tls://`; `USER:PASSWORD@` or `TOKEN@` before the host.
    pub url: String,
    /// PEM files that are trusted beside the system's.
    pub ca_certificates: Vec<PathBuf>,
    /// The certificate and its key with which this process introduces itself, PEM.
    pub identity: Option<(PathBuf, PathBuf)>,
}

impl NatsSettings {
    /// The server at `url`.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), ..Self::default() }
    }

    /// The URL without credentials.
    pub(crate) fn shown(&self) -> String {
        let (scheme, _, host) = self.parts();
        format!("{scheme}://{host}")
    }

    /// The URL's scheme, credentials, and the rest.
    fn parts(&self) -> (&str, Option<&str>, &str) {
        let (scheme, rest) = self.url.split_once("://").unwrap_or(("nats", &self.url));
        match rest.rsplit_once('@') {
            Some((credentials, host)) => (scheme, Some(credentials), host),
            None => (scheme, None, rest),
        }
    }

    /// Connects. A connection that is lost is made again for ever.
    pub(crate) async fn connect(&self, name: &str) -> Result<Client, FleetError> {
        let mut options = ConnectOptions::new()
            .name(name)
            .connection_timeout(PATIENCE)
            .ping_interval(Duration::from_secs(2))
            .subscription_capacity(WAITING)
            .reconnect_delay_callback(|_| AGAIN)
            .request_timeout(Some(PATIENCE));
        options = match self.parts().1.map(|text| text.split_once(':').ok_or(text)) {
            Some(Ok((user, password))) => {
                options.user_and_password(user.to_owned(), password.to_owned())
            }
            Some(Err(token)) => options.token(token.to_owned()),
            None => options,
        };
        for path in &self.ca_certificates {
            options = options.add_root_certificates(path.clone());
        }
        if let Some((certificate, key)) = &self.identity {
            options = options.add_client_certificate(certificate.clone(), key.clone());
        }
        let failed = |why: String| FleetError::Nats { server: self.shown(), why };
        let connecting = tokio::time::timeout(PATIENCE, options.connect(self.shown()));
        match connecting.await {
            Ok(Ok(client)) => Ok(client),
            Ok(Err(error)) => Err(failed(error.to_string())),
            Err(_) => Err(failed("it does not answer".to_owned())),
        }
    }

    /// Something that the connection refuses.
    pub(crate) fn failed(&self, error: impl std::fmt::Display) -> FleetError {
        FleetError::Nats { server: self.shown(), why: error.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_not_shown() {
        for (url, shown) in [
            ("nats://me:secret@h:4222", "nats://h:4222"),
            ("tls://token@h", "tls://h"),
            ("h:4222", "nats://h:4222"),
        ] {
            assert_eq!(NatsSettings::new(url).shown(), shown);
        }
    }
}
