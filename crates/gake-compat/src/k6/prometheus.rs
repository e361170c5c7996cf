//! `--out experimental-prometheus-rw`: the destination of the series, from k6's environment.

use std::collections::BTreeMap;
use std::time::Duration;

use gake_sinks::{ScriptSeries, SinkAddress, Spill};
use gake_text::duration::parse_duration;

use super::environment::with_prefix;

/// k6's default URL.
const USUAL_URL: &str = "http://localhost:9090/api/v1/write";
/// k6's default interval between writes.
const USUAL_INTERVAL: Duration = Duration::from_secs(5);

/// The prefix of all variables.
const PREFIX: &str = "K6_PROMETHEUS_RW_";
/// The variables that gake supports.
const KNOWN: [&str; 9] = [
    "SERVER_URL",
    "TREND_STATS",
    "TREND_AS_NATIVE_HISTOGRAM",
    "PUSH_INTERVAL",
    "USERNAME",
    "PASSWORD",
    "BEARER_TOKEN",
    "LABELS",
    "STALE_MARKERS",
];

/// The variables `K6_PROMETHEUS_RW_*`, by the rest of their names.
#[derive(Debug, Default)]
pub struct PrometheusSettings(BTreeMap<String, String>);

impl PrometheusSettings {
    /// The variables of an environment.
    pub fn of(environment: &BTreeMap<String, String>) -> Self {
        Self(with_prefix(environment, PREFIX))
    }

    /// These settings with trends as native histograms.
    pub fn with_native_histograms(mut self) -> Self {
        self.0.insert("TREND_AS_NATIVE_HISTOGRAM".to_owned(), "true".to_owned());
        self
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// A variable that is true or false; false without it.
    fn truth(&self, name: &str) -> Result<bool, String> {
        match self.get(name) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(other) => Err(format!("{PREFIX}{name}={other:?}: write true or false")),
        }
    }

    /// The address and the writer of the series. `url` is the value of `--out`; it may be empty.
    ///
    /// # Errors
    /// When the value of a variable is not valid, or gake does not support it.
    pub fn series(&self, url: &str, spill: &Spill) -> Result<(SinkAddress, ScriptSeries), String> {
        if let Some(name) = self.0.keys().find(|name| !KNOWN.contains(&name.as_str())) {
            return Err(format!("{PREFIX}{name} is not supported"));
        }
        let address = self.address(url)?;
        let every = self.get("PUSH_INTERVAL").map_or(Ok(USUAL_INTERVAL), |text| {
            parse_duration(text).map_err(|error| format!("{PREFIX}PUSH_INTERVAL: {error}"))
        })?;
        if every.is_zero() {
            return Err(format!("{PREFIX}PUSH_INTERVAL: write a time above 0, such as 5s"));
        }
        let series = ScriptSeries::new(&address, every, self.get("TREND_STATS"), spill)
            .map_err(|why| format!("{PREFIX}TREND_STATS: {why}"))?;
        let series = if self.truth("STALE_MARKERS")? { series.marking_end() } else { series };
        Ok((address, series))
    }

    fn address(&self, url: &str) -> Result<SinkAddress, String> {
        let url = if url.is_empty() { self.get("SERVER_URL").unwrap_or(USUAL_URL) } else { url };
        let mut options = url::form_urlencoded::Serializer::new(String::new());
        if self.get("TREND_AS_NATIVE_HISTOGRAM").is_some() {
            let is_native = self.truth("TREND_AS_NATIVE_HISTOGRAM")?;
            options.append_pair("native", if is_native { "true" } else { "false" });
        }
        if let Some(labels) = self.get("LABELS") {
            options.append_pair("tags", &tags(labels)?);
        }
        if let Some(token) = self.get("BEARER_TOKEN") {
            options.append_pair("token", token);
        }
        let options = options.finish();
        let mark = if url.contains('?') { '&' } else { '?' };
        let url = self.with_user(url)?;
        let address: Result<SinkAddress, _> = format!("prometheus-rw={url}{mark}{options}").parse();
        address.map_err(|error| error.to_string())
    }

    /// The URL with user and password.
    fn with_user(&self, url: &str) -> Result<String, String> {
        let Some(user) = self.get("USERNAME") else { return Ok(url.to_owned()) };
        // The URL may contain a password or a token.
        let bad = |_| format!("what --out or {PREFIX}SERVER_URL names is not a URL");
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let mut parsed = url::Url::parse(base).map_err(bad)?;
        // A URL with a host accepts both.
        let _ = parsed.set_username(user);
        let _ = parsed.set_password(self.get("PASSWORD"));
        let query = if query.is_empty() { String::new() } else { format!("?{query}") };
        Ok(format!("{parsed}{query}"))
    }
}

/// Labels such as `env=test,team=a` as tags of an address: `env:test,team:a`.
fn tags(labels: &str) -> Result<String, String> {
    let tag = |label: &str| match label.trim().split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok(format!("{name}:{value}")),
        _ => Err(format!("{PREFIX}LABELS: {label:?} is not name=value")),
    };
    let tags: Result<Vec<_>, _> = labels.split(',').map(tag).collect();
    Ok(tags?.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(pairs: &[(&str, &str)]) -> PrometheusSettings {
        let pairs = pairs.iter().map(|(name, value)| (format!("{PREFIX}{name}"), (*value).into()));
        PrometheusSettings::of(&pairs.collect())
    }

    #[test]
    fn the_environment_of_k6_configures_the_output() {
        assert_eq!(tags("env=a=b, team=c").as_deref(), Ok("env:a=b,team:c"));
        let (address, _) = settings(&[]).series("", &Spill::default()).unwrap();
        assert_eq!(address.to_string(), format!("prometheus-rw={USUAL_URL}"));
        let all = settings(&[
            ("SERVER_URL", "http://h:9/w"),
            ("TREND_STATS", "p(95),avg"),
            ("TREND_AS_NATIVE_HISTOGRAM", "true"),
            ("PUSH_INTERVAL", "2s"),
            ("USERNAME", "me"),
            ("PASSWORD", "s e?cret"),
            ("BEARER_TOKEN", "t0ken"),
            ("LABELS", "env=a=b, team=c"),
        ]);
        let (address, _) = all.series("", &Spill::default()).unwrap();
        assert_eq!(address.to_string(), "prometheus-rw=http://h:9/w");
        assert!(!format!("{address:?}").contains("cret"));
        let named = "http://h:1/w?native&tags=env:t";
        assert_eq!(
            all.series(named, &Spill::default()).unwrap().0.to_string(),
            "prometheus-rw=http://h:1/w"
        );
        for (name, value, why) in [
            ("TREND_STATS", "p95", "avg, min, max"),
            ("TREND_AS_NATIVE_HISTOGRAM", "yes", "true or false"),
            ("PUSH_INTERVAL", "soon", "PUSH_INTERVAL"),
            ("PUSH_INTERVAL", "0s", "above 0"),
            ("STALE_MARKERS", "1", "true or false"),
            ("CLIENT_KEY", "k.pem", "K6_PROMETHEUS_RW_CLIENT_KEY is not supported"),
            ("SERVER_URL", "h:9", "is not a URL"),
            ("LABELS", "env", "K6_PROMETHEUS_RW_LABELS: \"env\" is not name=value"),
        ] {
            let error =
                settings(&[(name, value)]).series("", &Spill::default()).map(drop).unwrap_err();
            assert!(error.contains(why), "{name}: {error}");
        }
        let bad = settings(&[("USERNAME", "me"), ("SERVER_URL", "http://me:s3cret@h:port/w")]);
        let error = bad.series("", &Spill::default()).map(drop).unwrap_err();
        assert!(error.contains("not a URL") && !error.contains("s3cret"), "{error}");
    }
}
