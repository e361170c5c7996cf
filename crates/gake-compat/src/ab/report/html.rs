//! The report as an HTML table (`-w`).

use std::fmt::{self, Write as _};

use gake_core::record::Histogram;

use super::{Ab, ms};

/// Attributes of the table's tags (`-x`, `-y`, `-z`).
#[derive(Debug, Clone, Copy)]
pub struct Attributes<'a> {
    pub table: &'a str,
    pub row: &'a str,
    pub cell: &'a str,
}

impl Default for Attributes<'_> {
    fn default() -> Self {
        Self { table: "", row: "", cell: "bgcolor=white" }
    }
}

/// The table.
pub fn html(ab: &Ab<'_>, attributes: Attributes<'_>) -> String {
    let mut table = Table { out: format!("\n\n<table {}>\n", attributes.table), attributes };
    // Writing to a String cannot fail.
    let _ = table.facts(ab);
    let _ = table.rates(ab);
    let _ = table.times(ab);
    table.out.push_str("</table>\n");
    table.out
}

struct Table<'a> {
    out: String,
    attributes: Attributes<'a>,
}

impl Table<'_> {
    fn row(&mut self, name: &str, value: impl fmt::Display) -> fmt::Result {
        let Attributes { row, cell, .. } = self.attributes;
        writeln!(
            self.out,
            "<tr {row}><th colspan=2 {cell}>{name}:</th><td colspan=2 {cell}>{value}</td></tr>"
        )
    }

    fn facts(&mut self, ab: &Ab<'_>) -> fmt::Result {
        self.row("Server Software", escaped(ab.server))?;
        self.row("Server Hostname", escaped(ab.host))?;
        self.row("Server Port", ab.port)?;
        self.row("Document Path", escaped(ab.path))?;
        match ab.document {
            Some(bytes) => self.row("Document Length", format_args!("{bytes} bytes"))?,
            None => self.row("Document Length", "Variable")?,
        }
        self.row("Concurrency Level", ab.concurrency)?;
        self.row("Time taken for tests", format_args!("{:.3} seconds", ab.seconds()))?;
        self.row("Complete requests", ab.complete)?;
        self.row("Failed requests", ab.failed.all())?;
        if ab.failed.all() > 0 {
            let Attributes { row, cell, .. } = self.attributes;
            let (connect, length) = (ab.failed.connect, ab.failed.length);
            let exceptions = ab.failed.receive + ab.failed.exceptions;
            writeln!(
                self.out,
                "<tr {row}><td colspan=4 {cell} >   (Connect: {connect}, Length: {length}, \
                 Exceptions: {exceptions})</td></tr>"
            )?;
        }
        if ab.non_2xx > 0 {
            self.row("Non-2xx responses", ab.non_2xx)?;
        }
        if let Some(kept) = ab.keep_alive {
            self.row("Keep-Alive requests", kept)?;
        }
        self.row("Total transferred", format_args!("{} bytes", ab.transferred))?;
        if let Some(sent) = ab.sent {
            self.row("Total body sent", sent)?;
        }
        self.row("HTML transferred", format_args!("{} bytes", ab.body_bytes))
    }

    fn rates(&mut self, ab: &Ab<'_>) -> fmt::Result {
        if ab.taken == 0 || ab.complete == 0 {
            return Ok(());
        }
        let per_second = ab.complete as f64 / ab.seconds();
        self.row("Requests per second", format_args!("{per_second:.2}"))?;
        let received = ab.kbytes_per_second(ab.transferred);
        self.row("Transfer rate", format_args!("{received:.2} kb/s received"))?;
        let Some(sent) = ab.sent else { return Ok(()) };
        let Attributes { row, cell, .. } = self.attributes;
        for (bytes, what) in [(sent, "sent"), (sent + ab.transferred, "total")] {
            let rate = ab.kbytes_per_second(bytes);
            writeln!(
                self.out,
                "<tr {row}><td colspan=2 {cell}>&nbsp;</td><td colspan=2 {cell}>{rate:.2} kb/s \
                 {what}</td></tr>"
            )?;
        }
        Ok(())
    }

    fn times(&mut self, ab: &Ab<'_>) -> fmt::Result {
        if ab.complete == 0 {
            return Ok(());
        }
        let Attributes { row, cell, .. } = self.attributes;
        writeln!(self.out, "<tr {row}><th {cell} colspan=4>Connection Times (ms)</th></tr>")?;
        writeln!(
            self.out,
            "<tr {row}><th {cell}>&nbsp;</th> <th {cell}>min</th>   <th {cell}>avg</th>   <th \
             {cell}>max</th></tr>"
        )?;
        self.part("Connect:", &ab.times.connect)?;
        self.part("Processing:", &ab.times.processing)?;
        self.part("Total:", &ab.times.total)
    }

    fn part(&mut self, name: &str, times: &Histogram) -> fmt::Result {
        let Attributes { row, cell, .. } = self.attributes;
        let (min, mean, max) = (ms(times.min()), ms(times.mean() as u64), ms(times.max()));
        writeln!(
            self.out,
            "<tr {row}><th {cell}>{name}</th><td {cell}>{min:5}</td><td {cell}>{mean:5}</td><td \
             {cell}>{max:5}</td></tr>"
        )
    }
}

/// Escapes text from a server, so that it cannot contain tags.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
