//! The exact encoding of a table of series.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::de::Error as _;
use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::definition::{Definition, MetricUnit};
use super::table::{MAX_SERIES, SeriesKey, SeriesTable};
use super::tags::Tags;
use super::value::SeriesValue;

/// Maximum number of series, whatever limit the encoded table claims.
const SERIES_READ_MAX: usize = 1_000_000;

#[derive(Deserialize)]
#[serde(default)]
struct TableJson<'a> {
    limit: usize,
    not_numbers: u64,
    #[serde(borrow)]
    series: Vec<SeriesJson<'a>>,
}

impl Default for TableJson<'_> {
    fn default() -> Self {
        Self { limit: MAX_SERIES, not_numbers: 0, series: Vec::new() }
    }
}

/// One series. Its value determines the kind of its metric.
#[derive(Serialize, Deserialize)]
struct SeriesJson<'a> {
    #[serde(borrow)]
    metric: Cow<'a, str>,
    #[serde(default)]
    unit: MetricUnit,
    #[serde(default)]
    tags: Tags,
    value: Cow<'a, SeriesValue>,
}

impl Serialize for SeriesTable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let series = self.sorted().into_iter().map(|(key, value)| SeriesJson {
            metric: Cow::Borrowed(&key.metric.name),
            unit: key.metric.unit,
            tags: key.tags.clone(),
            value: Cow::Borrowed(value),
        });
        let mut form = serializer.serialize_struct("SeriesTable", 3)?;
        form.serialize_field("limit", &self.limit())?;
        form.serialize_field("not_numbers", &self.not_numbers())?;
        form.serialize_field("series", &series.collect::<Vec<_>>())?;
        form.end()
    }
}

impl<'de> Deserialize<'de> for SeriesTable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let form = TableJson::deserialize(deserializer)?;
        let mut table = Self::with_limit(form.limit.min(SERIES_READ_MAX));
        table.add_not_numbers(form.not_numbers);
        let mut metrics: HashMap<Definition, Arc<Definition>> = HashMap::new();
        for SeriesJson { metric, unit, tags, value } in form.series {
            if !is_plausible(&value) {
                return Err(D::Error::custom(format!("the series {metric}{tags} is invalid")));
            }
            let metric = Definition { name: metric.into_owned(), kind: value.kind(), unit };
            let metric = metrics.entry(metric).or_insert_with_key(|new| Arc::new(new.clone()));
            let key = SeriesKey { metric: Arc::clone(metric), tags };
            // Merging two small trends could make a large one.
            if table.contains(&key) {
                return Err(D::Error::custom(format!("the series {:?} is listed twice", key.tags)));
            }
            if !key.is_other() && table.is_full() {
                return Err(D::Error::custom("more series than the limit"));
            }
            table.add_value(key, &value);
        }
        Ok(table)
    }
}

fn is_plausible(value: &SeriesValue) -> bool {
    match value {
        SeriesValue::Gauge { last, min, max, samples, .. } => {
            *samples > 0 && (min..=max).contains(&last) && min.is_finite() && max.is_finite()
        }
        SeriesValue::Rate { passed, samples } => passed <= samples,
        SeriesValue::Counter { .. } | SeriesValue::Trend(_) => true,
    }
}

impl Serialize for Tags {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.pairs().iter().map(|(key, value)| (key, value)))
    }
}

impl<'de> Deserialize<'de> for Tags {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::new(BTreeMap::<String, String>::deserialize(deserializer)?))
    }
}
