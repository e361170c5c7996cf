//! Experimental features that a run can switch on (`--features`, `K6_FEATURES`).

use gake_script::user::CARRIES_STATE;

/// The features that are on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Features {
    /// Outputs get trends as native histograms.
    pub native_histograms: bool,
    /// Tags of a run are merged from all sources of options instead of replaced.
    pub merge_run_tags: bool,
    /// Scripts cannot change `__ENV`.
    pub freeze_env: bool,
    /// Groups may be async, and tags follow promises, timers and handlers.
    pub async_metric_context: bool,
}

impl Features {
    /// Their names and descriptions, as k6 lists them.
    pub const ALL: [(&str, &str); 4] = [
        (
            "async-metric-context",
            "Carry tags, metadata and group across await, and accept async groups",
        ),
        ("freeze-env", "Freeze __ENV object to prevent modifications from JS code"),
        ("merge-run-tags", "Merge run tags across config layers instead of replacing"),
        ("native-histograms", "Use native histograms for trend metrics"),
    ];

    /// The tags of a run with these features, as in k6.
    #[must_use]
    pub fn tags(self) -> Vec<String> {
        let Self { native_histograms, merge_run_tags, freeze_env, async_metric_context } = self;
        let all = [
            ("native_histograms", native_histograms),
            ("merge_run_tags", merge_run_tags),
            ("freeze_env", freeze_env),
            ("async_metric_context", async_metric_context),
        ];
        let active = all.into_iter().filter(|(_, is_on)| *is_on);
        active.map(|(name, _)| format!("k6_feature_{name}")).collect()
    }

    /// Switches a feature on. Returns whether there is one of this name.
    pub fn enable(&mut self, name: &str) -> bool {
        let feature = match name {
            "native-histograms" => &mut self.native_histograms,
            "merge-run-tags" => &mut self.merge_run_tags,
            "freeze-env" => &mut self.freeze_env,
            "async-metric-context" if CARRIES_STATE => &mut self.async_metric_context,
            _ => return false,
        };
        *feature = true;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_feature_can_be_enabled() {
        let mut features = Features::default();
        assert!(Features::ALL.iter().all(|(name, _)| features.enable(name)));
        let Features { native_histograms, merge_run_tags, freeze_env, async_metric_context } =
            features;
        assert!(native_histograms && merge_run_tags && freeze_env && async_metric_context);
        assert!(!features.enable("nothing"));
    }
}
