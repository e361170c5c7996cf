//! The version of k6 whose command line and options a test follows.

use std::collections::BTreeMap;

use crate::options::{Executor, K6Options, OptionsError};

/// A major version of k6: 2 by default, 1 with what 2.0 removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum K6Version {
    /// 1.8: `externally-controlled`, the REST API without `--address`, the old summary.
    One,
    /// 2.3.
    #[default]
    Two,
}

impl K6Version {
    /// The variable of the environment that names it.
    pub const VARIABLE: &str = "GAKE_K6_VERSION";

    /// Reads `1`, `1.8`, `v2.3.0` and the like; the error says what may be given.
    ///
    /// # Errors
    /// When the major version is neither 1 nor 2.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.trim_start_matches('v').split('.').next() {
            Some("1") => Ok(Self::One),
            Some("2") => Ok(Self::Two),
            _ => Err(format!("the version {text:?} of k6 is neither 1.8 nor 2.3")),
        }
    }

    /// The version that the environment names, or the default one.
    ///
    /// # Errors
    /// When it names one that gake does not have.
    pub fn of(environment: &BTreeMap<String, String>) -> Result<Self, String> {
        let named = environment.get(Self::VARIABLE).filter(|text| !text.is_empty());
        named.map_or(Ok(Self::default()), |text| {
            Self::parse(text).map_err(|why| format!("{}: {why}", Self::VARIABLE))
        })
    }

    /// The version that it follows.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::One => "1.8",
            Self::Two => "2.3",
        }
    }

    /// The release that it follows.
    #[must_use]
    pub const fn full_name(self) -> &'static str {
        match self {
            Self::One => "1.8.1",
            Self::Two => "2.3.0",
        }
    }

    /// Checks that it has all that these options use.
    ///
    /// # Errors
    /// In k6's words.
    pub fn check(self, options: &K6Options) -> Result<(), OptionsError> {
        let is_removed = |executor| self == Self::Two && executor == Executor::ExternallyControlled;
        let mut scenarios = options.scenarios.iter().flatten();
        match scenarios.find(|(_, scenario)| is_removed(scenario.executor)) {
            Some((_, scenario)) => {
                Err(OptionsError(format!("unknown executor type '{}'", scenario.executor.name())))
            }
            None => Ok(()),
        }
    }
}
