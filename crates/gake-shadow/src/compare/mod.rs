//! Compares the responses of master and shadow.
//!
//! A [`ShadowComparison`] is fed with finished exchanges. By endpoint (a method and a path with
//! placeholders for identifiers) it counts the fields in which the responses differed, and those in
//! which a second instance of the master differed from it. [`judge`](judge::judge) separates
//! differences from noise. A comparison is bounded in size whatever the traffic, merges by addition,
//! and is stored as a [file](mod@file).

mod body;
mod bounded;
mod endpoint;
mod field;
pub mod file;
pub mod histogram;
mod json;
pub mod judge;
mod marker_names;
mod response;
pub mod rules;
pub mod show;
pub mod significance;
mod suggest;
pub mod template;
mod text;
mod value_shapes;

use std::collections::BTreeMap;

use gake_text::redact::{Redacted, Redactor};
use serde::{Deserialize, Serialize};

pub use endpoint::{Endpoint, EndpointFigures, EndpointLatency, Example};
pub use field::{DifferenceField, DifferenceKind};
pub use rules::{ComparisonRules, RulesError};

use crate::exchange::{BackendFailure, BackendOutcome, MirroredExchange, Role};
use template::Templates;

/// Distinct endpoints; the rest is counted as [`OTHER`].
const ENDPOINTS_MAX: usize = 300;

const ENDPOINTS_READ: usize = ENDPOINTS_MAX + 1;

/// The endpoint of requests beyond the bound.
const OTHER: &str = "other";

/// The comparison of the master with one shadow.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ShadowComparison {
    /// The master's name.
    pub master: String,
    /// The shadow's name.
    pub shadow: String,
    /// The name of the master's second instance, once an exchange had one.
    pub secondary: Option<String>,
    /// Exchanges that were not compared, because they were not sent to the shadow or the client
    /// disconnected.
    #[serde(deserialize_with = "bounded::count")]
    pub skipped: u64,
    /// The counts by endpoint.
    #[serde(deserialize_with = "bounded::map::<ENDPOINTS_READ, _, _, _>")]
    pub endpoints: BTreeMap<String, Endpoint>,
    templates: Templates,
}

impl ShadowComparison {
    /// An empty comparison with the shadow of this name.
    #[must_use]
    pub fn new(shadow: &str) -> Self {
        Self { shadow: shadow.to_owned(), ..Self::default() }
    }

    /// Exchanges compared.
    #[must_use]
    pub fn exchanges(&self) -> u64 {
        self.endpoints.values().map(|endpoint| endpoint.exchanges).sum()
    }

    /// Adds an exchange. Stored values are redacted by `redactor`.
    pub fn observe(
        &mut self,
        exchange: &MirroredExchange,
        rules: &ComparisonRules,
        redactor: &Redactor,
    ) {
        let was_sent = |outcome: &&BackendOutcome| {
            !matches!(outcome.result, Err(BackendFailure::NotSent(_) | BackendFailure::ClientGone))
        };
        let master = exchange.master().filter(was_sent);
        let shadow = exchange.backend(&self.shadow).filter(was_sent);
        let (Some(master), Some(shadow)) = (master, shadow) else {
            self.skipped += 1;
            return;
        };
        let mut others = exchange.backends.iter();
        let secondary = others.find(|outcome| outcome.role == Role::Secondary).filter(was_sent);
        if self.master.is_empty() {
            self.master = master.name.to_string();
        }
        if let (None, Some(secondary)) = (&self.secondary, secondary) {
            self.secondary = Some(secondary.name.to_string());
        }
        let request = &exchange.request;
        let target = request.uri.path_and_query().map_or("/", |target| target.as_str());
        let target = redactor.target(target);
        let name = self.endpoint(request.method.as_str(), &target);
        let compare = |other| response::differences(master, other, &name, rules, redactor);
        let differences = (compare(shadow), secondary.map(compare));
        let line = || {
            let method = redactor.text(request.method.as_str());
            Redacted::concat([method, Redacted::plain(" "), target.clone()])
        };
        let endpoint = self.endpoints.entry(name.clone()).or_default();
        endpoint.count_statuses(&response::code(master), &response::code(shadow));
        endpoint.count(differences.0, differences.1, line);
        if let (Ok(a), Ok(b)) = (&master.result, &shadow.result) {
            endpoint.bodies_cut += u64::from(response::is_cut(a) || response::is_cut(b));
        }
        if let (Some(a), Some(b)) = (master.first_byte_ns, shadow.first_byte_ns) {
            endpoint.latency.add(a, b, secondary.and_then(|secondary| secondary.first_byte_ns));
        }
    }

    /// Redacts stored values, for comparisons of earlier versions or without redaction.
    pub fn redact(&mut self, redactor: &Redactor) {
        for endpoint in self.endpoints.values_mut() {
            for (field, figures) in &mut endpoint.fields {
                let Some(example) = &mut figures.example else { continue };
                let name = field.path.rsplit(['.', ' ', '\'']).next().unwrap_or_default();
                let secret = redactor.is_secret_name(name);
                example.request = redactor.text(&example.request);
                for value in [&mut example.expected, &mut example.actual] {
                    // "nothing" stands for a missing value.
                    *value = match secret && *value != "nothing" {
                        true => redactor.json(value, true),
                        false => redactor.text(value),
                    };
                }
            }
        }
    }

    fn endpoint(&mut self, method: &str, target: &str) -> String {
        let (name, learned) = self.templates.endpoint(method, target);
        if learned {
            self.rename_endpoints();
        }
        if self.endpoints.len() >= ENDPOINTS_MAX && !self.endpoints.contains_key(&name) {
            return OTHER.to_owned();
        }
        name
    }

    /// Merges endpoints that have got the same name.
    fn rename_endpoints(&mut self) {
        for (name, endpoint) in std::mem::take(&mut self.endpoints) {
            let name = self.templates.rename(&name);
            self.endpoints.entry(name).or_default().merge(endpoint);
        }
    }

    /// Adds another comparison of the same backends.
    pub fn merge(&mut self, other: Self) {
        self.skipped += other.skipped;
        self.secondary = self.secondary.take().or(other.secondary);
        if self.master.is_empty() {
            self.master = other.master;
        }
        if self.templates.merge(&other.templates) {
            self.rename_endpoints();
        }
        for (name, endpoint) in other.endpoints {
            let mut name = self.templates.rename(&name);
            if self.endpoints.len() >= ENDPOINTS_MAX && !self.endpoints.contains_key(&name) {
                name = OTHER.to_owned();
            }
            self.endpoints.entry(name).or_default().merge(endpoint);
        }
    }
}

#[cfg(test)]
mod simulation;
