//! Limits of the generator's own machine.

use std::process::{Child, Command};

use gake_lab::LabConfig;
use rustix::thread::sched_getaffinity;

use super::network::in_network;
use super::{Need, target};
use crate::support::*;

pub fn ports() -> Json {
    let script = "echo '40000 40099' > /proc/sys/net/ipv4/ip_local_port_range && exec \"$@\"";
    in_network(script, "run demo -c 150 -n 1500 -o json --interface 127.0.0.1")
}

pub fn descriptors() -> Json {
    let lab = lab_with(LabConfig::default());
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 100 && exec \"$@\"", "sh", env!("CARGO_BIN_EXE_gake")]);
    let url = url(&lab, "/delay/20ms");
    start(command.args(["run", &url]).args(words("-c 300 -n 3000 -o json"))).wait().json()
}

/// A core for the generator and another for the target.
pub const CORES: Need =
    Need { what: "taskset and two cores", is_met: || cores().is_some() && has_taskset() };

fn has_taskset() -> bool {
    Command::new("taskset").arg("--version").output().is_ok()
}

/// Two cores that tests may use.
fn cores() -> Option<(usize, usize)> {
    let set = sched_getaffinity(None).ok()?;
    let mut allowed = (0..rustix::thread::CpuSet::MAX_CPU).filter(|core| set.is_set(*core));
    allowed.next().zip(allowed.next())
}

fn pinned(core: usize) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", &core.to_string()]);
    command
}

/// Programs that compute on one core for as long as they are there.
struct Busy(Vec<Child>);

impl Busy {
    fn on(core: usize, programs: usize) -> Self {
        let start = || pinned(core).args(["sh", "-c", "while :; do :; done"]).spawn().unwrap();
        Self((0..programs).map(|_| start()).collect())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Others compute on the generator's core; the target has one of its own.
pub fn cpu_taken() -> Json {
    let (own, other) = cores().unwrap();
    let peer = Peer::start(pinned(other).arg(target::go_binary()));
    // Its share of the core is then less than it needs.
    let _busy = Busy::on(own, 12);
    let mut command = pinned(own);
    command.args([env!("CARGO_BIN_EXE_gake"), "run", &format!("{}/?wait=1ms", peer.url)]);
    start(command.args(words("-r 2000 -d 4s -o json"))).wait().json()
}

/// The generator has a core of its own, and more to do than that does.
pub fn cpu_used_up() -> Json {
    let (own, other) = cores().unwrap();
    let serve = words("serve --quiet --listen 127.0.0.1:0 --threads 1");
    let peer = Peer::start(pinned(other).arg(env!("CARGO_BIN_EXE_gake")).args(serve));
    let mut command = pinned(own);
    command.args([env!("CARGO_BIN_EXE_gake"), "run", &format!("{}/bytes/200000", peer.url)]);
    // It reads every byte of each response.
    command.args(["--expect-body", "(?s)(x+x+)+y|.$"]);
    start(command.args(words("-c 8 -d 4s -o json"))).wait().json()
}
