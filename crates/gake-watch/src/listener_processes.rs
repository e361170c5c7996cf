//! The processes that listen on a port.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::{fs, io};

use procfs::process::Process;

use crate::{diag, sockets};

/// Finds the processes that listen on ports, repeatedly.
#[derive(Debug, Default)]
pub(crate) struct ListenerProcesses {
    /// The sockets of the last search in threads' descriptor tables, and the processes it found, if
    /// any.
    in_threads: Option<(HashSet<u64>, Vec<i32>)>,
}

impl ListenerProcesses {
    /// The processes that listen on one of the ports.
    pub(crate) fn on(&mut self, ports: &[u16]) -> Result<Vec<i32>, String> {
        let wanted = listeners(ports);
        if wanted.is_empty() {
            return Err(nothing_listens_on(ports));
        }
        let all_pids = all_pids().map_err(|error| format!("/proc cannot be read: {error}"))?;
        // Processes of other users are not readable.
        let has = |pid: &i32| inodes(*pid).any(|inode| wanted.contains(&inode));
        let mut pids: Vec<i32> = all_pids.iter().copied().filter(has).collect();
        if pids.is_empty() {
            pids = self.in_threads(wanted, &all_pids);
        } else {
            self.in_threads = None;
        }
        if pids.is_empty() {
            return Err(format!(
                "the process that listens on {} belongs to another user: run gake as that user",
                port_names(ports)
            ));
        }
        Ok(pids)
    }

    /// Processes whose threads have the sockets in their own descriptor tables. These tables may be
    /// huge, so they are searched once.
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
        // Remembered even without a result, since it is slow.
        self.in_threads = Some((wanted, pids.clone()));
        pids
    }

    /// Whether the sockets are in threads' own tables, whose descriptors are not counted.
    pub(crate) fn is_in_threads(&self) -> bool {
        self.in_threads.as_ref().is_some_and(|(_, pids)| !pids.is_empty())
    }
}

/// The inodes of the sockets that listen on one of the ports.
fn listeners(ports: &[u16]) -> HashSet<u64> {
    if let Ok(all) = diag::listeners() {
        let ours = all.iter().filter(|one| ports.contains(&one.local.port()));
        return ours.map(|one| one.inode).collect();
    }
    let table = Process::myself().map(|me| sockets::table(&me)).unwrap_or_default();
    let listeners = sockets::listeners(&table, Some(ports), &HashSet::new());
    listeners.iter().map(|entry| entry.inode).collect()
}

/// The processes of this machine.
pub(crate) fn all_pids() -> io::Result<Vec<i32>> {
    let entries = fs::read_dir("/proc")?.flatten();
    Ok(entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
}

/// The inodes of the sockets of a process. A link is read by one system call a descriptor: this is
/// on the way to the first request.
pub(crate) fn inodes(pid: i32) -> impl Iterator<Item = u64> + use<> {
    sockets_in(PathBuf::from(format!("/proc/{pid}/fd")))
}

fn has_in_threads(pid: i32, wanted: &HashSet<u64>) -> bool {
    entries(&PathBuf::from(format!("/proc/{pid}/task")))
        .flat_map(|thread| sockets_in(thread.join("fd")))
        .any(|inode| wanted.contains(&inode))
}

fn sockets_in(descriptors: PathBuf) -> impl Iterator<Item = u64> + use<> {
    let links = entries(&descriptors).map(fs::read_link);
    // A process that refuses one link refuses all of them.
    let readable = links.take_while(|link| {
        !link.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
    });
    readable.filter_map(|link| {
        link.ok()?.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
    })
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

pub(crate) fn nothing_listens_on(ports: &[u16]) -> String {
    format!("nothing on this machine listens on {}", port_names(ports))
}

fn port_names(ports: &[u16]) -> String {
    let names: Vec<_> = ports.iter().map(u16::to_string).collect();
    format!("port {}", names.join(" or "))
}
