//! Merges the tiers of options.

use super::shortcuts;
use super::{DnsOptions, K6Options, OptionsError};

/// The default statistics of trends.
const TREND_STATS: [&str; 6] = ["avg", "min", "med", "max", "p(90)", "p(95)"];

/// The default system tags.
pub(crate) const SYSTEM_TAGS: [&str; 14] = [
    "check",
    "error",
    "error_code",
    "expected_response",
    "group",
    "method",
    "name",
    "proto",
    "scenario",
    "service",
    "status",
    "subproto",
    "tls_version",
    "url",
];

/// System tags that are off by default.
pub(crate) const OPTIONAL_SYSTEM_TAGS: [&str; 4] = ["ip", "iter", "ocsp_status", "vu"];

/// The sources of options, from the lowest tier to the highest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tier {
    /// The file of `--config`.
    File,
    /// The script's `options`.
    Script,
    /// The environment.
    Environment,
    /// The command line.
    Flags,
}

/// The options of each tier.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tiers {
    /// The file of `--config`.
    pub file: K6Options,
    /// The script's `options`.
    pub script: K6Options,
    /// The environment.
    pub environment: K6Options,
    /// The command line.
    pub flags: K6Options,
    /// Whether a tier adds to the tags of lower ones instead of replacing them.
    pub merges_tags: bool,
}

/// The merged options of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct ConsolidatedOptions {
    /// The options, with scenarios in place of the shortcuts.
    pub options: K6Options,
    /// The options with the shortcuts as they were given, as archives have them.
    pub given: K6Options,
    /// k6's warnings.
    pub warnings: Vec<String>,
}

/// The options of all tiers, with the shortcuts as they were given.
#[derive(Debug)]
pub struct MergedOptions {
    /// The options.
    pub options: K6Options,
    /// k6's warnings.
    warnings: Vec<String>,
}

impl MergedOptions {
    /// Puts scenarios in place of the shortcuts.
    ///
    /// # Errors
    /// When two shortcuts contradict each other, in k6's words.
    pub fn derive(self) -> Result<ConsolidatedOptions, OptionsError> {
        let Self { mut options, mut warnings } = self;
        let given = options.clone();
        shortcuts::derive(&mut options, &mut warnings)?;
        Ok(ConsolidatedOptions { options, given, warnings })
    }
}

impl Tiers {
    /// [Merges](Self::merge) the tiers, and puts scenarios in place of the shortcuts.
    ///
    /// # Errors
    /// When two shortcuts contradict each other, in k6's words.
    pub fn consolidate(self) -> Result<ConsolidatedOptions, OptionsError> {
        self.merge().derive()
    }

    /// Merges the tiers: each overrides the lower ones, and one that sets a load (`duration`,
    /// `iterations`, `stages` or `scenarios`) drops theirs.
    #[must_use]
    pub fn merge(self) -> MergedOptions {
        let mut warnings = Vec::new();
        let mut options = K6Options::default();
        for (tier, mut higher) in [
            (Tier::File, self.file),
            (Tier::Script, self.script),
            (Tier::Environment, self.environment),
            (Tier::Flags, self.flags),
        ] {
            if higher.sets_a_load() {
                // As in k6, even if the scenarios are empty.
                if options.scenarios.is_some() {
                    warnings.push(format!(
                        "\"{}\" level configuration overrode scenarios configuration entirely",
                        tier.name()
                    ));
                }
                options.duration = None;
                options.iterations = None;
                options.stages = None;
                options.scenarios = None;
            }
            if let (true, Some(lower), Some(tags)) =
                (self.merges_tags, &options.tags, &mut higher.tags)
            {
                for (name, value) in lower {
                    tags.entry(name.clone()).or_insert_with(|| value.clone());
                }
            }
            options.set(higher);
        }
        fill_in(&mut options);
        MergedOptions { options, warnings }
    }
}

impl Tier {
    /// Its name in k6's warnings.
    const fn name(self) -> &'static str {
        match self {
            Self::File => "json",
            Self::Script => "script",
            Self::Environment => "env",
            Self::Flags => "cli",
        }
    }
}

impl K6Options {
    fn sets_a_load(&self) -> bool {
        self.duration.is_some()
            || self.iterations.is_some()
            || self.stages.is_some()
            || self.scenarios.is_some()
    }
}

/// Sets the defaults that scripts see.
fn fill_in(options: &mut K6Options) {
    options.dns.get_or_insert_with(DnsOptions::default);
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    options.summary_trend_stats.get_or_insert_with(|| owned(&TREND_STATS));
    let tags = options.system_tags.get_or_insert_default();
    if tags.is_empty() {
        *tags = owned(&SYSTEM_TAGS);
    }
    tags.retain(|tag| {
        SYSTEM_TAGS.contains(&tag.as_str()) || OPTIONAL_SYSTEM_TAGS.contains(&tag.as_str())
    });
    tags.sort();
    tags.dedup();
}
