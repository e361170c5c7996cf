//! What the bench prints, as it goes, and what it keeps.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::peers::Peers;

/// Above this load other programs are running too.
const BUSY: f64 = 1.0;

/// A text that grows on stdout and in memory.
#[derive(Default)]
pub struct Report {
    text: String,
}

impl Report {
    /// One line.
    pub fn line(&mut self, line: impl AsRef<str>) {
        println!("{}", line.as_ref());
        self.text.push_str(line.as_ref());
        self.text.push('\n');
    }

    /// A blank line and a heading.
    pub fn heading(&mut self, heading: impl AsRef<str>) {
        self.line("");
        self.line(heading);
    }

    /// A table: the first column is words, the others are numbers.
    pub fn table(&mut self, head: &[&str], rows: &[Vec<String>]) {
        for line in table(head, rows) {
            self.line(line);
        }
    }

    /// Keeps the text.
    pub fn write(&self, path: &Path) -> Result<()> {
        fs::write(path, &self.text).with_context(|| path.display().to_string())
    }

    /// When, on what, how.
    pub fn header(&mut self, cores: usize, pinned: &str, rounds: usize) {
        self.line("gake bench");
        self.line(format!("date     {}", said("date", &["-u", "+%Y-%m-%d %H:%M UTC"])));
        self.line(format!("commit   {}", said("git", &["describe", "--always", "--dirty"])));
        self.line(format!("kernel   {}", said("uname", &["-sr"])));
        self.line(format!("cpu      {cores} × {}", cpu_model()));
        self.line(format!("pinned   {pinned}"));
        self.line(format!("rounds   {rounds}, the order rotated in each"));
        let load = load();
        self.line(format!("load     {load:.2} in the minute before"));
        if load > BUSY {
            self.line("warning  the machine was busy: times are worse than the tools are");
        }
    }

    /// Who is measured, in which version, and who is not.
    pub fn tools(&mut self, peers: &Peers) {
        let nginx = gake_testkit::find("nginx").unwrap_or_else(|| "nginx".into());
        self.line(format!("server   {}", said(&nginx.to_string_lossy(), &["-v"])));
        for peer in &peers.have {
            self.line(format!("tool     {}: {}", peer.tool.name(), peer.version));
        }
        for (tool, why) in &peers.absent {
            self.line(format!("tool     {}: not available: {why}", tool.name()));
        }
    }
}

/// Today, as the kept file is named.
pub fn today() -> String {
    said("date", &["-u", "+%F"])
}

/// The first line that a command says.
fn said(program: &str, args: &[&str]) -> String {
    let root = xtask::workspace::root();
    let output = Command::new(program).args(args).current_dir(root).output();
    let text = output.map(|output| [output.stdout, output.stderr].concat()).unwrap_or_default();
    let line = String::from_utf8_lossy(&text).lines().next().unwrap_or("unknown").to_owned();
    line.trim().to_owned()
}

/// The load average of the last minute.
fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().and_then(|load| load.parse().ok()).unwrap_or(f64::NAN)
}

fn cpu_model() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("model name"));
    line.map_or("unknown", |line| line.trim_start_matches([' ', '\t', ':'])).to_owned()
}

fn table(head: &[&str], rows: &[Vec<String>]) -> Vec<String> {
    let mut widths: Vec<usize> = head.iter().map(|cell| cell.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let head: Vec<String> = head.iter().map(|cell| (*cell).to_owned()).collect();
    std::iter::once(&head).chain(rows).map(|row| table_line(row, &widths)).collect()
}

fn table_line(row: &[String], widths: &[usize]) -> String {
    let mut line = String::from(" ");
    for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
        // Writing to a string cannot fail.
        let _ = match column {
            0 => write!(line, " {cell:<width$}"),
            _ => write!(line, "  {cell:>width$}"),
        };
    }
    line.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let rows =
            [vec!["wrk".to_owned(), "8.9".to_owned()], vec!["gake".to_owned(), "10.0".to_owned()]];
        assert_eq!(table(&["tool", "µs"], &rows), ["  tool    µs", "  wrk    8.9", "  gake  10.0"]);
    }
}
