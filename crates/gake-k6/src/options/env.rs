//! Options in the environment: `K6_VUS`, `K6_DURATION` and the like.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::value::OptionValue;
use super::{K6Options, OptionsError};
use crate::duration::GoDuration;

/// The syntax of a variable's value.
#[derive(Clone, Copy)]
enum VariableSyntax {
    /// A string in JSON: a number, a duration, a name.
    Text,
    /// `true` or `false`.
    Flag,
    /// Comma-separated strings.
    List,
    /// `10s:5,20s:0`.
    Stages,
    /// `ttl=5m,select=random,policy=any`.
    Pairs,
    /// `a:b,c:d`.
    Tags,
}

const VARIABLES: &[(&str, &str, VariableSyntax)] = &[
    ("K6_PAUSED", "paused", VariableSyntax::Flag),
    ("K6_VUS", "vus", VariableSyntax::Text),
    ("K6_DURATION", "duration", VariableSyntax::Text),
    ("K6_ITERATIONS", "iterations", VariableSyntax::Text),
    ("K6_STAGES", "stages", VariableSyntax::Stages),
    ("K6_NO_SETUP", "noSetup", VariableSyntax::Flag),
    ("K6_SETUP_TIMEOUT", "setupTimeout", VariableSyntax::Text),
    ("K6_NO_TEARDOWN", "noTeardown", VariableSyntax::Flag),
    ("K6_TEARDOWN_TIMEOUT", "teardownTimeout", VariableSyntax::Text),
    ("K6_HANDLE_SUMMARY_TIMEOUT", "handleSummaryTimeout", VariableSyntax::Text),
    ("K6_RPS", "rps", VariableSyntax::Text),
    ("K6_DNS", "dns", VariableSyntax::Pairs),
    ("K6_MAX_REDIRECTS", "maxRedirects", VariableSyntax::Text),
    ("K6_USER_AGENT", "userAgent", VariableSyntax::Text),
    ("K6_BATCH", "batch", VariableSyntax::Text),
    ("K6_BATCH_PER_HOST", "batchPerHost", VariableSyntax::Text),
    ("K6_HTTP_DEBUG", "httpDebug", VariableSyntax::Text),
    ("K6_INSECURE_SKIP_TLS_VERIFY", "insecureSkipTLSVerify", VariableSyntax::Flag),
    ("K6_THROW", "throw", VariableSyntax::Flag),
    ("K6_BLACKLIST_IPS", "blacklistIPs", VariableSyntax::List),
    ("K6_BLOCK_HOSTNAMES", "blockHostnames", VariableSyntax::List),
    ("K6_NO_CONNECTION_REUSE", "noConnectionReuse", VariableSyntax::Flag),
    ("K6_NO_VU_CONNECTION_REUSE", "noVUConnectionReuse", VariableSyntax::Flag),
    ("K6_MIN_ITERATION_DURATION", "minIterationDuration", VariableSyntax::Text),
    ("K6_SUMMARY_TREND_STATS", "summaryTrendStats", VariableSyntax::List),
    ("K6_SUMMARY_TIME_UNIT", "summaryTimeUnit", VariableSyntax::Text),
    ("K6_SYSTEM_TAGS", "systemTags", VariableSyntax::List),
    ("K6_TAGS", "tags", VariableSyntax::Tags),
    ("K6_METRIC_SAMPLES_BUFFER_SIZE", "metricSamplesBufferSize", VariableSyntax::Text),
    ("K6_NO_COOKIES_RESET", "noCookiesReset", VariableSyntax::Flag),
    ("K6_DISCARD_RESPONSE_BODIES", "discardResponseBodies", VariableSyntax::Flag),
    ("K6_CONSOLE_OUTPUT", "consoleOutput", VariableSyntax::Text),
    ("K6_LOCAL_IPS", "localIPs", VariableSyntax::Text),
];

/// The options that the environment sets. As in k6, the execution segment is not among them.
///
/// # Errors
/// When the value of a variable is invalid; the variable is named.
pub fn from_environment(environment: &BTreeMap<String, String>) -> Result<K6Options, OptionsError> {
    let mut options = K6Options::default();
    for (variable, key, syntax) in VARIABLES {
        let Some(text) = environment.get(*variable) else { continue };
        if text.is_empty() && !matches!(syntax, VariableSyntax::Stages) {
            continue;
        }
        let wrong = |reason: String| OptionsError(format!("{variable}={text}: {reason}"));
        let value = syntax.value(text).map_err(wrong)?;
        options.read_entry(key, &value).map_err(wrong)?;
    }
    Ok(options)
}

impl VariableSyntax {
    fn value(self, text: &str) -> Result<Value, String> {
        Ok(match self {
            Self::Text => Value::from(text),
            Self::Flag => match text {
                "true" => Value::Bool(true),
                "false" => Value::Bool(false),
                _ => return Err(format!("invalid input:{text}")),
            },
            Self::List => text.split(',').collect(),
            Self::Stages => {
                let stages = text.split(',').filter(|stage| !stage.is_empty());
                stages.map(stage).collect::<Result<_, _>>()?
            }
            Self::Pairs => Value::Object(pairs(text, '=')?),
            Self::Tags => Value::Object(pairs(text, ':')?),
        })
    }
}

/// A stage in flags and environment: `10s:5`.
fn stage(text: &str) -> Result<Value, String> {
    let (duration, target) = text.split_once(':').map_or((text, None), |(d, t)| (d, Some(t)));
    GoDuration::parse_go(duration).map_err(|error| error.to_string())?;
    if let Some(target) = target {
        i64::from_json(&Value::from(target))?;
    }
    Ok(json!({ "duration": duration, "target": target }))
}

fn pairs(text: &str, separator: char) -> Result<Map<String, Value>, String> {
    let pair = |pair: &str| {
        let (key, value) =
            pair.split_once(separator).ok_or_else(|| format!("no value for key {pair}"))?;
        Ok((key.to_owned(), Value::from(value)))
    };
    text.split(',').map(pair).collect()
}

impl K6Options {
    /// Sets an option to the value of a flag, in the syntax of the environment: `setupTimeout` to
    /// `5s`, `stages` to `10s:5,20s:0`.
    ///
    /// # Errors
    /// When the text is invalid, in k6's words.
    pub fn set_text(&mut self, key: &str, text: &str) -> Result<(), OptionsError> {
        let syntax = VARIABLES
            .iter()
            .find(|entry| entry.1 == key)
            .map_or(VariableSyntax::Text, |entry| entry.2);
        let value = syntax.value(text).map_err(OptionsError)?;
        self.read_entry(key, &value).map_err(OptionsError)
    }
}
