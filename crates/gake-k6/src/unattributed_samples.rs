//! Samples that belong to no user: dropped iterations and the numbers of users.

use std::borrow::Cow;
use std::sync::Arc;

use gake_core::metric::{Definition, SeriesKey, SeriesValue};
use gake_core::record::{Sum, Tally};

use crate::metrics::BuiltinMetric;
use crate::test::Test;
use crate::user::series_index::{SeriesIndex, TagSource};

/// Counts `dropped` iterations of a scenario and writes them as that many `samples`: one each, or,
/// as k6 does for the rest at a scenario's end, one for all.
pub fn add_dropped(
    test: &Test,
    series_index: &SeriesIndex,
    scenario: Option<&str>,
    (dropped, samples): (u64, u64),
    tally: &mut Tally,
) {
    let number = BuiltinMetric::DroppedIterations.number();
    let Some(metric) = series_index.definition(number).filter(|_| dropped > 0) else { return };
    test.write_samples(&metric, scenario, dropped as f64 / samples as f64, samples);
    let mut sum = Sum::default();
    sum.add(dropped as f64);
    let key = unattributed_series(test, series_index, scenario, metric);
    tally.series.add_value(key, &SeriesValue::Counter { sum, samples: dropped });
}

/// The series of a metric under the tags of the run, or of a scenario, but of no user.
pub fn unattributed_series(
    test: &Test,
    series_index: &SeriesIndex,
    scenario: Option<&str>,
    metric: Arc<Definition>,
) -> SeriesKey {
    let tags = series_index.tag_set(&UnattributedTags { test, scenario }).tags().clone();
    SeriesKey { metric, tags }
}

struct UnattributedTags<'a> {
    test: &'a Test,
    scenario: Option<&'a str>,
}

impl TagSource for UnattributedTags<'_> {
    fn tag(&self, key: &str) -> Option<Cow<'_, str>> {
        let mut tags = self.test.own_tags(self.scenario);
        tags.find(|(name, _)| *name == key).map(|(_, value)| value.into())
    }

    fn keys(&self) -> Vec<String> {
        self.test.own_tags(self.scenario).map(|(name, _)| name.to_owned()).collect()
    }
}
