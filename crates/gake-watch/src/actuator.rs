//! Spring Boot Actuator: levels from `/metrics`, settings from `/configprops`.

use gake_core::record::LevelUnit;
use serde_json::Value;

use crate::fetch::Fetch;
use crate::level::Level;

/// Known metrics: the application's name, ours ("" for shares only), and the unit.
const KNOWN: &[(&str, &str, LevelUnit)] = &[
    ("process.cpu.usage", "cpu", LevelUnit::Share),
    ("jvm.memory.used", "jvm_memory", LevelUnit::Bytes),
    ("jvm.threads.live", "threads", LevelUnit::Count),
    ("jvm.gc.overhead", "gc", LevelUnit::Share),
    ("process.files.open", "descriptors_open", LevelUnit::Count),
    ("process.files.max", "", LevelUnit::Count),
    ("tomcat.threads.busy", "pool_busy", LevelUnit::Count),
    ("tomcat.threads.config.max", "pool_max", LevelUnit::Count),
    ("tomcat.connections.current", "established", LevelUnit::Count),
    ("tomcat.connections.config.max", "connections_max", LevelUnit::Count),
    ("hikaricp.connections.active", "db_pool_busy", LevelUnit::Count),
    ("hikaricp.connections.pending", "db_pool_pending", LevelUnit::Count),
    ("hikaricp.connections.max", "db_pool_max", LevelUnit::Count),
];

/// Shares of a whole: our name, the part, and the whole.
const SHARES: &[(&str, &str, &str)] = &[
    ("descriptors", "process.files.open", "process.files.max"),
    ("pool", "tomcat.threads.busy", "tomcat.threads.config.max"),
    ("connections", "tomcat.connections.current", "tomcat.connections.config.max"),
    ("db_pool", "hikaricp.connections.active", "hikaricp.connections.max"),
];

/// Settings that limit a server, as Spring Boot names them under `server`.
const SETTINGS: &[&str] = &[
    "tomcat.threads.max",
    "tomcat.threads.minSpare",
    "tomcat.maxConnections",
    "tomcat.acceptCount",
    "tomcat.connectionTimeout",
    "tomcat.keepAliveTimeout",
    "tomcat.maxKeepAliveRequests",
];

type KnownMetric = &'static (&'static str, &'static str, LevelUnit);

#[derive(Debug)]
pub(crate) struct Actuator {
    base: String,
    /// Requests for the list of metrics and the settings.
    names: Fetch,
    metrics: Fetch,
    known: Vec<KnownMetric>,
    pub(crate) settings: Vec<(String, String)>,
}

impl Actuator {
    pub(crate) async fn new(base: &str) -> Result<Self, String> {
        let names = Fetch::new(&[format!("{base}/metrics"), format!("{base}/configprops")])?;
        let known = listed(&names).await?;
        if known.is_empty() {
            return Err(
                "it has no known metric; is it the base of Actuator, and is `metrics` exposed?"
                    .to_owned(),
            );
        }
        // Settings are optional, since they are often not exposed.
        let settings = match names.get(1).await {
            Ok(text) => settings(&parsed(&text)?),
            Err(_) => Vec::new(),
        };
        let metrics = metrics_of(base, &known)?;
        Ok(Self { base: base.to_owned(), names, metrics, known, settings })
    }

    /// A pool has metrics once it is used, which may be under the load.
    async fn discover_metrics(&mut self) -> Result<(), String> {
        if self.known.len() < KNOWN.len() {
            let known = listed(&self.names).await?;
            if known.len() > self.known.len() {
                self.metrics = metrics_of(&self.base, &known)?;
                self.known = known;
            }
        }
        Ok(())
    }

    pub(crate) async fn read(&mut self) -> Result<Vec<Level>, String> {
        self.discover_metrics().await?;
        let mut values = Vec::with_capacity(self.known.len());
        for (number, (name, ..)) in self.known.iter().enumerate() {
            values.push((*name, value(&parsed(&self.metrics.get(number).await?)?)));
        }
        let of = |name: &str| values.iter().find(|(known, _)| *known == name).and_then(|(_, v)| *v);
        let named = self.known.iter().filter(|(_, ours, _)| !ours.is_empty());
        let mut levels: Vec<_> = named
            .filter_map(|(name, ours, unit)| Some(Level::new(*ours, *unit, of(name)?)))
            .collect();
        for (ours, part, whole) in SHARES {
            if let (Some(part), Some(whole)) = (of(part), of(whole))
                && whole > 0.0
            {
                levels.push(Level::new(*ours, LevelUnit::Share, part / whole));
            }
        }
        Ok(levels)
    }
}

async fn listed(names: &Fetch) -> Result<Vec<KnownMetric>, String> {
    let names = parsed(&names.get(0).await?)?;
    let has = |name: &str| {
        names["names"].as_array().is_some_and(|all| all.iter().any(|known| known == name))
    };
    Ok(KNOWN.iter().filter(|(name, ..)| has(name)).collect())
}

fn metrics_of(base: &str, known: &[KnownMetric]) -> Result<Fetch, String> {
    let urls: Vec<_> = known.iter().map(|(name, ..)| format!("{base}/metrics/{name}")).collect();
    Fetch::new(&urls)
}

fn parsed(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|_| "its response is not JSON".to_owned())
}

fn value(metric: &Value) -> Option<f64> {
    let measurements = metric["measurements"].as_array()?;
    let is_value = |m: &&Value| m["statistic"] == "VALUE" || m["statistic"] == "COUNT";
    measurements.iter().find(is_value)?["value"].as_f64()
}

/// The settings of the bean with the prefix `server`, in any context, except masked values.
fn settings(props: &Value) -> Vec<(String, String)> {
    let contexts = props["contexts"].as_object().into_iter().flat_map(|all| all.values());
    let beans = contexts.filter_map(|context| context["beans"].as_object());
    let server = beans.flat_map(|all| all.values()).find(|bean| bean["prefix"] == "server");
    let Some(properties) = server.map(|bean| &bean["properties"]) else { return Vec::new() };
    let text = |value: &Value| match value {
        Value::String(text) if !text.starts_with("**") => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    SETTINGS
        .iter()
        .filter_map(|path| {
            let value = path.split('.').fold(properties, |value, key| &value[key]);
            Some((format!("server.{path}"), text(value)?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_found_except_masked_ones() {
        let props = serde_json::json!({"contexts": {"app": {"beans": {
            "a": {"prefix": "other", "properties": {}},
            "server-x": {"prefix": "server", "properties": {"tomcat": {
                "threads": {"max": 200, "minSpare": "******"},
                "maxConnections": 8192, "connectionTimeout": "PT20S"}}}}}}});
        assert_eq!(
            settings(&props),
            [
                ("server.tomcat.threads.max".to_owned(), "200".to_owned()),
                ("server.tomcat.maxConnections".to_owned(), "8192".to_owned()),
                ("server.tomcat.connectionTimeout".to_owned(), "PT20S".to_owned()),
            ]
        );
        assert!(settings(&Value::Null).is_empty());
    }

    #[test]
    fn a_metric_has_a_value() {
        let metric = serde_json::json!({"measurements": [{"statistic": "VALUE", "value": 7.5}]});
        assert_eq!(value(&metric), Some(7.5));
        assert_eq!(value(&Value::Null), None);
    }
}
