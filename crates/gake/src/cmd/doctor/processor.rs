//! The processor: cores, frequency, clock, and its other load.

use gake_text::units::{number, percent, plural};

use super::check::{Check, Group, Status, at_most};
use super::facts::Facts;

/// Checks of the processor; `waited` is the share of time that a busy thread of this
/// process waited for a core.
pub fn group(facts: &Facts, waited: Option<f64>) -> Group {
    let mut checks =
        vec![cores(facts), governor(facts), clock(facts), load(facts), contention(waited)];
    checks.extend(facts.cpu_quota.map(quota));
    Group { name: "processor", checks }
}

fn quota(cores: f64) -> Check {
    let status = if cores < 1.0 { Status::Bad } else { Status::Note };
    Check::new("CPU quota", status, format!("{} cores, by its control group", number(cores)))
        .advise(
            "what is over it is stopped until the next period: raise it (docker --cpus, \
                 resources.limits.cpu, CPUQuota=), or keep the load far below",
        )
}

fn cores(facts: &Facts) -> Check {
    let value = match facts.cores_online {
        Some(online) if online > facts.cores => format!("{} of {online} may be used", facts.cores),
        _ => facts.cores.to_string(),
    };
    let status = if facts.cores > 1 { Status::Good } else { Status::Note };
    Check::new("cores", status, value)
        .advise("with one core a target on this machine competes with the load: use another one")
}

fn governor(facts: &Facts) -> Check {
    let name = "frequency";
    let Some(governor) = &facts.governor else { return Check::unknown(name) };
    let status = if governor == "performance" { Status::Good } else { Status::Note };
    Check::new(name, status, governor.as_str())
        .advise("set it with `cpupower frequency-set -g performance`: latencies vary with it")
}

fn clock(facts: &Facts) -> Check {
    let name = "clock";
    let Some(clock) = &facts.clock else { return Check::unknown(name) };
    let status = match clock.as_str() {
        "tsc" | "kvm-clock" | "arch_sys_counter" | "hyperv_clocksource_tsc_page" => Status::Good,
        "hpet" | "acpi_pm" | "jiffies" => Status::Bad,
        _ => Status::Note,
    };
    Check::new(name, status, clock.as_str())
        .advise("each look at it is a system call: boot with clocksource=tsc where it is stable")
}

fn load(facts: &Facts) -> Check {
    let name = "load";
    let Some(load) = facts.load else { return Check::unknown(name) };
    let status = at_most(load / facts.cores.max(1) as f64, 0.3, 1.0);
    let value = format!("{} over the last minute, {}", number(load), plural(facts.cores, "core"));
    Check::new(name, status, value).advise("end other programs: they take the generator's time")
}

fn contention(waited: Option<f64>) -> Check {
    let name = "waiting for a core";
    let Some(waited) = waited else { return Check::unknown(name) };
    let value = format!("{} of a busy thread's time", percent(waited));
    Check::new(name, at_most(waited, 0.01, 0.10), value)
        .advise("other programs compete for the cores: end them, or pin them elsewhere (taskset)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quiet_machine_is_good() {
        let facts = Facts {
            cores: 2,
            cores_online: Some(2),
            governor: Some("performance".to_owned()),
            clock: Some("tsc".to_owned()),
            load: Some(0.1),
            ..Facts::default()
        };
        let checks = group(&facts, Some(0.001)).checks;
        assert!(checks.iter().all(|check| check.status == Status::Good), "{checks:?}");
    }

    #[test]
    fn a_poor_one_gets_the_reason() {
        let facts = Facts {
            cores: 1,
            cores_online: Some(8),
            governor: Some("powersave".to_owned()),
            clock: Some("hpet".to_owned()),
            load: Some(3.0),
            cpu_quota: Some(0.2),
            ..Facts::default()
        };
        let checks = group(&facts, Some(0.2)).checks;
        let quota = checks.last().unwrap();
        assert_eq!((quota.name, quota.status), ("CPU quota", Status::Bad));
        assert!(checks.iter().all(|check| check.advice.is_some()), "{checks:?}");
        assert_eq!(checks[0].value, "1 of 8 may be used");
        assert_eq!(checks[2].status, Status::Bad);
    }

    #[test]
    fn what_cannot_be_read_is_unknown() {
        let checks = group(&Facts { cores: 2, ..Facts::default() }, None).checks;
        assert!(checks[1..].iter().all(|check| check.value == "unknown"), "{checks:?}");
    }
}
