//! The scalability models and the overload map in JSON.

use gake_judge::overload::{LoadLevel, Overload, Recovery};
use gake_judge::usl::{IntervalEstimate, PoolFit, Usl};
use serde::Serialize;

/// A value with its 95 % interval.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct EstimateJson {
    value: f64,
    /// The lower end.
    low: f64,
    /// The upper end; null when it has none.
    high: Option<f64>,
}

/// The universal scalability law: X(N) = γN/(1 + σ(N − 1) + κN(N − 1)).
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct ScalingJson {
    /// γ: throughput of one user, per second.
    gamma: EstimateJson,
    /// σ: contention.
    sigma: EstimateJson,
    /// κ: coherency.
    kappa: EstimateJson,
    /// Users at the throughput peak; null without a peak.
    peak_users: Option<EstimateJson>,
    /// Throughput at the peak.
    peak_throughput: Option<EstimateJson>,
    /// Whether the data determine the peak.
    peak_determined: bool,
}

/// The pool that explains a plateau.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct PoolJson {
    /// Ok responses per second on the plateau.
    throughput: f64,
    /// Mean response time without load.
    service_s: f64,
    /// Requests served at once.
    slots: EstimateJson,
}

/// The behaviour beyond the capacity.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct OverloadMapJson {
    /// `graceful`, `shedding`, `retrograde`, `collapsing` or `unknown`.
    class: &'static str,
    /// Whether the data exclude every other class.
    sure: bool,
    /// Throughput on the highest stair as a share of the best.
    retained: Option<EstimateJson>,
    /// The two rates between which requests start to be late.
    knee: Option<(f64, f64)>,
    /// Whether most requests are lost within one step.
    cliff: bool,
    /// The refused share of the overload.
    refused: f64,
    /// The share of accepted requests that was in time.
    in_time: f64,
    /// Mean time to a refusal.
    refusal_s: f64,
    recovery: &'static str,
    /// Seconds from the end of the overload to the recovery.
    recovered_after_s: Option<f64>,
    /// A level that was worse on the way down than on the way up.
    hysteresis: Option<BranchesJson>,
    /// Whether the target stopped responding.
    gone: bool,
    stairs: Vec<StairJson>,
}

/// The good shares at one level.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct BranchesJson {
    /// Arrivals per second.
    level: f64,
    /// On the way up.
    up: f64,
    /// On the way down.
    down: f64,
}

/// A stair. Rates are per second.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct StairJson {
    leg: &'static str,
    /// Arrivals per second.
    level: f64,
    /// Ended ok.
    ok: f64,
    /// Ended ok and in time.
    good: f64,
    /// Ended otherwise.
    failed: f64,
    /// Mean response time of the ok responses.
    response_s: f64,
}

impl From<IntervalEstimate> for EstimateJson {
    fn from(ranged: IntervalEstimate) -> Self {
        let IntervalEstimate { value, low, high } = ranged;
        Self { value, low, high: high.is_finite().then_some(high) }
    }
}

impl From<Usl> for ScalingJson {
    fn from(law: Usl) -> Self {
        Self {
            gamma: law.gamma.into(),
            sigma: law.sigma.into(),
            kappa: law.kappa.into(),
            peak_users: law.peak_users.map(EstimateJson::from),
            peak_throughput: law.peak_throughput.map(EstimateJson::from),
            peak_determined: law.peak_determined,
        }
    }
}

impl From<PoolFit> for PoolJson {
    fn from(pool: PoolFit) -> Self {
        Self { throughput: pool.throughput, service_s: pool.service, slots: pool.slots.into() }
    }
}

impl From<&Overload> for OverloadMapJson {
    fn from(overload: &Overload) -> Self {
        let after = match overload.recovery {
            Recovery::After(seconds) => Some(seconds),
            _ => None,
        };
        Self {
            class: overload.class.name(),
            sure: overload.sure,
            retained: overload.retained.map(EstimateJson::from),
            knee: overload.knee,
            cliff: overload.cliff,
            refused: overload.refused,
            in_time: overload.in_time,
            refusal_s: overload.refusal,
            recovery: overload.recovery.name(),
            recovered_after_s: after,
            hysteresis: overload.hysteresis.map(|(level, up, down)| BranchesJson {
                level,
                up,
                down,
            }),
            gone: overload.gone,
            stairs: overload.levels.iter().map(StairJson::from).collect(),
        }
    }
}

impl From<&LoadLevel> for StairJson {
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
