//! The counts of one endpoint: bounded, and merged by addition.

use std::collections::BTreeMap;

use gake_text::redact::Redacted;
use serde::{Deserialize, Deserializer, Serialize};

use super::bounded;
use super::field::{DifferenceField, Differences, ValuePair};
use super::histogram::{RatioHistogram, TimeHistogram};
use super::value_shapes::ValueShapes;

/// Distinct fields of an endpoint.
const FIELDS_MAX: usize = 200;

/// Distinct pairs of statuses of an endpoint.
const STATUSES_MAX: usize = 100;

/// Counts of one endpoint.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Endpoint {
    /// Requests sent to both master and shadow.
    #[serde(deserialize_with = "bounded::count")]
    pub exchanges: u64,
    /// Of these, requests also sent to the master's second instance.
    #[serde(deserialize_with = "bounded::count")]
    pub paired: u64,
    /// Of these, requests whose bodies were not compared because one exceeded the capture limit.
    #[serde(deserialize_with = "bounded::count")]
    pub bodies_cut: u64,
    /// Exchanges by the statuses of master and shadow, such as `200 503`.
    #[serde(deserialize_with = "statuses")]
    pub statuses: BTreeMap<String, u64>,
    /// Fields that differed.
    #[serde(with = "as_list")]
    pub fields: BTreeMap<DifferenceField, EndpointFigures>,
    /// Differences in fields beyond the bound.
    #[serde(deserialize_with = "bounded::count")]
    pub fields_lost: u64,
    /// Times to the responses' heads.
    pub latency: EndpointLatency,
}

/// Counts of the differences in one field.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EndpointFigures {
    /// Exchanges in which shadow and master differed.
    #[serde(deserialize_with = "bounded::count")]
    pub shadow: u64,
    /// Exchanges with a second instance in which only the shadow differed from the master.
    #[serde(deserialize_with = "bounded::count")]
    pub only_shadow: u64,
    /// Exchanges in which only the second instance differed.
    #[serde(deserialize_with = "bounded::count")]
    pub only_secondary: u64,
    /// Exchanges in which both differed.
    #[serde(deserialize_with = "bounded::count")]
    pub both: u64,
    /// The shapes of the differing values.
    #[serde(rename = "looks")]
    pub shapes: ValueShapes,
    /// The first difference of the shadow, or, without one, of the second instance.
    pub example: Option<Example>,
}

/// An example of a difference, redacted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Example {
    /// The request line.
    pub request: Redacted,
    /// The master's value.
    pub expected: Redacted,
    /// The other backend's value.
    pub actual: Redacted,
}

/// Histograms of the times to the responses' heads.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EndpointLatency {
    /// The master's times.
    pub master: TimeHistogram,
    /// The shadow's times.
    pub shadow: TimeHistogram,
    /// The second instance's times.
    pub secondary: TimeHistogram,
    /// Ratios of the shadow's time to the master's, by request.
    pub against_master: RatioHistogram,
    /// Ratios of the shadow's time to the second instance's, by request.
    pub against_secondary: RatioHistogram,
}

impl Endpoint {
    /// Counts one exchange. `request` renders the request line, and is called for examples only.
    pub(super) fn count(
        &mut self,
        shadow: Differences<'_>,
        secondary: Option<Differences<'_>>,
        request: impl Fn() -> Redacted,
    ) {
        self.exchanges += 1;
        self.paired += u64::from(secondary.is_some());
        self.fields_lost += u64::from(shadow.more);
        let mut noise = secondary.map(|differences| differences.fields);
        for (field, values) in shadow.fields {
            let also = noise.as_mut().map(|noise| noise.remove(&field).is_some());
            let Some(figures) = self.field(field) else { continue };
            figures.shadow += 1;
            match also {
                Some(true) => figures.both += 1,
                Some(false) => figures.only_shadow += 1,
                None => {}
            }
            figures.note(values, &request);
        }
        for (field, values) in noise.unwrap_or_default() {
            let Some(figures) = self.field(field) else { continue };
            figures.only_secondary += 1;
            if figures.shadow == 0 {
                figures.note(values, &request);
            }
        }
    }

    pub(super) fn count_statuses(&mut self, master: &str, shadow: &str) {
        let pair = format!("{master} {shadow}");
        let full = self.statuses.len() >= STATUSES_MAX && !self.statuses.contains_key(&pair);
        let pair = if full { "other other".to_owned() } else { pair };
        *self.statuses.entry(pair).or_default() += 1;
    }

    fn field(&mut self, field: DifferenceField) -> Option<&mut EndpointFigures> {
        if self.fields.len() >= FIELDS_MAX && !self.fields.contains_key(&field) {
            self.fields_lost += 1;
            return None;
        }
        Some(self.fields.entry(field).or_default())
    }

    /// Adds the counts of another process or period.
    pub fn merge(&mut self, other: Self) {
        self.exchanges += other.exchanges;
        self.paired += other.paired;
        self.bodies_cut += other.bodies_cut;
        self.fields_lost += other.fields_lost;
        for (pair, count) in other.statuses {
            let full = self.statuses.len() >= STATUSES_MAX && !self.statuses.contains_key(&pair);
            let pair = if full { "other other".to_owned() } else { pair };
            *self.statuses.entry(pair).or_default() += count;
        }
        for (field, figures) in other.fields {
            if let Some(own) = self.field(field) {
                own.merge(figures);
            }
        }
        self.latency.merge(&other.latency);
    }
}

impl EndpointFigures {
    fn note(&mut self, values: ValuePair, request: impl Fn() -> Redacted) {
        self.shapes.count(&values);
        let of_shadow = self.shadow == 1;
        if self.example.is_none() || of_shadow {
            let ValuePair { expected, actual } = values;
            self.example = Some(Example { request: request(), expected, actual });
        }
    }

    fn merge(&mut self, other: Self) {
        if self.example.is_none() || (self.shadow == 0 && other.shadow > 0) {
            self.example = other.example;
        }
        self.shadow += other.shadow;
        self.only_shadow += other.only_shadow;
        self.only_secondary += other.only_secondary;
        self.both += other.both;
        self.shapes.merge(other.shapes);
    }
}

impl EndpointLatency {
    /// Adds the times of one exchange, in nanoseconds.
    pub(super) fn add(&mut self, master: u64, shadow: u64, secondary: Option<u64>) {
        self.master.add(master);
        self.shadow.add(shadow);
        self.against_master.add(shadow, master);
        if let Some(secondary) = secondary {
            self.secondary.add(secondary);
            self.against_secondary.add(shadow, secondary);
        }
    }

    fn merge(&mut self, other: &Self) {
        self.master.merge(&other.master);
        self.shadow.merge(&other.shadow);
        self.secondary.merge(&other.secondary);
        self.against_master.merge(&other.against_master);
        self.against_secondary.merge(&other.against_secondary);
    }
}

/// Pairs of statuses, including the one that stands for those beyond the bound.
fn statuses<'de, D: Deserializer<'de>>(input: D) -> Result<BTreeMap<String, u64>, D::Error> {
    let read = bounded::map::<{ STATUSES_MAX + 1 }, _, String, bounded::Count>(input)?;
    Ok(read.into_iter().map(|(pair, count)| (pair, count.0)).collect())
}

/// Serialises a map with structured keys as a list, for JSON has string keys only.
mod as_list {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::super::bounded;
    use super::{DifferenceField, EndpointFigures, FIELDS_MAX};

    #[derive(Serialize, Deserialize)]
    struct Entry<F, S> {
        #[serde(flatten)]
        field: F,
        #[serde(flatten)]
        figures: S,
    }

    pub(super) fn serialize<S: Serializer>(
        fields: &BTreeMap<DifferenceField, EndpointFigures>,
        out: S,
    ) -> Result<S::Ok, S::Error> {
        out.collect_seq(fields.iter().map(|(field, figures)| Entry { field, figures }))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        input: D,
    ) -> Result<BTreeMap<DifferenceField, EndpointFigures>, D::Error> {
        let entries =
            bounded::list::<FIELDS_MAX, _, Entry<DifferenceField, EndpointFigures>>(input)?;
        Ok(entries.into_iter().map(|entry| (entry.field, entry.figures)).collect())
    }
}
