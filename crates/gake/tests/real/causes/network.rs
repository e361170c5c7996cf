//! Limits of the way between generator and target, in networks that a test makes.

use std::process::{Command, Stdio};

use super::Need;
use crate::support::*;

/// A network of its own, with the loopback interface that `script` uses; it runs gake as "$@".
pub fn in_network(script: &str, line: &str) -> Json {
    let mut command = network(script);
    command.arg(env!("CARGO_BIN_EXE_gake")).args(words(line));
    start(&mut command).wait().json()
}

fn network(script: &str) -> Command {
    let mut command = Command::new("unshare");
    let script = format!("ip link set lo up && {script}");
    command.args(["--map-root-user", "--net", "sh", "-c", &script, "sh"]);
    command
}

fn is_done(script: &str) -> bool {
    let mut command = network(script);
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// A network of its own.
pub const NETWORK: Need =
    Need { what: "unshare and ip, and the right to make a network", is_met: || is_done("true") };

/// One whose links can be limited.
pub const SHAPED: Need = Need {
    what: "tc, and the kernel's tbf",
    is_met: || is_done("tc qdisc add dev lo root tbf rate 80mbit burst 128kb latency 400ms"),
};

/// One whose links can lose packets.
pub const LOSSY: Need = Need {
    what: "tc, and the kernel's veth, clsact and bpf classifier",
    is_met: || {
        is_done(&format!(
            "ip link add v0 type veth peer name v1 && tc qdisc add dev v0 clsact && {}",
            lose("v0")
        ))
    },
};

/// A link of 80 Mbit/s.
fn limited(load: &str) -> Json {
    let script = "ip link set lo mtu 1500 && \
        tc qdisc add dev lo root tbf rate 80mbit burst 128kb latency 400ms && \
        { timeout 60 \"$1\" serve --quiet --listen 127.0.0.1:8099 >/dev/null & } && \
        until ss -ltn | grep -q :8099; do sleep 0.05; done; \
        \"$@\"; code=$?; kill $!; exit $code";
    in_network(script, &format!("run http://127.0.0.1:8099/bytes/200000 {load} -o json"))
}

pub fn bandwidth() -> Json {
    limited("-c 4 -d 4s")
}

pub fn bandwidth_many() -> Json {
    limited("-c 8 -d 5s")
}

/// Drops 3 of 100 packets that come in: classic BPF whose random number decides, 2 is to drop.
fn lose(device: &str) -> String {
    let random = 0xffff_f038_u32;
    let three_percent = (f64::from(u32::MAX) * 0.97) as u32;
    format!(
        "tc filter add dev {device} ingress bpf da bytecode \
         '4,32 0 0 {random},37 1 0 {three_percent},6 0 0 0,6 0 0 2'"
    )
}

/// Two networks, with a link between them that loses packets in both directions.
fn lossy(load: &str) -> Json {
    let (here, there) = (lose("v0"), lose("v1"));
    let script = format!(
        "ip link add v0 type veth peer name v1 && \
        {{ unshare --net timeout 60 \"$1\" serve --quiet --listen 0.0.0.0:8099 >/dev/null & }} && \
        target=$! && \
        until [ $(readlink /proc/$target/ns/net) != $(readlink /proc/$$/ns/net) ]; \
        do sleep 0.05; done; \
        ip link set v1 netns $target && ip addr add 10.9.0.1/24 dev v0 && ip link set v0 up && \
        tc qdisc add dev v0 clsact && {here} && \
        in=\"nsenter --target $target --net\" && $in ip addr add 10.9.0.2/24 dev v1 && \
        $in ip link set v1 up && $in tc qdisc add dev v1 clsact && $in {there} && \
        until $in ss -ltn | grep -q :8099; do sleep 0.05; done; \
        \"$@\"; code=$?; kill $target; exit $code"
    );
    in_network(&script, &format!("run http://10.9.0.2:8099/delay/5ms {load} -o json"))
}

pub fn loss() -> Json {
    lossy("-r 400 -d 4s")
}

pub fn loss_closed() -> Json {
    lossy("-c 20 -d 4s")
}
