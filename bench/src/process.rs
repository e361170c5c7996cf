//! A child process as the bench needs it: pinned to a core, bounded in time, its
//! CPU counted by the kernel, ended by its own pid and never by a name.

#![expect(unsafe_code, reason = "affinity between fork and exec, wait4 with rusage, pidfd, memfd")]

use std::ffi::CString;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::clock::now_ns;

/// This program, also after it was built anew.
pub const OURSELVES: &str = "/proc/self/exe";

/// Cores that a set can name.
const CORES_MAX: usize = libc::CPU_SETSIZE as usize;

/// What to start, where, and for how long at most.
pub struct Launch<'a> {
    /// The program's file.
    pub program: &'a Path,
    /// Its arguments.
    pub args: &'a [String],
    /// Its standard input; nothing when absent.
    pub stdin: Option<OwnedFd>,
    /// The core it is pinned to; all of them when absent.
    pub core: Option<usize>,
    /// When it is killed.
    pub limit: Duration,
}

/// A child that has not been waited for. Dropping it kills it.
pub struct Running {
    name: String,
    pid: libc::pid_t,
    stdout: File,
    stderr: File,
    started_ns: u64,
    deadline_ns: u64,
    reaped: bool,
}

/// A child that ended by itself.
pub struct Ended {
    /// Its exit code; none when a signal ended it.
    pub code: Option<i32>,
    /// CPU time of its own code.
    pub user: Duration,
    /// CPU time of the kernel on its behalf.
    pub system: Duration,
    /// From start to end.
    pub wall: Duration,
    /// What it printed.
    pub stdout: Vec<u8>,
    /// What it complained about.
    pub stderr: Vec<u8>,
}

impl Launch<'_> {
    /// Starts the child.
    pub fn start(self) -> Result<Running> {
        let name = self.program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let stdout = memory_file(b"")?;
        let stderr = memory_file(b"")?;
        let mut command = Command::new(self.program);
        command
            .args(self.args)
            .stdin(self.stdin.map_or_else(Stdio::null, Stdio::from))
            .stdout(stdout.try_clone()?)
            .stderr(stderr.try_clone()?);
        let core = self.core;
        // SAFETY: between fork and exec only two system calls are made; neither allocates.
        unsafe {
            command.pre_exec(move || {
                match core {
                    Some(core) => pin_this_thread(core)?,
                    None => unpin_this_thread()?,
                }
                // The child goes when the bench goes, however that ends, and takes its own
                // children along.
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
                Ok(())
            });
        }
        let started_ns = now_ns();
        let child = command.spawn().with_context(|| format!("{name} could not be started"))?;
        let deadline_ns = started_ns + u64::try_from(self.limit.as_nanos())?;
        let pid = libc::pid_t::try_from(child.id())?;
        Ok(Running { name, pid, stdout, stderr, started_ns, deadline_ns, reaped: false })
    }

    /// Starts the child and waits for its end.
    pub fn run(self) -> Result<Ended> {
        self.start()?.wait()
    }
}

impl Running {
    /// Its number.
    pub fn pid(&self) -> libc::pid_t {
        self.pid
    }

    /// When it was started, by [`now_ns`].
    pub fn started_ns(&self) -> u64 {
        self.started_ns
    }

    /// Asks it to end; [`Self::wait`] sees it.
    pub fn terminate(&self) {
        self.kill(libc::SIGTERM);
    }

    /// Waits for the end; past its limit the child is killed and that is the error.
    pub fn wait(self) -> Result<Ended> {
        self.wait_watching(Duration::from_secs(3600), |_| {})
    }

    /// The same, and looks at the living child every so often.
    pub fn wait_watching(
        mut self,
        every: Duration,
        mut watch: impl FnMut(libc::pid_t),
    ) -> Result<Ended> {
        let pidfd = pidfd(self.pid)?;
        loop {
            let left = Duration::from_nanos(self.deadline_ns.saturating_sub(now_ns()));
            if left.is_zero() {
                self.kill(libc::SIGKILL);
                self.reap()?;
                let after = (self.deadline_ns - self.started_ns) / 1_000_000_000;
                bail!("{} was still running after {after} s and was ended", self.name);
            }
            if readable_within(&pidfd, left.min(every)) {
                let ended_ns = now_ns();
                let (status, usage) = self.reap()?;
                return self.ended(status, &usage, ended_ns);
            }
            watch(self.pid);
        }
    }

    fn ended(&mut self, status: i32, usage: &libc::rusage, ended_ns: u64) -> Result<Ended> {
        Ok(Ended {
            code: libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)),
            user: duration(usage.ru_utime),
            system: duration(usage.ru_stime),
            wall: Duration::from_nanos(ended_ns - self.started_ns),
            stdout: contents(&mut self.stdout)?,
            stderr: contents(&mut self.stderr)?,
        })
    }

    fn kill(&self, signal: i32) {
        // SAFETY: the child has not been reaped, so the pid is still its own.
        unsafe { libc::kill(self.pid, signal) };
    }

    /// Waits without a limit and takes what the kernel counted for this child.
    fn reap(&mut self) -> Result<(i32, libc::rusage)> {
        let mut status = 0;
        // SAFETY: rusage is plain numbers; all zeros is a valid value.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: both pointers are valid for writing; the pid is our unreaped child.
        let pid = unsafe { libc::wait4(self.pid, &raw mut status, 0, &raw mut usage) };
        self.reaped = true;
        if pid != self.pid {
            bail!("{} could not be waited for: {}", self.name, std::io::Error::last_os_error());
        }
        Ok((status, usage))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.reaped {
            self.kill(libc::SIGKILL);
            let _ = self.reap();
        }
    }
}

impl Ended {
    /// CPU time in all.
    pub fn cpu(&self) -> Duration {
        self.user + self.system
    }

    /// Accepts the exit codes that mean a measurement was made.
    pub fn accept(self, name: &str, codes: &[i32]) -> Result<Self> {
        if self.code.is_some_and(|code| codes.contains(&code)) {
            return Ok(self);
        }
        let complaint = String::from_utf8_lossy(&self.stderr);
        let last = complaint.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("no message");
        match self.code {
            Some(code) => bail!("{name} ended with exit code {code}: {}", last.trim()),
            None => bail!("{name} was ended by a signal: {}", last.trim()),
        }
    }
}

/// Pins the calling thread.
pub fn pin_this_thread(core: usize) -> std::io::Result<()> {
    allow_this_thread(core..core + 1)
}

/// Lets the calling thread run everywhere again.
pub fn unpin_this_thread() -> std::io::Result<()> {
    // Those that the machine does not have are left out by the kernel.
    allow_this_thread(0..CORES_MAX)
}

fn allow_this_thread(cores: Range<usize>) -> std::io::Result<()> {
    // SAFETY: cpu_set_t is plain bits; all zeros is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for core in cores {
        // SAFETY: `core` was counted at the start or is below CORES_MAX: inside the set.
        unsafe { libc::CPU_SET(core, &mut set) };
    }
    // SAFETY: the set is valid and its size is given.
    match unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// A file in memory with these contents, to be a child's input or output.
pub fn memory_file(contents: &[u8]) -> Result<File> {
    let name = CString::new("bench")?;
    // SAFETY: the name is a valid C string.
    let fd = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        bail!("memfd_create: {}", std::io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and owned here.
    let mut file = unsafe { File::from_raw_fd(fd) };
    file.write_all(contents)?;
    file.rewind()?;
    Ok(file)
}

fn contents(file: &mut File) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A descriptor that becomes readable when the process ends: waiting costs no wake-ups.
fn pidfd(pid: libc::pid_t) -> Result<OwnedFd> {
    // SAFETY: the call takes two numbers and returns a new descriptor or -1.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    if fd < 0 {
        bail!("pidfd_open: {}", std::io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and owned here.
    Ok(unsafe { OwnedFd::from_raw_fd(i32::try_from(fd)?) })
}

fn readable_within(fd: &OwnedFd, time: Duration) -> bool {
    let mut poll = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let millis = i32::try_from(time.as_millis()).unwrap_or(i32::MAX).max(1);
    // SAFETY: one valid pollfd is given and counted.
    unsafe { libc::poll(&raw mut poll, 1, millis) > 0 }
}

fn duration(time: libc::timeval) -> Duration {
    Duration::from_secs(time.tv_sec.unsigned_abs())
        + Duration::from_micros(time.tv_usec.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str, limit: Duration) -> Result<Ended> {
        let args = ["-c".to_owned(), script.to_owned()];
        let program = Path::new("/bin/sh");
        let stdin = Some(memory_file(b"hello").unwrap().into());
        Launch { program, args: &args, stdin, core: Some(0), limit }.run()
    }

    #[test]
    fn output_code_and_cpu_are_taken() {
        let ended = sh("cat; echo oops >&2; exit 3", Duration::from_secs(10)).unwrap();
        assert_eq!((ended.stdout.as_slice(), ended.code), (b"hello".as_slice(), Some(3)));
        assert!(ended.wall > Duration::ZERO && ended.cpu() < Duration::from_secs(10));
        let error = ended.accept("sh", &[0]).err().unwrap().to_string();
        assert_eq!(error, "sh ended with exit code 3: oops");
    }

    #[test]
    fn a_child_that_stays_is_ended() {
        let error = sh("sleep 60", Duration::from_millis(50)).err().unwrap().to_string();
        assert!(error.contains("still running"), "{error}");
    }
}
