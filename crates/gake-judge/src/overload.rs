//! What happens beyond the capacity: in one run the load climbs steps past it and down again, and
//! the seconds are judged.
//!
//! The class is decided by how much of the best throughput is left on the highest step
//! (`retained`), with a bootstrap over the seconds of both steps; whether load is shed, by what
//! is refused and whether the accepted are in time; recovery, by the way down.

use gake_core::random::SplitMix64;

use crate::random::quantile;
use crate::search::TrialSecond;
use crate::usl::Ranged;

/// Levels of the way up as parts of the capacity, and their seconds.
const UP: [(f64, u64); 6] = [(0.5, 4), (0.8, 4), (1.0, 4), (1.25, 3), (1.5, 3), (2.0, 3)];
/// Of the way down: long enough that a backlog of the way up can drain.
const DOWN: [(f64, u64); 2] = [(0.8, 6), (0.5, 14)];
/// From this part of the capacity on it is overload.
const OVERLOAD: f64 = 1.1;

/// Retained throughput: a plateau is above this, ...
const PLATEAU: f64 = 0.85;
/// ... and below this it has collapsed.
const COLLAPSE: f64 = 0.5;
/// A target that refuses more than this part of an overload sheds load.
const SHEDDING: f64 = 0.05;
/// The accepted are in time when this part of them is.
const IN_TIME: f64 = 0.9;
/// A level holds while this part of what ends in it is good; below the other it is lost.
const HOLDS: f64 = 0.95;
const LOST: f64 = 0.5;
/// Recovered: good again, in this part, for this many seconds on end.
const RECOVERED: (f64, usize) = (0.9, 2);
/// While a backlog drains, the target works at this part of its best at least.
const BUSY: f64 = 0.8;
/// Good shares of one level on the way up and down that differ by more are hysteresis.
const HYSTERESIS: f64 = 0.2;
/// Resamples behind an interval.
const RESAMPLES: usize = 500;
/// Seconds without an answer after which the target is given up.
const SILENT: usize = 5;

/// Which way a step is on.
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

/// One level of the map.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OverloadStep {
    /// As a part of the capacity.
    pub part: f64,
    /// Arrivals a second.
    pub level: f64,
    /// How long.
    pub seconds: u64,
    /// Which way.
    pub direction: LoadDirection,
}

/// The steps of a map around `capacity`, none over `highest`.
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

/// The figures of a step: means over its seconds without the first, in which it settles.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoadLevel {
    /// The step.
    pub step: OverloadStep,
    /// Ended ok a second.
    pub ok: f64,
    /// Ended ok and in time, a second.
    pub good: f64,
    /// Did not end ok, a second.
    pub failed: f64,
    /// Mean response time of the ok ones, in seconds.
    pub response: f64,
    /// Mean time of the others, in seconds.
    pub failure: f64,
}

impl LoadLevel {
    fn share(&self) -> f64 {
        let ended = self.ok + self.failed;
        if ended > 0.0 { self.good / ended } else { 0.0 }
    }
}

/// What kind of cliff it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Throughput stays, excess load waits.
    Graceful,
    /// Throughput stays, excess load is refused at once, accepted requests are in time.
    Shedding,
    /// More load gives less throughput.
    Retrograde,
    /// Less than half of the throughput is left, or nothing is answered.
    Collapsing,
    /// The map did not reach an overload.
    Unknown,
}

impl Class {
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
    /// It was still working off its backlog at the end.
    Draining,
    /// It did not recover and worked below its capacity: it does not recover by itself.
    Metastable,
    /// There was no overload, or no way down.
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
    /// Every step.
    pub levels: Vec<LoadLevel>,
    /// What kind of cliff.
    pub class: Class,
    /// Whether the data rule out every other class.
    pub sure: bool,
    /// Throughput on the highest step as a part of the best.
    pub retained: Option<Ranged>,
    /// Where requests begin to be late: between these levels.
    pub knee: Option<(f64, f64)>,
    /// Whether most of the good share is lost from one step to the next.
    pub cliff: bool,
    /// The share refused during the overload.
    pub refused: f64,
    /// The share in time of what it accepted.
    pub in_time: f64,
    /// The mean time to a refusal, in seconds.
    pub refusal: f64,
    /// How the target recovered.
    pub recovery: Recovery,
    /// A level at which the way down was worse than the way up, with both good shares.
    pub hysteresis: Option<(f64, f64, f64)>,
    /// Whether it stopped answering.
    pub gone: bool,
}

/// Whether the last seconds have no answer despite the load.
#[must_use]
pub fn is_gone(seconds: &[TrialSecond]) -> bool {
    let silent = |second: &TrialSecond| second.ok == 0.0;
    seconds.len() > SILENT && seconds[seconds.len() - SILENT..].iter().all(silent)
}

/// Judges the seconds of a run over `steps`, from its first on.
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
    let classes = |r: Ranged| [r.value, r.low, r.high].map(|retained| class(retained, sheds));
    let [named, low, high] = retained.map_or([Class::Unknown; 3], classes);
    let recovery = recovery(&parts, best.map_or(0.0, |best| levels[best].ok));
    let (knee, cliff) = knee(&up.iter().map(|i| levels[*i]).collect::<Vec<_>>());
    Overload {
        class: if gone { Class::Collapsing } else { named },
        sure: gone || (named == low && named == high && named != Class::Unknown),
        retained,
        knee,
        cliff,
        refused,
        in_time,
        refusal: part(sum(|l| l.failure * l.failed), failed),
        recovery,
        // While a backlog drains, the way down is worse for a known reason.
        hysteresis: (recovery == Recovery::Metastable).then(|| hysteresis(&levels)).flatten(),
        gone,
        levels,
    }
}

fn class(retained: f64, sheds: bool) -> Class {
    if retained < COLLAPSE {
        Class::Collapsing
    } else if retained < PLATEAU {
        Class::Retrograde
    } else if sheds {
        Class::Shedding
    } else {
        Class::Graceful
    }
}

/// The seconds of each step; what a drain adds belongs to none.
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

/// The throughput of `top` as a part of that of `best`, with a bootstrap over the seconds.
fn ratio(top: &[TrialSecond], best: &[TrialSecond]) -> Ranged {
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
    Ranged { value, low: quantile(&ratios, 0.025), high: quantile(&ratios, 0.975) }
}

/// The same seconds give the same interval.
fn seed(top: &[TrialSecond], best: &[TrialSecond]) -> u64 {
    top.iter().chain(best).fold(1, |seed, second| seed ^ second.ok.to_bits().rotate_left(7))
}

/// Between which levels requests begin to be late or refused, and whether most are from one step
/// to the next.
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
    // From when on is it good for good?
    let bad = down.iter().rposition(|second| !is_good(second));
    let after = bad.map_or(0, |last| last + 1);
    if down.len() - after >= RECOVERED.1 {
        return Recovery::After(after as f64);
    }
    let tail = &down[down.len().saturating_sub(SILENT)..];
    let ok = tail.iter().map(|second| second.ok).sum::<f64>() / tail.len() as f64;
    if ok >= BUSY * best { Recovery::Draining } else { Recovery::Metastable }
}

/// The level below overload at which the end of the way down is worst against the way up.
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

    /// The seconds of a map of a target that answers a second of each step.
    fn seconds(
        steps: &[OverloadStep],
        answer: impl Fn(&OverloadStep) -> TrialSecond,
    ) -> Vec<TrialSecond> {
        steps.iter().flat_map(|s| vec![answer(s); s.seconds as usize]).collect()
    }

    #[test]
    fn no_stair_is_over_the_highest_allowed() {
        let all = steps(100.0, None);
        assert_eq!(all.iter().map(|s| s.level).fold(0.0, f64::max), 200.0);
        assert!(steps(100.0, Some(130.0)).iter().all(|s| s.level <= 130.0));
        let none = judge(&[], &[]);
        assert_eq!((none.class, none.recovery), (Class::Unknown, Recovery::Unknown));
    }

    #[test]
    fn each_cliff_has_its_name() {
        let steps = steps(100.0, None);
        let class =
            |answer: &dyn Fn(&OverloadStep) -> TrialSecond| judge(&steps, &seconds(&steps, answer));
        let graceful = class(&|s| second(s.level.min(110.0), s.level <= 100.0, 0.0));
        assert_eq!((graceful.class, graceful.sure), (Class::Graceful, true));
        assert_eq!((graceful.knee, graceful.cliff), (Some((100.0, 125.0)), true));
        let shedding = class(&|s| second(s.level.min(110.0), true, (s.level - 110.0).max(0.0)));
        assert_eq!(shedding.class, Class::Shedding);
        assert_eq!(shedding.recovery, Recovery::After(0.0));
        let falls = |left: f64| {
            class(&move |s| second(if s.part > 1.9 { left } else { s.level.min(100.0) }, true, 0.0))
        };
        assert_eq!(falls(70.0).class, Class::Retrograde);
        assert_eq!(falls(20.0).class, Class::Collapsing);
        // A top step near the edge of two classes is told, and not sure of.
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
        assert_eq!((gone.class, gone.sure), (Class::Collapsing, true));
    }
}
