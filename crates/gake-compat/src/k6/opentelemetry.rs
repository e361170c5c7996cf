//! `--out opentelemetry`: the collector, from k6's environment.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use gake_sinks::OtelTarget;
use gake_text::duration::parse_duration;
use url::form_urlencoded;

use super::environment::with_prefix;

/// The prefix of all variables.
const PREFIX: &str = "K6_OTEL_";

/// k6's default interval between exports.
const USUAL_INTERVAL: Duration = Duration::from_secs(10);

/// The variables that gake supports.
const KNOWN: [&str; 14] = [
    "SERVICE_NAME",
    "SERVICE_VERSION",
    "METRIC_PREFIX",
    "FLUSH_INTERVAL",
    "EXPORTER_PROTOCOL",
    "EXPORT_INTERVAL",
    "HEADERS",
    "HTTP_EXPORTER_INSECURE",
    "HTTP_EXPORTER_ENDPOINT",
    "HTTP_EXPORTER_URL_PATH",
    "HTTP_EXPORTER_USERNAME",
    "HTTP_EXPORTER_PASSWORD",
    "GRPC_EXPORTER_ENDPOINT",
    "GRPC_EXPORTER_INSECURE",
];

/// The variables `K6_OTEL_*`, by the rest of their names.
#[derive(Debug, Default)]
pub struct OtelSettings(BTreeMap<String, String>);

impl OtelSettings {
    /// The variables of an environment.
    pub fn of(environment: &BTreeMap<String, String>) -> Self {
        let mut own = with_prefix(environment, PREFIX);
        if let Some(service) = environment.get("OTEL_SERVICE_NAME") {
            own.entry("SERVICE_NAME".to_owned()).or_insert_with(|| service.clone());
        }
        Self(own)
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// A variable that is true or false; false without it.
    fn truth(&self, name: &str) -> Result<bool, String> {
        match self.get(name).unwrap_or_default() {
            "" | "false" | "0" => Ok(false),
            "true" | "1" => Ok(true),
            other => Err(format!("{PREFIX}{name}={other:?}: write true or false")),
        }
    }

    fn interval(&self, name: &str, default: Duration) -> Result<Duration, String> {
        let Some(text) = self.get(name).filter(|text| !text.is_empty()) else { return Ok(default) };
        let time = parse_duration(text).map_err(|error| format!("{PREFIX}{name}: {error}"))?;
        match time.is_zero() {
            true => Err(format!("{PREFIX}{name}: write a time above 0, such as 10s")),
            false => Ok(time),
        }
    }

    /// A variable that must not be empty.
    fn text(&self, name: &str, default: &str) -> Result<String, String> {
        match self.get(name).unwrap_or(default) {
            "" => Err(format!("{PREFIX}{name} is empty")),
            text => Ok(text.to_owned()),
        }
    }

    /// The collector.
    ///
    /// # Errors
    /// When the value of a variable is not valid, or gake does not support it.
    pub fn target(&self) -> Result<OtelTarget, String> {
        if let Some(name) = self.0.keys().find(|name| !KNOWN.contains(&name.as_str())) {
            return Err(format!("{PREFIX}{name} is not supported"));
        }
        let is_grpc = match self.get("EXPORTER_PROTOCOL").unwrap_or_default() {
            "" | "grpc" => true,
            "http/protobuf" => false,
            other => {
                return Err(format!(
                    "unsupported exporter protocol {other:?}, only \"grpc\" and \"http/protobuf\" \
                     are supported"
                ));
            }
        };
        // Samples are added as they come: there is nothing to flush.
        self.interval("FLUSH_INTERVAL", USUAL_INTERVAL)?;
        Ok(OtelTarget {
            url: self.url(is_grpc)?,
            is_grpc,
            headers: self.headers()?,
            every: self.interval("EXPORT_INTERVAL", USUAL_INTERVAL)?,
            service: self.text("SERVICE_NAME", "k6")?,
            version: self.text("SERVICE_VERSION", env!("CARGO_PKG_VERSION"))?,
            prefix: self.get("METRIC_PREFIX").unwrap_or_default().to_owned(),
        })
    }

    fn url(&self, is_grpc: bool) -> Result<String, String> {
        let (endpoint, insecure, default) = match is_grpc {
            true => ("GRPC_EXPORTER_ENDPOINT", "GRPC_EXPORTER_INSECURE", "localhost:4317"),
            false => ("HTTP_EXPORTER_ENDPOINT", "HTTP_EXPORTER_INSECURE", "localhost:4318"),
        };
        let scheme = if self.truth(insecure)? { "http" } else { "https" };
        let host = self.text(endpoint, default)?;
        let path = match is_grpc {
            true => "",
            false => self.get("HTTP_EXPORTER_URL_PATH").unwrap_or("/v1/metrics"),
        };
        let slash = if path.is_empty() || path.starts_with('/') { "" } else { "/" };
        let text = format!("{scheme}://{host}{slash}{path}");
        let url = url::Url::parse(&text).ok().filter(|url| {
            !host.contains("://") && url.username().is_empty() && url.password().is_none()
        });
        match url {
            Some(_) => Ok(text),
            None => Err(format!("{PREFIX}{endpoint}: write a host and a port, without a scheme")),
        }
    }

    fn headers(&self) -> Result<Vec<(String, String)>, String> {
        let list = self.get("HEADERS").unwrap_or_default();
        let header = |text: &str| {
            let (name, value) = text.split_once('=').filter(|(name, _)| !name.is_empty())?;
            Some((unescaped(name), unescaped(value)))
        };
        let all = list.split(',').filter(|_| !list.is_empty()).enumerate().map(|(at, text)| {
            // It may be a secret: the number alone is shown.
            header(text)
                .ok_or_else(|| format!("{PREFIX}HEADERS: header {} is not name=value", at + 1))
        });
        let mut all = all.collect::<Result<Vec<_>, _>>()?;
        if let Some(user) = self.get("HTTP_EXPORTER_USERNAME") {
            let password = self.get("HTTP_EXPORTER_PASSWORD").unwrap_or_default();
            let credentials = BASE64.encode(format!("{user}:{password}"));
            all.retain(|(name, _)| !name.eq_ignore_ascii_case("authorization"));
            all.push(("Authorization".to_owned(), format!("Basic {credentials}")));
        }
        Ok(all)
    }
}

/// A text without percent-encoding, whose plus signs stay.
fn unescaped(text: &str) -> String {
    let text = text.replace('+', "%2B").replace('&', "%26").replace('=', "%3D");
    form_urlencoded::parse(text.as_bytes()).map(|(name, _)| name.into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(pairs: &[(&str, &str)]) -> Result<OtelTarget, String> {
        let pairs = pairs.iter().map(|(name, value)| (format!("{PREFIX}{name}"), (*value).into()));
        OtelSettings::of(&pairs.collect()).target()
    }

    #[test]
    fn the_environment_of_k6_names_the_collector() {
        let usual = target(&[]).unwrap();
        assert_eq!((usual.url.as_str(), usual.is_grpc), ("https://localhost:4317", true));
        assert_eq!((usual.service.as_str(), usual.every), ("k6", USUAL_INTERVAL));
        let http = target(&[
            ("EXPORTER_PROTOCOL", "http/protobuf"),
            ("HTTP_EXPORTER_INSECURE", "true"),
            ("HTTP_EXPORTER_ENDPOINT", "127.0.0.1:9"),
            ("HTTP_EXPORTER_URL_PATH", "/otlp"),
            ("HTTP_EXPORTER_USERNAME", "me"),
            ("HTTP_EXPORTER_PASSWORD", "pw"),
            ("HEADERS", "X-A=b%20c,X-D=e=f+g"),
            ("EXPORT_INTERVAL", "2s"),
            ("METRIC_PREFIX", "k6_"),
        ]);
        let http = http.unwrap();
        assert_eq!((http.url.as_str(), http.is_grpc), ("http://127.0.0.1:9/otlp", false));
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let headers = [
            header("X-A", "b c"),
            header("X-D", "e=f+g"),
            header("Authorization", "Basic bWU6cHc="),
        ];
        assert_eq!(http.headers, headers);
        for (name, value, why) in [
            ("EXPORTER_PROTOCOL", "http/json", "only \"grpc\" and \"http/protobuf\""),
            ("EXPORT_INTERVAL", "0s", "above 0"),
            ("FLUSH_INTERVAL", "soon", "FLUSH_INTERVAL"),
            ("SERVICE_NAME", "", "SERVICE_NAME is empty"),
            ("GRPC_EXPORTER_ENDPOINT", "http://h:1", "without a scheme"),
            ("GRPC_EXPORTER_ENDPOINT", "me:s3cret@h", "without a scheme"),
            ("GRPC_EXPORTER_INSECURE", "maybe", "true or false"),
            ("HEADERS", "s3cret", "header 1 is not name=value"),
            ("TLS_CERTIFICATE", "ca.pem", "K6_OTEL_TLS_CERTIFICATE is not supported"),
        ] {
            let error = target(&[(name, value)]).map(drop).unwrap_err();
            assert!(error.contains(why) && !error.contains("s3cret"), "{name}: {error}");
        }
    }
}
