//! Starts Chromium: its executable, arguments, profile folder and pipe.

#![expect(unsafe_code, reason = "descriptors 3 and 4 are set between fork and exec")]

use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use gake_go::duration::GoDuration;
use gake_k6::blocked::BlockedTargets;
use gake_k6::test::BrowserSettings;
use gake_wire::{ConnectTo, Resolver};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::websocket_proxy::{Targets, WebSocketProxy};

/// The names of a Chromium, in the order of preference.
const NAMES: [&str; 7] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "headless_shell",
    "chrome-headless-shell",
];

/// Folders that are searched after the folders of `PATH`.
const FOLDERS: [&str; 3] = ["/usr/bin", "/usr/local/bin", "/snap/bin"];

const NOT_FOUND: &str = "no Chromium is installed, which k6/browser drives: install the package \
                         chromium (apt-get install chromium), or set K6_BROWSER_EXECUTABLE_PATH";

/// The default arguments. Pages of other sites share the process of the page that embeds them, so
/// one session sees all frames.
const ARGUMENTS: [&str; 26] = [
    "disable-background-networking",
    "disable-background-timer-throttling",
    "disable-backgrounding-occluded-windows",
    "disable-breakpad",
    "disable-component-extensions-with-background-pages",
    "disable-component-update",
    "disable-default-apps",
    "disable-dev-shm-usage",
    "disable-extensions",
    "disable-features=AcceptCHFrame,BackForwardCache,DestroyProfileOnBrowserClose,GlobalMediaControls,\
     HttpsUpgrades,ImprovedCookieControls,IsolateOrigins,LazyFrameLoading,MediaRouter,\
     OptimizationHints,Translate,site-per-process",
    "disable-hang-monitor",
    "disable-ipc-flooding-protection",
    "disable-popup-blocking",
    "disable-prompt-on-repost",
    "disable-renderer-backgrounding",
    "disable-site-isolation-trials",
    "disable-sync",
    "enable-automation",
    "force-color-profile=srgb",
    "metrics-recording-only",
    "mute-audio",
    "no-default-browser-check",
    "no-first-run",
    "no-startup-window",
    "password-store=basic",
    "use-mock-keychain",
];

/// The start of names of profile folders; the number of the process and its namespace follow.
const FOLDER: &str = "gake-browser-";

/// How long the browser may take to be there, and to open a page.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The argument of Chromium with the addresses of names.
const RESOLVER_RULES: &str = "host-resolver-rules=";

/// How to start Chromium, by k6's variables.
#[derive(Debug, Clone, Default)]
pub(crate) struct LaunchOptions {
    executable: Option<PathBuf>,
    path: String,
    is_headed: bool,
    arguments: Vec<String>,
    ignored: Vec<String>,
    /// Addresses by host name or pattern, each maybe with a port.
    hosts: Vec<(String, String)>,
    /// Targets to which nothing is sent.
    blocked: BlockedTargets,
    /// The rules of `hosts`, for connections through the proxy.
    connect_to: Vec<ConnectTo>,
    /// The URLs of browsers that run already; one of them is taken.
    pub(crate) remote: Vec<String>,
    /// `K6_BROWSER_TIMEOUT`.
    pub(crate) timeout: Duration,
    /// Whether commands and messages are logged.
    pub(crate) is_debug: bool,
}

impl LaunchOptions {
    /// Reads the variables `K6_BROWSER_*` and `PATH`.
    ///
    /// # Errors
    /// When one has no valid value, in k6's words.
    pub(crate) fn read(settings: &BrowserSettings) -> Result<Self, String> {
        let (hosts, blocked) = (settings.hosts.clone(), settings.blocked.clone());
        let connect_to = settings.connect_to.clone();
        let mut options = Self { hosts, blocked, connect_to, timeout: TIMEOUT, ..Self::default() };
        for (name, value) in &settings.environment {
            match name.as_str() {
                "K6_BROWSER_EXECUTABLE_PATH" if !value.is_empty() => {
                    options.executable = Some(value.into());
                }
                "K6_BROWSER_HEADLESS" => options.is_headed = !boolean(name, value, true)?,
                "K6_BROWSER_DEBUG" => options.is_debug = boolean(name, value, false)?,
                "K6_BROWSER_LOG" => check_log_level(value)?,
                "K6_BROWSER_TIMEOUT" if !value.is_empty() => {
                    let timeout = GoDuration::parse_go(value).map_err(|error| {
                        format!("{name} should be a time duration value: {error}")
                    })?;
                    options.timeout = timeout.to_std();
                }
                "K6_BROWSER_WS_URL" => {
                    let urls = value.split(',').map(|url| url.trim().to_owned());
                    options.remote = urls.filter(|url| !url.is_empty()).collect();
                }
                "K6_BROWSER_ARGS" => options.arguments = list(value),
                "K6_BROWSER_IGNORE_DEFAULT_ARGS" => options.ignored = list(value),
                "PATH" => options.path.clone_from(value),
                _ => {}
            }
        }
        Ok(options)
    }

    /// The executable.
    ///
    /// # Errors
    /// When there is none, with what to install.
    pub(crate) fn executable(&self) -> Result<PathBuf, String> {
        if let Some(path) = &self.executable {
            let path = path.clone();
            let missing = || format!("K6_BROWSER_EXECUTABLE_PATH: no file {}", path.display());
            return path.is_file().then_some(path.clone()).ok_or_else(missing);
        }
        let folders =
            || self.path.split(':').filter(|folder| folder.starts_with('/')).chain(FOLDERS);
        let found = NAMES.iter().find_map(|name| {
            folders().map(|folder| Path::new(folder).join(name)).find(|path| path.is_file())
        });
        found.ok_or_else(|| NOT_FOUND.to_owned())
    }

    /// The proxy of WebSockets, which no other means keeps from blocked addresses.
    fn websocket_proxy(&self) -> Result<Option<WebSocketProxy>, String> {
        let mut resolver = Resolver::default();
        resolver.connect_to.clone_from(&self.connect_to);
        let blocked = self.blocked.clone();
        let proxy =
            blocked.has_networks().then(|| WebSocketProxy::start(Targets { resolver, blocked }));
        proxy.transpose().map_err(|error| format!("no proxy for the browser's WebSockets: {error}"))
    }

    /// The arguments, with a profile in `folder`, and the proxy of WebSockets.
    fn arguments(&self, folder: &Path, websockets: Option<SocketAddr>) -> Vec<String> {
        let name = |argument: &str| argument.split('=').next().unwrap_or_default().to_owned();
        let (rules, given): (Vec<&String>, Vec<&String>) =
            self.arguments.iter().partition(|argument| argument.starts_with(RESOLVER_RULES));
        let own: Vec<String> = given.iter().map(|argument| name(argument)).collect();
        let headless = (!self.is_headed).then_some(["headless=new", "hide-scrollbars"]);
        // Chromium has no sandbox for root, and does not start with one.
        let sandbox = rustix::process::geteuid().is_root().then_some("no-sandbox");
        let defaults = ARGUMENTS.into_iter().chain(headless.into_iter().flatten()).chain(sandbox);
        // The first rule that matches holds, for WebSockets, too.
        let blocked = self.blocked.names().map(|host| format!("MAP {host} ~NOTFOUND"));
        let hosts = self.hosts.iter().map(|(host, address)| format!("MAP {host} {address}"));
        // The argument of the variable would replace these.
        let rules = rules.iter().map(|rules| rules[RESOLVER_RULES.len()..].to_owned());
        let hosts = blocked.chain(hosts).chain(rules);
        let hosts = hosts.collect::<Vec<_>>().join(",");
        let hosts = (!hosts.is_empty()).then(|| format!("{RESOLVER_RULES}{hosts}"));
        // Only WebSockets take the proxy of neither HTTP nor HTTPS, and loopback addresses, too.
        let proxy = websockets.map(|to| {
            let rules = format!("http=direct://;https=direct://;socks=socks5://{to}");
            [format!("proxy-server={rules}"), "proxy-bypass-list=<-loopback>".to_owned()]
        });
        let defaults = defaults.chain(["window-size=800,600"]).map(str::to_owned);
        let defaults = defaults.chain(hosts).chain(proxy.into_iter().flatten());
        let defaults = defaults.filter(|argument| {
            let name = name(argument);
            !own.contains(&name) && !self.ignored.contains(&name)
        });
        let all = defaults.chain(given.into_iter().cloned());
        let mut all: Vec<String> = all.map(|argument| format!("--{argument}")).collect();
        all.push("--remote-debugging-pipe".to_owned());
        all.push(format!("--user-data-dir={}", folder.display()));
        all
    }
}

/// A variable that is true or false, as Go reads one.
fn boolean(name: &str, value: &str, default: bool) -> Result<bool, String> {
    match value {
        "" => Ok(default),
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err(format!("{name} should be a boolean")),
    }
}

/// Refuses a level that k6 does not know.
fn check_log_level(value: &str) -> Result<(), String> {
    const LEVELS: &str = "panic, fatal, error, warn, warning, info, debug, trace";
    let is_known = LEVELS.split(", ").any(|level| value.eq_ignore_ascii_case(level));
    let refused = || format!("invalid log level {value:?}, should be one of: {LEVELS}");
    is_known.then_some(()).ok_or_else(refused)
}

/// The arguments of a variable: separated by commas, which may stand in a value in brackets.
fn list(text: &str) -> Vec<String> {
    let all = text.split(',').map(|argument| argument.trim().trim_start_matches("--").to_owned());
    all.filter(|argument| !argument.is_empty()).collect()
}

/// A Chromium that has been started.
pub(crate) struct Launched {
    pub(crate) child: Child,
    pub(crate) input: File,
    pub(crate) output: File,
    /// Removed at the end.
    pub(crate) folder: TempDir,
    /// Lives as long as it.
    pub(crate) proxy: Option<WebSocketProxy>,
}

/// Starts Chromium. The kernel ends it with the thread that calls this.
///
/// # Errors
/// Why it cannot be started.
pub(crate) fn launch(options: &LaunchOptions) -> Result<Launched, String> {
    let executable = options.executable()?;
    remove_stale_folders();
    let start = format!("{FOLDER}{}-{}-", std::process::id(), namespace());
    let folder = tempfile::Builder::new().prefix(&start).tempdir();
    let folder = folder.map_err(|error| format!("no folder for the browser's profile: {error}"))?;
    let mut command = Command::new(&executable);
    let proxy = options.websocket_proxy()?;
    let address = proxy.as_ref().map(|proxy| proxy.address);
    command.args(options.arguments(folder.path(), address));
    // What it keeps outside of the profile.
    for variable in ["XDG_CONFIG_HOME", "XDG_CACHE_HOME"] {
        command.env(variable, folder.path());
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).process_group(0);
    let started = spawn(command);
    let (child, input, output) =
        started.map_err(|error| format!("{} cannot be started: {error}", executable.display()))?;
    Ok(Launched { child, input, output, folder, proxy })
}

fn spawn(mut command: Command) -> io::Result<(Child, File, File)> {
    // Descriptors 3 and 4 of the child must not be the ones by which std reports a failure.
    let mut guards = Vec::new();
    while guards.last().is_none_or(|last: &File| last.as_raw_fd() <= 4) {
        guards.push(File::open("/dev/null")?);
    }
    let ((theirs_in, ours_in), (ours_out, theirs_out)) = (io::pipe()?, io::pipe()?);
    let (read, write) = (theirs_in.as_raw_fd(), theirs_out.as_raw_fd());
    let set_up = move || {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        for (from, to) in [(read, 3), (write, 4)] {
            // SAFETY: a system call on descriptors of this process, which has one thread.
            if unsafe { libc::dup2(from, to) } < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    };
    // SAFETY: it only makes system calls.
    unsafe { command.pre_exec(set_up) };
    let child = command.spawn()?;
    Ok((child, OwnedFd::from(ours_in).into(), OwnedFd::from(ours_out).into()))
}

/// The number of the namespace in which processes have their numbers: containers may share a
/// folder for temporary files.
fn namespace() -> String {
    let link = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    link.to_string_lossy().chars().filter(char::is_ascii_digit).collect()
}

/// Removes the profile folders of processes that ended without doing so.
fn remove_stale_folders() {
    let here = namespace();
    let Ok(entries) = std::fs::read_dir(std::env::temp_dir()) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(rest) = name.to_str().and_then(|name| name.strip_prefix(FOLDER)) else { continue };
        let mut parts = rest.split('-');
        let number = parts.next().and_then(|number| number.parse::<u32>().ok());
        let Some(number) = number.filter(|_| parts.next() == Some(&here)) else { continue };
        if !Path::new(&format!("/proc/{number}")).exists() {
            // The folder of another owner stays.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<LaunchOptions, String> {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        LaunchOptions::read(&BrowserSettings {
            environment: variables.iter().map(owned).collect(),
            hosts: vec![("*.shop.test".to_owned(), "127.9.8.7:80".to_owned())],
            blocked: BlockedTargets::read(&["ads.test".to_owned()], &[]).expect("valid patterns"),
            ..BrowserSettings::default()
        })
    }

    fn options(variables: &[(&str, &str)]) -> LaunchOptions {
        read(variables).expect("valid variables")
    }

    #[test]
    fn variables_have_k6s_errors() {
        let refusal = |name, value| read(&[(name, value)]).expect_err("refused");
        assert_eq!(refusal("K6_BROWSER_DEBUG", "zz"), "K6_BROWSER_DEBUG should be a boolean");
        assert_eq!(
            refusal("K6_BROWSER_TIMEOUT", "abc"),
            "K6_BROWSER_TIMEOUT should be a time duration value: time: invalid duration \"abc\""
        );
        assert_eq!(
            refusal("K6_BROWSER_LOG", "foo"),
            "invalid log level \"foo\", should be one of: panic, fatal, error, warn, warning, \
             info, debug, trace"
        );
        let options = options(&[
            ("K6_BROWSER_LOG", "WARN"),
            ("K6_BROWSER_TIMEOUT", "1m30s"),
            ("K6_BROWSER_WS_URL", "ws://a/1, ws://b/2"),
        ]);
        assert_eq!(options.timeout, Duration::from_secs(90));
        assert_eq!(options.remote, ["ws://a/1", "ws://b/2"]);
    }

    #[test]
    fn variables_change_the_arguments() {
        let arguments = options(&[
            (
                "K6_BROWSER_ARGS",
                "--lang=de, window-size=10,no-first-run,host-resolver-rules=MAP * 127.0.0.1",
            ),
            ("K6_BROWSER_IGNORE_DEFAULT_ARGS", "mute-audio"),
            ("K6_BROWSER_HEADLESS", "false"),
        ])
        .arguments(Path::new("/profile"), None);
        let count = |start: &str| arguments.iter().filter(|one| one.starts_with(start)).count();
        assert_eq!(count("--lang=de"), 1);
        let rules: Vec<&str> =
            arguments.iter().filter_map(|one| one.strip_prefix("--host-resolver-rules=")).collect();
        let expected = "MAP ads.test ~NOTFOUND,MAP *.shop.test 127.9.8.7:80,MAP * 127.0.0.1";
        assert_eq!(rules, [expected]);
        assert_eq!(count("--window-size"), 1);
        assert_eq!(count("--no-first-run"), 1);
        assert_eq!(count("--mute-audio") + count("--headless"), 0);
        assert_eq!(count("--user-data-dir=/profile"), 1);
    }

    #[test]
    fn a_missing_executable_is_named() {
        let found = options(&[("K6_BROWSER_EXECUTABLE_PATH", "/none/such")]).executable();
        assert_eq!(found.unwrap_err(), "K6_BROWSER_EXECUTABLE_PATH: no file /none/such");
    }
}
