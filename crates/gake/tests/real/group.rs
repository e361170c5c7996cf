//! Control groups, where this machine lets a test make them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use std::{fs, thread};

/// A control group (version 1 or 2) of its own, as long as it is there.
pub struct Group {
    path: PathBuf,
}

impl Group {
    /// Makes one and writes a bound: the file of version 1 in its hierarchy, or that of version 2.
    fn make(hierarchy: &str, one: (&str, &str), two: (&str, &str)) -> Option<Self> {
        let root = Path::new("/sys/fs/cgroup");
        let (parent, (file, bound)) = match root.join(hierarchy).is_dir() {
            true => (root.join(hierarchy), one),
            false => (root.to_owned(), two),
        };
        let path = parent.join(format!("gake-test-{}", std::process::id()));
        fs::create_dir(&path).ok()?;
        let group = Self { path };
        fs::write(group.path.join(file), bound).ok()?;
        group.path.join("cgroup.procs").is_file().then_some(group)
    }

    /// A third of a core.
    pub fn of_cpu() -> Option<Self> {
        Self::make("cpu", ("cpu.cfs_quota_us", "33000"), ("cpu.max", "33000 100000"))
    }

    /// 64 MB.
    pub fn of_memory() -> Option<Self> {
        let bound = "67108864";
        Self::make("memory", ("memory.limit_in_bytes", bound), ("memory.max", bound))
    }

    /// The command, which joins the group before it starts.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("sh");
        let procs = self.path.join("cgroup.procs");
        let script = format!("echo $$ > {} && exec \"$@\"", procs.display());
        command.args(["-c", &script, "sh"]).arg(program);
        command
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // It is empty as soon as the kernel has seen the end of its processes.
        for _ in 0..100 {
            if fs::remove_dir(&self.path).is_ok() {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}
