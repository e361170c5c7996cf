//! Converts k6's scenarios to the engine's.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use gake_core::Load;
use gake_core::plan::{Overflow, Stage, UserStage};
use gake_core::schedule::Process;
use gake_core::spec::{RequestSource, ScenarioSpec, ScriptSpec};

use super::segment::SegmentNumbers;
use super::{Executor, K6Options, OptionsError, RampStage, ScenarioOptions};
use crate::duration::GoDuration;

/// The default `gracefulStop` and `gracefulRampDown`.
pub(super) const GRACE: GoDuration = GoDuration::from_secs(30);

/// The default `maxDuration`.
pub(super) const MAX_DURATION: GoDuration = GoDuration::from_secs(600);

/// The engine's scenarios for validated options, sorted by name, without scenarios in which the
/// execution segment has no users.
///
/// # Errors
/// When the execution segment is not in its sequence.
pub fn scenario_specs(
    options: &K6Options,
    script: &Path,
) -> Result<Vec<ScenarioSpec>, OptionsError> {
    let segment = SegmentNumbers::of(options).map_err(OptionsError)?;
    let scenarios = options.scenarios.iter().flatten();
    Ok(scenarios.filter_map(|(name, one)| spec(name, one, &segment, script)).collect())
}

/// The maximum of concurrent users, if all scenarios overlap.
#[must_use]
pub fn vus_needed(specs: &[ScenarioSpec]) -> usize {
    specs.iter().map(|spec| spec.load.users().unwrap_or(spec.max_in_flight)).sum()
}

fn spec(
    name: &str,
    scenario: &ScenarioOptions,
    segment: &SegmentNumbers,
    script: &Path,
) -> Option<ScenarioSpec> {
    let source = RequestSource::Script(ScriptSpec {
        path: script.to_owned(),
        function: scenario.exec.clone(),
        environment: pairs(scenario.env.as_ref()),
    });
    let users = u64::try_from(scenario.vus.unwrap_or(1)).unwrap_or(0);
    let iterations = match scenario.executor {
        Executor::SharedIterations => Cow::Owned(segment.among(users)?),
        _ => Cow::Borrowed(segment),
    };
    let load = load(scenario, segment, &iterations)?;
    let mut spec = ScenarioSpec::new(source, load);
    spec.name = name.to_owned();
    spec.start = std(scenario.start_time, GoDuration::ZERO);
    spec.graceful_stop = match scenario.executor {
        Executor::ExternallyControlled => Duration::ZERO,
        _ => std(scenario.graceful_stop, GRACE),
    };
    spec.duration = match scenario.executor {
        Executor::ConstantVus => scenario.duration.map(GoDuration::to_std),
        Executor::SharedIterations | Executor::PerVuIterations => {
            Some(std(scenario.max_duration, MAX_DURATION))
        }
        Executor::ExternallyControlled => {
            scenario.duration.map(GoDuration::to_std).filter(|duration| !duration.is_zero())
        }
        Executor::RampingVus | Executor::ConstantArrivalRate | Executor::RampingArrivalRate => None,
    };
    spec.tags = pairs(scenario.tags.as_ref());
    spec.stripes = iterations.numbers();
    if scenario.executor.is_open() {
        let allocated = scenario.pre_allocated_vus.unwrap_or(0);
        let lanes = segment.users(Some(scenario.max_vus.unwrap_or(allocated)));
        if lanes == 0 {
            return None;
        }
        spec.max_in_flight = lanes;
        spec.connections = lanes;
        spec.overflow = Overflow::Drop;
    }
    Some(spec)
}

/// A scenario's load, with the numbers of its iterations; `None` if the segment has no users.
fn load(
    scenario: &ScenarioOptions,
    segment: &SegmentNumbers,
    iterations: &SegmentNumbers,
) -> Option<Load> {
    let users = segment.users(Some(scenario.vus.unwrap_or(1)));
    let per_second = |rate: Option<i64>| {
        let unit = scenario.time_unit.unwrap_or(GoDuration::from_secs(1));
        rate.unwrap_or(0) as f64 * segment.fraction() / unit.secs()
    };
    let ramp = scenario.stages.as_deref().unwrap_or_default();
    Some(match scenario.executor {
        Executor::ConstantVus => Load::closed(Some(users).filter(|users| *users > 0)?),
        Executor::RampingVus => {
            let start = segment.users(Some(scenario.start_vus.unwrap_or(1)));
            let stages = ramped(
                start,
                ramp,
                |target| segment.users(target),
                |from, to, duration| UserStage { from, to, duration },
            );
            stages.iter().any(|stage| stage.from.max(stage.to) > 0).then_some(())?;
            let graceful_ramp_down = std(scenario.graceful_ramp_down, GRACE);
            Load::Ramping { stages, graceful_ramp_down, think: Duration::ZERO }
        }
        Executor::SharedIterations => {
            let total = u64::try_from(scenario.iterations.unwrap_or(1)).unwrap_or(0);
            let iterations = iterations.share(total);
            Load::Shared { users: Some(users).filter(|users| *users > 0)?, iterations }
        }
        Executor::PerVuIterations => {
            let iterations = u64::try_from(scenario.iterations.unwrap_or(1)).unwrap_or(0);
            Load::PerUser { users: Some(users).filter(|users| *users > 0)?, iterations }
        }
        Executor::ConstantArrivalRate => {
            Load::rate(per_second(scenario.rate), std(scenario.duration, GoDuration::ZERO))
        }
        Executor::RampingArrivalRate => {
            let start = per_second(scenario.start_rate);
            let first = FIRST * segment.fraction();
            let stages =
                ramped(start, ramp, per_second, |from, to, duration| Stage { from, to, duration });
            Load::Open { stages: from_first_due(&stages, first), process: Process::Uniform }
        }
        Executor::ExternallyControlled => {
            let users = segment.users(scenario.vus);
            let max = segment.users(scenario.max_vus.or(scenario.vus));
            Load::External { users, max }
        }
    })
}

/// The area under the rate at which a ramp's first arrival is due: just below 1, so that an arrival
/// due exactly at the end is not lost, as in k6.
const FIRST: f64 = 1.0 - 1e-6;

/// The same rates without the time before the first arrival: k6's is due where the area under the
/// rate reaches `needed`, the engine's at the start.
fn from_first_due(stages: &[Stage], mut needed: f64) -> Vec<Stage> {
    let mut from_first = Vec::with_capacity(stages.len() + 1);
    for (number, stage) in stages.iter().enumerate() {
        let length = stage.duration.as_secs_f64();
        let area = f64::midpoint(stage.from, stage.to) * length;
        if area < needed {
            needed -= area;
            from_first.push(Stage::step(0.0, stage.duration));
            continue;
        }
        let slope = (stage.to - stage.from) / length;
        let root = (stage.from * stage.from + 2.0 * slope * needed).max(0.0).sqrt();
        let into = (2.0 * needed / (stage.from + root)).min(length);
        let pause = Duration::from_secs_f64(into).min(stage.duration);
        from_first.push(Stage::step(0.0, pause));
        let from = stage.from + slope * into;
        from_first.push(Stage { from, to: stage.to, duration: stage.duration - pause });
        from_first.extend_from_slice(&stages[number + 1..]);
        break;
    }
    from_first
}

/// Stages from a start to each target in sequence.
fn ramped<N: Copy, S>(
    start: N,
    ramp: &[RampStage],
    target: impl Fn(Option<i64>) -> N,
    stage: impl Fn(N, N, Duration) -> S,
) -> Vec<S> {
    let mut from = start;
    let through = ramp.iter().map(|next| {
        let to = target(next.target);
        let made = stage(from, to, std(next.duration, GoDuration::ZERO));
        from = to;
        made
    });
    through.collect()
}

impl SegmentNumbers {
    /// Its share of a number of users.
    fn users(&self, total: Option<i64>) -> usize {
        let total = u64::try_from(total.unwrap_or(0)).unwrap_or(0);
        usize::try_from(self.share(total)).unwrap_or(usize::MAX)
    }
}

fn std(duration: Option<GoDuration>, otherwise: GoDuration) -> Duration {
    duration.unwrap_or(otherwise).to_std()
}

fn pairs(map: Option<&BTreeMap<String, String>>) -> Vec<(String, String)> {
    map.into_iter().flatten().map(|(key, value)| (key.clone(), value.clone())).collect()
}
