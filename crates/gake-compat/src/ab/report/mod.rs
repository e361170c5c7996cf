//! The report of ab (2.3 of Apache 2.4): text, HTML tables, and the files of `-e` and `-g`.

mod html;
mod samples;
mod table;

use std::fmt::{self, Write as _};

use gake_core::clock::Nanos;
use gake_core::record::Histogram;

pub use html::{Attributes, html};
pub use samples::{AbSample, csv, gnuplot};

const PERCENTAGES: [u32; 9] = [50, 66, 75, 80, 90, 95, 98, 99, 100];

/// The figures of the report.
#[derive(Debug)]
pub struct Ab<'a> {
    /// `Server` of the first response.
    pub server: &'a str,
    /// The host of the requests.
    pub host: &'a str,
    /// The port of the requests.
    pub port: u16,
    /// The TLS protocol line, with TLS.
    pub tls: Option<&'a str>,
    /// Path and query.
    pub path: &'a str,
    /// Bytes of the first response's body; `None` when lengths may vary.
    pub document: Option<u64>,
    /// Requests at once.
    pub concurrency: usize,
    /// The time from the start to the last response.
    pub taken: Nanos,
    /// Requests that ended in any way.
    pub complete: u64,
    /// Failed requests.
    pub failed: FailureCounts,
    /// Responses whose status is not 2xx.
    pub non_2xx: u64,
    /// Responses after which the connection stayed open, with `-k`.
    pub keep_alive: Option<u64>,
    /// Bytes read.
    pub transferred: u64,
    /// Bytes written, if requests have a body.
    pub sent: Option<u64>,
    /// Bytes of all bodies.
    pub body_bytes: u64,
    /// The times of the responses.
    pub times: &'a AbTimes,
}

/// Failed requests by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FailureCounts {
    /// No connection.
    pub connect: u64,
    /// Connections that broke or timed out before the response was complete.
    pub receive: u64,
    /// Bodies with another length than the first one, or incomplete.
    pub length: u64,
    /// Responses that are not valid HTTP.
    pub exceptions: u64,
}

impl FailureCounts {
    /// Their sum.
    pub fn all(&self) -> u64 {
        self.connect + self.receive + self.length + self.exceptions
    }
}

/// The times of the phases of responses.
#[derive(Debug, Default)]
pub struct AbTimes {
    /// The time to open the connection; 0 if it was open.
    pub connect: Histogram,
    /// The time from there to the end.
    pub processing: Histogram,
    /// The time from the request to the first byte of the response.
    pub waiting: Histogram,
    /// The time from start to end.
    pub total: Histogram,
}

/// The parts that are left out of the text.
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

/// Rounds to whole milliseconds.
fn ms(ns: Nanos) -> u64 {
    (ns + 500_000) / 1_000_000
}

#[cfg(test)]
mod tests;
