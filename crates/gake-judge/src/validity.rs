//! Whether the figures can be trusted: every rule with its evidence; the worst one wins.

use gake_core::Load;
use gake_core::clock::{Nanos, SECOND, nanos};
use gake_core::metric::{SeriesValue, Tags};
use gake_core::plan::{Overflow, Plan, WorkKind};
use gake_core::record::{Fault, Histogram, LatencyMetric, Run, RunEnd};
use gake_core::schedule::Process;
use gake_text::units;

use crate::finding::{THROTTLED, THROTTLED_MIN};
use crate::lanes;
use crate::saturation::Saturation;
use crate::stats::{BEYOND_MIN, Rates, fired_time, mean_in_flight, per_second, share, trusted};

/// The thresholds of every rule. Shares are 0 to 1.
mod threshold {
    use gake_core::clock::Nanos;

    /// Lateness p99 above this, and above this share of the response p50.
    pub(super) const LATENESS_SUSPECT: (Nanos, f64) = (1_000_000, 0.10);
    pub(super) const LATENESS_INVALID: (Nanos, f64) = (10_000_000, 0.50);
    /// Share of the machine's CPU that its host took away, from which on it is told.
    pub(super) const STEAL_TOLD: f64 = 0.005;
    /// Sent, of asked, below this.
    pub(super) const SENT_SUSPECT: f64 = 0.99;
    pub(super) const SENT_INVALID: f64 = 0.95;
    /// A Poisson process misses its mean by chance; this many standard deviations are allowed.
    pub(super) const POISSON_DEVIATIONS: f64 = 3.0;
    /// In runs shorter than this the generator's CPU is not judged.
    pub const CPU_MEASURED_MIN: Nanos = 200_000_000;
    /// Share of one core that the busiest worker used.
    pub(super) const CPU_SUSPECT: f64 = crate::stats::CPU_BUSY;
    pub(super) const CPU_INVALID: f64 = 0.97;
    /// Dropped, of due; any is suspect.
    pub(super) const DROPPED_INVALID: f64 = 0.01;
    /// Users of a closed loop who began, of those asked for, below this.
    pub(super) const USERS_SUSPECT: f64 = 0.99;
    pub(super) const USERS_INVALID: f64 = 0.95;
    /// The generator's own faults, of sent; any is suspect.
    pub(super) const OWN_FAULTS_INVALID: f64 = 0.01;
    /// Little's law off by this share.
    pub(super) const LITTLE_SUSPECT: f64 = 0.05;
    pub(super) const LITTLE_INVALID: f64 = 0.20;
    /// Little's law says nothing about fewer than these.
    pub(super) const LITTLE_IN_FLIGHT: f64 = 0.1;
    pub(super) const LITTLE_COMPLETED: u64 = 100;
    /// What a user does between two iterations is in flight, and not in `iteration_duration`.
    pub(super) const ITERATION_OWN_NS: f64 = 25_000.0;
}
use threshold as at;

/// Whether the figures can be trusted, from good to bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Validity {
    /// The figures can be trusted.
    Valid,
    /// Look at the reasons first.
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

/// The rules, in the order in which reasons of one level are listed.
const RULES: [fn(&Run) -> Option<Reason>; 9] = [
    accounts,
    nothing_sent,
    lateness,
    asked_and_sent,
    users,
    cpu,
    dropped,
    own_faults,
    littles_law,
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

/// Counts that must agree and do not: a defect of the generator, which its events describe.
fn accounts(run: &Run) -> Option<Reason> {
    let by = run.generator.miscounted;
    (by > 0).then(|| Reason {
        rule: "accounts",
        level: Validity::Invalid,
        text: format!(
            "the generator's own counts differ by {}, which is a defect of gake: its events say \
             where",
            units::count(by)
        ),
    })
}

fn nothing_sent(run: &Run) -> Option<Reason> {
    let counts = &run.tally.counts;
    // A script need not send requests: its iterations are what it was run for.
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

/// Send delays that are too long: how badly, and what there was of them.
struct Late {
    level: Validity,
    /// The 99th percentile, if there are enough samples to trust it.
    p99: Option<Nanos>,
    /// Requests that left later than the bound of this level.
    count: u64,
    bound: Nanos,
    /// The median response time, with which they are compared.
    response: Nanos,
}

/// The send delays of `run` when they are too long. Of few requests no percentile is believed:
/// then those are counted that left too late, and as many are asked for as must lie beyond a
/// percentile.
fn late(run: &Run) -> Option<Late> {
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
        is_over.then_some(Late { level, p99, count, bound, response })
    };
    over(Validity::Invalid, at::LATENESS_INVALID)
        .or_else(|| over(Validity::Suspect, at::LATENESS_SUSPECT))
}

/// Lateness is the generator's own delay. The wait for a free connection is not in it.
fn lateness(run: &Run) -> Option<Reason> {
    let late = late(run)?;
    let sent = run.tally.latency.of(LatencyMetric::Lateness).count();
    let seen = match late.p99 {
        Some(p99) => format!("p99 send delay {}", units::duration(p99 as f64)),
        None => format!(
            "{} of {} requests left more than {} late",
            units::count(late.count),
            units::count(sent),
            units::duration(late.bound as f64)
        ),
    };
    let text = format!(
        "{seen} (median response {}): {}",
        units::duration(late.response as f64),
        who_delayed(run, share(late.count, sent))
    );
    Some(Reason { rule: "lateness", level: late.level, text })
}

/// Whether the generator was too slow for the load, or had no core to run on. The workers' waits
/// for a core and the host's steal explain late requests in two ways: each request waited for a
/// core by itself, and then the waits make up half of all send delays; or a worker stood still and
/// everything due meanwhile was late, and then they took at least half as large a share of the time
/// as late requests are of all.
fn who_delayed(run: &Run, late: f64) -> String {
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
    let mut who = Vec::with_capacity(3);
    let quota = run.watched.machine(THROTTLED).and_then(|gauge| gauge.mean_from(warmup));
    if let Some(share) = quota.filter(|share| *share >= THROTTLED_MIN) {
        let share = units::percent(share.min(1.0));
        return format!(
            "the CPU quota of gake's control group stopped it in {share} of the periods"
        );
    }
    if waited > 0.0 {
        who.push(format!(
            "its workers waited for a core {} of their time",
            units::percent(waited.min(1.0))
        ));
    }
    if steal >= at::STEAL_TOLD {
        who.push(format!("the host took {} of the CPU (steal)", units::percent(steal)));
    }
    if who.is_empty() {
        return "the generator ran late".to_owned();
    }
    format!("the machine was busy, not the generator: {}", who.join(", "))
}

fn asked_and_sent(run: &Run) -> Option<Reason> {
    let counts = &run.tally.counts;
    let asked = run.asked_rate?;
    let (sent, due) = match run.plan.fires_iterations() {
        true => (per_second(counts.started as f64, run.sending), counts.started + counts.dropped),
        false => (Rates::of(run).sent, counts.due()),
    };
    if asked <= 0.0 || due == 0 {
        return None;
    }
    // A grid may have one arrival more or less than its area at the edge.
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
    // What waits for a connection at a target beyond its capacity is that target's.
    if Saturation::of(run).is_some() {
        return None;
    }
    let part = (sent + per_second(chance, run.sending)) / asked;
    let level = level(part < at::SENT_SUSPECT, part < at::SENT_INVALID)?;
    let mut text = format!(
        "{} were sent of {} asked for ({})",
        units::rate(sent),
        units::rate(asked),
        units::percent(sent / asked)
    );
    // Whose fault it is: the generator was too slow, or nothing was free to send on.
    let noun = lanes::noun(&run.plan);
    let waited = run.tally.latency.of(LatencyMetric::Blocked).count();
    let missing = (1.0 - sent / asked) * due as f64;
    if counts.lost as f64 >= missing / 2.0 {
        text.push_str("; the rest was to be sent by agents that were lost");
    } else if counts.dropped as f64 >= missing / 2.0 {
        text.push_str(&format!(
            "; the rest was dropped because every {noun} was busy: the server or the bound on \
             {noun}s, not the generator's speed"
        ));
    } else if share(waited, counts.sent) > 0.01 {
        text.push_str(&format!(
            "; the rest waited for a free {noun}: the server or the bound on {noun}s, not the \
             generator's speed"
        ));
    }
    Some(Reason { rule: "asked_sent", level, text })
}

/// A closed loop that ended before all its users had their first turn is not the load that was
/// asked for. As each of them begins at least one arrival, fewer arrivals than users prove it; a
/// bound on the requests, and a warm-up that is left out of the counts, explain it.
fn users(run: &Run) -> Option<Reason> {
    let counts = &run.tally.counts;
    let &Load::Closed { users, .. } = run.plan.load.one()? else { return None };
    let is_judged =
        run.ending == RunEnd::Done && run.plan.requests.is_none() && run.plan.warmup.is_zero();
    let begun = counts.arrivals();
    if !is_judged || begun == 0 {
        return None;
    }
    let part = share(begun, users as u64);
    let level = level(part < at::USERS_SUSPECT, part < at::USERS_INVALID)?;
    let text = format!(
        "at most {} of {} users began before the run ended: give them more time, or ask for fewer",
        units::count(begun),
        units::count(users as u64)
    );
    Some(Reason { rule: "users", level, text })
}

fn cpu(run: &Run) -> Option<Reason> {
    // Spinning uses the core by design, and starting up uses it whole for a moment.
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

fn dropped(run: &Run) -> Option<Reason> {
    let counts = &run.tally.counts;
    let part = share(counts.dropped, counts.due());
    let level = level(counts.dropped > 0, part > at::DROPPED_INVALID)?;
    let (lost, own) = (counts.lost, counts.dropped.saturating_sub(counts.lost));
    let at_bound = matches!(run.plan.overflow, Overflow::Drop | Overflow::Queue { .. });
    let of_lost = "to be sent by agents that were lost";
    let why = match (lost, own, at_bound) {
        (0, _, true) => "the bound on connections was reached".to_owned(),
        (0, _, false) => "they were never sent before the run ended".to_owned(),
        (_, 0, _) => format!("they were {of_lost}"),
        (lost, own, _) => {
            let (lost, own) = (units::count(lost), units::count(own));
            let rest = match at_bound {
                true => format!("{own} found the bound on connections reached"),
                false => format!("{own} were never sent before the run ended"),
            };
            format!("{lost} were {of_lost}, {rest}")
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

/// What was in flight, over its time there in nanoseconds.
struct Fired {
    time: f64,
    begun: u64,
    completed: u64,
    deviation: f64,
}

impl Fired {
    fn of_requests(run: &Run) -> Self {
        let counts = &run.tally.counts;
        Self {
            time: fired_time(&run.tally) as f64,
            begun: counts.begun(),
            completed: counts.completed(),
            deviation: run.tally.latency.of(LatencyMetric::Service).stddev(),
        }
    }

    /// Of a script its iterations, which think between their requests; `None` when the time of
    /// some is not known.
    fn of_iterations(run: &Run) -> Option<Self> {
        let counts = &run.tally.counts;
        let mut times = Histogram::default();
        for (_, value) in run.tally.series.select(ITERATIONS, &Tags::default()) {
            if let SeriesValue::Trend(trend) = value {
                times.merge(trend);
            }
        }
        let is_whole = counts.interrupted == 0 && times.count() == counts.started;
        is_whole.then(|| Self {
            time: times.sum() as f64,
            begun: counts.started,
            completed: counts.started,
            deviation: times.stddev(),
        })
    }
}

/// The metric of k6 that has the times of iterations.
const ITERATIONS: &str = "iteration_duration";

/// Whether scripts run beside plain scenarios: what is in flight then is of two kinds.
fn fires_both(plan: &Plan) -> bool {
    let is_script = |plan: &Plan| plan.fires == WorkKind::Iterations;
    plan.fires_iterations() && !plan.scenarios().iter().all(is_script)
}

/// Little's law, L = λ·W, on what was fired.
///
/// L is the in-flight level integrated over the measured window by the engine. λ·W is
/// Σ(done − fired) / measured from the histograms, an independent record. In a steady state they
/// differ only by the edges: what was in flight at the end goes on after the window, for one mean
/// residual time E\[S²\]/2E\[S\] (at most about one mean time for a batch). That much is allowed
/// on top of the threshold. A window shorter than one mean time is a burst without a steady state,
/// and dropped arrivals have no time in flight: neither is judged. A queue that grows at a target
/// beyond its capacity is a result, and no fault of the measurement.
fn littles_law(run: &Run) -> Option<Reason> {
    let counts = &run.tally.counts;
    let level_seen = mean_in_flight(run);
    let is_judged = counts.dropped == 0 && !fires_both(&run.plan) && Saturation::of(run).is_none();
    if level_seen < at::LITTLE_IN_FLIGHT || !is_judged {
        return None;
    }
    let measured = run.measured as f64;
    let Fired { time, begun, completed, deviation } = match run.plan.fires_iterations() {
        true => Fired::of_iterations(run)?,
        false => Fired::of_requests(run),
    };
    let mean = time / begun as f64;
    if completed < at::LITTLE_COMPLETED || mean > measured {
        return None;
    }
    let residual = mean.max((mean * mean + deviation * deviation) / (2.0 * mean));
    let expected = time / measured;
    let edge = level_seen * residual / measured;
    // Over HTTP/2 a request is in flight too while it waits for a stream, in what `time` leaves out.
    let blocked = match counts.streams {
        0 => 0.0,
        _ => run.tally.latency.of(LatencyMetric::Blocked).sum() as f64 / measured,
    };
    let own = match run.plan.fires_iterations() {
        true => completed as f64 * at::ITERATION_OWN_NS / measured,
        false => 0.0,
    };
    let least = (expected - level_seen).max(level_seen - expected - blocked - own);
    let off = (least - edge).max(0.0) / level_seen;
    let level = level(off > at::LITTLE_SUSPECT, off > at::LITTLE_INVALID)?;
    let mut text = format!(
        "not in a steady state: {} were in flight on average, but {} of {} each make {} \
         (Little's law)",
        units::number(level_seen),
        units::rate(completed as f64 * 1e9 / measured),
        units::duration(mean),
        units::number(expected)
    );
    if counts.unfinished > 0 {
        text.push_str(&format!("; {} never finished", units::count(counts.unfinished)));
    } else if mean > measured / 20.0 {
        text.push_str("; the run is short for such long requests");
    }
    Some(Reason { rule: "littles_law", level, text })
}

#[cfg(test)]
#[path = "validity_tests.rs"]
mod tests;
