//! The address of a sink, as the user writes it: `KIND=ADDRESS?OPTION=VALUE&...`.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;
use url::{Url, form_urlencoded};

use crate::carrier::{self, NatsCarrier};

const WEB: &[&str] = &["http", "https"];

/// The kind of a destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SinkKind {
    /// InfluxDB, by its line protocol.
    InfluxDb,
    /// Prometheus remote write 1.0.
    RemoteWrite,
    /// A page that Prometheus scrapes.
    Prometheus,
    /// OpenTelemetry metrics over HTTP.
    Otlp,
    /// OpenTelemetry metrics over gRPC.
    OtlpGrpc,
    /// StatsD, with Datadog's tags.
    StatsD,
    /// Graphite's plain text.
    Graphite,
    /// JSON messages on a NATS subject.
    Nats,
    /// Lines of JSON in a file.
    Json,
    /// CSV in a file.
    Csv,
    /// Parquet in a file.
    Parquet,
    /// Annotations in Grafana: only events.
    Grafana,
}

impl SinkKind {
    const ALL: [Self; 12] = [
        Self::InfluxDb,
        Self::RemoteWrite,
        Self::Prometheus,
        Self::Otlp,
        Self::OtlpGrpc,
        Self::StatsD,
        Self::Graphite,
        Self::Nats,
        Self::Json,
        Self::Csv,
        Self::Parquet,
        Self::Grafana,
    ];

    /// The name before the `=`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::InfluxDb => "influxdb",
            Self::RemoteWrite => "prometheus-rw",
            Self::Prometheus => "prometheus",
            Self::Otlp => "otlp",
            Self::OtlpGrpc => "otlp-grpc",
            Self::StatsD => "statsd",
            Self::Graphite => "graphite",
            Self::Nats => "nats",
            Self::Json => "json",
            Self::Csv => "csv",
            Self::Parquet => "parquet",
            Self::Grafana => "grafana",
        }
    }

    /// Its options besides `tags`.
    fn options(self) -> &'static [&'static str] {
        match self {
            Self::InfluxDb => &["raw", "aggregate", "version", "org", "token", "retry"],
            Self::RemoteWrite => &["native", "token", "retry"],
            Self::Grafana => &["token", "retry"],
            Self::Otlp | Self::OtlpGrpc => &["token", "retry", "service"],
            Self::StatsD | Self::Graphite => &["prefix"],
            Self::Nats => &["subject", "token"],
            Self::Prometheus => &["linger"],
            Self::Json | Self::Csv | Self::Parquet => &[],
        }
    }

    fn takes_url(self) -> bool {
        matches!(
            self,
            Self::InfluxDb
                | Self::RemoteWrite
                | Self::Otlp
                | Self::OtlpGrpc
                | Self::Grafana
                | Self::Nats
        )
    }
}

/// Why a text is not a destination.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SinkAddressError {
    /// The `=` is missing, or the kind is unknown.
    #[error("it is not a sink: KIND=ADDRESS with one of {kinds}", kinds = kinds())]
    Kind,
    /// The address is not a URL.
    #[error("{kind}: it is not a URL such as {example}", kind = .0.name(), example = example(*.0))]
    Url(SinkKind),
    /// The address is empty or has no port.
    #[error("{kind}: it is not an address such as {example}", kind = .0.name(), example = example(*.0))]
    Address(SinkKind),
    /// A Parquet file with the name of a compressed one.
    #[error("parquet: {0:?}: Parquet is already compressed: leave out the .gz or .zst")]
    DoubleCompression(String),
    /// The kind has no such option.
    #[error("{kind} has no option {option:?}; it has {known}", kind = kind.name(),
            known = known(*kind))]
    Option {
        /// The kind.
        kind: SinkKind,
        /// What was given.
        option: String,
    },
    /// The value of an option is not valid.
    #[error("{option}: {expected}")]
    Value {
        /// The option.
        option: &'static str,
        /// The expected values.
        expected: &'static str,
    },
}

fn kinds() -> String {
    SinkKind::ALL.map(SinkKind::name).join(", ")
}

fn known(kind: SinkKind) -> String {
    let mut known = vec!["tags"];
    known.extend(kind.options());
    known.join(", ")
}

fn example(kind: SinkKind) -> &'static str {
    match kind {
        SinkKind::InfluxDb => "http://127.0.0.1:8086/gake",
        SinkKind::RemoteWrite => "http://127.0.0.1:9090/api/v1/write",
        SinkKind::Otlp => "http://127.0.0.1:4318",
        SinkKind::OtlpGrpc => "http://127.0.0.1:4317",
        SinkKind::Prometheus => "127.0.0.1:9464",
        SinkKind::StatsD => "127.0.0.1:8125",
        SinkKind::Graphite => "127.0.0.1:2003",
        SinkKind::Nats => "nats://127.0.0.1:4222",
        SinkKind::Json | SinkKind::Csv => "figures.json",
        SinkKind::Parquet => "figures.parquet",
        SinkKind::Grafana => "http://127.0.0.1:3000",
    }
}

/// The destination of figures.
#[derive(Clone, PartialEq, Eq)]
pub struct SinkAddress {
    kind: SinkKind,
    address: String,
    options: Vec<(String, String)>,
}

impl SinkAddress {
    /// The kind of destination.
    #[must_use]
    pub fn kind(&self) -> SinkKind {
        self.kind
    }

    /// The address without its options, but with its secrets.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn option(&self, name: &str) -> Option<&str> {
        let found = self.options.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The tags that every figure carries: `tags=env:test,team:a`.
    pub(crate) fn tags(&self) -> Vec<(String, String)> {
        let pairs = self.option("tags").unwrap_or_default().split(',');
        pairs
            .filter_map(|pair| pair.split_once(':'))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    }

    /// Whether samples of a script become one point per series and second.
    #[must_use]
    pub fn is_aggregated(&self) -> bool {
        self.option("aggregate").is_some()
    }

    pub(crate) fn is_native(&self) -> bool {
        matches!(self.option("native"), Some("" | "true"))
    }

    pub(crate) fn nats(&self) -> Result<NatsCarrier, String> {
        let url = Url::parse(&self.address).map_err(|error| error.to_string())?;
        let subject = self.option("subject").unwrap_or("gake");
        Ok(NatsCarrier::new(&url, subject, self.option("token")))
    }

    /// Adds a token for destinations that take one, unless one is set.
    #[must_use]
    pub fn or_token(mut self, token: impl FnOnce(SinkKind) -> Option<String>) -> Self {
        let takes = self.kind.options().contains(&"token");
        if takes
            && self.option("token").is_none()
            && let Some(token) = token(self.kind)
        {
            self.options.push(("token".to_owned(), token));
        }
        self
    }

    /// The path of its file, if it writes one.
    #[must_use]
    pub fn file(&self) -> Option<&str> {
        let is_file = matches!(self.kind, SinkKind::Json | SinkKind::Csv | SinkKind::Parquet);
        is_file.then_some(&self.address)
    }

    /// Whether the name asks for compression of a Parquet file, which readers could not open.
    fn is_double_compressed(&self) -> bool {
        let has_ending = |ending| self.address.ends_with(ending);
        self.kind == SinkKind::Parquet && [".gz", ".zst"].into_iter().any(has_ending)
    }

    fn check(&self) -> Result<(), SinkAddressError> {
        let kind = self.kind;
        let unknown = |name: &str| name != "tags" && !kind.options().contains(&name);
        if let Some((option, _)) = self.options.iter().find(|(name, _)| unknown(name)) {
            return Err(SinkAddressError::Option { kind, option: option.clone() });
        }
        let value = |option, expected| Err(SinkAddressError::Value { option, expected });
        if self.option("tags").is_some_and(|tags| tags.split(',').any(|t| !t.contains(':'))) {
            return value("tags", "NAME:VALUE pairs, separated by commas");
        }
        for option in ["retry", "linger"] {
            let bad = |text: &str| gake_text::duration::parse_duration(text).is_err();
            if self.option(option).is_some_and(bad) {
                return value(option, "a time such as 30s");
            }
        }
        if self.option("subject").is_some_and(|subject| !carrier::is_subject(subject)) {
            return value("subject", "a subject such as gake.figures");
        }
        if self.option("version").is_some_and(|version| !["1", "2", "3"].contains(&version)) {
            return value("version", "1, 2 or 3");
        }
        let is_raw = self.option("raw").is_some();
        if self.option("aggregate").is_some_and(|time| time != "1s" || is_raw) {
            return value("aggregate", "1s, and not together with raw");
        }
        for option in ["raw", "native"] {
            if self.option(option).is_some_and(|is| !["", "true", "false"].contains(&is)) {
                return value(option, "true or false");
            }
        }
        if kind.takes_url() {
            let url = Url::parse(&self.address).ok();
            let is_web = |url: &Url| {
                let schemes: &[&str] = if kind == SinkKind::Nats { &["nats"] } else { WEB };
                schemes.contains(&url.scheme()) && url.has_host()
            };
            let has_database = |url: &Url| kind != SinkKind::InfluxDb || url.path().len() > 1;
            if !url.is_some_and(|url| is_web(&url) && has_database(&url)) {
                return Err(SinkAddressError::Url(kind));
            }
        } else if self.file().is_none() {
            let port = self.address.rsplit_once(':').map(|(_, port)| port.parse::<u16>());
            if !matches!(port, Some(Ok(_))) {
                return Err(SinkAddressError::Address(kind));
            }
        } else if self.is_double_compressed() {
            return Err(SinkAddressError::DoubleCompression(self.address.clone()));
        } else if self.address.is_empty() {
            return Err(SinkAddressError::Address(kind));
        }
        Ok(())
    }
}

impl FromStr for SinkAddress {
    type Err = SinkAddressError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (kind, rest) = text.split_once('=').ok_or(SinkAddressError::Kind)?;
        let known = SinkKind::ALL.into_iter().find(|known| known.name() == kind);
        let kind = known.ok_or(SinkAddressError::Kind)?;
        let (address, query) = rest.split_once('?').unwrap_or((rest, ""));
        let options = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let sink = Self { kind, address: address.to_owned(), options };
        sink.check()?;
        Ok(sink)
    }
}

/// Without user, password and token.
impl fmt::Display for SinkAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = match self.kind.takes_url().then(|| Url::parse(&self.address)) {
            Some(Ok(mut url)) => {
                let _ = (url.set_username(""), url.set_password(None));
                url.to_string()
            }
            _ => self.address.clone(),
        };
        write!(f, "{}={shown}", self.kind.name())
    }
}

impl fmt::Debug for SinkAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<SinkAddress, String> {
        text.parse().map_err(|error: SinkAddressError| error.to_string())
    }

    #[test]
    fn a_destination_is_a_kind_an_address_and_options() {
        let sink = parse("influxdb=http://u:p@h:8086/db?raw&tags=env:a,team:x").unwrap();
        assert_eq!((sink.kind(), sink.address()), (SinkKind::InfluxDb, "http://u:p@h:8086/db"));
        assert_eq!(sink.option("raw"), Some(""));
        let tags = [("env", "a"), ("team", "x")].map(|(n, v)| (n.to_owned(), v.to_owned()));
        assert_eq!(sink.tags(), tags);
        assert_eq!(sink.to_string(), "influxdb=http://h:8086/db");
        assert_eq!(parse("json=a.json").unwrap().file(), Some("a.json"));
    }

    #[test]
    fn a_token_is_never_shown() {
        let sink = parse("influxdb=http://h/b?org=o&token=secret").unwrap();
        assert!(!format!("{sink} {sink:?}").contains("secret"));
        let given = parse("otlp=http://h:4318").unwrap().or_token(|_| Some("secret".to_owned()));
        assert_eq!(given.option("token"), Some("secret"));
        let files = parse("csv=a.csv").unwrap().or_token(|_| Some("secret".to_owned()));
        assert_eq!(files.option("token"), None);
    }

    #[test]
    fn errors_contain_no_secrets() {
        for text in ["nats=tls://secret@h:4222", "nats://secret@h", "statsd=me:secret@h"] {
            let error = parse(text).unwrap_err();
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn invalid_addresses() {
        let texts = [
            "influx",
            "kafka=h:1",
            "influxdb=h:8086",
            "influxdb=http://h:8086",
            "statsd=localhost",
            "nats=h:4222",
            "nats=nats://h?subject=a.*",
            "json=",
            "graphite=h:2003?raw=true",
            "otlp=http://h:1?retry=soon",
            "otlp=http://h:1?tags=a",
            "influxdb=http://h:1/d?aggregate=5s",
            "influxdb=http://h:1/d?aggregate=1s&raw",
            "parquet=",
            "parquet=a.parquet.gz",
        ];
        let line = |text: &&str| format!("{text} → {}\n", parse(text).unwrap_err());
        expect_test::expect![[r#"
            influx → it is not a sink: KIND=ADDRESS with one of influxdb, prometheus-rw, prometheus, otlp, otlp-grpc, statsd, graphite, nats, json, csv, parquet, grafana
            kafka=h:1 → it is not a sink: KIND=ADDRESS with one of influxdb, prometheus-rw, prometheus, otlp, otlp-grpc, statsd, graphite, nats, json, csv, parquet, grafana
            influxdb=h:8086 → influxdb: it is not a URL such as http://127.0.0.1:8086/gake
            influxdb=http://h:8086 → influxdb: it is not a URL such as http://127.0.0.1:8086/gake
            statsd=localhost → statsd: it is not an address such as 127.0.0.1:8125
            nats=h:4222 → nats: it is not a URL such as nats://127.0.0.1:4222
            nats=nats://h?subject=a.* → subject: a subject such as gake.figures
            json= → json: it is not an address such as figures.json
            graphite=h:2003?raw=true → graphite has no option "raw"; it has tags, prefix
            otlp=http://h:1?retry=soon → retry: a time such as 30s
            otlp=http://h:1?tags=a → tags: NAME:VALUE pairs, separated by commas
            influxdb=http://h:1/d?aggregate=5s → aggregate: 1s, and not together with raw
            influxdb=http://h:1/d?aggregate=1s&raw → aggregate: 1s, and not together with raw
            parquet= → parquet: it is not an address such as figures.parquet
            parquet=a.parquet.gz → parquet: "a.parquet.gz": Parquet is already compressed: leave out the .gz or .zst
        "#]].assert_eq(&texts.iter().map(line).collect::<String>());
    }
}
