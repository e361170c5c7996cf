//! Notes and warnings before a run.

use gake_core::plan::{OTHER_DESCRIPTORS, Plan};
use gake_core::spec::RunSpec;
use gake_run::ResolvedRun;
use gake_wire::ProxyRules;

use crate::console::Console;
use crate::ports;

const OTHERS: u64 = OTHER_DESCRIPTORS as u64;

/// Prints the plan, and warns of limits that it will probably hit. `descriptors` is the limit of
/// this process, or `None` when agents do the run.
pub fn announce(
    prepared: &ResolvedRun,
    spec: &RunSpec,
    descriptors: Option<u64>,
    console: &Console,
) {
    for note in &prepared.notes {
        console.note(note);
    }
    if let Some(Ok(proxy)) = spec.connection.proxy.as_ref().map(|text| text.parse::<ProxyRules>()) {
        console.note(&format!("through the proxy {proxy}"));
    }
    if let Some(descriptors) = descriptors {
        warn(prepared, spec, descriptors, console);
    }
    let mut plan = Plan::clone(&prepared.plan);
    if descriptors.is_none() {
        plan.threads = 0;
    }
    console.note(&plan.to_string());
}

/// Warns of limits on descriptors and ports that the connections will probably hit.
pub fn warn(prepared: &ResolvedRun, spec: &RunSpec, descriptors: u64, console: &Console) {
    let plans = prepared.plan.scenarios().iter();
    let connections: u64 =
        plans.map(|plan| (plan.connections + plan.idle_connections) as u64).sum();
    if prepared.plan.tables < 2 && connections + OTHERS > descriptors {
        console.warn(&format!(
            "{connections} connections need more than the {descriptors} file descriptors of this \
             process; the excess will fail as no_descriptors (raise `ulimit -Hn`)"
        ));
    }
    let (tables, workers) = (prepared.plan.tables, prepared.plan.workers());
    if tables > workers {
        console.warn(&format!(
            "{connections} connections need {tables} descriptor tables, and {workers} users can have \
             one each; the excess will fail as no_descriptors (add users: -c {tables})"
        ));
    }
    let ports = local_ports(prepared, spec);
    if connections > ports {
        console.warn(&format!(
            "{connections} connections need more than the {ports} local ports that one address has \
             for this target; the excess will fail as no_local_port (widen \
             net.ipv4.ip_local_port_range, or give more addresses: gake run --interface)"
        ));
    }
}

/// Local ports available for all targets; [`u64::MAX`] when they are not the limit.
fn local_ports(prepared: &ResolvedRun, spec: &RunSpec) -> u64 {
    let has_one_source = prepared.wires.iter().all(|wire| wire.network.has_one_source());
    let origins = prepared.wires.iter().flat_map(|wire| &wire.network.origins);
    let addresses = origins.map(|origin| origin.addresses.len() as u64).sum();
    // The targets of a script are unknown before it runs.
    let is_known = !prepared.wires.is_empty();
    if !is_known || !has_one_source || !spec.connection.sources.is_empty() {
        return u64::MAX;
    }
    ports::local().map_or(u64::MAX, |ports| ports.saturating_mul(addresses))
}
