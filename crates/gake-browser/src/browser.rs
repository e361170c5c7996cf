//! A running Chromium, shared by all users of the process.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io::{Read, Write};
use std::process::{Child, ChildStderr};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::inbox::Inbox;
use crate::launch::{LaunchOptions, Launched, launch};
use crate::pipe::Messages;
use crate::remote;
use crate::routes::{Makes, Routes, UserNumber};

/// Commands that wait to be written, at most.
const COMMANDS_MAX: usize = 4096;

/// Bytes kept of Chromium's messages, which tell why it did not start.
const STDERR_KEPT: usize = 2048;

/// How long the end waits for Chromium's processes.
const END_WAIT: Duration = Duration::from_millis(500);

/// The running one.
static SHARED: Mutex<Weak<Browser>> = Mutex::new(Weak::new());

/// A running Chromium. It ends with the last user.
#[derive(Debug)]
pub(crate) struct Browser {
    commands: Option<SyncSender<Vec<u8>>>,
    routes: Arc<Mutex<Routes>>,
    next: AtomicU64,
    thread: Option<JoinHandle<()>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Browser {
    /// The running Chromium, started if there is none. Errors of the start come by the inboxes.
    ///
    /// # Errors
    /// When no thread can be started.
    pub(crate) fn shared(options: &LaunchOptions) -> Result<Arc<Self>, String> {
        let mut shared = lock(&SHARED);
        if let Some(browser) = shared.upgrade().filter(|browser| lock(&browser.routes).is_open()) {
            return Ok(browser);
        }
        let browser = Self::start(options)?;
        *shared = Arc::downgrade(&browser);
        Ok(browser)
    }

    fn start(options: &LaunchOptions) -> Result<Arc<Self>, String> {
        let (commands, waiting) = sync_channel(COMMANDS_MAX);
        let routes = Arc::<Mutex<Routes>>::default();
        let (options, kept) = (options.clone(), Arc::clone(&routes));
        let thread = std::thread::Builder::new().name("gake-browser".to_owned());
        let thread = thread.spawn(move || run(&options, &kept, &waiting));
        let thread = Some(thread.map_err(|error| format!("no thread for the browser: {error}"))?);
        let browser = Self { commands: Some(commands), routes, next: AtomicU64::new(1), thread };
        browser.write("Target.setDiscoverTargets", "{\"discover\":true}", None)?;
        Ok(Arc::new(browser))
    }

    fn write(&self, method: &str, params: &str, session: Option<&str>) -> Result<u64, String> {
        let id = self.next.fetch_add(1, Relaxed);
        self.write_as(id, method, params, session).map(|()| id)
    }

    fn write_as(
        &self,
        id: u64,
        method: &str,
        params: &str,
        session: Option<&str>,
    ) -> Result<(), String> {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let session = session.map(|session| format!(",\"sessionId\":{}", quoted(session)));
        let session = session.unwrap_or_default();
        let method = quoted(method);
        let text = format!("{{\"id\":{id},\"method\":{method}{session},\"params\":{params}}}\0");
        let sent = self.commands.as_ref().map(|commands| commands.try_send(text.into_bytes()));
        match sent {
            Some(Ok(())) => Ok(()),
            _ => {
                let routes = lock(&self.routes);
                Err(routes.closed().unwrap_or("the browser does not take commands").to_owned())
            }
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        drop(self.commands.take());
        if let Some(thread) = self.thread.take() {
            // Its result is nothing.
            let _ = thread.join();
        }
    }
}

/// One user of a Chromium.
#[derive(Debug)]
pub(crate) struct BrowserUser {
    browser: Arc<Browser>,
    number: UserNumber,
    pub(crate) inbox: Arc<Inbox>,
}

impl BrowserUser {
    /// A new user of the shared Chromium.
    ///
    /// # Errors
    /// When none is installed, or as [`Browser::shared`].
    pub(crate) fn new(options: &LaunchOptions) -> Result<Self, String> {
        if options.remote.is_empty() {
            options.executable()?;
        }
        Browser::shared(options).map(Self::of)
    }

    /// The only user of a connection with the Chromium at a URL.
    ///
    /// # Errors
    /// As [`Browser::shared`].
    pub(crate) fn connected(options: &LaunchOptions, url: String) -> Result<Self, String> {
        let mut options = options.clone();
        options.remote = vec![url];
        Browser::start(&options).map(Self::of)
    }

    fn of(browser: Arc<Browser>) -> Self {
        let inbox = Arc::<Inbox>::default();
        let number = lock(&browser.routes).add_user(Arc::clone(&inbox));
        Self { browser, number, inbox }
    }

    /// Sends a command. Its response comes with the number returned.
    ///
    /// # Errors
    /// When Chromium takes no commands.
    pub(crate) fn send(
        &self,
        session: Option<&str>,
        method: &str,
        params: &str,
    ) -> Result<u64, String> {
        let id = self.browser.next.fetch_add(1, Relaxed);
        lock(&self.browser.routes).add_command(id, self.number, Makes::of(method));
        self.browser.write_as(id, method, params, session).map(|()| id)
    }

    /// Closes the user's contexts with their pages, and forgets what it waited for.
    pub(crate) fn end_iteration(&self) {
        let contexts = {
            let mut routes = lock(&self.browser.routes);
            routes.forget(self.number);
            routes.take_contexts(self.number)
        };
        for context in contexts {
            let params = serde_json::json!({ "browserContextId": context }).to_string();
            // A browser that is gone has no contexts.
            let _ = self.browser.write("Target.disposeBrowserContext", &params, None);
        }
        self.inbox.clear();
    }

    /// Whether its Chromium runs.
    pub(crate) fn is_open(&self) -> bool {
        lock(&self.browser.routes).is_open()
    }
}

impl Drop for BrowserUser {
    fn drop(&mut self) {
        self.end_iteration();
        lock(&self.browser.routes).remove_user(self.number);
    }
}

/// Serves the users of a Chromium that runs already until all senders are gone.
fn run_remote(
    (url, options): (&str, &LaunchOptions),
    routes: &Arc<Mutex<Routes>>,
    commands: &Receiver<Vec<u8>>,
) {
    let (writer, mut reader) = match remote::connect(url, options.timeout) {
        Ok(connected) => connected,
        Err(why) => return lock(routes).close(&why),
    };
    let (reading, ended) = (Arc::clone(routes), format!("{url}: the browser has ended"));
    let thread = std::thread::Builder::new().name("gake-browser-read".to_owned());
    let thread = thread.spawn(move || {
        while let Ok(Some(message)) = reader.next() {
            lock(&reading).dispatch(message);
        }
        lock(&reading).close(&ended);
    });
    if thread.is_err() {
        lock(routes).close("no thread for the browser");
    }
    for command in commands {
        if writer.write(command.strip_suffix(&[0]).unwrap_or(&command)).is_err() {
            break;
        }
    }
    writer.close();
}

/// Starts Chromium and writes commands until all senders are gone; then ends it.
fn run(options: &LaunchOptions, routes: &Arc<Mutex<Routes>>, commands: &Receiver<Vec<u8>>) {
    if !options.remote.is_empty() {
        let any = RandomState::new().hash_one(0) as usize % options.remote.len();
        return run_remote((&options.remote[any], options), routes, commands);
    }
    let Launched { mut child, mut input, output, folder, proxy } = match launch(options) {
        Ok(launched) => launched,
        Err(why) => return lock(routes).close(&why),
    };
    let said = Arc::<Mutex<Vec<u8>>>::default();
    let (kept, stderr) = (Arc::clone(&said), child.stderr.take());
    let log = std::thread::Builder::new().name("gake-browser-log".to_owned());
    let log = log.spawn(move || stderr.into_iter().for_each(|stderr| keep_end(stderr, &kept)));
    let reading = Arc::clone(routes);
    let reader = std::thread::Builder::new().name("gake-browser-read".to_owned());
    let reader = reader.spawn(move || {
        let mut messages = Messages::new(output);
        while let Ok(Some(message)) = messages.next() {
            lock(&reading).dispatch(message);
        }
        // Its messages tell why, and come a moment later.
        std::thread::sleep(Duration::from_millis(50));
        let said = String::from_utf8_lossy(&lock(&said)).trim().to_owned();
        let said = if said.is_empty() { said } else { format!(": {said}") };
        lock(&reading).close(&format!("the browser has ended{said}"));
    });
    if log.is_err() || reader.is_err() {
        lock(routes).close("no thread for the browser");
    }
    for command in commands {
        if input.write_all(&command).is_err() {
            break;
        }
    }
    end(&mut child);
    drop((input, proxy));
    // Processes of it may still write.
    let started = Instant::now();
    let path = folder.path().to_owned();
    drop(folder);
    while path.exists() && started.elapsed() < END_WAIT {
        std::thread::sleep(Duration::from_millis(10));
        let _ = std::fs::remove_dir_all(&path);
    }
}

/// Ends all processes of a Chromium.
fn end(child: &mut Child) {
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let Some(group) = group {
        // They may have ended.
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = child.wait();
}

/// Reads Chromium's messages to their end, and keeps the last.
fn keep_end(mut stderr: ChildStderr, said: &Mutex<Vec<u8>>) {
    let mut chunk = [0; 1024];
    while let Ok(count @ 1..) = stderr.read(&mut chunk) {
        let mut said = lock(said);
        said.extend_from_slice(&chunk[..count]);
        let surplus = said.len().saturating_sub(STDERR_KEPT);
        said.drain(..surplus);
    }
}
