//! Behaviour beyond the capacity: in one run the load climbs in steps past it and down again.
//!
//! The class follows from the share of the best throughput left on the highest step (`retained`),
//! with a bootstrap over the seconds of both steps; load shedding from the share refused and from
//! whether accepted requests are in time; recovery from the way down.

use gake_core::random::SplitMix64;

use crate::random::quantile;
use crate::search::TrialSecond;
use crate::usl::IntervalEstimate;

/// Levels of the way up, as multiples of the capacity, and their seconds.
const UP: [(f64, u64); 6] = [(0.5, 4), (0.8, 4), (1.0, 4), (1.25, 3), (1.5, 3), (2.0, 3)];
/// Levels of the way down, long enough to drain the backlog.
const DOWN: [(f64, u64); 2] = [(0.8, 6), (0.5, 14)];
/// Multiple of the capacity from which on it is overload.
const OVERLOAD: f64 = 1.1;

const PLATEAU: f64 = 0.85;
/// Retained throughput below which it has collapsed.
const COLLAPSE: f64 = 0.5;
/// A target sheds load when it refuses more than this share of an overload.
const SHEDDING: f64 = 0.05;
/// Accepted requests count as in time when this share of them is.
const IN_TIME: f64 = 0.9;
/// A level holds down to this share of good requests ...
const HOLDS: f64 = 0.95;
/// ... and is lost below this one.
const LOST: f64 = 0.5;
/// Recovered: this share of good requests for this many consecutive seconds.
const RECOVERED: (f64, usize) = (0.9, 2);
/// While a backlog drains, the target keeps at least this share of its best throughput.
const BUSY: f64 = 0.8;
/// Hysteresis: the good shares of one level on the way up and down differ by more.
const HYSTERESIS: f64 = 0.2;
const RESAMPLES: usize = 500;
/// Seconds without a response after which the target counts as gone.
const SILENT: usize = 5;

/// Whether a step belongs to the way up or down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadDirection {
    /// The load grows.
    Up,
    /// The load shrinks.
    Down,
}

impl LoadDirection {
    /// The stable name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
        }
    }
}

/// One step of the overload map.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OverloadStep {
    /// The level, as a multiple of the capacity.
    pub part: f64,
    /// Arrivals a second.
    pub level: f64,
    /// The duration in seconds.
    pub seconds: u64,
    /// The way up or down.
    pub direction: LoadDirection,
}

/// The steps of a map around `capacity`, none above `highest`.
#[must_use]
pub fn steps(capacity: f64, highest: Option<f64>) -> Vec<OverloadStep> {
    let step = |direction| {
        move |(part, seconds): (f64, u64)| OverloadStep {
            part,
            level: part * capacity,
            seconds,
            direction,
        }
    };
    let allowed = |step: &OverloadStep| highest.is_none_or(|highest| step.level <= highest);
    let up = UP.into_iter().map(step(LoadDirection::Up));
    up.chain(DOWN.into_iter().map(step(LoadDirection::Down))).filter(allowed).collect()
}

/// The figures of a step: means over its seconds, except the first, in which it settles.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoadLevel {
    /// The step.
    pub step: OverloadStep,
    /// Requests that ended ok, per second.
    pub ok: f64,
    /// Requests that ended ok and in time, per second.
    pub good: f64,
    /// Requests that did not end ok, per second.
    pub failed: f64,
    /// Mean response time of ok requests, in seconds.
    pub response: f64,
    /// Mean time of the other requests, in seconds.
    pub failure: f64,
}

impl LoadLevel {
    fn share(&self) -> f64 {
        let ended = self.ok + self.failed;
        if ended > 0.0 { self.good / ended } else { 0.0 }
    }
}

/// The behaviour of a target under overload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverloadClass {
    /// Throughput holds; excess requests queue.
    Graceful,
    /// Throughput holds; excess requests are refused immediately, accepted ones are in time.
    Shedding,
    /// More load reduces throughput.
    Retrograde,
    /// Less than half of the throughput is left, or responses cease.
    Collapsing,
    /// The map did not reach overload.
    Unknown,
}

impl OverloadClass {
    /// The stable name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Graceful => "graceful",
            Self::Shedding => "shedding",
            Self::Retrograde => "retrograde",
            Self::Collapsing => "collapsing",
            Self::Unknown => "unknown",
        }
    }
}

/// How the target recovered after the overload.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Recovery {
    /// It recovered this many seconds after the overload.
    After(f64),
    /// It was still draining its backlog at the end.
    Draining,
    /// It worked below its capacity and did not recover by itself.
    Metastable,
    /// The map had no overload, or no way down.
    Unknown,
}

impl Recovery {
    /// The stable name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::After(_) => "recovered",
            Self::Draining => "draining",
            Self::Metastable => "metastable",
            Self::Unknown => "unknown",
        }
    }
}

/// The judgement of a map.
#[derive(Debug, Clone, PartialEq)]
pub struct Overload {
    /// The figures of every step.
    pub levels: Vec<LoadLevel>,
    /// The behaviour under overload.
    pub class: OverloadClass,
    /// Whether the data exclude every other class.
    pub sure: bool,
    /// Throughput on the highest step, as a share of the best.
    pub retained: Option<IntervalEstimate>,
    /// The levels between which requests begin to be late.
    pub knee: Option<(f64, f64)>,
    /// Whether the good share drops below half from one step to the next.
    pub cliff: bool,
    /// The share of requests refused during the overload.
    pub refused: f64,
    /// The share of accepted requests that were in time.
    pub in_time: f64,
    /// The mean time to a refusal, in seconds.
    pub refusal: f64,
    /// How the target recovered.
    pub recovery: Recovery,
    /// A level at which the way down was worse than the way up, and the good shares up and down.
    pub hysteresis: Option<(f64, f64, f64)>,
    /// Whether responses ceased.
    pub gone: bool,
}

/// Whether the last seconds have no response despite the load.
#[must_use]
pub fn is_gone(seconds: &[TrialSecond]) -> bool {
    let silent = |second: &TrialSecond| second.ok == 0.0;
    seconds.len() > SILENT && seconds[seconds.len() - SILENT..].iter().all(silent)
}

/// Judges the seconds of a run over `steps`, from the first second on.
#[must_use]
pub fn judge(steps: &[OverloadStep], seconds: &[TrialSecond]) -> Overload {
    let parts = split(steps, seconds);
    let levels: Vec<LoadLevel> =
        parts.iter().map(|(step, seconds)| level(*step, seconds)).collect();
    let gone = is_gone(seconds);
    let up: Vec<usize> =
        (0..levels.len()).filter(|i| levels[*i].step.direction == LoadDirection::Up).collect();
    let top = up.last().copied().filter(|i| levels[*i].step.part >= OVERLOAD);
    let best = up.iter().copied().max_by(|a, b| levels[*a].ok.total_cmp(&levels[*b].ok));
    let retained = top.zip(best).map(|(top, best)| ratio(parts[top].1, parts[best].1));
    let over = || up.iter().map(|i| &levels[*i]).filter(|level| level.step.part >= OVERLOAD);
    let sum = |of: fn(&LoadLevel) -> f64| over().map(of).sum::<f64>();
    let (ok, good, failed) = (sum(|l| l.ok), sum(|l| l.good), sum(|l| l.failed));
    let part = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
    let (refused, in_time) = (part(failed, ok + failed), part(good, ok));
    let sheds = refused > SHEDDING && in_time >= IN_TIME;
    let classes =
        |r: IntervalEstimate| [r.value, r.low, r.high].map(|retained| class(retained, sheds));
    let [named, low, high] = retained.map_or([OverloadClass::Unknown; 3], classes);
    let recovery = recovery(&parts, best.map_or(0.0, |best| levels[best].ok));
    let (knee, cliff) = knee(&up.iter().map(|i| levels[*i]).collect::<Vec<_>>());
    Overload {
        class: if gone { OverloadClass::Collapsing } else { named },
        sure: gone || (named == low && named == high && named != OverloadClass::Unknown),
        retained,
        knee,
        cliff,
        refused,
        in_time,
        refusal: part(sum(|l| l.failure * l.failed), failed),
        recovery,
        // A draining backlog explains why the way down is worse.
        hysteresis: (recovery == Recovery::Metastable).then(|| hysteresis(&levels)).flatten(),
        gone,
        levels,
    }
}

fn class(retained: f64, sheds: bool) -> OverloadClass {
    if retained < COLLAPSE {
        OverloadClass::Collapsing
    } else if retained < PLATEAU {
        OverloadClass::Retrograde
    } else if sheds {
        OverloadClass::Shedding
    } else {
        OverloadClass::Graceful
    }
}

/// The seconds of each step; the drain belongs to none.
fn split<'a>(
    steps: &[OverloadStep],
    seconds: &'a [TrialSecond],
) -> Vec<(OverloadStep, &'a [TrialSecond])> {
    let mut from = 0;
    let mut parts = Vec::with_capacity(steps.len());
    for step in steps {
        let to = (from + step.seconds as usize).min(seconds.len());
        if to > from {
            parts.push((*step, &seconds[from..to]));
        }
        from = to;
    }
    parts
}

/// The seconds of a step after it has settled.
fn settled(seconds: &[TrialSecond]) -> &[TrialSecond] {
    if seconds.len() > 1 { &seconds[1..] } else { seconds }
}

fn level(step: OverloadStep, seconds: &[TrialSecond]) -> LoadLevel {
    let seconds = settled(seconds);
    let count = (seconds.len() as f64).max(1.0);
    let sum = |of: fn(&TrialSecond) -> f64| seconds.iter().map(of).sum::<f64>();
    let (ok, failed) = (sum(|s| s.ok), sum(|s| s.failed));
    LoadLevel {
        step,
        ok: ok / count,
        good: sum(|s| s.good) / count,
        failed: failed / count,
        response: sum(|s| s.response * s.ok) / ok.max(1.0),
        failure: sum(|s| s.failure * s.failed) / failed.max(1.0),
    }
}

/// The throughput of `top` as a share of that of `best`, with a bootstrap over the seconds.
fn ratio(top: &[TrialSecond], best: &[TrialSecond]) -> IntervalEstimate {
    let (top, best) = (settled(top), settled(best));
    let mean = |seconds: &[TrialSecond]| {
        seconds.iter().map(|s| s.ok).sum::<f64>() / (seconds.len() as f64).max(1.0)
    };
    let value = if mean(best) > 0.0 { mean(top) / mean(best) } else { 0.0 };
    let mut random = SplitMix64::new(seed(top, best));
    let mut draw = |seconds: &[TrialSecond]| -> f64 {
        (0..seconds.len()).map(|_| seconds[random.below(seconds.len())].ok).sum::<f64>()
            / (seconds.len() as f64).max(1.0)
    };
    let mut ratios: Vec<f64> =
        (0..RESAMPLES).map(|_| draw(top) / draw(best).max(f64::MIN_POSITIVE)).collect();
    ratios.sort_by(f64::total_cmp);
    IntervalEstimate { value, low: quantile(&ratios, 0.025), high: quantile(&ratios, 0.975) }
}

/// A seed from the data: the same seconds give the same interval.
fn seed(top: &[TrialSecond], best: &[TrialSecond]) -> u64 {
    top.iter().chain(best).fold(1, |seed, second| seed ^ second.ok.to_bits().rotate_left(7))
}

/// The levels between which requests begin to be late or refused, and whether most are from one
/// step to the next.
fn knee(up: &[LoadLevel]) -> (Option<(f64, f64)>, bool) {
    let lost = up.iter().position(|level| level.share() < HOLDS);
    let Some(first) = lost else { return (None, false) };
    let low = if first == 0 { 0.0 } else { up[first - 1].step.level };
    (Some((low, up[first].step.level)), first > 0 && up[first].share() < LOST)
}

fn is_good(second: &TrialSecond) -> bool {
    let ended = second.ok + second.failed;
    ended > 0.0 && second.good >= RECOVERED.0 * ended
}

fn recovery(parts: &[(OverloadStep, &[TrialSecond])], best: f64) -> Recovery {
    let is_over = |part: &&(OverloadStep, &[TrialSecond])| {
        part.0.direction == LoadDirection::Up && part.0.part >= OVERLOAD
    };
    let down: Vec<&TrialSecond> = parts
        .iter()
        .filter(|part| part.0.direction == LoadDirection::Down)
        .flat_map(|part| part.1.iter())
        .collect();
    if down.is_empty() || !parts.iter().any(|part| is_over(&part)) {
        return Recovery::Unknown;
    }
    // The first second after which all are good.
    let bad = down.iter().rposition(|second| !is_good(second));
    let after = bad.map_or(0, |last| last + 1);
    if down.len() - after >= RECOVERED.1 {
        return Recovery::After(after as f64);
    }
    let tail = &down[down.len().saturating_sub(SILENT)..];
    let ok = tail.iter().map(|second| second.ok).sum::<f64>() / tail.len() as f64;
    if ok >= BUSY * best { Recovery::Draining } else { Recovery::Metastable }
}

/// The level at which the way down is worst compared with the way up.
fn hysteresis(levels: &[LoadLevel]) -> Option<(f64, f64, f64)> {
    let down = levels.iter().filter(|level| level.step.direction == LoadDirection::Down);
    let pairs = down.filter_map(|down| {
        let same = |level: &&LoadLevel| {
            level.step.direction == LoadDirection::Up
                && (level.step.part - down.step.part).abs() < 1e-9
        };
        let up = levels.iter().find(same)?;
        Some((down.step.level, up.share(), down.share()))
    });
    pairs
        .filter(|(_, up, down)| up - down > HYSTERESIS)
        .max_by(|a, b| (a.1 - a.2).total_cmp(&(b.1 - b.2)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A second with these numbers of ok (all in time, or none) and refused requests.
    fn second(ok: f64, in_time: bool, failed: f64) -> TrialSecond {
        let good = if in_time { ok } else { 0.0 };
        TrialSecond {
            due: ok + failed,
            ok,
            failed,
            good,
            response: 0.02,
            failure: 0.001,
            ..TrialSecond::default()
        }
    }

    /// The seconds of a map, in which each step has identical seconds.
    fn seconds(
        steps: &[OverloadStep],
        step_second: impl Fn(&OverloadStep) -> TrialSecond,
    ) -> Vec<TrialSecond> {
        steps.iter().flat_map(|s| vec![step_second(s); s.seconds as usize]).collect()
    }

    #[test]
    fn no_step_exceeds_the_highest_allowed() {
        let all = steps(100.0, None);
        assert_eq!(all.iter().map(|s| s.level).fold(0.0, f64::max), 200.0);
        assert!(steps(100.0, Some(130.0)).iter().all(|s| s.level <= 130.0));
        let none = judge(&[], &[]);
        assert_eq!((none.class, none.recovery), (OverloadClass::Unknown, Recovery::Unknown));
    }

    #[test]
    fn classes_of_overload() {
        let steps = steps(100.0, None);
        let class = |step_second: &dyn Fn(&OverloadStep) -> TrialSecond| {
            judge(&steps, &seconds(&steps, step_second))
        };
        let graceful = class(&|s| second(s.level.min(110.0), s.level <= 100.0, 0.0));
        assert_eq!((graceful.class, graceful.sure), (OverloadClass::Graceful, true));
        assert_eq!((graceful.knee, graceful.cliff), (Some((100.0, 125.0)), true));
        let shedding = class(&|s| second(s.level.min(110.0), true, (s.level - 110.0).max(0.0)));
        assert_eq!(shedding.class, OverloadClass::Shedding);
        assert_eq!(shedding.recovery, Recovery::After(0.0));
        let falls = |left: f64| {
            class(&move |s| second(if s.part > 1.9 { left } else { s.level.min(100.0) }, true, 0.0))
        };
        assert_eq!(falls(70.0).class, OverloadClass::Retrograde);
        assert_eq!(falls(20.0).class, OverloadClass::Collapsing);
        // Near the edge of two classes, the class is not sure.
        let mut unsure = seconds(&steps, |s| second(s.level.min(100.0), true, 0.0));
        unsure[19] = second(60.0, true, 0.0);
        unsure[20] = second(112.0, true, 0.0);
        assert!(!judge(&steps, &unsure).sure);
    }

    #[test]
    fn recovery_draining_and_metastable() {
        let steps = steps(100.0, None);
        let after = |down: &dyn Fn(usize) -> TrialSecond| {
            let mut all = seconds(&steps, |s| second(s.level.min(100.0), s.part <= 1.0, 0.0));
            for (at, slot) in all.iter_mut().skip(21).enumerate() {
                *slot = down(at);
            }
            judge(&steps, &all)
        };
        let drained = after(&|at| second(80.0, at >= 7, 0.0));
        assert_eq!(drained.recovery, Recovery::After(7.0));
        assert_eq!(after(&|_| second(100.0, false, 0.0)).recovery, Recovery::Draining);
        let stuck = after(&|_| second(40.0, false, 0.0));
        assert_eq!(stuck.recovery, Recovery::Metastable);
        assert_eq!(stuck.hysteresis.map(|h| (h.1, h.2)), Some((1.0, 0.0)));
        let gone = after(&|_| second(0.0, false, 0.0));
        assert!(gone.gone);
        assert_eq!((gone.class, gone.sure), (OverloadClass::Collapsing, true));
    }
}
