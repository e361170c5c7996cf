//! Limits of the generator's own machine.

use gake_core::record::Fault;

use super::{Facts, Finding};
use crate::units;
use crate::validity::CPU_BUSY;

/// Share of the workers' time in which they wanted a core and had none.
const RUN_DELAY_MIN: f64 = 0.05;

pub(super) fn cpu(facts: &Facts<'_>) -> Option<Finding> {
    let generator = &facts.run.generator;
    if facts.run.plan.spin || generator.busiest <= CPU_BUSY {
        return None;
    }
    let evidence = format!(
        "the busiest of {} used {} of its core",
        units::plural(generator.threads as u64, "worker"),
        units::percent(generator.busiest.min(1.0))
    );
    let advice = if generator.threads < generator.cores {
        "give it more cores with --threads, or lower the rate"
    } else {
        "lower the rate, or generate from a machine with more cores; the server's limit may be \
         higher than what is shown"
    };
    Some(Finding::new("generator_cpu", evidence, advice))
}

pub(super) fn run_delay(facts: &Facts<'_>) -> Option<Finding> {
    let generator = &facts.run.generator;
    let time = facts.run.measured as f64 * generator.threads as f64;
    let part = generator.run_delay as f64 / time;
    // Not a number when nothing was measured.
    if !part.is_finite() || part <= RUN_DELAY_MIN {
        return None;
    }
    let evidence = format!(
        "the workers waited {} for a core ({} of their time) while other processes had it",
        units::duration(generator.run_delay as f64),
        units::percent(part.min(1.0))
    );
    let advice = "give the generator cores of its own (taskset, cpusets), or move the server to \
                  another machine";
    Some(Finding::new("run_delay", evidence, advice))
}

pub(super) fn ports(facts: &Facts<'_>) -> Option<Finding> {
    let failed = facts.faults(|fault| fault == Fault::NoLocalPort);
    if failed == 0 {
        return None;
    }
    let evidence = format!(
        "{} ({}) failed for want of a local port; {} were open at most",
        units::plural(failed, "request"),
        units::percent(facts.of_sent(failed)),
        units::plural(facts.run.peak_connections, "connection")
    );
    let advice = if facts.run.plan.keepalive {
        "give more source addresses with --interface, or widen net.ipv4.ip_local_port_range"
    } else {
        "keep connections alive: closed ones hold their port for a minute; or give more source \
         addresses with --interface"
    };
    Some(Finding::new("client_ports", evidence, advice))
}

pub(super) fn descriptors(facts: &Facts<'_>) -> Option<Finding> {
    let failed = facts.faults(|fault| fault == Fault::NoDescriptors);
    if failed == 0 {
        return None;
    }
    let evidence = format!(
        "{} ({}) failed for want of a file descriptor; {} were open at most",
        units::plural(failed, "request"),
        units::percent(facts.of_sent(failed)),
        units::plural(facts.run.peak_connections, "connection")
    );
    Some(Finding::new(
        "client_descriptors",
        evidence,
        "raise the limit (ulimit -n), or bound the connections with -c",
    ))
}
