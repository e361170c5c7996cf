//! The page, the events, the controls.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gake_listen::{Events, NextEvent, Reply, Request, Site};

use super::board::{Board, ViewerGuard};
use super::{LiveControls, PageFrame};

/// Longest pause between events, to notice viewers that are gone.
const SILENCE: Duration = Duration::from_secs(15);

/// The rates allowed, in percent of the plan's.
const PERCENT: RangeInclusive<u16> = 1..=1_000;

/// Security headers of every response: no caching, no sniffing, no embedding or reading by other
/// sites.
const GUARDS: &str = "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\
                      X-Frame-Options: DENY\r\nCross-Origin-Resource-Policy: same-origin\r\n\
                      Referrer-Policy: no-referrer\r\n";

#[derive(Debug)]
pub(super) struct LiveSite {
    pub(super) frame: PageFrame,
    /// The host it was configured to listen at.
    pub(super) host: String,
    pub(super) board: Board,
    pub(super) controls: Option<LiveControls>,
}

/// The site as its server holds it.
pub(super) struct ServedSite(pub(super) Arc<LiveSite>);

impl Site for ServedSite {
    fn accepts(&self, request: &Request<'_>) -> bool {
        request.is_for(&self.0.host)
    }

    fn reply(&self, request: &Request<'_>) -> Reply {
        let site = &self.0;
        match (request.method, request.path) {
            ("GET", "/") => {
                let data = site.board.newest().data;
                let part = |text: &str| Arc::from(text.as_bytes());
                let page = vec![part(&site.frame.before), data, part(&site.frame.after)];
                Reply::new("200 OK", "text/html; charset=utf-8", GUARDS, page)
            }
            ("GET", "/events") => Reply::events(GUARDS, LiveEvents::new(site)),
            ("POST", path @ ("/stop" | "/rate")) => match &site.controls {
                Some(controls) if request.is_from_page(&controls.token) => {
                    let (status, message) = if path == "/stop" {
                        (controls.stop)();
                        ("202 Accepted", "the run is being stopped\n".to_owned())
                    } else {
                        set_rate(controls, request.query)
                    };
                    Reply::text(status, GUARDS, message)
                }
                _ => Reply::text("403 Forbidden", GUARDS, "wrong or missing token\n"),
            },
            _ => Reply::text("404 Not Found", GUARDS, "the page is at /\n"),
        }
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

/// Every version that is the newest when the viewer is ready, up to the last.
struct LiveEvents {
    site: Arc<LiveSite>,
    _viewer: ViewerGuard,
    /// The number of the version sent last.
    sent: u64,
    sent_at: Instant,
}

impl LiveEvents {
    fn new(site: &Arc<LiveSite>) -> Self {
        let (site, viewer) = (Arc::clone(site), site.board.follow());
        Self { site, _viewer: viewer, sent: 0, sent_at: Instant::now() }
    }
}

impl Events for LiveEvents {
    fn next(&mut self, now: Instant) -> NextEvent {
        let text = |text: &str| Arc::from(text.as_bytes());
        let Some(version) = self.site.board.after(self.sent) else {
            if now.duration_since(self.sent_at) < SILENCE {
                return NextEvent::Nothing;
            }
            self.sent_at = now;
            return NextEvent::Some(vec![text(":\n\n")]);
        };
        (self.sent, self.sent_at) = (version.number, now);
        let name = if version.is_last { "end" } else { "run" };
        let before = format!("retry: 1000\nevent: {name}\ndata: ");
        let event = vec![text(&before), version.data, text("\n\n")];
        if version.is_last { NextEvent::Last(event) } else { NextEvent::Some(event) }
    }
}
