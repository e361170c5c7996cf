//! `gake serve`: the lab, until a signal comes.

use std::io::Write;
use std::path::{Path, PathBuf};

use gake_files::Access;
use gake_lab::{DatabaseKind, Lab, LabCertificate, LabConfig, LabError};
use gake_text::duration::format_duration;
use gake_text::units::{count, percent, plural};
use rustix::process::geteuid;

use crate::cli::ServeArgs;
use crate::parent;
use gake_session::Console;
use gake_session::{Exit, Failure};
use gake_session::{descriptors, signals};

/// Descriptors that are not connections: the standard streams, listeners, event queues, timers.
const DESCRIPTORS_OWN: u64 = 64;

/// Serves until SIGINT or SIGTERM, then prints the counts.
///
/// # Errors
/// When it cannot be started.
pub fn run(args: &ServeArgs, console: &Console) -> Result<Exit, Failure> {
    if let Some(parent) = args.parent {
        parent::end_with(parent)?;
    }
    let descriptors = descriptors::raise();
    // Signals are watched before the URL is printed, so that none ends it without its counts.
    let ended = signals::receive().map_err(Failure::signals)?;
    let lab = Lab::start(config(args)?).map_err(|error| match error {
        LabError::Config(what) => Failure::usage(what.replace('_', "-")),
        error => Failure::could_not(error),
    })?;
    let trust = lab.certificate().map(|certificate| write(args, &lab, certificate)).transpose()?;
    announce(args, console, &lab, descriptors)?;
    if let (Some((path, certificate)), false) = (&trust, args.quiet) {
        let path = path.display();
        let sha = &certificate.fingerprint;
        console.note(&format!("certificate SHA-256 {sha}; clients trust it with --cacert {path}"));
    }
    // The watching thread lives as long as the process.
    let _ = ended.recv();
    if let (Some((path, _)), None) = (&trust, &args.tls_out) {
        // The certificate is useless now. A file that the user named stays.
        let _ = std::fs::remove_file(path);
    }
    let stats = lab.shutdown();
    console.result(&format!("{stats}\n"))?;
    Ok(Exit::Done)
}

fn config(args: &ServeArgs) -> Result<LabConfig, Failure> {
    let model = &args.model;
    Ok(LabConfig {
        listen: args.listen,
        unix_socket: args.unix_socket.clone(),
        cores: args.cores.unwrap_or(0),
        threads: model.threads,
        queue: model.queue,
        accept_count: model.accept_count,
        max_connections: model.max_connections,
        database: args.database.open()?,
        connection_timeout: model.connection_timeout,
        service: model.service,
        metastable: model.metastable,
        seed: model.seed,
        stall: model.stall,
        stall_every: model.stall_every,
        leak_every: model.leak_every,
        h2_max_streams: model.h2_max_streams,
        goaway_every: model.goaway_every,
        reset_rate: model.reset_rate,
        tls: args.tls.is_some(),
        http3: args.http3,
        early_data: args.early_data,
        reject_early_data_every: args.reject_early_data_every,
        ..LabConfig::default()
    })
}

/// Writes the certificate for clients to trust; returns its path.
fn write<'a>(
    args: &ServeArgs,
    lab: &Lab,
    certificate: &'a LabCertificate,
) -> Result<(PathBuf, &'a LabCertificate), Failure> {
    // The folder for temporary files is shared by all users.
    let user = geteuid().as_raw();
    let default =
        || std::env::temp_dir().join(format!("gake-lab-{user}-{}.pem", lab.addr().port()));
    let access = if args.tls_out.is_some() { Access::Mask } else { Access::Owner };
    let path = args.tls_out.clone().unwrap_or_else(default);
    let written = gake_files::create(&path, access)
        .and_then(|mut file| file.write_all(certificate.pem.as_bytes()));
    written.map_err(|error| {
        Failure::could_not(format!("{} cannot be written: {error}", path.display()))
    })?;
    Ok((path, certificate))
}

/// Prints the URL for the program that started the server, and a line for the user.
fn announce(
    args: &ServeArgs,
    console: &Console,
    lab: &Lab,
    descriptors: u64,
) -> Result<(), Failure> {
    let scheme = if lab.certificate().is_some() { "https" } else { "http" };
    let url = format!("{scheme}://{}", lab.addr());
    match console.result(&format!("{url}\n")) {
        // The program may have closed the pipe; the server serves all the same.
        Ok(()) | Err(Failure::OutputClosed) => {}
        Err(failure) => return Err(failure),
    }
    if args.quiet {
        return Ok(());
    }
    // On a terminal the line above has the URL.
    let place = if console.out_is_terminal() { String::new() } else { format!("{url}: ") };
    let socket = args.unix_socket.as_deref().map(Path::display);
    let socket = socket.map_or(String::new(), |path| format!("and on {path}: "));
    let tables = lab.config().tables();
    let model = model(lab.config(), tables);
    console.note(&format!("{place}{socket}{model}; Ctrl-C ends it and prints the counts"));
    if !lab.addr().ip().is_loopback() {
        console
            .warn("clients on other machines can reach it, and can make it hang, stall or reset");
    }
    if tables < 2
        && let Some(warning) = too_few_descriptors(lab.config(), descriptors)
    {
        console.warn(&warning);
    }
    if let Some(warning) = capped(args.model.accept_count) {
        console.warn(&warning);
    }
    Ok(())
}

/// The model in force, with this number of descriptor tables, in one line.
fn model(config: &LabConfig, tables: usize) -> String {
    let mut parts = Vec::new();
    parts.push(match config.threads {
        Some(threads) => plural(threads as u64, "thread"),
        None => "no limit on threads".to_owned(),
    });
    parts.push(match config.max_connections {
        Some(most) => format!("at most {}", plural(most as u64, "connection")),
        None => "no limit on connections".to_owned(),
    });
    parts.push(match tables {
        0 | 1 => format!("{} more in the backlog", count(config.accept_count.into())),
        tables => format!(
            "{} more in the backlog of each of {tables} threads with a descriptor table",
            count(config.accept_count.into())
        ),
    });
    if let Some(queue) = config.queue {
        parts.push(format!(
            "at most {} wait and the rest is refused",
            plural(queue as u64, "request")
        ));
    }
    if let Some(service) = config.service {
        parts.push(format!("service time {service} (seed {})", config.seed));
    }
    if let Some(rule) = config.metastable {
        let (wait, rest) = (format_duration(rule.wait), format_duration(rule.rest));
        let factor = rule.factor;
        parts.push(format!("{factor} times slower after a wait of {wait} until a rest of {rest}"));
    }
    if let Some(timeout) = config.connection_timeout {
        parts.push(format!("connections time out after {}", format_duration(timeout)));
    }
    if config.reset_rate > 0.0 {
        parts.push(format!("{} of the requests reset", percent(config.reset_rate)));
    }
    if let Some(stall) = config.stall {
        let (after, length) = (format_duration(stall.after), format_duration(stall.length));
        let again = config.stall_every.map(format_duration);
        let again = again.map_or(String::new(), |every| format!(" and every {every} from then on"));
        parts.push(format!("a stall of {length} {after} after the first request{again}"));
    }
    match config.database.as_ref().map(|database| &database.kind) {
        Some(DatabaseKind::Model(db)) => {
            let (connect, statement) = (format_duration(db.connect), format_duration(db.statement));
            let times = format!("{connect} to connect, {statement} a statement");
            parts.push(format!("users in a database ({times})"));
        }
        Some(DatabaseKind::Real(_)) => parts.push("users in a real database".to_owned()),
        None => {}
    }
    if let Some(every) = config.leak_every {
        parts.push(format!("one request in {} keeps its thread for ever", count(every)));
    }
    parts.join(", ")
}

fn too_few_descriptors(config: &LabConfig, descriptors: u64) -> Option<String> {
    let connections = config.max_connections? as u64;
    (connections.saturating_add(DESCRIPTORS_OWN) > descriptors).then(|| {
        format!(
            "{} connections need more than the {} file descriptors of this process; those over \
             it wait in the backlog (raise `ulimit -Hn`)",
            count(connections),
            count(descriptors)
        )
    })
}

/// The kernel silently limits a backlog to `net.core.somaxconn`.
fn capped(accept_count: u32) -> Option<String> {
    let most = std::fs::read_to_string("/proc/sys/net/core/somaxconn").ok()?;
    let most: u32 = most.trim().parse().ok()?;
    (accept_count > most).then(|| {
        format!(
            "the kernel cuts the backlog of {} to {} (raise net.core.somaxconn)",
            count(accept_count.into()),
            count(most.into())
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_takes_one_line() {
        let plain = LabConfig::default();
        assert_eq!(
            model(&plain, 1),
            "no limit on threads, no limit on connections, 4,096 more in the backlog"
        );
        let tomcat = LabConfig {
            threads: Some(200),
            max_connections: Some(8192),
            accept_count: 100,
            service: "const:5s".parse().ok(),
            connection_timeout: Some(std::time::Duration::from_secs(20)),
            ..plain
        };
        assert_eq!(
            model(&tomcat, 1),
            "200 threads, at most 8,192 connections, 100 more in the backlog, \
             service time const:5s (seed 1), connections time out after 20s"
        );
    }

    #[test]
    fn connections_beyond_the_descriptors_are_a_warning() {
        let config = LabConfig { max_connections: Some(8192), ..LabConfig::default() };
        assert_eq!(too_few_descriptors(&config, 20_000), None);
        assert!(too_few_descriptors(&config, 8192).is_some_and(|text| text.contains("8,192")));
    }
}
