//! Handles one visitor: the page, the events, the controls.

use std::io;
use std::net::TcpStream;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::board::Board;
use super::{LiveControls, PageFrame};
use crate::visitor::{VisitorHead, read_head, respond, send};

/// Time limit for a request, and for a response or event.
const PATIENCE: Duration = Duration::from_secs(5);

/// Longest pause between events, to notice viewers that are gone.
const SILENCE: Duration = Duration::from_secs(15);

/// The rates allowed, in percent of the plan's.
const PERCENT: RangeInclusive<u16> = 1..=1_000;

/// Security headers of every response: no caching, no sniffing, no embedding or reading by other
/// sites.
const GUARDS: &str = "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\
                      X-Frame-Options: DENY\r\nCross-Origin-Resource-Policy: same-origin\r\n\
                      Referrer-Policy: no-referrer\r\nConnection: close\r\n";

#[derive(Debug)]
pub(super) struct LiveSite {
    pub(super) frame: PageFrame,
    /// The host it was configured to listen at.
    pub(super) host: String,
    pub(super) board: Board,
    pub(super) controls: Option<LiveControls>,
}

pub(super) fn visit(mut visitor: TcpStream, site: &LiveSite) -> io::Result<()> {
    visitor.set_nodelay(true)?;
    let head = read_head(&mut visitor, PATIENCE)?;
    let Some(request) = VisitorHead::parse(&head) else {
        return text(&mut visitor, "400 Bad Request", "not an HTTP/1 request\n");
    };
    if !request.is_for(&site.host) {
        return text(&mut visitor, "421 Misdirected Request", "unknown host\n");
    }
    match (request.method, request.path) {
        ("GET", "/") => page(&mut visitor, site),
        ("GET", "/events") => events(&mut visitor, &site.board),
        ("POST", path @ ("/stop" | "/rate")) => match &site.controls {
            Some(controls) if request.is_allowed(&controls.token) => {
                let (status, message) = if path == "/stop" {
                    (controls.stop)();
                    ("202 Accepted", "the run is being stopped\n".to_owned())
                } else {
                    set_rate(controls, request.query)
                };
                text(&mut visitor, status, &message)
            }
            _ => text(&mut visitor, "403 Forbidden", "wrong or missing token\n"),
        },
        _ => text(&mut visitor, "404 Not Found", "the page is at /\n"),
    }
}

/// Sets the rate given in a query; returns the status and a message.
fn set_rate(controls: &LiveControls, query: &str) -> (&'static str, String) {
    let percent = query.strip_prefix("percent=").and_then(|text| text.parse::<u16>().ok());
    let Some(percent) = percent.filter(|percent| PERCENT.contains(percent)) else {
        let (least, most) = (PERCENT.start(), PERCENT.end());
        let message = format!("write /rate?percent=N with N from {least} to {most}\n");
        return ("400 Bad Request", message);
    };
    let Some(set) = &controls.rate else {
        return ("409 Conflict", "the rate of this run cannot be changed\n".to_owned());
    };
    match set(f64::from(percent)) {
        Ok(()) => ("202 Accepted", format!("the rate is being set to {percent} % of the plan's\n")),
        Err(why) => ("409 Conflict", format!("{why}\n")),
    }
}

fn page(visitor: &mut TcpStream, site: &LiveSite) -> io::Result<()> {
    let data = site.board.newest().data;
    let page = [&site.frame.before, &*data, &site.frame.after].concat();
    respond_guarded(visitor, "200 OK", "text/html; charset=utf-8", &page)
}

/// Sends the newest version whenever the viewer is ready, up to the last.
fn events(visitor: &mut TcpStream, board: &Board) -> io::Result<()> {
    let _viewer = board.follow();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n{GUARDS}\r\nretry: 1000\n\n"
    );
    send(visitor, head.as_bytes(), PATIENCE)?;
    let mut sent = 0;
    loop {
        let event = match board.after(sent, SILENCE)? {
            None => ":\n\n".to_owned(),
            Some(version) => {
                sent = version.number;
                let name = if version.is_last { "end" } else { "run" };
                let event = format!("event: {name}\ndata: {}\n\n", version.data);
                if version.is_last {
                    return send(visitor, event.as_bytes(), PATIENCE);
                }
                event
            }
        };
        send(visitor, event.as_bytes(), PATIENCE)?;
    }
}

fn text(visitor: &mut TcpStream, status: &str, text: &str) -> io::Result<()> {
    respond_guarded(visitor, status, "text/plain; charset=utf-8", text)
}

fn respond_guarded(
    visitor: &mut TcpStream,
    status: &str,
    kind: &str,
    body: &str,
) -> io::Result<()> {
    respond(visitor, status, kind, GUARDS, body.as_bytes(), PATIENCE)
}
