//! The full-screen view of a run in progress.
//!
//! Its own thread draws ten times a second and reads keys. It delays neither the run nor its
//! figures.

mod draw;
mod state;

use std::io;
use std::io::Stderr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use gake_engine::{Stop, lower_class};
use gake_run::{Interrupt, ResolvedRun, SecondUpdate};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::crossterm::{cursor, execute};

use crate::console::Console;
use crate::exit::Failure;
use state::TuiState;

/// Redraw interval.
const TICK: Duration = Duration::from_millis(100);

/// The view. Dropping it restores the terminal.
#[derive(Debug)]
pub struct Tui {
    state: Arc<Mutex<TuiState>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Tui {
    /// Takes over the terminal of `console` for a run of `prepared`. q or Ctrl-C drain the run
    /// through `interrupt`; once more aborts it.
    ///
    /// # Errors
    /// When there is no terminal, or it cannot be used.
    pub fn start(
        console: &Console,
        prepared: &ResolvedRun,
        interrupt: &Interrupt,
    ) -> Result<Self, Failure> {
        let Some(screen) = console.screen() else {
            return Err(Failure::usage("--tui needs a terminal on standard error"));
        };
        let cannot = |error: io::Error| Failure::could_not(format!("--tui: {error}"));
        let terminal = open(screen).map_err(cannot)?;
        let state = Arc::new(Mutex::new(TuiState::new(&prepared.plan, console.colour_err())));
        let is_over = Arc::new(AtomicBool::new(false));
        let view = TuiThread {
            terminal,
            state: Arc::clone(&state),
            is_over: Arc::clone(&is_over),
            interrupt: interrupt.clone(),
            asked: 0,
        };
        let named = std::thread::Builder::new().name("gake-tui".to_owned());
        let thread = named.spawn(move || {
            lower_class();
            view.run();
        });
        match thread {
            Ok(thread) => Ok(Self { state, is_over, thread: Some(thread) }),
            Err(error) => {
                close();
                Err(cannot(error))
            }
        }
    }

    /// Updates the view with a second.
    pub fn show(&self, update: &SecondUpdate<'_>, prepared: &ResolvedRun) {
        lock(&self.state).take(update, prepared);
    }

    /// Restores the terminal.
    pub fn end(mut self) {
        self.join();
    }

    fn join(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic was already reported, and the terminal is restored below.
            let _ = thread.join();
            close();
        }
    }
}

impl Drop for Tui {
    fn drop(&mut self) {
        self.join();
    }
}

/// Restores the terminal, wherever the process ends.
pub fn close() {
    // An error could not be reported anywhere else.
    let _ = disable_raw_mode();
    if let Some(mut screen) = Console::new().screen() {
        let _ = execute!(screen, LeaveAlternateScreen, cursor::Show);
    }
}

fn open(mut screen: Stderr) -> io::Result<Terminal<CrosstermBackend<Stderr>>> {
    enable_raw_mode()?;
    let opened = execute!(screen, EnterAlternateScreen, cursor::Hide)
        .and_then(|()| Terminal::new(CrosstermBackend::new(screen)));
    if opened.is_err() {
        close();
    }
    opened
}

/// A panic cannot leave it half written: fields are set one by one.
fn lock(state: &Mutex<TuiState>) -> MutexGuard<'_, TuiState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The thread that draws.
struct TuiThread {
    terminal: Terminal<CrosstermBackend<Stderr>>,
    state: Arc<Mutex<TuiState>>,
    is_over: Arc<AtomicBool>,
    interrupt: Interrupt,
    /// How often the user has asked to end the run.
    asked: u32,
}

impl TuiThread {
    fn run(mut self) {
        while !self.is_over.load(Ordering::Relaxed) {
            let state = lock(&self.state).clone();
            // Without a terminal nothing is shown, and the run continues.
            let drawn = self.terminal.draw(|frame| draw::draw(frame, &state)).is_ok();
            match event::poll(TICK) {
                Ok(true) if drawn => self.take_event(),
                Ok(_) => {}
                Err(_) => std::thread::sleep(TICK),
            }
        }
    }

    fn take_event(&mut self) {
        let Ok(Event::Key(key)) = event::read() else { return };
        let is_interrupt =
            key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
        let ends = is_interrupt || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc);
        if key.kind == KeyEventKind::Release || !ends {
            return;
        }
        self.asked += 1;
        let stop = if self.asked == 1 { Stop::Drain } else { Stop::Now };
        self.interrupt.stop(stop);
        lock(&self.state).is_stopping = true;
    }
}
