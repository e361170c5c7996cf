//! The full-screen view of a run while it goes on.
//!
//! A thread of its own draws ten times a second what the run has handed over, and takes keys. It
//! holds up neither the run nor its figures.

mod draw;
mod state;

use std::io;
use std::io::Stderr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use gake_engine::{Stop, in_background};
use gake_run::{Interrupt, PreparedRun, SecondUpdate};
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

/// How often it is drawn.
const TICK: Duration = Duration::from_millis(100);

/// The view; when it is dropped the terminal is as it was before.
#[derive(Debug)]
pub struct Tui {
    state: Arc<Mutex<TuiState>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Tui {
    /// Takes the terminal of `console` for a run of `prepared`. Its keys end the run by `interrupt`:
    /// q or Ctrl-C, and once more without waiting for what is in flight.
    ///
    /// # Errors
    /// When there is no terminal, or it cannot be used.
    pub fn start(
        console: &Console,
        prepared: &PreparedRun,
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
        let thread = in_background(|| named.spawn(move || view.run()));
        match thread {
            Ok(thread) => Ok(Self { state, is_over, thread: Some(thread) }),
            Err(error) => {
                close();
                Err(cannot(error))
            }
        }
    }

    /// Takes in one second.
    pub fn show(&self, update: &SecondUpdate<'_>, prepared: &PreparedRun) {
        lock(&self.state).take(update, prepared);
    }

    /// Gives the terminal back.
    pub fn end(mut self) {
        self.join();
    }

    fn join(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A view that panicked has said so, and its terminal is given back below.
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

/// Gives the terminal back, from wherever the process ends.
pub fn close() {
    // Nobody is left to tell when this fails.
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

/// A panic elsewhere cannot leave it half written: it is written field by field.
fn lock(state: &Mutex<TuiState>) -> MutexGuard<'_, TuiState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What draws.
struct TuiThread {
    terminal: Terminal<CrosstermBackend<Stderr>>,
    state: Arc<Mutex<TuiState>>,
    is_over: Arc<AtomicBool>,
    interrupt: Interrupt,
    /// How often the user has asked for the end.
    asked: u32,
}

impl TuiThread {
    fn run(mut self) {
        while !self.is_over.load(Ordering::Relaxed) {
            let state = lock(&self.state).clone();
            // A terminal that is gone shows nothing; the run goes on to its end.
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
