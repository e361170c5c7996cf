//! Flags in the environment: `K6_NO_SUMMARY`, `K6_OUT` and the like.

use std::collections::BTreeMap;

use gake_k6::version::K6Version;

/// The kind of a variable's value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holds {
    /// A value that is checked where the flag's is.
    Text,
    /// A value that Go parses as true or false.
    Flag,
    /// Values separated by commas, each for a flag of its own.
    List,
    /// `true` or `false` alone.
    Option,
}

/// The variables whose names begin with `prefix`, by the rest of their names.
pub(super) fn with_prefix(
    environment: &BTreeMap<String, String>,
    prefix: &str,
) -> BTreeMap<String, String> {
    let own = environment
        .iter()
        .filter_map(|(name, value)| Some((name.strip_prefix(prefix)?.to_owned(), value.clone())));
    own.collect()
}

/// A variable that 2.x ignores.
const NO_SUMMARY: &str = "K6_NO_SUMMARY";

const VARIABLES: &[(&str, &str, Holds)] = &[
    ("K6_NO_THRESHOLDS", "no-thresholds", Holds::Flag),
    (NO_SUMMARY, "no-summary", Holds::Flag),
    ("K6_ADDRESS", "address", Holds::Text),
    ("K6_SUMMARY_MODE", "summary-mode", Holds::Text),
    ("K6_SUMMARY_EXPORT", "summary-export", Holds::Text),
    ("K6_NEW_MACHINE_READABLE_SUMMARY", "new-machine-readable-summary", Holds::Flag),
    ("K6_INCLUDE_SYSTEM_ENV_VARS", "include-system-env-vars", Holds::Flag),
    ("K6_COMPATIBILITY_MODE", "compatibility-mode", Holds::Text),
    ("K6_TYPE", "type", Holds::Text),
    ("K6_OUT", "out", Holds::List),
    ("K6_FEATURES", "features", Holds::List),
    ("K6_CONSOLE_OUTPUT", "console-output", Holds::Text),
    ("K6_LOG_OUTPUT", "log-output", Holds::Text),
    ("K6_LOG_FORMAT", "log-format", Holds::Text),
    ("K6_LOG_NS_TIMESTAMPS", "log-ns-timestamps", Holds::Flag),
    ("K6_LINGER", "linger", Holds::Option),
];

/// A command line with the flags that the environment adds to it: only flags that the command line
/// does not have.
///
/// # Errors
/// When a variable is neither true nor false where it has to be; it is named.
pub(super) fn with_flags(
    args: &[String],
    environment: &BTreeMap<String, String>,
    version: K6Version,
) -> Result<Vec<String>, String> {
    let mut all = Vec::new();
    for (variable, flag, holds) in VARIABLES {
        if version == K6Version::Two && *variable == NO_SUMMARY {
            continue;
        }
        let Some(text) = environment.get(*variable).filter(|text| !text.is_empty()) else {
            continue;
        };
        match holds {
            Holds::Text => all.push(format!("--{flag}={text}")),
            Holds::Flag => all.push(format!("--{flag}={}", truth(variable, text)?)),
            Holds::Option => match text.as_str() {
                "true" | "false" => all.push(format!("--{flag}={text}")),
                _ => return Err(format!("{variable}={text}: it is true or false")),
            },
            Holds::List if has(args, flag) => {}
            Holds::List => all.extend(text.split(',').map(|one| format!("--{flag}={one}"))),
        }
    }
    // The last value of a repeated flag wins.
    all.extend(args.iter().cloned());
    Ok(all)
}

fn truth(variable: &str, text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err(format!(
            "env var '{variable}' is not a valid boolean value: strconv.ParseBool: parsing \
             {text:?}: invalid syntax"
        )),
    }
}

/// Whether `--out` stands on a command line.
fn has(args: &[String], flag: &str) -> bool {
    let long = format!("--{flag}");
    let short = format!("-{}", &flag[..1]);
    args.iter().any(|arg| {
        let name = arg.split('=').next().unwrap_or(arg);
        name == long || (arg.starts_with(&short) && !arg.starts_with("--"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(variables: &[(&str, &str)], args: &[&str]) -> Result<String, String> {
        let environment =
            variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        Ok(with_flags(&args, &environment.collect(), K6Version::One)?.join(" "))
    }

    #[test]
    fn variables_precede_flags() {
        let expected = with(&[("K6_SUMMARY_MODE", "full"), ("K6_NO_SUMMARY", "F")], &["a.js"]);
        assert_eq!(expected.as_deref(), Ok("--no-summary=false --summary-mode=full a.js"));
        let outs = [("K6_OUT", "json=a,csv=b"), ("K6_TYPE", "")];
        assert_eq!(with(&outs, &["a.js"]).as_deref(), Ok("--out=json=a --out=csv=b a.js"));
        for own in [&["--out", "csv=c"][..], &["--out=csv=c"], &["-o", "csv=c"], &["-o=csv=c"]] {
            assert_eq!(with(&outs, own), Ok(own.join(" ")));
        }
    }

    #[test]
    fn what_is_neither_true_nor_false_is_refused() {
        for (variable, expected) in [
            ("K6_NO_THRESHOLDS", "env var 'K6_NO_THRESHOLDS' is not a valid boolean value"),
            ("K6_LINGER", "K6_LINGER=x"),
        ] {
            assert!(with(&[(variable, "x")], &[]).unwrap_err().starts_with(expected));
        }
    }
}
