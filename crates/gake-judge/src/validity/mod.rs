//! Whether the figures can be trusted, by rules with evidence; the worst level wins.

mod littles_law;

use gake_core::Load;
use gake_core::clock::{Nanos, SECOND, nanos};
use gake_core::plan::Overflow;
use gake_core::record::{Fault, LatencyMetric, Run, RunEnd};
use gake_core::schedule::Process;
use gake_text::units;

use crate::finding;
use crate::finding::{THROTTLED, THROTTLED_MIN};
use crate::lanes;
use crate::saturation::Saturation;
use crate::stats::{BEYOND_MIN, RunRates, per_second, share, trusted};

/// The thresholds of every rule. Shares are 0 to 1.
mod threshold {
    use gake_core::clock::Nanos;

    /// Lateness p99 above this, and above this share of the response p50.
    pub(super) const LATENESS_SUSPECT: (Nanos, f64) = (1_000_000, 0.10);
    pub(super) const LATENESS_INVALID: (Nanos, f64) = (10_000_000, 0.50);
    /// Below this share of the response p99 it is no more than suspect.
    pub(super) const LATENESS_EXPLAINS: f64 = 0.25;
    /// Share of CPU steal from which on it is reported.
    pub(super) const STEAL_REPORTED: f64 = 0.005;
    /// Sent as a share of asked, below this.
    pub(super) const SENT_SUSPECT: f64 = 0.99;
    pub(super) const SENT_INVALID: f64 = 0.95;
    /// Standard deviations by which a Poisson process may miss its mean.
    pub(super) const POISSON_DEVIATIONS: f64 = 3.0;
    /// In runs shorter than this the generator's CPU is not judged.
    pub const CPU_MEASURED_MIN: Nanos = 200_000_000;
    /// Share of one core that the busiest worker used.
    pub(super) const CPU_SUSPECT: f64 = crate::stats::CPU_BUSY;
    pub(super) const CPU_INVALID: f64 = 0.97;
    /// Dropped as a share of due; any is suspect.
    pub(super) const DROPPED_INVALID: f64 = 0.01;
    /// Users of a closed loop who began, as a share of those asked for, below this.
    pub(super) const USERS_SUSPECT: f64 = 0.99;
    pub(super) const USERS_INVALID: f64 = 0.95;
    /// Users who never had a response, as a share of all, above this. It is the target's doing: the
    /// figures are right, but of the other users.
    pub(super) const UNSERVED_SUSPECT: f64 = 0.01;
    /// The generator's own faults, as a share of due; any is suspect.
    pub(super) const OWN_FAULTS_INVALID: f64 = 0.01;
}
use threshold as at;

/// Whether the figures can be trusted, from good to bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Validity {
    /// The figures can be trusted.
    Valid,
    /// The figures need a look at the reasons.
    Suspect,
    /// The figures cannot be trusted.
    Invalid,
}

impl Validity {
    /// The stable name used in every format.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Suspect => "suspect",
            Self::Invalid => "invalid",
        }
    }
}

/// One rule that a run broke.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// The rule's stable name.
    pub rule: &'static str,
    /// The level of the violation.
    pub level: Validity,
    /// The evidence, with its numbers.
    pub text: String,
}

/// The rules, in the order of their reasons within a level.
const RULES: [fn(&Run) -> Option<Reason>; 11] = [
    accounts,
    abandoned,
    nothing_sent,
    lateness,
    asked_and_sent,
    users,
    cpu,
    run_delay,
    dropped,
    own_faults,
    littles_law::check,
];

/// Applies every rule: the worst level, and the reasons, the worst first.
#[must_use]
pub fn check(run: &Run) -> (Validity, Vec<Reason>) {
    let mut reasons: Vec<_> = RULES.iter().filter_map(|rule| rule(run)).collect();
    // A stable sort keeps the rules' order within a level.
    reasons.sort_by_key(|reason| std::cmp::Reverse(reason.level));
    let worst = reasons.first().map_or(Validity::Valid, |reason| reason.level);
    (worst, reasons)
}

/// The level of a value that is bad when it is high.
fn level(suspect: bool, invalid: bool) -> Option<Validity> {
    match (suspect, invalid) {
        (_, true) => Some(Validity::Invalid),
        (true, false) => Some(Validity::Suspect),
        (false, false) => None,
    }
}

/// Counts that must agree differ: a defect of the generator, which its events describe.
fn accounts(run: &Run) -> Option<Reason> {
    let by = run.generator.miscounted;
    (by > 0).then(|| Reason {
        rule: "accounts",
        level: Validity::Invalid,
        text: format!(
            "the generator's own counts differ by {}, which is a defect of gake: the events show \
             where",
            units::count(by)
        ),
    })
}

/// What a worker had not reported when it was abandoned is missing.
fn abandoned(run: &Run) -> Option<Reason> {
    let workers = run.generator.abandoned;
    (workers > 0).then(|| Reason {
        rule: "abandoned",
        level: Validity::Invalid,
        text: format!(
            "{} blocked and had to be abandoned, without the figures since the last report: the \
             events name the call",
            units::plural(workers, "worker")
        ),
    })
}

fn nothing_sent(run: &Run) -> Option<Reason> {
    let counts = &run.tally.counts;
    // A script may run iterations without requests.
    let due = match run.plan.fires_iterations() {
        true => counts.started + counts.dropped,
        false => counts.due(),
    };
    (due == 0).then(|| Reason {
        rule: "nothing_sent",
        level: Validity::Invalid,
        text: "nothing was sent, so nothing was measured".to_owned(),
    })
}

struct LateSends {
    level: Validity,
    /// The 99th percentile, if there are enough samples.
    p99: Option<Nanos>,
    /// Requests that left later than `bound`.
    count: u64,
    bound: Nanos,
    response: Nanos,
}

/// The send delays of `run`, if they are too long. With too few requests for a percentile, as many
/// as must lie beyond it must be late.
fn late(run: &Run) -> Option<LateSends> {
    let delays = run.tally.latency.of(LatencyMetric::Lateness);
    let response = run.tally.latency.response().quantile(0.5);
    let p99 = trusted(0.99, delays.count()).then(|| delays.quantile(0.99));
    let over = |level, (limit, part): (Nanos, f64)| {
        let bound = limit.max((part * response as f64) as Nanos);
        let count = delays.count() - delays.count_up_to(bound);
        let is_over = match p99 {
            Some(p99) => p99 > bound,
            None => count as f64 >= BEYOND_MIN,
        };
        is_over.then_some(LateSends { level, p99, count, bound, response })
    };
    // Where responses take much longer than that at times, the target is the reason.
    let slow = run.tally.latency.response().quantile(0.99) as f64;
    over(Validity::Invalid, at::LATENESS_INVALID)
        .filter(|late| late.p99.is_none_or(|p99| p99 as f64 >= at::LATENESS_EXPLAINS * slow))
        .or_else(|| over(Validity::Suspect, at::LATENESS_SUSPECT))
}

/// Lateness is the generator's own delay, without the wait for a free connection.
fn lateness(run: &Run) -> Option<Reason> {
    let late = late(run)?;
    let sent = run.tally.latency.of(LatencyMetric::Lateness).count();
    let delay = match late.p99 {
        Some(p99) => format!("p99 send delay {}", units::duration(p99 as f64)),
        None => format!(
            "{} of {} requests left more than {} late",
            units::count(late.count),
            units::count(sent),
            units::duration(late.bound as f64)
        ),
    };
    let text = format!(
        "{delay} (median response {}): {}",
        units::duration(late.response as f64),
        delay_cause(run, share(late.count, sent))
    );
    Some(Reason { rule: "lateness", level: late.level, text })
}

/// The cause of late sends: the generator, or waits for a core. Waits for a core and steal explain
/// them in two ways: if requests waited one by one, the waits make up half of all send delays; if a
/// worker stood still and everything due meanwhile was late, they take at least half as large a
/// share of the time as late requests do of all.
fn delay_cause(run: &Run, late: f64) -> String {
    let measured = run.measured.max(1) as f64;
    let waited = run.generator.run_delay as f64 / (measured * run.generator.threads.max(1) as f64);
    let warmup = nanos(run.plan.warmup);
    let steal = run.watched.machine("machine_steal").and_then(|gauge| gauge.mean_from(warmup));
    let steal = steal.unwrap_or(0.0);
    let away = run.generator.run_delay as f64 + steal * measured;
    let delays = run.tally.latency.of(LatencyMetric::Lateness).sum() as f64;
    let explained = away >= delays / 2.0 || waited + steal >= late / 2.0;
    if run.generator.busiest > at::CPU_SUSPECT || !explained {
        return "the generator ran late".to_owned();
    }
    let mut causes = Vec::with_capacity(3);
    let quota = run.watched.machine(THROTTLED).and_then(|gauge| gauge.mean_from(warmup));
    if let Some(share) = quota.filter(|share| *share >= THROTTLED_MIN) {
        let share = units::percent(share.min(1.0));
        return format!(
            "the CPU quota of gake's control group throttled it in {share} of the periods"
        );
    }
    if waited > 0.0 {
        causes.push(format!(
            "its workers waited for a core {} of their time",
            units::percent(waited.min(1.0))
        ));
    }
    if steal >= at::STEAL_REPORTED {
        causes.push(format!("the host took {} of the CPU (steal)", units::percent(steal)));
    }
    if causes.is_empty() {
        return "the generator ran late".to_owned();
    }
    format!("the machine was busy, not the generator: {}", causes.join(", "))
}

fn asked_and_sent(run: &Run) -> Option<Reason> {
    let counts = &run.tally.counts;
    let asked = run.asked_rate?;
    let (sent, due) = match run.plan.fires_iterations() {
        true => (per_second(counts.started as f64, run.sending), counts.started + counts.dropped),
        false => (RunRates::of(run).sent, counts.due()),
    };
    if asked <= 0.0 || due == 0 {
        return None;
    }
    // A uniform schedule may have one arrival more or less at its edge.
    let chance = match run.plan.load.one()? {
        Load::Open { process: Process::Poisson, .. } => {
            1.0 + at::POISSON_DEVIATIONS * (due as f64).sqrt()
        }
        Load::Open { process: Process::Bursts { size, jitter }, .. } => {
            *size as f64 + asked * *jitter as f64 / SECOND as f64
        }
        Load::Open { process: Process::Uniform, .. } | Load::Replay { .. } => 1.0,
        _ => return None,
    };
    // A target beyond its capacity explains the wait for connections.
    if Saturation::of(run).is_some() {
        return None;
    }
    let part = (sent + per_second(chance, run.sending)) / asked;
    let level = level(part < at::SENT_SUSPECT, part < at::SENT_INVALID)?;
    let mut text = format!(
        "only {} of {} asked for were sent ({})",
        units::rate(sent),
        units::rate(asked),
        units::percent(sent / asked)
    );
    // The cause: lost agents, no free lane, or else the generator.
    let (limit, noun) = (run.plan.connections, lanes::noun(&run.plan));
    let lanes = units::plural(limit as u64, noun);
    let waited = run.tally.latency.of(LatencyMetric::Blocked).count();
    let missing = (1.0 - sent / asked) * due as f64;
    if counts.lost as f64 >= missing / 2.0 {
        text.push_str("; the rest belonged to lost agents");
    } else if counts.dropped as f64 >= missing / 2.0 {
        text.push_str(&format!(
            "; the rest was dropped, as all {lanes} were busy: the server, or the limit of \
             {limit}, held requests back"
        ));
    } else if share(waited, counts.sent) > 0.01 {
        text.push_str(&format!(
            "; the rest waited, as all {lanes} were busy: the server, or the limit of {limit}, \
             held requests back"
        ));
    }
    Some(Reason { rule: "asked_sent", level, text })
}

/// A closed loop that ended before all its users began had fewer users than asked for. Each user
/// begins at least one arrival, so fewer arrivals than users prove it. A limit on the requests, or
/// a warm-up, which is not counted, explains it.
fn users(run: &Run) -> Option<Reason> {
    let counts = &run.tally.counts;
    let &Load::Closed { users, .. } = run.plan.load.one()? else { return None };
    let is_judged =
        run.ending == RunEnd::Done && run.plan.requests.is_none() && run.plan.warmup.is_zero();
    let begun = counts.arrivals();
    if !is_judged || begun == 0 {
        return None;
    }
    // Their only request was sent at the start and never ended. Where that holds for all, others
    // ended before: the target stopped responding.
    let late = run.tally.latency.response().count_between(9 * (run.elapsed / 10), Nanos::MAX);
    let unserved = late.min(counts.unfinished);
    let part = share(unserved, users as u64);
    if part > at::UNSERVED_SUSPECT && unserved < users as u64 && counts.ok > 0 {
        let text = format!(
            "{} of {} users never had a response: the figures are of the other {}",
            units::count(unserved),
            units::count(users as u64),
            units::count((users as u64).saturating_sub(unserved)),
        );
        return Some(Reason { rule: "users", level: Validity::Suspect, text });
    }
    let part = share(begun, users as u64);
    let level = level(part < at::USERS_SUSPECT, part < at::USERS_INVALID)?;
    let text = format!(
        "at most {} of {} users began before the run ended: run longer, or with fewer users",
        units::count(begun),
        units::count(users as u64)
    );
    Some(Reason { rule: "users", level, text })
}

fn cpu(run: &Run) -> Option<Reason> {
    // Spinning uses the core by design; so does starting up, for a moment.
    if run.plan.spin || run.measured < at::CPU_MEASURED_MIN {
        return None;
    }
    let busiest = run.generator.busiest;
    let is_late = late(run).is_some();
    let level = level(busiest > at::CPU_SUSPECT, busiest > at::CPU_INVALID && is_late)?;
    let text = format!(
        "the generator's busiest worker used {} of its core: it may be the limit, not the server",
        units::percent(busiest.min(1.0))
    );
    Some(Reason { rule: "generator_cpu", level, text })
}

/// A closed loop whose workers starve reads its responses late and sends the next requests later,
/// which no send delay shows.
fn run_delay(run: &Run) -> Option<Reason> {
    let waited = finding::starving_workers(run).filter(|_| run.plan.load.is_back_to_back())?;
    let text = format!(
        "the workers waited for a core {} of their time, longer than they had one: the server may be \
         faster",
        units::percent(waited)
    );
    Some(Reason { rule: "run_delay", level: Validity::Suspect, text })
}

fn dropped(run: &Run) -> Option<Reason> {
    let counts = &run.tally.counts;
    let part = share(counts.dropped, counts.due());
    let level = level(counts.dropped > 0, part > at::DROPPED_INVALID)?;
    let (lost, own) = (counts.lost, counts.dropped.saturating_sub(counts.lost));
    let at_bound = matches!(run.plan.overflow, Overflow::Drop | Overflow::Queue { .. });
    let why = match (lost, own, at_bound) {
        (0, _, true) => "all connections were busy".to_owned(),
        (0, _, false) => "the run ended before they were sent".to_owned(),
        (_, 0, _) => "they belonged to lost agents".to_owned(),
        (lost, own, _) => {
            let rest = match at_bound {
                true => "found all connections busy",
                false => "were not sent before the run ended",
            };
            format!("{} belonged to lost agents, {} {rest}", units::count(lost), units::count(own))
        }
    };
    let text = format!(
        "{} of {} arrivals were dropped ({}): {why}",
        units::count(counts.dropped),
        units::count(counts.due()),
        units::percent(part)
    );
    Some(Reason { rule: "dropped", level, text })
}

fn own_faults(run: &Run) -> Option<Reason> {
    let own = run.tally.faults_where(Fault::is_generators);
    let part = share(own, run.tally.counts.due());
    let level = level(own > 0, part > at::OWN_FAULTS_INVALID)?;
    let text = format!(
        "{} of the requests ({}) failed because this machine ran out of ports, descriptors or \
         memory",
        units::count(own),
        units::percent(part)
    );
    Some(Reason { rule: "generator_faults", level, text })
}

#[cfg(test)]
mod tests;
