//! Runs without a single success: the most frequent cause, and advice.

use gake_core::record::{Fault, Run};
use gake_text::units;

use crate::advice;

/// Why no request of a run succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NothingOk {
    /// The most frequent end of a request: a fault, a status, or the end of the run.
    pub cause: String,
    /// One clause of advice.
    pub advice: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestEnd {
    Fault(Fault),
    Status(u16),
    Body,
    Unfinished,
}

impl RequestEnd {
    fn name(self) -> String {
        match self {
            Self::Fault(fault) => fault.in_words(),
            Self::Status(status) => format!("status {status}"),
            Self::Body => "no body matched --expect-body".to_owned(),
            Self::Unfinished => "no response before the run ended".to_owned(),
        }
    }

    /// Advice on the end of requests to `target`.
    fn advice(self, target: &str) -> &'static str {
        let is_plain = target.starts_with("http://") || target.starts_with("ws://");
        match self {
            Self::Fault(Fault::Malformed(_) | Fault::ClosedEarly(_) | Fault::Reset)
            | Self::Status(400)
                if is_plain =>
            {
                PLAIN_TO_TLS
            }
            Self::Fault(fault) => advice(fault),
            Self::Status(status) => advice_on(status),
            Self::Body => "compare with curl --compressed, or show the bodies with --body-errors",
            Self::Unfinished => "does the server respond at all? try one request with curl -v",
        }
    }
}

impl NothingOk {
    /// `Some` when requests were started and none ended ok.
    #[must_use]
    pub fn of(run: &Run) -> Option<Self> {
        let counts = &run.tally.counts;
        if counts.begun() == 0 || counts.ok > 0 {
            return None;
        }
        let faults =
            run.tally.faults().iter().map(|&(fault, count)| (RequestEnd::Fault(fault), count));
        let statuses = run.tally.statuses().iter();
        // Responses with a wrong body have an expected status.
        let expect = &run.plan.expect;
        let statuses = statuses.filter(|(status, _)| !expect.accepts(*status));
        let statuses = statuses.map(|&(status, count)| (RequestEnd::Status(status), count));
        let others =
            [(RequestEnd::Unfinished, counts.unfinished), (RequestEnd::Body, counts.wrong_bodies)];
        let all = faults.chain(statuses).chain(others);
        let (most, count) = all.max_by_key(|(_, count)| *count)?;
        let mut cause = most.name();
        if count < counts.begun() {
            let (count, all) = (units::count(count), units::count(counts.begun()));
            cause.push_str(&format!(" ({count} of {all})"));
        }
        Some(Self { cause, advice: most.advice(&run.plan.target) })
    }
}

/// Servers respond in different ways to plain HTTP on a TLS port: with 400, a TLS alert, a close.
const PLAIN_TO_TLS: &str = "does the port expect HTTPS? then use https://; otherwise look at the server's log, and \
                            compare with curl -v";

fn advice_on(status: u16) -> &'static str {
    match status {
        100..=299 => "--expect does not include this status",
        300..=399 => "load the final URL, or follow redirects with --max-redirs N",
        401 | 403 | 407 => "give credentials: --user NAME:PASSWORD, or -H 'Authorization: ...'",
        404 | 410 => "check the path; curl -i the URL",
        405 => "check the method (-X)",
        429 => "the server limits the rate of this client: lower the load, or lift the limit",
        400..=499 => {
            "the server rejects the request: compare it with curl -v; --expect sets the statuses \
             that are ok"
        }
        502 | 504 => {
            "a gateway or proxy got no valid response from the server behind it: look at its log"
        }
        503 => {
            "the server, or a balancer in front of it, is overloaded or not ready: look at its log, and wait if it sends Retry-After"
        }
        _ => "look at the server's log; curl -i the URL",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MS, RunBuilder};

    #[test]
    fn one_success_is_enough() {
        let of = |sample: RunBuilder| NothingOk::of(&sample.run());
        assert_eq!(of(RunBuilder::of(1, MS).status(503, 1_000)), None);
        assert_eq!(of(RunBuilder::default()), None, "nothing was sent");
    }

    #[test]
    fn the_most_frequent_end_is_the_cause() {
        let of = |sample: RunBuilder| NothingOk::of(&sample.run()).unwrap();
        let refused = of(RunBuilder::default().fault(Fault::ConnectRefused, 7));
        assert_eq!(
            (refused.cause.as_str(), refused.advice),
            ("connection refused", advice(Fault::ConnectRefused))
        );
        let mixed = of(RunBuilder::default().status(404, 1_200).fault(Fault::Reset, 34));
        assert_eq!(mixed.cause, "status 404 (1,200 of 1,234)");
        assert_eq!(mixed.advice, advice_on(404));
        assert_eq!(of(RunBuilder::default().status(503, 2)).cause, "status 503");
    }

    #[test]
    fn plain_http_on_a_tls_port_is_a_question_of_the_scheme() {
        let of = |target: &str, builder: RunBuilder| {
            let mut run = builder.run();
            run.plan.target = target.to_owned();
            NothingOk::of(&run).unwrap().advice
        };
        let status = || RunBuilder::default().status(400, 3);
        assert_eq!(of("http://h/", status()), PLAIN_TO_TLS);
        assert_eq!(of("https://h/", status()), advice_on(400));
        let fault = |fault| RunBuilder::default().fault(fault, 3);
        assert_eq!(of("http://h/", fault(Fault::Malformed("not_http"))), PLAIN_TO_TLS);
        let not_tls = Fault::Tls("the peer does not speak TLS");
        assert!(of("https://h/", fault(not_tls)).contains("http://"));
    }

    #[test]
    fn unfinished_requests_are_not_failures() {
        let mut run = RunBuilder::default().status(500, 3).run();
        run.tally.counts.sent += 4;
        run.tally.counts.unfinished += 4;
        let found = NothingOk::of(&run).unwrap();
        assert_eq!(found.cause, "no response before the run ended (4 of 7)");
    }
}
