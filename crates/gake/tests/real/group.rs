//! Control groups, where this machine lets a test make them.

use std::os::unix::fs::MetadataExt;
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

    /// 400 writes a second to the disk that has the folder.
    pub fn of_disk(folder: &Path) -> Option<Self> {
        let disk = disk_of(folder)?;
        let (one, two) = (format!("{disk} 400"), format!("{disk} wiops=400"));
        Self::make("blkio", ("blkio.throttle.write_iops_device", &one), ("io.max", &two))
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

/// The number of the whole disk that has a folder, as `254:0`; file systems in memory have none.
fn disk_of(folder: &Path) -> Option<String> {
    let device = fs::metadata(folder).ok()?.dev();
    let number = format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
    let known = fs::canonicalize(Path::new("/sys/dev/block").join(&number)).ok()?;
    if !known.join("partition").exists() {
        return Some(number);
    }
    let disk = fs::read_to_string(known.parent()?.join("dev")).ok()?;
    Some(disk.trim().to_owned())
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
