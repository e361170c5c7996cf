//! `gake shadow`: the shadow proxy, until a signal comes.

mod config;
mod page;
mod report;
#[cfg_attr(not(feature = "scripts"), path = "without_script.rs")]
mod script;
mod taps;

use gake_shadow::config::Config;
use gake_shadow::{Category, Proxy, ProxySummary, RunningProxy};
use gake_text::units::{count, plural};

use crate::cli::{ShadowArgs, ShadowCommand};
use crate::parent;
use gake_session::Console;
use gake_session::descriptors;
use gake_session::redaction;
use gake_session::signals;
use gake_session::{Exit, Failure};
use taps::Taps;

/// Descriptors that are not connections of clients or to the master.
const DESCRIPTORS_OWN: u64 = 64;

/// Serves until SIGINT or SIGTERM, drains, and prints the outcome of every copy; or runs the
/// subcommand.
///
/// # Errors
/// When it cannot be started.
pub fn run(args: &ShadowArgs, console: &Console) -> Result<Exit, Failure> {
    match &args.command {
        Some(ShadowCommand::Report(args)) => report::report(args, console),
        Some(ShadowCommand::Convert(args)) => report::convert(args, console),
        None => serve(args, console),
    }
}

fn serve(args: &ShadowArgs, console: &Console) -> Result<Exit, Failure> {
    if let Some(parent) = args.service.parent {
        parent::end_with(parent)?;
    }
    let descriptors = descriptors::raise();
    let mut config = config::from(args)?;
    if args.service.max_connections.is_none() {
        let fits = usize::try_from(clients_that_fit(&config, descriptors)).unwrap_or(usize::MAX);
        config.limits.connections = config.limits.connections.min(fits);
    }
    let new_token = config::token(args, &mut config)?;
    // Signals are watched before the URL is printed, so that none ends it without its ledger.
    let signals = signals::receive()
        .map_err(|error| Failure::could_not(format!("signals cannot be watched: {error}")))?;
    let mut proxy = Proxy::new(config.clone()).map_err(Failure::usage)?;
    let redactor =
        redaction::redactor_with(&args.taps.redaction, args.taps.record_secrets, console)?;
    let taps = Taps::start(&args.taps, &config, &redactor, &mut proxy)?;
    let proxy = script::add(args.script.hooks().as_ref(), &config, proxy, console, &redactor)?;
    let running = proxy.start().map_err(Failure::could_not)?;
    announce(args, console, &config, &running, new_token.as_deref())?;
    warn(console, &config, descriptors);

    let control = running.control().clone();
    let drain = args.service.drain;
    // The watching threads live as long as the process.
    std::thread::spawn(move || {
        if signals.recv().is_ok() {
            control.drain(drain);
        }
        if signals.recv().is_ok() {
            control.stop_now();
        }
    });
    let summary = running.join();
    let (reports, notes) = taps.finish(args.taps.terms.terms());
    notes.iter().for_each(|note| console.note(note));
    let text = ledger_text(&summary);
    if reports.is_empty() {
        console.result(&text)?;
    } else {
        console.result(&format!("{text}\n{}", report::text(&reports)))?;
    }
    Ok(report::exit(&reports))
}

/// Prints the URL for the program that started the proxy, and lines for the user.
fn announce(
    args: &ShadowArgs,
    console: &Console,
    config: &Config,
    running: &RunningProxy,
    new_token: Option<&str>,
) -> Result<(), Failure> {
    let scheme = if config.tls.is_some() { "https" } else { "http" };
    let url = format!("{scheme}://{}", running.addr());
    match console.result(&format!("{url}\n")) {
        // The program may have closed the pipe; the proxy serves all the same.
        Ok(()) | Err(Failure::OutputClosed) => {}
        Err(failure) => return Err(failure),
    }
    if let (Some(addr), Some(token)) = (running.admin_addr(), new_token) {
        console.note(&format!("admin: http://{addr}, token {token}"));
    } else if let Some(addr) = running.admin_addr() {
        console.note(&format!("admin: http://{addr}"));
    }
    if !args.service.quiet {
        // On a terminal the line above has the URL.
        let place = if console.out_is_terminal() { String::new() } else { format!("{url}: ") };
        console.note(&format!("{place}{}; Ctrl-C ends it and prints the ledger", plan(config)));
    }
    Ok(())
}

/// The proxy in one line.
fn plan(config: &Config) -> String {
    let mut parts = vec![format!("{} responds", config.master.name)];
    for shadow in &config.shadows {
        let methods: Vec<&str> = shadow.methods.iter().map(|method| method.as_str()).collect();
        let mut part =
            format!("{} gets {}% of {}", shadow.backend.name, shadow.percentage, methods.join(" "));
        if !shadow.rules.is_empty() {
            part += &format!(" by {}", plural(shadow.rules.len() as u64, "rule"));
        }
        if let Some(rate) = shadow.rate {
            part += &format!(", {rate}/s at most");
        }
        parts.push(part);
    }
    parts.join("; ")
}

fn warn(console: &Console, config: &Config, descriptors: u64) {
    if config.shadows.is_empty() {
        console.warn("there is no shadow: it is a plain proxy (--shadow NAME=URL adds one)");
    }
    if config.limits.connections as u64 > clients_that_fit(config, descriptors) {
        console.warn(&format!(
            "{} clients need more than the {} file descriptors of this process; raise \
             `ulimit -Hn` or lower --max-connections",
            count(config.limits.connections as u64),
            count(descriptors)
        ));
    }
}

/// Each client may need a connection to the master.
fn clients_that_fit(config: &Config, descriptors: u64) -> u64 {
    let shadows: usize = config.shadows.iter().map(|shadow| shadow.connections).sum();
    (descriptors.saturating_sub(shadows as u64 + DESCRIPTORS_OWN) / 2).max(1)
}

/// The final report: the clients' path, then a line for each shadow.
fn ledger_text(summary: &ProxySummary) -> String {
    let stats = &summary.stats;
    let mut text = format!(
        "{} on {}: {} responses",
        plural(stats.requests, "request"),
        plural(stats.connections, "connection"),
        count(stats.responses.iter().sum())
    );
    for (number, what) in [
        (stats.refused, "refused"),
        (stats.master_faults, "without a response of the master"),
        (stats.broken_responses, "broken off"),
        (stats.client_timeouts, "clients too slow"),
        (stats.malformed, "connections with bytes that are not HTTP"),
        (stats.upgrades, "upgraded"),
        (summary.exchanges_dropped, "not compared or recorded for lack of time"),
    ] {
        if number > 0 {
            text += &format!(", {} {what}", count(number));
        }
    }
    text.push('\n');
    for ledger in &summary.ledgers {
        text += &format!("{ledger}\n");
        let sent = ledger.sent();
        let failed = sent - ledger.count(Category::Ok);
        if failed > 0 {
            text += &format!(
                "  {} of {} copies had no complete response\n",
                count(failed),
                count(sent)
            );
        }
    }
    let hooks = &summary.hooks;
    for (number, what) in [
        (hooks.panics, "panicked"),
        (hooks.errors, "failed"),
        (hooks.timeouts, "took too long"),
        (hooks.overflows, "were not asked, too many waited"),
        (hooks.skipped, "were not asked, after too many in a row took too long"),
        (hooks.unknown_names, "chose a name that no backend has"),
    ] {
        if number > 0 {
            text += &format!("hooks: {} {what}\n", plural(number, "time"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use gake_shadow::config::{Backend, Shadow};

    use super::*;

    #[test]
    fn the_plan_is_one_line() {
        let mut config = Config::new(Backend::new("production", "http://h").unwrap());
        let mut shadow = Shadow::new(Backend::new("new", "http://n").unwrap());
        (shadow.percentage, shadow.rate) = (12.5, Some(100.0));
        config.shadows.push(shadow);
        assert_eq!(
            plan(&config),
            "production responds; new gets 12.5% of GET HEAD OPTIONS TRACE, 100/s at most"
        );
    }
}
