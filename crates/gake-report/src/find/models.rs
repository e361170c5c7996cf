//! Models and the map in JSON.

use gake_judge::overload::{LoadLevel, Overload, Recovery};
use gake_judge::usl::{IntervalEstimate, PoolFit, Usl};
use serde::Serialize;

/// A value with its 95 % interval.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct RangedForm {
    /// The value.
    value: f64,
    /// The lower end.
    low: f64,
    /// The upper end; null when it has none.
    high: Option<f64>,
}

/// The universal scalability law: X(N) = γN/(1 + σ(N − 1) + κN(N − 1)).
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct ScalingForm {
    /// γ: throughput of one user, a second.
    gamma: RangedForm,
    /// σ: contention.
    sigma: RangedForm,
    /// κ: coherency.
    kappa: RangedForm,
    /// Users at which throughput peaks; null when it does not.
    peak_users: Option<RangedForm>,
    /// Throughput there.
    peak_throughput: Option<RangedForm>,
    /// Whether the points determine the peak.
    peak_determined: bool,
}

/// The pool that explains a plateau.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct PoolForm {
    /// Ok responses a second on the plateau.
    throughput: f64,
    /// Mean response time without load.
    service_s: f64,
    /// How many are served at once.
    slots: RangedForm,
}

/// What comes after the capacity.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct MapForm {
    /// `graceful`, `shedding`, `retrograde`, `collapsing` or `unknown`.
    class: &'static str,
    /// Whether the seconds leave no other class.
    sure: bool,
    /// Throughput on the highest stair as a part of the best.
    retained: Option<RangedForm>,
    /// Requests begin to be late between these two rates.
    knee: Option<(f64, f64)>,
    /// Whether most are lost from one stair to the next.
    cliff: bool,
    /// The part of the overload that was refused.
    refused: f64,
    /// The part of the accepted that was in time.
    in_time: f64,
    /// Mean time to a refusal.
    refusal_s: f64,
    /// `recovered`, `draining`, `metastable` or `unknown`.
    recovery: &'static str,
    /// Seconds after the overload until it was as before.
    recovered_after_s: Option<f64>,
    /// A level at which the way down was worse than the way up.
    hysteresis: Option<BranchesForm>,
    /// Whether the target stopped answering.
    gone: bool,
    /// Every stair.
    stairs: Vec<StairForm>,
}

/// The good shares at one level.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct BranchesForm {
    /// Arrivals a second.
    level: f64,
    /// On the way up.
    up: f64,
    /// On the way down.
    down: f64,
}

/// A stair. Rates are a second.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct StairForm {
    /// `up` or `down`.
    leg: &'static str,
    /// Arrivals a second.
    level: f64,
    /// Ended ok.
    ok: f64,
    /// Ended ok and in time.
    good: f64,
    /// Ended otherwise.
    failed: f64,
    /// Mean response time of the ok ones.
    response_s: f64,
}

impl From<IntervalEstimate> for RangedForm {
    fn from(ranged: IntervalEstimate) -> Self {
        let IntervalEstimate { value, low, high } = ranged;
        Self { value, low, high: high.is_finite().then_some(high) }
    }
}

impl From<Usl> for ScalingForm {
    fn from(law: Usl) -> Self {
        Self {
            gamma: law.gamma.into(),
            sigma: law.sigma.into(),
            kappa: law.kappa.into(),
            peak_users: law.peak_users.map(RangedForm::from),
            peak_throughput: law.peak_throughput.map(RangedForm::from),
            peak_determined: law.peak_determined,
        }
    }
}

impl From<PoolFit> for PoolForm {
    fn from(pool: PoolFit) -> Self {
        Self { throughput: pool.throughput, service_s: pool.service, slots: pool.slots.into() }
    }
}

impl From<&Overload> for MapForm {
    fn from(overload: &Overload) -> Self {
        let after = match overload.recovery {
            Recovery::After(seconds) => Some(seconds),
            _ => None,
        };
        Self {
            class: overload.class.name(),
            sure: overload.sure,
            retained: overload.retained.map(RangedForm::from),
            knee: overload.knee,
            cliff: overload.cliff,
            refused: overload.refused,
            in_time: overload.in_time,
            refusal_s: overload.refusal,
            recovery: overload.recovery.name(),
            recovered_after_s: after,
            hysteresis: overload.hysteresis.map(|(level, up, down)| BranchesForm {
                level,
                up,
                down,
            }),
            gone: overload.gone,
            stairs: overload.levels.iter().map(StairForm::from).collect(),
        }
    }
}

impl From<&LoadLevel> for StairForm {
    fn from(level: &LoadLevel) -> Self {
        Self {
            leg: level.step.direction.name(),
            level: level.step.level,
            ok: level.ok,
            good: level.good,
            failed: level.failed,
            response_s: level.response,
        }
    }
}
