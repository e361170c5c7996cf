//! What the watched target said of itself: a level at its limit needs no guess.

use super::{Facts, Finding};
use crate::units;

/// A share of a whole is used up from here on, in its mean after the warm-up.
const USED_UP: f64 = 0.95;
/// CPU: the scheduler leaves no process all of it.
const CPU_USED_UP: f64 = 0.9;

/// The mean of a share, of several sources the largest, when it is at least `least`.
fn used(facts: &Facts<'_>, name: &str, least: f64) -> Option<(String, f64)> {
    let warmup = u64::try_from(facts.run.plan.warmup.as_nanos()).unwrap_or(u64::MAX);
    facts
        .run
        .watched
        .named(name)
        .filter_map(|gauge| Some((gauge.source.clone(), gauge.mean_from(warmup)?)))
        .filter(|(_, share)| *share >= least)
        .max_by(|a, b| a.1.total_cmp(&b.1))
}

/// The largest reading of a gauge, over all sources.
fn most(facts: &Facts<'_>, name: &str) -> Option<f64> {
    facts.run.watched.named(name).filter_map(|gauge| gauge.max()).reduce(f64::max)
}

pub(super) fn cpu(facts: &Facts<'_>) -> Option<Finding> {
    let (source, share) = used(facts, "cpu", CPU_USED_UP)?;
    let evidence =
        format!("{source} used {} of the machine's CPU in the mean", units::percent(share));
    let advice = "profile what it does for a request, or give it more cores; no setting of pools \
                  or queues will help";
    Some(Finding::new("target_cpu", evidence, advice))
}

pub(super) fn pool(facts: &Facts<'_>) -> Option<Finding> {
    let (source, share) = used(facts, "pool", USED_UP)?;
    let busy = most(facts, "pool_busy").map(|busy| format!(": {} busy", units::number(busy)));
    let evidence = format!(
        "{source} had {} of its worker threads busy in the mean{}",
        units::percent(share),
        busy.unwrap_or_default()
    );
    let advice = "the pool is the limit: what the threads wait for decides whether more of them \
                  help (server.tomcat.threads.max, or the like)";
    Some(Finding::new("target_pool", evidence, advice))
}

pub(super) fn db_pool(facts: &Facts<'_>) -> Option<Finding> {
    let (source, share) = used(facts, "db_pool", USED_UP)?;
    let pending = most(facts, "db_pool_pending").filter(|pending| *pending > 0.0);
    let pending = pending.map(|n| format!(", with up to {} requests waiting for one", n.round()));
    let evidence = format!(
        "{source} had {} of its database connections in use in the mean{}",
        units::percent(share),
        pending.unwrap_or_default()
    );
    let advice = "make the queries shorter or the pool larger, as far as the database serves more \
                  connections at once";
    Some(Finding::new("target_db_pool", evidence, advice))
}

pub(super) fn connections(facts: &Facts<'_>) -> Option<Finding> {
    let share = most(facts, "connections").filter(|share| *share >= USED_UP)?;
    let evidence = format!("the target had {} of the connections it allows", units::percent(share));
    let advice = "raise the limit (server.tomcat.max-connections, worker_connections), or close \
                  connections that idle";
    Some(Finding::new("target_connections", evidence, advice))
}

pub(super) fn descriptors(facts: &Facts<'_>) -> Option<Finding> {
    let share = most(facts, "descriptors").filter(|share| *share >= USED_UP)?;
    let evidence = format!("the target had {} of its file descriptors open", units::percent(share));
    let advice = "raise its limit (ulimit -n, LimitNOFILE=); without descriptors it cannot accept";
    Some(Finding::new("target_descriptors", evidence, advice))
}

pub(super) fn overflows(facts: &Facts<'_>) -> Option<Finding> {
    let rate = most(facts, "listen_overflows").filter(|rate| *rate > 0.0)?;
    let queue = most(facts, "accept_queue").unwrap_or(0.0);
    let evidence = format!(
        "the kernel turned away up to {} new connections, since the target's accept queue was full \
         ({} waited in it at most)",
        units::rate(rate),
        units::number(queue)
    );
    let advice = "accept faster, or raise the backlog (accept-count, listen backlog=) and \
                  net.core.somaxconn; a longer queue only helps against bursts";
    Some(Finding::new("target_overflows", evidence, advice))
}
