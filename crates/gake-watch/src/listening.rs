//! The processes that listen on a port.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use procfs::process::{FDTarget, Process, all_processes};

use crate::{diag, sockets};

/// Finds who listens, again and again.
#[derive(Debug, Default)]
pub(crate) struct Listening {
    /// The sockets of the last look that was into the tables of threads, and the processes that it
    /// found: maybe none.
    in_threads: Option<(HashSet<u64>, Vec<i32>)>,
}

impl Listening {
    /// The processes that listen on one of the ports.
    pub(crate) fn on(&mut self, ports: &[u16]) -> Result<Vec<i32>, String> {
        let wanted = listeners(ports);
        if wanted.is_empty() {
            return Err(nobody_on(ports));
        }
        let all = all_processes().map_err(|error| format!("/proc cannot be read: {error}"))?;
        // What we may not look into is another user's.
        let has = |process: &Process| inodes(process).any(|inode| wanted.contains(&inode));
        // One at a time: each that is kept holds a descriptor.
        let (mut all_pids, mut pids) = (Vec::new(), Vec::new());
        for process in all.flatten() {
            all_pids.push(process.pid());
            if has(&process) {
                pids.push(process.pid());
            }
        }
        if pids.is_empty() {
            pids = self.in_threads(wanted, &all_pids);
        } else {
            self.in_threads = None;
        }
        if pids.is_empty() {
            return Err(format!(
                "the process that listens on {} is another user's: run gake as that user",
                port_names(ports)
            ));
        }
        Ok(pids)
    }

    /// Those whose threads have the sockets in descriptor tables of their own. They may have a
    /// million others there, so that they are looked for once.
    fn in_threads(&mut self, wanted: HashSet<u64>, all: &[i32]) -> Vec<i32> {
        let is_there = |pid: &i32| all.contains(pid);
        if let Some((sockets, pids)) = &self.in_threads
            && *sockets == wanted
            && pids.iter().all(is_there)
        {
            return pids.clone();
        }
        let own = i32::try_from(std::process::id()).unwrap_or_default();
        let others = all.iter().copied().filter(|pid| *pid != own);
        let pids: Vec<i32> = others.filter(|pid| has_in_threads(*pid, &wanted)).collect();
        // Also when it found nobody: it is long.
        self.in_threads = Some((wanted, pids.clone()));
        pids
    }

    /// Whether the processes have their sockets in tables of threads, which nobody counts.
    pub(crate) fn is_in_threads(&self) -> bool {
        self.in_threads.as_ref().is_some_and(|(_, pids)| !pids.is_empty())
    }
}

/// The sockets that listen on one of the ports, by inode.
fn listeners(ports: &[u16]) -> HashSet<u64> {
    if let Ok(all) = diag::listeners() {
        let ours = all.iter().filter(|one| ports.contains(&one.local.port()));
        return ours.map(|one| one.inode).collect();
    }
    let table = Process::myself().map(|me| sockets::table(&me)).unwrap_or_default();
    let listeners = sockets::listeners(&table, Some(ports), &HashSet::new());
    listeners.iter().map(|entry| entry.inode).collect()
}

/// The sockets that a process has open.
pub(crate) fn inodes(process: &Process) -> impl Iterator<Item = u64> + use<> {
    let descriptors = process.fd().into_iter().flatten().flatten();
    descriptors.filter_map(|descriptor| match descriptor.target {
        FDTarget::Socket(inode) => Some(inode),
        _ => None,
    })
}

fn has_in_threads(pid: i32, wanted: &HashSet<u64>) -> bool {
    let links = entries(&PathBuf::from(format!("/proc/{pid}/task")))
        .flat_map(|thread| entries(&thread.join("fd")))
        .flat_map(fs::read_link);
    let mut inodes = links.filter_map(|link| {
        let number = link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?;
        number.parse().ok()
    });
    inodes.any(|inode: u64| wanted.contains(&inode))
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

pub(crate) fn nobody_on(ports: &[u16]) -> String {
    format!("nothing on this machine listens on {}", port_names(ports))
}

fn port_names(ports: &[u16]) -> String {
    let names: Vec<_> = ports.iter().map(u16::to_string).collect();
    format!("port {}", names.join(" or "))
}
