//! The connection to NATS.

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;
use std::{fmt, io};

use async_nats::rustls::{self, CertificateError};
use async_nats::{Client, ConnectOptions};

use crate::FleetError;

/// Time limit for connecting and for requests.
const PATIENCE: Duration = Duration::from_secs(5);

/// Time between attempts to reconnect.
const AGAIN: Duration = Duration::from_millis(250);

/// Length of the seed of a key.
const SEED: usize = 58;

/// Messages that may wait for one subscriber. Beyond it NATS drops messages, and they are resent.
const WAITING: usize = 65_536;

/// How to connect to the NATS server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NatsSettings {
    /// Its URL: `nats://HOST:PORT`, or `tls://`; `USER:PASSWORD@` or `TOKEN@` before the host.
    pub url: String,
    /// PEM files of trusted certificates, in addition to the system's.
    pub ca_certificates: Vec<PathBuf>,
    /// Client certificate and key, PEM.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// An nkey for authentication.
    pub key: Option<NatsKey>,
}

/// An nkey. It is never shown.
#[derive(Clone, PartialEq, Eq)]
pub enum NatsKey {
    /// The text of a credentials file, as `nsc` writes it: a user's JWT and the seed of its key.
    Credentials(String),
    /// The seed of a user's key, `SU...`.
    Seed(String),
}

impl fmt::Debug for NatsKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Credentials(_) => "Credentials",
            Self::Seed(_) => "Seed",
        })
    }
}

impl NatsKey {
    /// Whether `seed` has the format of a user's seed. Only the server knows whether it is valid.
    #[must_use]
    pub fn is_seed(seed: &str) -> bool {
        let base32 = |byte: u8| byte.is_ascii_uppercase() || (b'2'..=b'7').contains(&byte);
        seed.len() == SEED && seed.starts_with("SU") && seed.bytes().all(base32)
    }
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

    /// Connects. A lost connection is restored, with unlimited attempts.
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
        let failed = |why: String| FleetError::Nats { server: self.shown(), why };
        options = match &self.key {
            Some(NatsKey::Seed(seed)) => options.nkey(seed.clone()),
            Some(NatsKey::Credentials(text)) => {
                options.credentials(text).map_err(|error| failed(error.to_string()))?
            }
            None => options,
        };
        for path in &self.ca_certificates {
            options = options.add_root_certificates(path.clone());
        }
        if let Some((certificate, key)) = &self.identity {
            options = options.add_client_certificate(certificate.clone(), key.clone());
        }
        let connecting = tokio::time::timeout(PATIENCE, options.connect(self.shown()));
        match connecting.await {
            Ok(Ok(client)) => Ok(client),
            Ok(Err(error)) => Err(failed(why_unsafe(&error).unwrap_or_else(|| error.to_string()))),
            Err(_) => Err(failed("it does not respond".to_owned())),
        }
    }

    /// An error of the connection.
    pub(crate) fn failed(&self, error: impl fmt::Display) -> FleetError {
        FleetError::Nats { server: self.shown(), why: error.to_string() }
    }
}

/// An explanation of TLS errors that the user can fix.
fn why_unsafe(error: &(dyn Error + 'static)) -> Option<String> {
    let of_io = |error: &io::Error| error.get_ref()?.downcast_ref::<rustls::Error>().cloned();
    let mut causes = std::iter::successors(Some(error), |&error| error.source());
    let found = causes.find_map(|error| {
        let direct = error.downcast_ref::<rustls::Error>().cloned();
        direct.or_else(|| error.downcast_ref::<io::Error>().and_then(of_io))
    })?;
    match found {
        rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer) => Some(
            "its certificate's issuer is not trusted: give the issuer's certificate with --nats-ca"
                .to_owned(),
        ),
        rustls::Error::InvalidCertificate(why) => {
            Some(format!("its certificate is not valid: {why}"))
        }
        rustls::Error::AlertReceived(alert) => Some(format!(
            "it aborted the TLS handshake ({alert:?}): if it requires a client \
             certificate, give one that it trusts with --nats-cert and --nats-key"
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_recognized_and_never_shown() {
        let seed = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY";
        assert!(NatsKey::is_seed(seed));
        for text in ["", "SU", &seed[1..], &seed.replacen("SU", "SA", 1), &seed.to_lowercase()] {
            assert!(!NatsKey::is_seed(text), "{text}");
        }
        let nats =
            NatsSettings { key: Some(NatsKey::Seed(seed.to_owned())), ..NatsSettings::default() };
        assert!(!format!("{nats:?}").contains("SUAC"));
    }

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
