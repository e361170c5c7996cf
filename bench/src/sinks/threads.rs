//! CPU time of a process by what its threads are for, from `/proc/PID/task`.

use std::collections::BTreeMap;
use std::fs;

use super::super::clock::now_ns;

/// Whose time it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// A thread that sends the load.
    Worker,
    /// A thread that takes figures to where they go.
    Sink,
    /// What joins, samples and waits.
    Other,
}

/// The names of the threads of sinks.
const SINKS: [&str; 4] = ["gake-sink", "gake-push", "gake-page", "gake-outcomes"];

/// CPU time of every thread at an instant, in nanoseconds.
#[derive(Debug, Default)]
struct Look {
    at: u64,
    threads: BTreeMap<String, (Role, u64)>,
}

/// The first look at a process and the last.
#[derive(Debug, Default)]
pub struct Threads {
    looks: Option<(Look, Look)>,
}

impl Threads {
    /// Looks at the process once more.
    pub fn look(&mut self, pid: libc::pid_t) {
        let look = look(pid);
        let has_worker = look.threads.values().any(|(role, _)| *role == Role::Worker);
        match &mut self.looks {
            // A run that ends has no workers any more.
            Some((_, last)) if has_worker => *last = look,
            None if has_worker => self.looks = Some((look, Look::default())),
            _ => {}
        }
    }

    /// The CPU time of each role between the two looks, in seconds a second; `None` when the
    /// process was seen less than twice.
    pub fn shares(&self) -> Option<BTreeMap<Role, f64>> {
        let (first, last) = self.looks.as_ref()?;
        let time = last.at.checked_sub(first.at).filter(|time| *time > 0)?;
        let mut shares = BTreeMap::from([(Role::Worker, 0.0), (Role::Sink, 0.0)]);
        for (number, (role, cpu)) in &last.threads {
            let before = first.threads.get(number).map_or(0, |(_, cpu)| *cpu);
            let share = cpu.saturating_sub(before) as f64 / time as f64;
            *shares.entry(*role).or_default() += share;
        }
        Some(shares)
    }
}

fn look(pid: libc::pid_t) -> Look {
    let mut look = Look { at: now_ns(), threads: BTreeMap::new() };
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return look };
    for task in tasks.flatten() {
        let read = |name: &str| fs::read_to_string(task.path().join(name));
        // A thread may end at any time.
        let (Ok(name), Ok(times)) = (read("comm"), read("schedstat")) else { continue };
        // The first number is the time on a core, in nanoseconds.
        let cpu = times.split(' ').next().and_then(|cpu| cpu.parse().ok()).unwrap_or(0);
        let number = task.file_name().to_string_lossy().into_owned();
        look.threads.insert(number, (role(name.trim()), cpu));
    }
    look
}

fn role(name: &str) -> Role {
    let rest = name.strip_prefix("gake-").unwrap_or_default();
    match rest.parse::<u32>() {
        Ok(_) => Role::Worker,
        Err(_) if SINKS.contains(&name) => Role::Sink,
        Err(_) => Role::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threads_name_says_whose_time_it_is() {
        let roles =
            ["gake-0", "gake-11", "gake-sink", "gake-push", "gake", "gake-beside"].map(role);
        let Role::Other = role("") else { panic!("no name") };
        assert_eq!(roles[..4], [Role::Worker, Role::Worker, Role::Sink, Role::Sink]);
        assert_eq!(roles[4..], [Role::Other, Role::Other]);
    }

    #[test]
    fn shares_are_of_the_time_between_the_looks() {
        let look = |at, worker, sink| Look {
            at,
            threads: BTreeMap::from([
                ("1".to_owned(), (Role::Worker, worker)),
                ("2".to_owned(), (Role::Sink, sink)),
            ]),
        };
        let threads = Threads { looks: Some((look(100, 50, 0), look(300, 150, 20))) };
        let shares = threads.shares().unwrap();
        assert_eq!((shares[&Role::Worker], shares[&Role::Sink]), (0.5, 0.1));
        assert!(Threads { looks: Some((look(100, 0, 0), Look::default())) }.shares().is_none());
    }
}
