//! Whether a shadow that misbehaves moves the latency of the master's responses.
//!
//! Two proxies without a shadow and one for each way to be bad, all before one nginx and all
//! started anew for this; the same load, open loop at a low rate, meets them in turn. In a round
//! the difference of a way is its p99 less that of the first proxy without a shadow; the second one
//! is a way like the others, with the differences of identical runs. From them comes the
//! noise ([`noise`]); a way is beyond it when its differences are, with their error ([`interval`]):
//! the p99 of a run rests on a few requests, and one median of it says little.

use std::fs;

use anyhow::Result;

use super::bad::{Bad, Manner};
use super::{LIMIT, await_port, free_ports, gake_run, number, start, tell};
use crate::Bench;
use crate::peers::Tool;
use crate::process::Running;
use crate::report::Report;
use crate::stats::{median, rotated};
use crate::{memory, nginx};

/// Low, for what a shadow costs by CPU is not in question here: a flood of responses is a mebibyte
/// each.
const RATE: u64 = 200;

/// How the shadows are called: tried all the time (no breaker), with time-outs many times a round,
/// and with more copies than they take.
const SHADOW_FLAGS: [&str; 3] = ["--shadow-methods=all", "--shadow-timeout=1s", "--breaker=0"];

/// How many ways that are identical may be taken for different.
const BEYOND_NOISE: f64 = 0.05;

/// Rounds, at least: fewer say nothing about a quantile that rests on a few requests.
const ROUNDS: usize = 10;

/// More than the kernel takes for a shadow that never reads.
const BODY: usize = 128 << 10;

/// The proxies, by their shadows.
const SHADOWS: [(&str, Option<Manner>); 8] = [
    ("none", None),
    ("none again", None),
    ("hangs", Some(Manner::Hangs)),
    ("refuses", Some(Manner::Refuses)),
    ("resets", Some(Manner::Resets)),
    ("drips", Some(Manner::Drips)),
    ("floods", Some(Manner::Floods)),
    ("never-reads", Some(Manner::Deaf)),
];

/// A load, and the numbers of the proxies that it meets.
struct Load {
    name: &'static str,
    path: &'static str,
    flags: &'static str,
    met: &'static [usize],
}

/// The file that is posted.
const BODY_FILE: &str = "isolation-body";

const LOADS: [Load; 3] = [
    Load { name: "GET", path: "/", flags: "", met: &[0, 1, 2, 3, 4, 5, 6, 7] },
    Load { name: "GET, no keep-alive", path: "/", flags: "--no-keepalive", met: &[0, 1, 2] },
    Load { name: "POST of 128 KiB", path: "/upload", flags: "--data @", met: &[0, 1, 7] },
];

/// What a run said.
#[derive(Clone, Copy)]
struct Said {
    p50_us: f64,
    p99_us: f64,
    errors: f64,
}

/// What was found of one way under one load, round by round.
#[derive(Clone, Default)]
struct Found {
    said: Vec<Said>,
    differs_us: Vec<f64>,
}

/// A proxy with its shadow.
struct Way {
    name: &'static str,
    port: u16,
    proxy: Running,
    _shadow: Option<Bad>,
}

/// The table, and what became of the copies.
pub fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let (seconds, rounds) =
        (bench.pick(3, 2, 1), bench.pick(ROUNDS, 3, 1).max(bench.options.rounds));
    report.heading(format!(
        "isolation: gake shadow {} beside bad shadows; gake run -r {RATE} for {seconds} s, \
         {rounds} times",
        SHADOW_FLAGS.join(" "),
    ));
    fs::write(bench.dir.join(BODY_FILE), vec![b'x'; BODY])?;
    let (port, master) = start_master(bench)?;
    let ways = SHADOWS.map(|(name, manner)| start_way(bench, port, name, manner));
    let ways: Vec<Way> = ways.into_iter().collect::<Result<_>>()?;
    let mut found = vec![vec![Found::default(); ways.len()]; LOADS.len()];
    for round in 0..rounds {
        for (load, found) in LOADS.iter().zip(&mut found) {
            let mut said = vec![None; ways.len()];
            for (_, at) in rotated(load.met, round) {
                let way = &ways[*at];
                let measured = measure(bench, way.port, load, seconds);
                tell(report, way.name, measured.map(|one| said[*at] = Some(one)));
            }
            take(found, &said);
        }
    }
    show(report, &ways, &found);
    for way in ways {
        end(report, way)?;
    }
    master.terminate();
    master.wait().map(drop)
}

/// An nginx that reads a body before it responds: a request with an earlier response would not be copied.
fn start_master(bench: &Bench) -> Result<(u16, Running)> {
    let [port] = free_ports()?;
    let dir = bench.dir.join("isolation");
    fs::create_dir_all(&dir)?;
    let servers = format!(
        r#"upstream itself {{ server 127.0.0.1:{port}; keepalive 128; }}
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        location / {{ return 200 "ok\n"; }}
        location = /upload {{
            client_body_buffer_size 1m;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_set_header Content-Length "";
            proxy_pass_request_body off;
            proxy_pass http://itself/;
        }}
    }}"#
    );
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let configuration = nginx::configuration(&dir, Some(workers), &servers);
    let running = nginx::launch(&dir, None, &configuration)?;
    await_port(port)?;
    Ok((port, running))
}

fn start_way(
    bench: &Bench,
    master: u16,
    name: &'static str,
    manner: Option<Manner>,
) -> Result<Way> {
    let [port] = free_ports()?;
    let shadow = manner.map(Bad::start).transpose()?;
    let mut args = vec![
        "shadow".to_owned(),
        "--quiet".to_owned(),
        "--drain=2s".to_owned(),
        format!("--listen=127.0.0.1:{port}"),
        format!("--master=production=http://127.0.0.1:{master}"),
    ];
    if let Some(shadow) = &shadow {
        args.push(format!("--shadow={name}={}", shadow.url()));
        args.extend(SHADOW_FLAGS.map(str::to_owned));
    }
    let proxy = start(bench, Tool::Gake, &args, LIMIT)?;
    await_port(port)?;
    Ok(Way { name, port, proxy, _shadow: shadow })
}

fn measure(bench: &Bench, port: u16, load: &Load, seconds: u64) -> Result<Said> {
    let body = format!("@{}", bench.dir.join(BODY_FILE).display());
    let flags = load.flags.replace('@', &body);
    let path = load.path;
    let args = format!("http://127.0.0.1:{port}{path} -r {RATE} -d {seconds}s {flags}");
    let json = gake_run(bench, &args)?;
    Ok(Said {
        p50_us: number(&json, "/latency_ns/service/p50")? / 1e3,
        p99_us: number(&json, "/latency_ns/service/p99")? / 1e3,
        errors: number(&json, "/requests/sent")? - number(&json, "/requests/ok")?,
    })
}

/// Keeps what a round found; a way whose run failed is reported and left out.
fn take(found: &mut [Found], said: &[Option<Said>]) {
    for (found, one) in found.iter_mut().zip(said) {
        found.said.extend(one);
        if let (Some(one), Some(first)) = (one, said[0]) {
            found.differs_us.push(one.p99_us - first.p99_us);
        }
    }
}

fn show(report: &mut Report, ways: &[Way], found: &[Vec<Found>]) {
    let mut rows = Vec::new();
    for (load, found) in LOADS.iter().zip(found) {
        let noise = noise(found);
        rows.extend(load.met.iter().map(|at| {
            let mut row = vec![ways[*at].name.to_owned(), load.name.to_owned()];
            row.extend(figures(&found[*at], noise));
            row
        }));
    }
    let head = [
        "shadow",
        "load",
        "p50 µs",
        "p99 µs",
        "errors",
        "differs µs",
        "19 of 20",
        "noise µs",
        "later",
    ];
    report.table(&head, &rows);
    for line in [
        "  differs: the p99 less that of the first way in the same round, median of the rounds,",
        "  and where 19 of 20 such medians are; noise: what 19 of 20 ways that are identical stay",
        "  within, by the second's differences; later: all of that interval is above the noise",
    ] {
        report.line(line);
    }
}

/// What the median of the rounds' differences stays within for 19 of 20 ways that are identical.
///
/// Each difference of the two identical ways is as likely as its opposite, and as another's: a
/// bootstrap with both signs. The median of `n` draws is above `x` when half of them are, so its
/// distribution is binomial and needs no draws: with fewer than five rounds this is the largest
/// difference, with five the second, so that one bad second of the machine does not excuse all.
fn noise(found: &[Found]) -> f64 {
    let mut sizes: Vec<f64> = found[1].differs_us.iter().map(|differs| differs.abs()).collect();
    sizes.sort_by(|a, b| b.total_cmp(a));
    let rounds = sizes.len();
    let is_rare = |above: &usize| {
        2.0 * half_or_more(rounds, *above as f64 / (2 * rounds) as f64) <= BEYOND_NOISE
    };
    let above = (1..rounds).take_while(is_rare).last().unwrap_or(0);
    sizes.get(above).copied().unwrap_or(f64::NAN)
}

/// The chance that of `n` draws, each a hit with chance `p`, half or more are hits.
fn half_or_more(n: usize, p: f64) -> f64 {
    (n.div_ceil(2)..=n).map(|k| chance(n, k, p)).sum()
}

/// The chance that of `n` draws, each a hit with chance `p`, `k` are hits.
fn chance(n: usize, k: usize, p: f64) -> f64 {
    let choose = (0..k).fold(1.0, |ways, i| ways * (n - i) as f64 / (i + 1) as f64);
    choose * p.powi(k as i32) * (1.0 - p).powi((n - k) as i32)
}

/// Where the median of differences is in 19 of 20 cases, by the order of the rounds alone: each of
/// them is above the true median with chance one half.
fn interval(differs: &[f64]) -> (f64, f64) {
    let mut sorted = differs.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rounds = sorted.len();
    // The chance that at most `most` rounds are under the median.
    let tail = |most: usize| (0..=most).map(|k| chance(rounds, k, 0.5)).sum::<f64>();
    // With fewer than six rounds none is left out.
    let out = (1..rounds.div_ceil(2)).take_while(|out| 2.0 * tail(*out) <= BEYOND_NOISE);
    let at = out.last().unwrap_or(0);
    let pick = |at: usize| sorted.get(at).copied().unwrap_or(f64::NAN);
    (pick(at), pick(rounds.saturating_sub(at + 1)))
}

fn figures(found: &Found, noise: f64) -> [String; 7] {
    let middle = |of: fn(&Said) -> f64| median(&found.said.iter().map(of).collect::<Vec<_>>());
    let (low, high) = interval(&found.differs_us);
    [
        format!("{:.0}", middle(|said| said.p50_us)),
        format!("{:.0}", middle(|said| said.p99_us)),
        format!("{:.0}", found.said.iter().map(|said| said.errors).sum::<f64>()),
        format!("{:+.0}", median(&found.differs_us)),
        format!("{low:+.0} to {high:+.0}"),
        format!("{noise:.0}"),
        if low > noise { "yes" } else { "no" }.to_owned(),
    ]
}

/// Ends a proxy: its memory, and what it says of its copies.
fn end(report: &mut Report, way: Way) -> Result<()> {
    let peak = memory::peak(way.proxy.pid()).map_or(f64::NAN, |kib| kib as f64 / 1024.0);
    way.proxy.terminate();
    let ended = way.proxy.wait()?;
    let said = String::from_utf8_lossy(&ended.stdout);
    // The first line is the address, the second the clients' side.
    let ledger = said.lines().nth(2).unwrap_or(way.name);
    report.line(format!("  peak {peak:.1} MB: {ledger}"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(p99_us: f64) -> Option<Said> {
        Some(Said { p50_us: 1.0, p99_us, errors: 0.0 })
    }

    #[test]
    fn one_bad_round_is_not_the_noise_of_five() {
        let found = |differs: &[f64]| {
            let second = Found { said: Vec::new(), differs_us: differs.to_vec() };
            noise(&[Found::default(), second])
        };
        assert_eq!(found(&[-3.0, 2.0]), 3.0);
        assert_eq!(found(&[2.0, 900.0, -3.0, 1.0, 4.0]), 4.0);
        assert_eq!(found(&[9.0, -8.0, 7.0, -6.0, 5.0, 4.0, 3.0, 2.0, 1.0]), 6.0);
        assert!(found(&[]).is_nan());
        assert!((half_or_more(5, 0.5) - 0.5).abs() < 1e-12);
        assert!((half_or_more(5, 0.1) - 0.00856).abs() < 1e-9);
    }

    #[test]
    fn a_way_is_held_against_what_identical_runs_differ_by() {
        let mut found = vec![Found::default(); 4];
        take(&mut found, &[said(100.0), said(130.0), said(120.0), said(150.0)]);
        take(&mut found, &[said(200.0), said(190.0), said(170.0), None]);
        take(&mut found, &[said(100.0), said(100.0), said(110.0), said(131.0)]);
        assert_eq!(noise(&found), 30.0);
        assert_eq!(found[2].differs_us, [20.0, -30.0, 10.0]);
        assert_eq!(figures(&found[2], 30.0), ["1", "120", "0", "+10", "-30 to +20", "30", "no"]);
        // A round without this way is no round of it: +50 and +31.
        assert_eq!(figures(&found[3], 30.0)[3..], ["+40", "+31 to +50", "30", "yes"]);
    }

    #[test]
    fn an_interval_leaves_out_what_chance_explains() {
        let rounds = |n: usize| (1..=n).map(|round| round as f64).collect::<Vec<_>>();
        assert_eq!(interval(&rounds(5)), (1.0, 5.0));
        // The table of the sign test: 2 to 9 of ten, 6 to 15 of twenty.
        assert_eq!(interval(&rounds(10)), (2.0, 9.0));
        assert_eq!(interval(&rounds(20)), (6.0, 15.0));
        assert!(interval(&[]).0.is_nan());
    }
}
