//! h2load's output before its report: the threads and their progress.

use gake_core::record::{Fault, Tally};

use super::options::{Extent, H2loadOptions, Protocols};

/// The output before the run.
pub fn opening(options: &H2loadOptions) -> String {
    let mut text = "starting benchmark...\n".to_owned();
    for thread in 0..options.threads as u64 {
        let clients = part(options, options.clients as u64, thread);
        let what = match options.extent {
            Extent::Timed { warmup, duration } => format!(
                "Timing-based test with {}s of warm-up time and {}s of main duration for \
                 measurements.",
                warmup.as_secs_f64(),
                duration.as_secs_f64()
            ),
            Extent::Requests(requests) => {
                format!("{} total requests", part(options, requests, thread))
            }
        };
        text += &format!("spawning thread #{thread}: {clients} total client(s). {what}\n");
    }
    if let Extent::Timed { .. } = options.extent {
        for thread in 0..options.threads {
            text += &format!("Warm-up started for thread #{thread}.\n");
        }
        let clients = part(options, options.clients as u64, 0);
        for percent in steps(clients, clients) {
            text += &format!("progress: {percent}% of clients started\n");
        }
    }
    text
}

/// A thread's share of a total; the first ones have one more when it is not divisible.
fn part(options: &H2loadOptions, total: u64, thread: u64) -> u64 {
    let threads = options.threads as u64;
    total / threads + u64::from(thread < total % threads)
}

/// The percentages to report when `done` of `total` are done: every tenth.
fn steps(done: u64, total: u64) -> impl Iterator<Item = u64> {
    let step = (total / 10).max(1);
    (1..=done.min(total) / step).map(move |number| number * step * 100 / total)
}

/// The progress lines of a run.
#[derive(Debug)]
pub struct H2loadProgress {
    extent: Extent,
    threads: usize,
    /// Requests of the first thread, the only thread that reports them.
    first: u64,
    /// The protocol over plain TCP, which is known in advance.
    clear: Option<&'static str>,
    has_protocol: bool,
    has_begun: bool,
    shown: usize,
}

impl H2loadProgress {
    /// Starts with nothing shown.
    pub fn new(options: &H2loadOptions) -> Self {
        let is_plain = options.uris[0].starts_with("http:");
        let clear = is_plain.then_some(match options.protocols {
            Protocols::Http1 => "http/1.1",
            Protocols::Http2 | Protocols::Http3 | Protocols::Either => "h2c",
        });
        let first = match options.extent {
            Extent::Requests(total) => part(options, total, 0),
            Extent::Timed { .. } => 0,
        };
        Self {
            extent: options.extent,
            threads: options.threads,
            first,
            clear,
            has_protocol: false,
            has_begun: false,
            shown: 0,
        }
    }

    /// The new lines after `seconds` seconds.
    pub fn at(&mut self, seconds: u64, tally: &Tally) -> String {
        match self.extent {
            Extent::Requests(total) => self.protocol(tally) + &self.requests(total, tally),
            Extent::Timed { warmup, .. } if warmup.is_zero() => {
                self.begin() + &self.protocol(tally)
            }
            Extent::Timed { warmup, .. } if seconds >= warmup.as_secs() => {
                self.protocol(tally) + &self.begin()
            }
            Extent::Timed { .. } => self.protocol(tally),
        }
    }

    fn requests(&mut self, total: u64, tally: &Tally) -> String {
        let own = u128::from(ended(tally)) * u128::from(self.first) / u128::from(total);
        let lines = steps(own as u64, self.first).skip(self.shown);
        let lines: Vec<_> = lines.map(|percent| format!("progress: {percent}% done\n")).collect();
        self.shown += lines.len();
        lines.concat()
    }

    fn protocol(&mut self, tally: &Tally) -> String {
        if tally.counts.opened == 0 || std::mem::replace(&mut self.has_protocol, true) {
            return String::new();
        }
        let secure = match (tally.counts.http3_streams, tally.counts.streams) {
            (1.., _) => "h3",
            (0, 1..) => "h2",
            (0, 0) => "http/1.1",
        };
        format!("Application protocol: {}\n", self.clear.unwrap_or(secure))
    }

    fn begin(&mut self) -> String {
        if std::mem::replace(&mut self.has_begun, true) {
            return String::new();
        }
        let line = |thread| {
            format!(
                "Warm-up phase is over for thread #{thread}.\nMain benchmark duration is started \
                 for thread #{thread}.\n"
            )
        };
        (0..self.threads).map(line).collect()
    }

    /// The remaining lines at the end.
    pub fn end(&mut self, tally: &Tally) -> String {
        let mut text = self.at(u64::MAX, tally);
        if let Extent::Timed { .. } = self.extent {
            for thread in 0..self.threads {
                text += &format!(
                    "Main benchmark duration is over for thread #{thread}. Stopping all clients.\n\
                     Stopped all clients for thread #{thread}\n"
                );
            }
        }
        text
    }
}

/// Streams that have ended with a response or a reset.
pub fn ended(tally: &Tally) -> u64 {
    let answered: u64 = tally.statuses().iter().map(|(_, count)| count).sum();
    answered + tally.faults_where(|fault| matches!(fault, Fault::StreamReset(_)))
}
