//! The report of ab (2.3 of Apache 2.4): text, HTML tables, and the files of `-e` and `-g`.

mod html;
mod samples;
mod table;

use std::fmt::{self, Write as _};

use gake_core::clock::Nanos;
use gake_core::record::Histogram;

pub use html::{Attributes, html};
pub use samples::{AbSample, csv, gnuplot};

/// Percentages of the text.
const PERCENTAGES: [u32; 9] = [50, 66, 75, 80, 90, 95, 98, 99, 100];

/// What the report shows.
#[derive(Debug)]
pub struct Ab<'a> {
    /// `Server` of the first response.
    pub server: &'a str,
    /// The host asked.
    pub host: &'a str,
    /// Its port.
    pub port: u16,
    /// The TLS protocol line, when there is TLS.
    pub tls: Option<&'a str>,
    /// Path and query.
    pub path: &'a str,
    /// Bytes of the first response's body; `None` when lengths may vary.
    pub document: Option<u64>,
    /// Requests at once.
    pub concurrency: usize,
    /// From the start to the last response.
    pub taken: Nanos,
    /// Requests that ended, in whatever way.
    pub complete: u64,
    /// Those that failed.
    pub failed: FailureCounts,
    /// Responses whose status is not 2xx.
    pub non_2xx: u64,
    /// Responses after which the connection stayed open, when that was asked for.
    pub keep_alive: Option<u64>,
    /// Bytes read.
    pub transferred: u64,
    /// Bytes written, when there is a body to send.
    pub sent: Option<u64>,
    /// Bytes of all bodies.
    pub body_bytes: u64,
    /// The parts of the responses.
    pub times: &'a AbTimes,
}

/// Failed requests by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FailureCounts {
    /// No connection.
    pub connect: u64,
    /// Broken or timed out on the way.
    pub receive: u64,
    /// Another length than the first response's, or cut.
    pub length: u64,
    /// Not HTTP.
    pub exceptions: u64,
}

impl FailureCounts {
    /// All of them.
    pub fn all(&self) -> u64 {
        self.connect + self.receive + self.length + self.exceptions
    }
}

/// How long the parts of responses took.
#[derive(Debug, Default)]
pub struct AbTimes {
    /// Opening the connection, 0 on one that was open.
    pub connect: Histogram,
    /// From there to the end.
    pub processing: Histogram,
    /// From the request to the first byte of the response.
    pub waiting: Histogram,
    /// From start to end.
    pub total: Histogram,
}

/// What is left out of the text.
#[derive(Debug, Clone, Copy, Default)]
pub struct HiddenParts {
    /// The percentages (`-d`).
    pub percentages: bool,
    /// Median, deviation and warnings (`-S`).
    pub confidence: bool,
}

/// The text, from `Server Software` on.
pub fn text(ab: &Ab<'_>, hidden: HiddenParts) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write_text(&mut out, ab, hidden);
    out
}

fn write_text(out: &mut String, ab: &Ab<'_>, hidden: HiddenParts) -> fmt::Result {
    head(out, ab)?;
    rates(out, ab)?;
    if ab.complete > 0 {
        table::times(out, ab.times, hidden.confidence)?;
    }
    if ab.complete > 1 && !hidden.percentages {
        writeln!(out, "\nPercentage of the requests served within a certain time (ms)")?;
        for percent in PERCENTAGES {
            let time = ms(ab.times.total.quantile(f64::from(percent) / 100.0));
            let longest = if percent == 100 { " (longest request)" } else { "" };
            writeln!(out, "{percent:4}%  {time:5}{longest}")?;
        }
    }
    Ok(())
}

fn head(out: &mut String, ab: &Ab<'_>) -> fmt::Result {
    writeln!(out, "\n\nServer Software:        {}", ab.server)?;
    writeln!(out, "Server Hostname:        {}", ab.host)?;
    writeln!(out, "Server Port:            {}", ab.port)?;
    if let Some(tls) = ab.tls {
        writeln!(out, "SSL/TLS Protocol:       {tls}")?;
        writeln!(out, "TLS Server Name:        {}", ab.host)?;
    }
    writeln!(out, "\nDocument Path:          {}", ab.path)?;
    match ab.document {
        Some(bytes) => writeln!(out, "Document Length:        {bytes} bytes")?,
        None => writeln!(out, "Document Length:        Variable")?,
    }
    writeln!(out, "\nConcurrency Level:      {}", ab.concurrency)?;
    writeln!(out, "Time taken for tests:   {:.3} seconds", ab.seconds())?;
    writeln!(out, "Complete requests:      {}", ab.complete)?;
    writeln!(out, "Failed requests:        {}", ab.failed.all())?;
    let FailureCounts { connect, receive, length, exceptions } = ab.failed;
    if ab.failed.all() > 0 {
        writeln!(
            out,
            "   (Connect: {connect}, Receive: {receive}, Length: {length}, Exceptions: \
             {exceptions})"
        )?;
    }
    if ab.non_2xx > 0 {
        writeln!(out, "Non-2xx responses:      {}", ab.non_2xx)?;
    }
    if let Some(kept) = ab.keep_alive {
        writeln!(out, "Keep-Alive requests:    {kept}")?;
    }
    writeln!(out, "Total transferred:      {} bytes", ab.transferred)?;
    if let Some(sent) = ab.sent {
        writeln!(out, "Total body sent:        {sent}")?;
    }
    writeln!(out, "HTML transferred:       {} bytes", ab.body_bytes)
}

fn rates(out: &mut String, ab: &Ab<'_>) -> fmt::Result {
    let (seconds, complete) = (ab.seconds(), ab.complete as f64);
    if seconds <= 0.0 || ab.complete == 0 {
        return Ok(());
    }
    let each = seconds * 1e3 / complete;
    let concurrent = each * ab.concurrency as f64;
    writeln!(out, "Requests per second:    {:.2} [#/sec] (mean)", complete / seconds)?;
    writeln!(out, "Time per request:       {concurrent:.3} [ms] (mean)")?;
    writeln!(out, "Time per request:       {each:.3} [ms] (mean, across all concurrent requests)")?;
    let received = ab.kbytes_per_second(ab.transferred);
    writeln!(out, "Transfer rate:          {received:.2} [Kbytes/sec] received")?;
    if let Some(sent) = ab.sent {
        writeln!(out, "{:24}{:.2} kb/s sent", "", ab.kbytes_per_second(sent))?;
        let both = ab.kbytes_per_second(ab.transferred + sent);
        writeln!(out, "{:24}{both:.2} kb/s total", "")?;
    }
    Ok(())
}

impl Ab<'_> {
    fn seconds(&self) -> f64 {
        self.taken as f64 / 1e9
    }

    fn kbytes_per_second(&self, bytes: u64) -> f64 {
        bytes as f64 / 1024.0 / self.seconds()
    }
}

/// Whole milliseconds, rounded.
fn ms(ns: Nanos) -> u64 {
    (ns + 500_000) / 1_000_000
}

#[cfg(test)]
mod tests;
