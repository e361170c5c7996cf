//! What is left of an output without places and times.

use std::path::Path;

use serde_json::{Map, Value};

/// A text without the folder of the script and the address of the server.
pub fn without_places(bytes: &[u8], script: &Path, url: &str) -> String {
    let folder = script.parent().unwrap().to_str().unwrap();
    let text = String::from_utf8_lossy(bytes);
    let host = url.trim_start_matches("http://");
    let text = text.replace(folder, "DIR").replace(url, "URL").replace(host, "HOST");
    // Under other names, too.
    let port = host.trim_start_matches(|c| c != ':');
    without_ports(&text.replace(port, ":PORT"))
}

/// A text in which the ports that the system gives out have no number.
fn without_ports(text: &str) -> String {
    const LOOPBACK: &str = "127.0.0.1:";
    let mut pieces = text.split(LOOPBACK);
    let mut masked = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let digits = piece.chars().take_while(char::is_ascii_digit).count();
        let port = if digits == 5 { "PORT" } else { &piece[..digits] };
        masked.push_str(&format!("{LOOPBACK}{port}{}", &piece[digits..]));
    }
    masked
}

/// A line of the log without its time, and positions in scripts to the line alone.
pub fn log_line(line: &str) -> Option<String> {
    if line.is_empty() {
        return None;
    }
    let line = match line.strip_prefix("time=\"") {
        Some(rest) => rest.split_once("\" ").map_or(line, |(_, rest)| rest),
        None => line,
    };
    Some(without_pointers(&without_engine(&without_columns(line))))
}

/// A line in which addresses of memory have no number.
fn without_pointers(line: &str) -> String {
    let mut pieces = line.split("{0x");
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let words = piece.split(' ').map(|word| match word.starts_with("0x") {
            true => "0x#",
            false => word,
        });
        let rest = words.skip(1).collect::<Vec<_>>().join(" ");
        text.push_str(&format!("{{0x# {rest}"));
    }
    text
}

/// A line without what tells of the engine: its own frames, and what it calls code outside of
/// functions and errors of the host.
fn without_engine(line: &str) -> String {
    const LOADING: &str = "could not initialize '";
    const LOADED: &str = "could not load JS test '";
    let mut line = line.replace("GoError: ", "Error: ").replace("<anonymous> (file:", "(file:");
    if let Some(at) = line.find(LOADING)
        && let Some(next) = line[at..].find(LOADED)
        && let Some(end) = line[at + next..].find("': ")
    {
        line.replace_range(at..at + next + end + 3, "");
    }
    let frames = line.split("\\n\\tat ").filter(|frame| !frame.starts_with("go.k6.io/"));
    let frames = frames.map(|frame| match frame.strip_prefix("(file:") {
        Some(rest) => format!("file:{}", rest.replacen(')', "", 1)),
        None => frame.to_owned(),
    });
    let line = frames.collect::<Vec<_>>().join("\\n\\tat ");
    // The frame of the host was the last one.
    if line.contains("\\n\\tat ") { line } else { line.replace("\\n\" ", "\" ") }
}

/// `s.js:3:97(17)` as `s.js:3`: engines count columns and instructions each in their own way.
fn without_columns(line: &str) -> String {
    let mut pieces = line.split(".js:");
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        text.push_str(".js:");
        let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).count();
        let end = digits(piece);
        text.push_str(&piece[..end]);
        let mut rest = &piece[end..];
        if let Some(column) = rest.strip_prefix(':').filter(|column| digits(column) > 0) {
            rest = &column[digits(column)..];
        }
        if let Some(at) = rest.strip_prefix('(').filter(|at| digits(at) > 0) {
            rest = at[digits(at)..].strip_prefix(')').unwrap_or(rest);
        }
        text.push_str(rest);
    }
    text
}

/// The lines of a summary: without dots and blanks that only fill, and without figures of time.
pub fn printed(text: &str) -> Vec<String> {
    let lines = text.lines().map(printed_line);
    let mut lines: Vec<String> = lines.filter(|line| !line.is_empty()).collect();
    // The order of checks is chance where several users make them.
    lines.sort();
    lines
}

fn printed_line(line: &str) -> String {
    // What users there are when a second begins is chance.
    if line.trim_start().starts_with("vus") {
        return "vus".to_owned();
    }
    let sizes = ["data_sent", "data_received"];
    if let Some(name) = sizes.into_iter().find(|name| line.trim_start().starts_with(name)) {
        return name.to_owned();
    }
    let words: Vec<String> = line.split_whitespace().map(word).collect();
    words.join(" ")
}

fn word(word: &str) -> String {
    let dots = word.trim_end_matches(':').trim_end_matches('.');
    if word.ends_with(':') && word.contains("..") {
        return format!("{dots}:");
    }
    let (name, figure) = word.split_once('=').unwrap_or(("", word));
    let number = figure.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = &figure[number.len()..];
    let is_number =
        !number.is_empty() && number.chars().all(|c| c.is_ascii_digit() || "-.hm".contains(c));
    if is_number && ["ns", "µs", "ms", "s", "/s"].contains(&unit) {
        let equals = if name.is_empty() { "" } else { "=" };
        return format!("{name}{equals}#{unit}")
            .replace("µs", "s")
            .replace("ms", "s")
            .replace("ns", "s");
    }
    word.to_owned()
}

/// Metrics whose values are no matter of the script.
fn is_measured(name: &str) -> bool {
    let timed = [
        "http_req_",
        "iteration_duration",
        "group_duration",
        "vus",
        "data_",
        "ws_connecting",
        "ws_session_duration",
        "ws_ping",
        "grpc_req_duration",
    ];
    name != "http_req_failed" && timed.iter().any(|prefix| name.starts_with(prefix))
}

/// What of a metric is the same in each run.
pub fn metric(name: &str, figures: &Value) -> (String, Value) {
    let figures = figures.as_object().cloned().unwrap_or_default();
    let is_rate = figures.contains_key("passes");
    let is_kept = |key: &str| match key {
        "thresholds" => true,
        "count" => !name.starts_with("data_"),
        // Of a counter, it is a matter of time.
        "rate" => false,
        _ => is_rate || !is_measured(name),
    };
    let kept: Map<String, Value> = figures.into_iter().filter(|(key, _)| is_kept(key)).collect();
    (name.to_owned(), Value::Object(kept))
}
