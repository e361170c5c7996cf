//! What was seen of one endpoint. Bounded, and merged by adding.

use std::collections::BTreeMap;

use gake_text::foreign::Foreign;
use serde::{Deserialize, Deserializer, Serialize};

use super::bounded;
use super::field::{DifferenceField, Differences, ValuePair};
use super::histogram::{RatioHistogram, TimeHistogram};
use super::value_shapes::ValueShapes;

/// Fields of an endpoint that are told apart.
const FIELDS_MAX: usize = 200;

/// Pairs of statuses of an endpoint that are told apart.
const STATUSES_MAX: usize = 100;

/// Counts of one endpoint.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Endpoint {
    /// Requests that both master and shadow were asked.
    #[serde(deserialize_with = "bounded::count")]
    pub exchanges: u64,
    /// Those of them that the master's second instance was asked too.
    #[serde(deserialize_with = "bounded::count")]
    pub paired: u64,
    /// Those whose bodies were not compared, because not all of one was kept.
    #[serde(deserialize_with = "bounded::count")]
    pub bodies_cut: u64,
    /// By the codes of master and shadow, as `200 503`.
    #[serde(deserialize_with = "statuses")]
    pub statuses: BTreeMap<String, u64>,
    /// What differed.
    #[serde(with = "as_list")]
    pub fields: BTreeMap<DifferenceField, EndpointFigures>,
    /// Differences in fields beyond those that are told apart.
    #[serde(deserialize_with = "bounded::count")]
    pub fields_lost: u64,
    /// How long answers took.
    pub latency: EndpointLatency,
}

/// How often a field differed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EndpointFigures {
    /// Exchanges in which shadow and master differed.
    #[serde(deserialize_with = "bounded::count")]
    pub shadow: u64,
    /// Of those with a second instance: only the shadow differed from the master.
    #[serde(deserialize_with = "bounded::count")]
    pub only_shadow: u64,
    /// Only the second instance did.
    #[serde(deserialize_with = "bounded::count")]
    pub only_secondary: u64,
    /// Both did.
    #[serde(deserialize_with = "bounded::count")]
    pub both: u64,
    /// What the values looked like.
    pub looks: ValueShapes,
    /// The first difference of the shadow, or else of the second instance.
    pub example: Option<Example>,
}

/// One difference, without secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Example {
    /// The request line.
    pub request: Foreign,
    /// What the master answered.
    pub expected: Foreign,
    /// What the other answered.
    pub actual: Foreign,
}

/// Times to the answers' heads.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EndpointLatency {
    /// The master's.
    pub master: TimeHistogram,
    /// The shadow's.
    pub shadow: TimeHistogram,
    /// The second instance's.
    pub secondary: TimeHistogram,
    /// Shadow against master, by request.
    pub against_master: RatioHistogram,
    /// Shadow against the second instance, by request.
    pub against_secondary: RatioHistogram,
}

impl Endpoint {
    /// Counts one exchange. `request` is the request line, made only for an example.
    pub(super) fn count(
        &mut self,
        shadow: Differences<'_>,
        secondary: Option<Differences<'_>>,
        request: impl Fn() -> String,
    ) {
        self.exchanges += 1;
        self.paired += u64::from(secondary.is_some());
        self.fields_lost += u64::from(shadow.more);
        let mut noise = secondary.map(|differences| differences.fields);
        for (field, values) in shadow.fields {
            let also = noise.as_mut().map(|noise| noise.remove(&field).is_some());
            let Some(seen) = self.field(field) else { continue };
            seen.shadow += 1;
            match also {
                Some(true) => seen.both += 1,
                Some(false) => seen.only_shadow += 1,
                None => {}
            }
            seen.note(values, &request);
        }
        for (field, values) in noise.unwrap_or_default() {
            let Some(seen) = self.field(field) else { continue };
            seen.only_secondary += 1;
            if seen.shadow == 0 {
                seen.note(values, &request);
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

    /// Adds another's counts.
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
        for (field, seen) in other.fields {
            if let Some(own) = self.field(field) {
                own.merge(seen);
            }
        }
        self.latency.merge(&other.latency);
    }
}

impl EndpointFigures {
    fn note(&mut self, values: ValuePair, request: impl Fn() -> String) {
        self.looks.count(&values);
        let of_shadow = self.shadow == 1;
        if self.example.is_none() || of_shadow {
            let ValuePair { expected, actual } = values;
            let (expected, actual) = (expected.into(), actual.into());
            self.example = Some(Example { request: request().into(), expected, actual });
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
        self.looks.merge(other.looks);
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

/// Pairs of statuses, and the place for those beyond the bound.
fn statuses<'de, D: Deserializer<'de>>(input: D) -> Result<BTreeMap<String, u64>, D::Error> {
    let read = bounded::map::<{ STATUSES_MAX + 1 }, _, String, bounded::Count>(input)?;
    Ok(read.into_iter().map(|(pair, count)| (pair, count.0)).collect())
}

/// A map whose keys are no texts, as the list that JSON can hold.
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
        seen: S,
    }

    pub(super) fn serialize<S: Serializer>(
        fields: &BTreeMap<DifferenceField, EndpointFigures>,
        out: S,
    ) -> Result<S::Ok, S::Error> {
        out.collect_seq(fields.iter().map(|(field, seen)| Entry { field, seen }))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        input: D,
    ) -> Result<BTreeMap<DifferenceField, EndpointFigures>, D::Error> {
        let entries =
            bounded::list::<FIELDS_MAX, _, Entry<DifferenceField, EndpointFigures>>(input)?;
        Ok(entries.into_iter().map(|entry| (entry.field, entry.seen)).collect())
    }
}
