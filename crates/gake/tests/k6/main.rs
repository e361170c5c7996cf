//! Small scripts, each run by gake and compared with what k6 1.8.1 made of it.
//!
//! `cases/` has the scripts, `recorded/` what k6 did, `ledger.toml` every difference and why there
//! is one. `cargo xtask k6 --record` runs the real k6 again and writes `recorded/`;
//! `cargo xtask k6 --live` compares with the real one instead of with what is recorded.

#![allow(clippy::unwrap_used, clippy::expect_used)] // the helpers are tests too

mod case;
mod convert;
mod ledger;
mod normal;
mod observe;

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use case::Case;
use gake_lab::{Lab, LabConfig};
use ledger::Ledger;
use observe::{Observed, Tool};

/// Scripts that run at once; most of them wait.
const AT_ONCE: usize = 4;

/// The real k6, when one is to be asked, and whether what it does is to be written down.
fn real_k6() -> Option<(PathBuf, bool)> {
    let path = |variable| std::env::var_os(variable).map(PathBuf::from);
    path("GAKE_K6_RECORD").map(|k6| (k6, true)).or_else(|| Some((path("GAKE_K6_LIVE")?, false)))
}

fn lab() -> Lab {
    Lab::start(LabConfig { cores: 2, ..LabConfig::default() }).unwrap()
}

/// What `make` makes of each case, several at once.
fn of_each<T: Send>(cases: &[Case], make: impl Fn(&Case) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let mut made: Vec<(usize, T)> = thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE)
            .map(|_| {
                scope.spawn(|| {
                    let mut made = Vec::new();
                    loop {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        let Some(case) = cases.get(at) else { return made };
                        made.push((at, make(case)));
                    }
                })
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    made.sort_by_key(|one| one.0);
    made.into_iter().map(|one| one.1).collect()
}

#[test]
fn scripts_run_as_k6_runs_them() {
    let cases = Case::all();
    assert!(cases.len() >= 150, "{}", cases.len());
    let lab = lab();
    let url = format!("http://{}", lab.addr());
    if let Some((k6, records)) = real_k6() {
        let seen = of_each(&cases, |case| Tool::K6(k6.clone()).observe(case, &url));
        for (case, seen) in cases.iter().zip(seen) {
            if records {
                case.record(&seen);
            } else {
                let recorded = case.recorded();
                let differences = recorded.differences(&seen);
                assert!(differences.is_empty(), "{}: {differences:#?}", case.name);
            }
        }
        if records {
            return;
        }
    }
    let mut ledger = Ledger::read();
    let mut wrong = Vec::new();
    let seen: Vec<Observed> = of_each(&cases, |case| Tool::Gake.observe(case, &url));
    for (case, seen) in cases.iter().zip(seen) {
        for difference in case.recorded().differences(&seen) {
            if !ledger.knows(&case.name, difference.field) {
                wrong.push(format!("{}: {difference}", case.name));
            }
        }
    }
    // An entry that is no longer needed is good news, so it fails where people look for differences.
    if real_k6().is_some() {
        wrong.extend(ledger.stale());
    }
    assert!(wrong.is_empty(), "{} differences\n{}", wrong.len(), wrong.join("\n"));
}
