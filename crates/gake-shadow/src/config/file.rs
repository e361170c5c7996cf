//! The TOML file, whose keys are the names of the flags; unknown keys are errors.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use http::Method;
use serde::Deserialize;

use super::error::{header_name, header_value, value};
use super::{
    Backend, BreakerConfig, Config, ConfigError, ForwardedPolicy, HeaderEdits, HostPolicy,
    PathGlob, PathRule, RuleVerdict, Sampling, ServerTls, Shadow, parse_marker,
};
use crate::exchange::Role;

const FILE_BYTES_MAX: u64 = 16 << 20;

/// Why a configuration file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigFileError {
    /// It cannot be read, or is too large.
    #[error(transparent)]
    Read(#[from] gake_files::InputError),
    /// It is not valid TOML, or has an unknown key.
    #[error("{}: {reason}", path.display())]
    Parse {
        /// The file's path.
        path: PathBuf,
        /// Line, column and error.
        reason: String,
    },
    /// A value is invalid.
    #[error("{}: {reason}", path.display())]
    Value {
        /// The file's path.
        path: PathBuf,
        /// The error.
        reason: ConfigError,
    },
}

impl Config {
    /// Reads a configuration file.
    ///
    /// # Errors
    /// When it cannot be read, or has an unknown key or an invalid value.
    pub fn from_file(path: &Path) -> Result<Self, ConfigFileError> {
        Self::parse(&gake_files::read_to_string(path, "settings", FILE_BYTES_MAX)?, path)
    }

    /// Parses the text of a configuration file; `path` is for error messages.
    ///
    /// # Errors
    /// When the text has an unknown key or an invalid value.
    pub fn parse(text: &str, path: &Path) -> Result<Self, ConfigFileError> {
        let file: ConfigFile = toml::from_str(text).map_err(|error| ConfigFileError::Parse {
            path: path.to_owned(),
            reason: error.to_string(),
        })?;
        file.config().map_err(|reason| ConfigFileError::Value { path: path.to_owned(), reason })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ConfigFile {
    listen: Option<SocketAddr>,
    threads: Option<usize>,
    tls_cert: Option<PathBuf>,
    tls_key: Option<PathBuf>,
    insecure: Option<bool>,
    cacert: Option<PathBuf>,
    admin: Option<SocketAddr>,
    forwarded: Option<ForwardedKey>,
    underscores_in_headers: Option<bool>,
    seed: Option<u64>,
    shadow_nice: Option<u8>,
    max_connections: Option<usize>,
    shadow_body_limit: Option<SizeText>,
    answer_body_limit: Option<SizeText>,
    head_timeout: Option<TimeText>,
    client_timeout: Option<TimeText>,
    connect_timeout: Option<TimeText>,
    first_byte_timeout: Option<TimeText>,
    idle_timeout: Option<TimeText>,
    master: BackendTable,
    #[serde(default)]
    shadow: Vec<ShadowTable>,
    /// Rules for every shadow, before its own.
    #[serde(default)]
    rule: Vec<RuleTable>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ForwardedKey {
    Append,
    Replace,
    Off,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct BackendTable {
    name: String,
    url: String,
    host: Option<String>,
    #[serde(default)]
    headers: EditsTable,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct EditsTable {
    #[serde(default)]
    remove: Vec<String>,
    #[serde(default)]
    set: toml::Table,
    #[serde(default)]
    suffix: toml::Table,
    /// Header → old value → new value.
    #[serde(default)]
    remap: toml::Table,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ShadowTable {
    name: String,
    /// Optional with `noise`: by default the master itself gets the copies.
    url: Option<String>,
    host: Option<String>,
    #[serde(default)]
    headers: EditsTable,
    #[serde(default)]
    noise: bool,
    percentage: Option<f64>,
    ramp: Option<TimeText>,
    sample: Option<String>,
    methods: Option<Vec<String>>,
    marker: Option<String>,
    queue: Option<usize>,
    queue_bytes: Option<SizeText>,
    connections: Option<usize>,
    rate: Option<f64>,
    breaker_failures: Option<u32>,
    breaker_pause: Option<TimeText>,
    timeout: Option<TimeText>,
    #[serde(default)]
    rule: Vec<RuleTable>,
}

#[derive(Deserialize, Clone)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RuleTable {
    allow: Option<String>,
    deny: Option<String>,
    methods: Option<Vec<String>>,
}

/// A duration in the syntax of the flags.
struct TimeText(Duration);

impl<'de> Deserialize<'de> for TimeText {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let time = gake_text::duration::parse_duration(&text).map_err(serde::de::Error::custom)?;
        if time.is_zero() {
            return Err(serde::de::Error::custom("a timeout must be longer than 0"));
        }
        Ok(Self(time))
    }
}

/// Bytes: a number, or a string with a unit.
struct SizeText(u64);

impl<'de> Deserialize<'de> for SizeText {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Either {
            Number(u64),
            Text(String),
        }
        match Either::deserialize(from)? {
            Either::Number(bytes) => Ok(Self(bytes)),
            Either::Text(text) => {
                gake_text::size::parse_size(&text).map(Self).map_err(serde::de::Error::custom)
            }
        }
    }
}

impl ConfigFile {
    fn config(self) -> Result<Config, ConfigError> {
        let mut config = Config::new(backend(
            self.master.name,
            &self.master.url,
            self.master.host,
            self.master.headers,
        )?);
        config.listen = self.listen.unwrap_or(config.listen);
        config.threads = self.threads.unwrap_or(0);
        config.admin = self.admin;
        config.seed = self.seed.unwrap_or(config.seed);
        config.shadow_nice = self.shadow_nice.unwrap_or(0);
        config.backend_tls.insecure = self.insecure.unwrap_or(false);
        config.backend_tls.cacert = self.cacert.into_iter().collect();
        config.tls = match (self.tls_cert, self.tls_key) {
            (Some(cert), key) => Some(ServerTls { key: key.unwrap_or_else(|| cert.clone()), cert }),
            (None, None) => None,
            (None, Some(_)) => return Err(value("tls-key", "", "tls-cert is missing")),
        };
        config.forwarded = match self.forwarded {
            None | Some(ForwardedKey::Append) => ForwardedPolicy::Append,
            Some(ForwardedKey::Replace) => ForwardedPolicy::Replace,
            Some(ForwardedKey::Off) => ForwardedPolicy::Off,
        };
        config.underscores_in_headers = self.underscores_in_headers.unwrap_or(false);
        let limits = &mut config.limits;
        limits.connections = self.max_connections.unwrap_or(limits.connections);
        limits.shadow_body = self.shadow_body_limit.map_or(limits.shadow_body, |size| size.0);
        limits.response_body = self.answer_body_limit.map_or(limits.response_body, |size| size.0);
        let timeouts = &mut config.timeouts;
        for (setting, given) in [
            (&mut timeouts.head, self.head_timeout),
            (&mut timeouts.client, self.client_timeout),
            (&mut timeouts.connect, self.connect_timeout),
            (&mut timeouts.first_byte, self.first_byte_timeout),
            (&mut timeouts.idle, self.idle_timeout),
        ] {
            if let Some(time) = given {
                *setting = time.0;
            }
        }
        for table in self.shadow {
            let shadow = shadow(table, &config.master, &self.rule)?;
            config.shadows.push(shadow);
        }
        Ok(config)
    }
}

fn shadow(
    table: ShadowTable,
    master: &Backend,
    common: &[RuleTable],
) -> Result<Shadow, ConfigError> {
    let mut shadow = match table.url {
        Some(url) => Shadow::new(backend(table.name, &url, table.host, table.headers)?),
        None if table.noise && (table.host.is_some() || !table.headers.is_empty()) => {
            let reason = "without a url the copies go to the master, with its host and headers";
            return Err(value("shadow", &table.name, reason));
        }
        None if table.noise => Shadow::repeat_of(master, &table.name),
        None => return Err(value("shadow", &table.name, "url is missing")),
    };
    if table.noise {
        shadow.role = Role::Secondary;
    }
    shadow.percentage = table.percentage.unwrap_or(shadow.percentage);
    shadow.ramp = table.ramp.map(|time| time.0);
    if let Some(text) = table.sample {
        shadow.sample = text.parse()?;
    }
    if let Some(names) = table.methods {
        shadow.methods = methods(&names)?;
    }
    if let Some(text) = table.marker {
        shadow.marker = parse_marker(&text)?;
    }
    shadow.queue = table.queue.unwrap_or(shadow.queue);
    shadow.queue_bytes = table.queue_bytes.map_or(shadow.queue_bytes, |size| size.0);
    shadow.connections = table.connections.unwrap_or(shadow.connections);
    shadow.rate = table.rate;
    let usual = shadow.breaker;
    shadow.breaker = BreakerConfig {
        failures: table.breaker_failures.unwrap_or(usual.failures),
        pause: table.breaker_pause.map_or(usual.pause, |time| time.0),
    };
    shadow.timeout = table.timeout.map_or(shadow.timeout, |time| time.0);
    for table in common.iter().chain(&table.rule) {
        shadow.rules.push(rule(table)?);
    }
    Ok(shadow)
}

fn rule(table: &RuleTable) -> Result<PathRule, ConfigError> {
    let (pattern, verdict) = match (&table.allow, &table.deny) {
        (Some(pattern), None) => (pattern, RuleVerdict::Allow),
        (None, Some(pattern)) => (pattern, RuleVerdict::Deny),
        _ => return Err(value("rule", "", "write either `allow` or `deny`, with a path")),
    };
    let methods = table.methods.as_deref().map(methods).transpose()?;
    Ok(PathRule { path: PathGlob::new(pattern), verdict, methods })
}

fn backend(
    name: String,
    url: &str,
    host: Option<String>,
    edits: EditsTable,
) -> Result<Backend, ConfigError> {
    let mut backend = Backend::new(&name, url)?;
    if let Some(text) = host {
        backend.host = text.parse()?;
    }
    backend.edits = edits.edits()?;
    Ok(backend)
}

impl EditsTable {
    fn is_empty(&self) -> bool {
        self.remove.is_empty()
            && [&self.set, &self.suffix, &self.remap].iter().all(|table| table.is_empty())
    }

    fn edits(self) -> Result<HeaderEdits, ConfigError> {
        let mut edits = HeaderEdits::default();
        for name in &self.remove {
            edits.remove.push(header_name(name)?);
        }
        for (name, text) in &self.set {
            edits.set.push((header_name(name)?, header_value(string(name, text)?)?));
        }
        for (name, text) in &self.suffix {
            let text = string(name, text)?;
            // Any suffix of a valid value must itself be valid.
            header_value(text)?;
            edits.suffix.push((header_name(name)?, text.to_owned()));
        }
        for (name, table) in &self.remap {
            let table = table
                .as_table()
                .ok_or_else(|| value("remap", name, "write a table of old and new values"))?;
            for (old, new) in table {
                let new = header_value(string(name, new)?)?;
                edits.remap.push((header_name(name)?, header_value(old)?, new));
            }
        }
        Ok(edits)
    }
}

impl FromStr for HostPolicy {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        Ok(match text {
            "preserve" => Self::Preserve,
            "backend" => Self::Backend,
            literal => Self::Literal(header_value(literal)?),
        })
    }
}

impl FromStr for Sampling {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        Ok(match text.split_once(':') {
            None if text == "random" => Self::Random,
            None if text == "path" => Self::Path,
            Some(("header", name)) => Self::Header(header_name(name)?),
            Some(("cookie", name)) if !name.is_empty() => Self::Cookie(name.to_owned()),
            _ => {
                let reason = "write random, path, header:NAME or cookie:NAME";
                return Err(value("sample", text, reason));
            }
        })
    }
}

/// Parses method names; `all` means every method, `safe` the safe ones (RFC 9110, section 9.2.1).
///
/// # Errors
/// When a name is not a valid method.
pub fn methods(names: &[String]) -> Result<Vec<Method>, ConfigError> {
    let safe = [Method::GET, Method::HEAD, Method::OPTIONS, Method::TRACE];
    let unsafe_ones = [Method::POST, Method::PUT, Method::PATCH, Method::DELETE];
    let mut methods = Vec::new();
    for name in names {
        match name.trim().to_ascii_uppercase().as_str() {
            "ALL" => methods.extend(safe.iter().chain(&unsafe_ones).cloned()),
            "SAFE" => methods.extend(safe.iter().cloned()),
            name => methods.push(
                Method::from_bytes(name.as_bytes())
                    .map_err(|error| value("method", name, &error))?,
            ),
        }
    }
    Ok(methods)
}

fn string<'a>(name: &str, text: &'a toml::Value) -> Result<&'a str, ConfigError> {
    text.as_str().ok_or_else(|| value("header", name, "its value must be a string"))
}
