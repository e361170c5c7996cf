//! A script's `export const options = {...}`.

use gake_script::{Export, Value};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum BodyFormat {
    #[default]
    None,
    /// As a string, with U+FFFD for bytes that are not UTF-8.
    Text,
    /// As a `Uint8Array`.
    Bytes,
}

#[derive(Debug, Default, PartialEq)]
pub(super) struct ScriptHookOptions {
    /// The backends that `mungeRequest` is called for; `None` means all.
    munge: Option<Vec<String>>,
    pub(super) request_body: BodyFormat,
    pub(super) response_body: BodyFormat,
}

impl ScriptHookOptions {
    /// Parses the export; the error is for the script's author.
    pub(super) fn of(export: Option<&Export>, backends: &[&str]) -> Result<Self, String> {
        let mut options = Self::default();
        let properties = match export {
            None => return Ok(options),
            Some(Export::Value(Value::Map(properties))) => properties,
            Some(_) => return Err("options is not an object".to_owned()),
        };
        for (name, value) in properties {
            match name.as_str() {
                "munge" => options.munge = Some(names(value, backends)?),
                "requestBody" => options.request_body = body(name, value)?,
                "answerBody" => options.response_body = body(name, value)?,
                _ => {
                    return Err(format!(
                        "options.{name} is unknown; the options are munge, requestBody and answerBody"
                    ));
                }
            }
        }
        Ok(options)
    }

    pub(super) fn munges(&self, backend: &str) -> bool {
        self.munge.as_ref().is_none_or(|names| names.iter().any(|name| name == backend))
    }
}

fn names(value: &Value, backends: &[&str]) -> Result<Vec<String>, String> {
    let wrong = || "options.munge is not an array of backends' names".to_owned();
    let Value::List(values) = value else { return Err(wrong()) };
    let name = |value: &Value| match value {
        Value::Text(name) if backends.contains(&name.as_str()) => Ok(name.clone()),
        Value::Text(name) => {
            Err(format!("options.munge names {name:?}; the backends are {}", backends.join(", ")))
        }
        _ => Err(wrong()),
    };
    values.iter().map(name).collect()
}

fn body(name: &str, value: &Value) -> Result<BodyFormat, String> {
    let Value::Text(text) = value else { return Err(format!("options.{name} is not a string")) };
    match text.as_str() {
        "none" => Ok(BodyFormat::None),
        "text" => Ok(BodyFormat::Text),
        "bytes" => Ok(BodyFormat::Bytes),
        _ => Err(format!("options.{name} is {text:?}; write \"none\", \"text\" or \"bytes\"")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(properties: &[(&str, Value)]) -> Result<ScriptHookOptions, String> {
        let properties = properties.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        let export = Export::Value(Value::Map(properties.collect()));
        ScriptHookOptions::of(Some(&export), &["production", "sandbox"])
    }

    #[test]
    fn options_are_all_optional_and_misspelt_ones_are_refused() {
        assert_eq!(ScriptHookOptions::of(None, &[]), Ok(ScriptHookOptions::default()));
        assert_eq!(read(&[]), Ok(ScriptHookOptions::default()));
        assert!(ScriptHookOptions::default().munges("production"));
        let some = read(&[
            ("munge", Value::List(vec![Value::text("sandbox")])),
            ("requestBody", Value::text("text")),
            ("answerBody", Value::text("bytes")),
        ])
        .unwrap();
        assert!(some.munges("sandbox") && !some.munges("production"));
        assert_eq!((some.request_body, some.response_body), (BodyFormat::Text, BodyFormat::Bytes));
        let invalid = [
            ("body", Value::Null),
            ("munge", Value::text("sandbox")),
            ("munge", Value::List(vec![Value::text("sandbx")])),
            ("requestBody", Value::text("string")),
            ("answerBody", Value::Bool(true)),
        ];
        let errors = invalid.map(|option| read(&[option]).unwrap_err());
        expect_test::expect![[r#"
            options.body is unknown; the options are munge, requestBody and answerBody
            options.munge is not an array of backends' names
            options.munge names "sandbx"; the backends are production, sandbox
            options.requestBody is "string"; write "none", "text" or "bytes"
            options.answerBody is not a string"#]]
        .assert_eq(&errors.join("\n"));
        assert!(ScriptHookOptions::of(Some(&Export::Function), &[]).is_err());
    }
}
