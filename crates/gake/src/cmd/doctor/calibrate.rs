//! A server of our own on loopback, loaded by the real engine: what one worker thread can
//! generate, and the shortest latency that can be seen.

use std::time::Duration;

use gake_core::Load;
use gake_core::clock::Nanos;
use gake_core::record::Run;
use gake_core::spec::{RequestSource, RunSpec, ScenarioSpec};
use gake_lab::{Lab, LabConfig};
use gake_text::units::{count, duration, rate};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::check::{Check, Group, Status, at_least, at_most};
use super::limits::round;

/// Users of the loop that measures throughput.
const USERS: usize = 50;

/// A generator that uses less of its core than this waits for the server.
const BUSY: f64 = 0.9;

/// Above this share of waiting time, other programs limit the generator.
const WAITED: f64 = 0.1;

/// The measured figures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Calibration {
    /// Responses a second.
    pub completed: f64,
    /// CPU time of the generator's thread per request.
    pub cpu_per_request: Nanos,
    /// The share of its core that the thread used.
    pub busiest: f64,
    /// The share of the time in which the thread had work and no core.
    pub waited: f64,
    /// The median latency of a single user.
    pub floor_p50: Nanos,
    /// Its 99th percentile.
    pub floor_p99: Nanos,
    /// Whether server and generator each had a core.
    pub pinned: bool,
}

impl Calibration {
    /// Requests a second that one thread can generate.
    pub fn per_thread(&self) -> f64 {
        1e9 / self.cpu_per_request.max(1) as f64
    }

    /// The same as checks.
    pub fn group(&self) -> Group {
        Group { name: "loopback", checks: vec![self.throughput(), self.floor()] }
    }

    fn throughput(&self) -> Check {
        let value = format!(
            "about {} a second and worker thread ({} CPU each; {} completed{})",
            count(round(self.per_thread() as u64)),
            duration(self.cpu_per_request as f64),
            rate(self.completed),
            self.bound(),
        );
        let status = at_least(self.per_thread(), 20_000.0, 5_000.0);
        let status = if self.waited > WAITED { status.max(Status::Note) } else { status };
        Check::new("requests", status, value)
            .advise("use a quiet machine and a release build; several machines for higher rates")
    }

    /// What limited the thread's rate.
    fn bound(&self) -> &'static str {
        if self.waited > WAITED {
            ", other programs having the core in between"
        } else if self.busiest < BUSY {
            ", the server being the slower"
        } else {
            ""
        }
    }

    fn floor(&self) -> Check {
        let value = format!(
            "p50 {}, p99 {}{}",
            duration(self.floor_p50 as f64),
            duration(self.floor_p99 as f64),
            if self.pinned { "" } else { ", server and generator on the same cores" },
        );
        Check::new("latency floor", at_most(self.floor_p99 as f64, 500e3, 5e6), value)
            .advise("smaller differences cannot be measured: stop other programs")
    }
}

/// Measures for `length`, and half as long for the floor.
///
/// # Errors
/// When it cannot be measured, and why.
pub fn calibrate(length: Duration) -> Result<Calibration, String> {
    // On its own thread, since threads inherit the cores of the thread that starts them.
    let thread = std::thread::Builder::new()
        .name("gake-doctor".to_owned())
        .spawn(move || measure(length))
        .map_err(|error| error.to_string())?;
    thread.join().map_err(|_| "its thread ended".to_owned())?
}

fn measure(length: Duration) -> Result<Calibration, String> {
    let cores = two_cores();
    let pin = |core: Option<usize>| core.is_some_and(pin);
    let server_pinned = pin(cores.map(|(server, _)| server));
    let config = LabConfig { cores: 1, ..LabConfig::default() };
    let lab = Lab::start(config).map_err(|error| error.to_string())?;
    let pinned = server_pinned && pin(cores.map(|(_, generator)| generator));
    let url = format!("http://{}/fast", lab.addr());
    let loaded = drive(&url, USERS, length)?;
    let alone = drive(&url, 1, length / 2)?;
    lab.shutdown();
    let answered = loaded.tally.counts.ok;
    let floor = alone.tally.latency.response();
    if answered == 0 || floor.is_empty() {
        return Err("no request on loopback had a response".to_owned());
    }
    if loaded.tally.counts.failed > 0 {
        let failed = count(loaded.tally.counts.failed);
        return Err(format!("{failed} requests failed on loopback: {:?}", loaded.tally.faults()));
    }
    Ok(Calibration {
        completed: answered as f64 * 1e9 / loaded.elapsed.max(1) as f64,
        cpu_per_request: loaded.generator.cpu / answered,
        busiest: loaded.generator.busiest,
        waited: loaded.generator.run_delay as f64 / loaded.elapsed.max(1) as f64,
        floor_p50: floor.quantile(0.5),
        floor_p99: floor.quantile(0.99),
        pinned,
    })
}

/// A closed loop of `users` on one worker thread.
fn drive(url: &str, users: usize, length: Duration) -> Result<Run, String> {
    let url = RequestSource::Url(url.to_owned());
    let scenario = ScenarioSpec {
        duration: Some(length),
        graceful_stop: Duration::from_secs(1),
        ..ScenarioSpec::new(url, Load::closed(users))
    };
    let mut spec = RunSpec { threads: Some(1), ..RunSpec::new(scenario) };
    spec.connection.connect_timeout = Duration::from_secs(2);
    spec.connection.timeout = Duration::from_secs(5);
    gake_run::run(&spec).map_err(|error| error.to_string())
}

/// The first two cores that this thread may use.
fn two_cores() -> Option<(usize, usize)> {
    let allowed = sched_getaffinity(None).ok()?;
    let mut cores = (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core));
    Some((cores.next()?, cores.next()?))
}

/// Keeps this thread, and those it starts from now on, on one core.
fn pin(core: usize) -> bool {
    let mut only = CpuSet::new();
    only.set(core);
    sched_setaffinity(None, &only).is_ok()
}

/// The error if it could not be measured.
pub fn failed(reason: &str) -> Group {
    let check = Check::new("requests", Status::Bad, format!("could not be measured: {reason}"))
        .advise("look at the limits above: the load needs a few dozen descriptors and loopback");
    Group { name: "loopback", checks: vec![check] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_on_the_rate_is_named() {
        let measured = Calibration {
            completed: 61_000.0,
            cpu_per_request: 12_500,
            busiest: 0.8,
            waited: 0.0,
            floor_p50: 45_000,
            floor_p99: 70_000,
            pinned: true,
        };
        let check = |measured: Calibration| measured.group().checks.swap_remove(0);
        assert!(check(measured).value.contains("80,000 a second"), "{:?}", check(measured));
        assert!(check(measured).value.contains("the server"), "{:?}", check(measured));
        let disturbed = check(Calibration { waited: 0.3, ..measured });
        assert_eq!(disturbed.status, Status::Note);
        assert!(disturbed.value.contains("other programs"), "{disturbed:?}");
        assert!(!check(Calibration { busiest: 1.0, ..measured }).value.contains("server"));
    }

    #[test]
    fn loopback_is_measured() {
        let measured = calibrate(Duration::from_millis(200)).unwrap();
        assert!(measured.completed > 100.0, "{measured:?}");
        assert!(measured.cpu_per_request > 0 && measured.per_thread() > 100.0, "{measured:?}");
        assert!(measured.floor_p50 > 0 && measured.floor_p50 <= measured.floor_p99, "{measured:?}");
        assert_eq!(measured.group().checks.len(), 2);
    }
}
