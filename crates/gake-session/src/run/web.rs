//! The live page of a run: its address, its controls, and the browser that shows it.

use std::net::IpAddr;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use gake_engine::Stop;
use gake_judge::Summary;
use gake_run::sink::LivePage;
use gake_run::{Interrupt, RateControl, ResolvedRun, Sink};
use gake_sinks::{LiveControls, RateSetter};

use crate::console::Console;
use crate::exit::Failure;
use crate::options::WebArgs;
use crate::random;

/// How long the end of a run waits for a browser that gake has opened.
const BROWSER: Duration = Duration::from_secs(10);

/// The live page, if it is requested.
#[derive(Debug)]
pub struct Web {
    page: Option<LivePage>,
    /// How long the end of the run waits for a first viewer.
    first: Duration,
}

/// What a viewer with the token can control.
#[derive(Debug, Clone, Copy)]
pub struct Controls<'a> {
    /// Ends the run.
    pub interrupt: &'a Interrupt,
    /// Changes the rate, if the run has one.
    pub rate: Option<&'a RateControl>,
}

impl Web {
    /// Listens, and prints the URL. Actions of viewers are printed on `log`.
    ///
    /// # Errors
    /// When it cannot listen, or this build lacks the page.
    pub fn start(
        args: &WebArgs,
        prepared: &ResolvedRun,
        controls: Controls<'_>,
        log: Option<Console>,
        console: &Console,
    ) -> Result<Self, Failure> {
        let mut web = Self { page: None, first: Duration::ZERO };
        let Some(address) = args.address() else { return Ok(web) };
        let token = if args.web_control { Some(token()?) } else { None };
        let rate = controls.rate.filter(|_| token.is_some()).cloned();
        let controls = token.clone().map(|token| controls.of_page(token, log));
        let page = LivePage::bind(address, prepared.objectives.clone(), controls, rate);
        let page = page.map_err(|why| Failure::could_not(format!("--web: {why}")))?;
        let bound = page.address();
        let is_local = match bound.ip() {
            IpAddr::V4(ip) => ip.is_loopback(),
            IpAddr::V6(ip) => ip.is_loopback(),
        };
        if !is_local {
            console.warn("--web: anyone who can reach this address can see the run");
        }
        // Browsers do not send the fragment, so the token reaches no server log.
        let fragment = token.map_or(String::new(), |token| format!("#token={token}"));
        let url = format!("http://{bound}/{fragment}");
        console.note(&format!("live page: {url}"));
        if args.web_open {
            match open(&url) {
                Ok(()) => web.first = BROWSER,
                Err(error) => console.warn(&format!("--web-open: xdg-open: {error}")),
            }
        }
        web.page = Some(page);
        Ok(web)
    }

    /// The sink that updates the page.
    pub fn sink(&self) -> Option<Box<dyn Sink>> {
        self.page.as_ref().map(LivePage::sink)
    }

    /// Turns the page into the report of the run.
    pub fn finish(self, summary: &Summary) {
        if let Some(page) = self.page {
            page.finish(summary, self.first);
        }
    }
}

fn token() -> Result<String, Failure> {
    let bytes = random::bytes::<16>()
        .map_err(|error| Failure::could_not(format!("no token for --web-control: {error}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

impl Controls<'_> {
    /// Controls for viewers with `token`; actions are printed on `console`. Stopping drains, as a
    /// first SIGINT does.
    fn of_page(self, token: String, console: Option<Console>) -> LiveControls {
        let interrupt = self.interrupt.clone();
        let note = move |text: &str| {
            if let Some(console) = console {
                console.note(text);
            }
        };
        let stop = Box::new(move || {
            note("stopped from the live page: waiting for requests in flight");
            interrupt.stop(Stop::Drain);
        });
        let change = |rate: RateControl| -> RateSetter {
            Box::new(move |percent| {
                rate.change(percent / 100.0).map_err(|error| error.to_string())?;
                note(&format!("rate set to {percent} % of the plan from the live page"));
                Ok(())
            })
        };
        LiveControls { token, stop, rate: self.rate.cloned().map(change) }
    }
}

fn open(url: &str) -> std::io::Result<()> {
    let mut browser = Command::new("xdg-open");
    browser.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Ctrl-C in the terminal ends gake, not the browser.
    browser.process_group(0).spawn().map(drop)
}
