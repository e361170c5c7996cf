//! Options in the environment: `K6_VUS`, `K6_DURATION` and the like.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::value::OptionValue;
use super::{K6Options, OptionsError};
use crate::duration::GoDuration;

/// What a text in the environment is.
#[derive(Clone, Copy)]
enum Form {
    /// A text that JSON would have as a text too: a number, a duration, a name.
    Text,
    /// `true` or `false`.
    Flag,
    /// Texts with commas between them.
    List,
    /// `10s:5,20s:0`.
    Stages,
    /// `ttl=5m,select=random,policy=any`.
    Pairs,
    /// `a:b,c:d`.
    Tags,
}

const VARIABLES: &[(&str, &str, Form)] = &[
    ("K6_PAUSED", "paused", Form::Flag),
    ("K6_VUS", "vus", Form::Text),
    ("K6_DURATION", "duration", Form::Text),
    ("K6_ITERATIONS", "iterations", Form::Text),
    ("K6_STAGES", "stages", Form::Stages),
    ("K6_NO_SETUP", "noSetup", Form::Flag),
    ("K6_SETUP_TIMEOUT", "setupTimeout", Form::Text),
    ("K6_NO_TEARDOWN", "noTeardown", Form::Flag),
    ("K6_TEARDOWN_TIMEOUT", "teardownTimeout", Form::Text),
    ("K6_RPS", "rps", Form::Text),
    ("K6_DNS", "dns", Form::Pairs),
    ("K6_MAX_REDIRECTS", "maxRedirects", Form::Text),
    ("K6_USER_AGENT", "userAgent", Form::Text),
    ("K6_BATCH", "batch", Form::Text),
    ("K6_BATCH_PER_HOST", "batchPerHost", Form::Text),
    ("K6_HTTP_DEBUG", "httpDebug", Form::Text),
    ("K6_INSECURE_SKIP_TLS_VERIFY", "insecureSkipTLSVerify", Form::Flag),
    ("K6_THROW", "throw", Form::Flag),
    ("K6_BLACKLIST_IPS", "blacklistIPs", Form::List),
    ("K6_BLOCK_HOSTNAMES", "blockHostnames", Form::List),
    ("K6_NO_CONNECTION_REUSE", "noConnectionReuse", Form::Flag),
    ("K6_NO_VU_CONNECTION_REUSE", "noVUConnectionReuse", Form::Flag),
    ("K6_MIN_ITERATION_DURATION", "minIterationDuration", Form::Text),
    ("K6_SUMMARY_TREND_STATS", "summaryTrendStats", Form::List),
    ("K6_SUMMARY_TIME_UNIT", "summaryTimeUnit", Form::Text),
    ("K6_SYSTEM_TAGS", "systemTags", Form::List),
    ("K6_TAGS", "tags", Form::Tags),
    ("K6_METRIC_SAMPLES_BUFFER_SIZE", "metricSamplesBufferSize", Form::Text),
    ("K6_NO_COOKIES_RESET", "noCookiesReset", Form::Flag),
    ("K6_DISCARD_RESPONSE_BODIES", "discardResponseBodies", Form::Flag),
    ("K6_CONSOLE_OUTPUT", "consoleOutput", Form::Text),
    ("K6_LOCAL_IPS", "localIPs", Form::Text),
];

/// The options that the environment sets. The execution segment is not one: k6 takes it only from
/// flags, files and scripts.
///
/// # Errors
/// When a variable does not fit its option; the variable is named.
pub fn from_environment(environment: &BTreeMap<String, String>) -> Result<K6Options, OptionsError> {
    let mut options = K6Options::default();
    for (variable, key, form) in VARIABLES {
        let Some(text) = environment.get(*variable) else { continue };
        if text.is_empty() && !matches!(form, Form::Stages) {
            continue;
        }
        let wrong = |reason: String| OptionsError(format!("{variable}={text}: {reason}"));
        let value = form.value(text).map_err(wrong)?;
        options.read_entry(key, &value).map_err(wrong)?;
    }
    Ok(options)
}

impl Form {
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

/// A stage as flags and environment have it: `10s:5`.
fn stage(text: &str) -> Result<Value, String> {
    let (duration, target) = text.split_once(':').map_or((text, None), |(d, t)| (d, Some(t)));
    GoDuration::parse_go(duration).map_err(|error| error.to_string())?;
    if let Some(target) = target {
        i64::from_json(&Value::from(target))?;
    }
    Ok(json!({ "duration": duration, "target": target }))
}

fn pairs(text: &str, between: char) -> Result<Map<String, Value>, String> {
    let pair = |pair: &str| {
        let (key, value) =
            pair.split_once(between).ok_or_else(|| format!("no value for key {pair}"))?;
        Ok((key.to_owned(), Value::from(value)))
    };
    text.split(',').map(pair).collect()
}

impl K6Options {
    /// Sets an option to what a flag says, in the form of the environment: `setupTimeout` to `5s`,
    /// `stages` to `10s:5,20s:0`.
    ///
    /// # Errors
    /// When the text does not fit the option, in k6's words.
    pub fn set_text(&mut self, key: &str, text: &str) -> Result<(), OptionsError> {
        let form =
            VARIABLES.iter().find(|entry| entry.1 == key).map_or(Form::Text, |entry| entry.2);
        let value = form.value(text).map_err(OptionsError)?;
        self.read_entry(key, &value).map_err(OptionsError)
    }
}
