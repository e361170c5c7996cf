//! `gake watch`: samples of the target, a line each.

use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use gake_core::record::{GaugeReading, TargetSetting};
use gake_report::level;
use gake_watch::{Sampler, WatchEvent};
use serde_json::{Map, Value, json};

use crate::cli::{WatchArgs, WatchFormat, WatchedSource};
use gake_session::Console;
use gake_session::signals;
use gake_session::{Exit, Failure};

/// The polling interval of signals and the duration.
const LOOK: Duration = Duration::from_millis(50);

/// Watches until a signal or the duration ends it.
///
/// # Errors
/// When a source cannot be read, or the output is closed.
pub fn run(args: &WatchArgs, console: &Console) -> Result<Exit, Failure> {
    let ended = signals::receive().map_err(Failure::signals)?;
    let sources = args.sources.iter().map(WatchedSource::source).collect::<Result<_, _>>()?;
    let sampler = Sampler::start(sources, args.every, || ()).map_err(Failure::could_not)?;
    let end = args.duration.and_then(|duration| Instant::now().checked_add(duration));
    while ended.try_recv().is_err() && end.is_none_or(|end| Instant::now() < end) {
        match sampler.batches.recv_timeout(LOOK) {
            Ok(batch) => show(args, console, batch)?,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    Ok(Exit::Done)
}

fn show(args: &WatchArgs, console: &Console, batch: WatchEvent) -> Result<(), Failure> {
    match (batch, args.format) {
        (WatchEvent::Readings { readings, .. }, _) if readings.is_empty() => Ok(()),
        (WatchEvent::Settings(settings), _) if settings.is_empty() => Ok(()),
        (WatchEvent::Readings { at, readings }, WatchFormat::Text) => {
            let source = if args.sources.len() > 1 { &readings[0].source } else { "" };
            console.result(&format!("{}{source}  {}\n", stamp(at), levels(&readings)))
        }
        (WatchEvent::Readings { at, readings }, WatchFormat::Json) => {
            let source = readings[0].source.clone();
            let levels: Map<_, _> =
                readings.into_iter().map(|r| (r.name, Value::from(r.value))).collect();
            line(&json!({ "at_s": seconds(at), "source": source, "levels": levels }), console)
        }
        (WatchEvent::Settings(settings), WatchFormat::Text) => {
            for TargetSetting { name, value, .. } in settings {
                console.result(&format!("{name}={value}\n"))?;
            }
            Ok(())
        }
        (WatchEvent::Settings(settings), WatchFormat::Json) => {
            let source = settings[0].source.clone();
            let all: Map<_, _> =
                settings.into_iter().map(|s| (s.name, Value::from(s.value))).collect();
            line(&json!({ "source": source, "settings": all }), console)
        }
        (WatchEvent::Failed { reason, .. }, _) => {
            console.warn(&reason);
            Ok(())
        }
        (WatchEvent::Refreshed, _) => Ok(()),
    }
}

fn line(value: &Value, console: &Console) -> Result<(), Failure> {
    console.result(&format!("{value}\n"))
}

fn seconds(at: u64) -> f64 {
    (at / 1_000_000) as f64 / 1e3
}

fn stamp(at: u64) -> String {
    format!("{:>7.1}s  ", seconds(at))
}

fn levels(readings: &[GaugeReading]) -> String {
    let each =
        readings.iter().map(|r| format!("{} {}", r.name.replace('_', " "), level(r.value, r.unit)));
    each.collect::<Vec<_>>().join(",  ")
}
