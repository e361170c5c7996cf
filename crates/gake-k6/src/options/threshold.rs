//! The options of a threshold.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::value::{OptionValue, known, mismatch};
use crate::duration::GoDuration;

/// A threshold: its expression, and whether its failure aborts the run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ThresholdOptions {
    /// The expression, such as `p(95)<200`.
    pub expression: String,
    /// Whether its failure aborts the run.
    pub abort_on_fail: bool,
    /// The time from the start of the run during which it cannot abort.
    pub delay_abort_eval: Option<GoDuration>,
}

impl OptionValue for ThresholdOptions {
    fn from_json(value: &Value) -> Result<Option<Self>, String> {
        let object = match value {
            Value::String(expression) => {
                return Ok(Some(Self { expression: expression.clone(), ..Self::default() }));
            }
            Value::Object(object) => object,
            other => return Err(mismatch(other, "metrics.rawThresholdConfig")),
        };
        let keys = ["threshold", "abortOnFail", "delayAbortEval"];
        let mut threshold = Self::default();
        for (key, value) in known(object, &keys).0 {
            match key {
                "threshold" => {
                    threshold.expression = String::from_json(value)?.unwrap_or_default();
                }
                "abortOnFail" => {
                    threshold.abort_on_fail =
                        value.as_bool().ok_or_else(|| mismatch(value, "bool"))?;
                }
                _ => threshold.delay_abort_eval = OptionValue::from_json(value)?,
            }
        }
        Ok(Some(threshold))
    }
}

impl Serialize for ThresholdOptions {
    /// Only the expression if nothing else is set.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !self.abort_on_fail && self.delay_abort_eval.is_none() {
            return serializer.serialize_str(&self.expression);
        }
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("threshold", &self.expression)?;
        map.serialize_entry("abortOnFail", &self.abort_on_fail)?;
        map.serialize_entry("delayAbortEval", &self.delay_abort_eval)?;
        map.end()
    }
}
