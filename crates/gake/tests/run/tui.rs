//! `--tui` on a terminal of its own.

use std::fs::File;
use std::io::Read;
use std::num::NonZeroU16;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};

use crate::escapes::terminal;
use crate::support::*;

fn size_of(cells: u16) -> NonZeroU16 {
    NonZeroU16::new(cells).unwrap()
}

/// A gake on its own terminal, and the terminal's content.
struct Screen {
    child: Child,
    near: File,
    far: File,
    shown: Arc<Mutex<vt100::Parser>>,
    /// Everything that was written to it.
    written: Arc<Mutex<Vec<u8>>>,
}

impl Screen {
    fn start(columns: u16, lines: u16, line: &str) -> Self {
        Self::start_with(columns, lines, line, Path::new("/nonexistent"))
    }

    /// The same with a directory of settings.
    fn start_with(columns: u16, lines: u16, line: &str, settings: &Path) -> Self {
        let (near, far) = terminal();
        let size = format!("cols {columns} rows {lines}");
        let sized =
            Command::new("stty").args(words(&size)).stdin(far.try_clone().unwrap()).status();
        assert!(sized.unwrap().success());
        // A session of its own, whose terminal this is.
        let child = Command::new("setsid")
            .args(["--ctty", env!("CARGO_BIN_EXE_gake")])
            .args(words(line))
            .env_remove("NO_COLOR")
            .env("TERM", "xterm-256color")
            .env("XDG_CONFIG_HOME", settings)
            .stdin(far.try_clone().unwrap())
            .stderr(far.try_clone().unwrap())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let shown = Arc::new(Mutex::new(vt100::Parser::new(size_of(lines), size_of(columns), 0)));
        let written = Arc::new(Mutex::new(Vec::new()));
        let (parser, all) = (Arc::clone(&shown), Arc::clone(&written));
        let mut from = near.try_clone().unwrap();
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            // The other end is gone when there is an error.
            while let Ok(read @ 1..) = from.read(&mut bytes) {
                parser.lock().unwrap().process(&bytes[..read]);
                all.lock().unwrap().extend_from_slice(&bytes[..read]);
            }
        });
        Self { child, near, far, shown, written }
    }

    fn text(&self) -> String {
        self.shown.lock().unwrap().screen().contents()
    }

    fn shows(&self, what: &str) {
        eventually(what, || self.text().contains(what));
    }

    fn press(&mut self, key: &[u8]) {
        std::io::Write::write_all(&mut self.near, key).unwrap();
    }

    /// Its exit code and standard output, when it has ended by itself.
    fn end(mut self) -> (Option<i32>, String, Vec<u8>) {
        let out = self.child.wait_with_output().unwrap();
        let text = String::from_utf8(out.stdout).unwrap();
        // What comes after its last words shows that those have been read.
        std::io::Write::write_all(&mut self.far, END).unwrap();
        eventually("the end is read", || self.written.lock().unwrap().ends_with(END));
        let mut written = self.written.lock().unwrap().clone();
        written.truncate(written.len() - END.len());
        (out.status.code(), text, written)
    }
}

/// What the test itself writes at the end.
const END: &[u8] = b"(end)";

/// The sequences that leave the alternate screen and show the cursor.
const LEAVE: &str = "\u{1b}[?1049l";
const CURSOR: &str = "\u{1b}[?25h";

#[test]
fn a_run_is_watched_and_its_summary_follows() {
    // It is watched for as long as that takes: a busy machine shows little of it in a second.
    let mut screen = Screen::start(120, 40, "run demo -r 200 -d 10m --slo p99<20s --tui");
    for part in ["requests a second", "histogram of responses", "p99.9", "✔ p99<20s", "status 200"]
    {
        screen.shows(part);
    }
    screen.press(b"q");
    let (code, out, _) = screen.end();
    assert_eq!(code, Some(130), "{out}");
    assert!(out.contains("response"), "{out}");
    let (code, out, written) = Screen::start(120, 40, "run demo -r 200 -d 1s --tui").end();
    assert!(code == Some(0) || code == Some(3), "{code:?}: {out}");
    assert!(out.contains("response") && out.contains("200"), "{out}");
    let written = String::from_utf8_lossy(&written);
    assert!(written.contains(LEAVE) && written.contains(CURSOR), "{written:?}");
}

/// A directory of settings that say `text`.
fn settings(text: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("gake")).unwrap();
    std::fs::write(directory.path().join("gake/config.toml"), text).unwrap();
    directory
}

#[test]
fn the_users_settings_ask_for_it_and_flags_override_them() {
    let wanted = settings("tui = true\n");
    let mut screen = Screen::start_with(90, 30, "run demo -c 2 -d 10m", wanted.path());
    screen.shows("histogram of responses");
    screen.press(b"q");
    assert_eq!(screen.end().0, Some(130));
    let line = "run demo -c 2 -n 20 -v --color=never";
    let (code, _, written) = Screen::start_with(90, 30, line, wanted.path()).end();
    let written = String::from_utf8_lossy(&written).into_owned();
    assert!(code == Some(0) || code == Some(3), "{code:?}: {written}");
    assert!(written.contains("failed, p50") && !written.contains(LEAVE), "{written:?}");
}

#[test]
fn settings_that_are_not_known_are_refused() {
    let gake_with = |text: &str, line: &str| {
        let directory = settings(text);
        start(gake(&words(line)).env("XDG_CONFIG_HOME", directory.path())).wait()
    };
    gake_with("tui = true\ncolour = 1\n", "run demo -n 1").refused(2, "unknown field `colour`");
    gake_with("tui = 3\n", "run demo -n 1").refused(2, "line 1");
    let coloured = gake_with("color = \"always\"\n", "run demo -c 1 -n 1");
    assert!(coloured.stdout.contains('\u{1b}'), "{}", coloured.stdout);
    let plain = gake_with("color = \"always\"\n", "run demo -c 1 -n 1 --color=auto");
    assert!(!plain.stdout.contains('\u{1b}'), "{}", plain.stdout);
    // Without a terminal, the setting has no effect.
    gake_with("tui = true\n", "run demo -c 1 -n 1").done();
}

#[test]
fn a_key_ends_the_run_and_its_summary_is_printed() {
    for key in [&b"q"[..], b"\x03"] {
        let mut screen = Screen::start(90, 30, "run demo -c 2 -d 10m --tui");
        screen.shows("status 200");
        screen.press(key);
        let (code, out, _) = screen.end();
        assert_eq!(code, Some(130), "{out}");
        assert!(out.contains("response"), "{out}");
    }
}

#[test]
fn a_window_of_another_size_is_filled() {
    let mut screen = Screen::start(60, 12, "run demo -c 2 -d 10m --tui");
    screen.shows("objectives");
    assert!(!screen.text().contains("histogram"), "{}", screen.text());
    screen.shown.lock().unwrap().screen_mut().set_size(size_of(40), size_of(120));
    let sized = Command::new("stty")
        .args(words("cols 120 rows 40"))
        .stdin(screen.near.try_clone().unwrap())
        .status();
    assert!(sized.unwrap().success());
    screen.shows("histogram of responses");
    screen.press(b"q");
    assert_eq!(screen.end().0, Some(130));
}

#[test]
fn a_signal_ends_it_too_and_without_a_terminal_it_is_refused() {
    let screen = Screen::start(90, 30, "run demo -c 2 -d 10m --tui");
    screen.shows("status 200");
    kill_process(Pid::from_child(&screen.child), Signal::INT).unwrap();
    let (code, _, written) = screen.end();
    assert_eq!(code, Some(130));
    assert!(String::from_utf8_lossy(&written).contains(LEAVE));
    ran(&words("run demo -n 1 --tui")).refused(2, "--tui needs a terminal");
    ran(&words("run demo -n 1 --tui -q")).refused(2, "--quiet");
}
