//! The flags of `gake watch`.

use std::time::Duration;

use super::values::{self, WatchedSource};
use clap::{Args, ValueEnum};

/// Sample a target: processes, sockets, Prometheus, Spring Boot Actuator, databases.
///
/// Prints a line per sample until a signal, or for the duration. `gake run --watch SOURCE` and
/// `gake find --watch SOURCE` sample the target while they load it, and store the samples with the
/// latencies.
#[derive(Debug, Args)]
#[command(after_help = "\
Sources:
  pid:1234                                  a process of this machine
  port:8080                                 the process that listens on the port, workers included
  prometheus:http://host:9100/metrics       the metrics that gake knows (node_exporter, Go, JVM ...)
  prometheus:http://host/metrics#a,b{x=\"1\"}  only these; counters become rates
  actuator:http://host:8080/actuator        Spring Boot: Tomcat's threads, connections, settings
  mysql://user:password@host:3306           connections of MySQL or MariaDB: open, allowed, refused
  postgres://user:password@host:5432        the same for PostgreSQL, and waits for locks

Levels: cpu (of all cores), cores, rss, threads, descriptors (of the limit), context_switches,
sockets by state, accept_queue, listen_overflows, pool (of the worker threads), db_pool ...
Objectives may name them: --slo 'cpu<80%' --slo 'rss<1GB' --slo 'pool<90%'.")]
pub struct WatchArgs {
    /// What to sample
    #[arg(value_name = "SOURCE", required = true, value_parser = values::WATCHED, hide_possible_values = true)]
    pub sources: Vec<WatchedSource>,

    /// Time between samples
    #[arg(long, value_name = "TIME", value_parser = values::positive_duration, default_value = "1s")]
    pub every: Duration,

    /// How long to sample (default: until a signal)
    #[arg(short, long, value_name = "TIME", value_parser = values::positive_duration)]
    pub duration: Option<Duration>,

    /// Format
    #[arg(short = 'o', long, value_enum, default_value_t = WatchFormat::Text)]
    pub format: WatchFormat,
}

/// Formats of the samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WatchFormat {
    /// A readable line per sample
    Text,
    /// A JSON object per line
    Json,
}
