//! Sending a request: its redirects, its cookies, its samples.

use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

use gake_codec::http1::{ResponseHead, Version, Visitor};
use gake_core::clock::{Clock, Nanos, nanos};
use gake_core::record::{End, Exchange, Fault, Phase};
use gake_wire::{Client, ConnectionFacts, Deadline, ExchangeVisitor, PreparedRequest};

use super::ask::{Ask, Authentication, BodyKind};
use super::codes;
use super::credentials::{has_credentials, shown_url, without_credentials, without_password};
use super::debug;
use super::facts::{Instants, ResponseFacts, Timings};
use super::go_cookies;
use super::go_url::{BAD_URL, checked};
use super::headers::HeaderList;
use super::hop::{AUTHORIZATION, Hop, join_cookies};
use super::login::Login;
use super::samples::{note, note_cut};
use crate::bodies::Body;
use crate::test::LogLevel;
use crate::user::clock::UserClock;
use crate::user::requests::{KnownRequest, RequestKey};
use crate::user::vu::Vu;

/// How long a connection may take to open.
pub(super) const DIAL: Duration = Duration::from_secs(30);

/// Sends what a script asked for and follows its redirects. A script sees the first request.
pub(super) async fn send(vu: &Vu, ask: &Ask) -> ResponseFacts {
    let mut first = None;
    let mut response = follow(vu, ask, &mut first).await;
    response.asked_method = ask.method.clone();
    response.sent_body.clone_from(&ask.plain_body);
    if let Some(first) = first {
        response.sent_headers = first;
    }
    response
}

/// The headers of a request.
type Headers = Rc<Vec<(String, String)>>;

/// Follows the redirects of a request; `first` gets the headers of the first one.
async fn follow(vu: &Vu, ask: &Ask, first: &mut Option<Headers>) -> ResponseFacts {
    let Some(client) = vu.client.borrow().clone() else {
        return ResponseFacts::failed(ask, 1000, "there is no connection here".to_owned());
    };
    let known = match ask.body {
        None => vu.requests.get(&key(ask)),
        Some(_) => None,
    };
    let url = match &known {
        Some(known) => Rc::clone(&known.url),
        None => match checked(&ask.url) {
            Ok(url) => Rc::new(url),
            Err((code, error)) => return refuse(vu, ask, code, error),
        },
    };
    if let Some(pause) = vu.test.pace() {
        vu.clock.sleep_until(vu.now().saturating_add(nanos(pause))).await;
    }
    let start = vu.now();
    let end = start.saturating_add(nanos(ask.timeout));
    let mut hop = Hop {
        method: ask.method.clone(),
        headers: Rc::clone(&ask.headers),
        body: ask.body.clone(),
        url,
        known: known.map(|known| Rc::clone(&known.prepared)),
        number: 0,
        text: Rc::clone(&ask.url),
        referer: None,
        has_left: false,
        has_no_body: false,
    };
    let origin = Rc::clone(&hop.url);
    let mut login = Login::new(ask.authentication, &mut hop.url);
    loop {
        let mut response = hop.run(vu, &client, ask, end, login.may_be_challenged()).await;
        first.get_or_insert_with(|| Rc::clone(&response.sent_headers));
        while let Some(answer) = login.answer(&response, &hop.method, &hop.url) {
            Rc::make_mut(&mut hop.headers).push((AUTHORIZATION.to_owned(), answer));
            hop.known = None;
            response = hop.run(vu, &client, ask, end, false).await;
            if ask.authentication == Authentication::Ntlm {
                // It proves a connection, and no other request.
                Rc::make_mut(&mut hop.headers).pop();
                let sent = Rc::make_mut(&mut response.sent_headers);
                sent.retain(|(name, _)| name != AUTHORIZATION);
            }
        }
        let Some(next) = hop.next(&response, &origin) else { return response };
        if hop.number >= ask.redirects {
            if !ask.bounds_redirects {
                let message = format!(
                    "Stopped after {} redirects and returned the redirection; pass {{ redirects: n \
                     }} in request params or set global maxRedirects to silence this",
                    ask.redirects + 1
                );
                vu.test.log(LogLevel::Warning, &message, &[("url", &*ask.url)]);
            }
            return response;
        }
        match next {
            Ok(next) => {
                hop = next;
                login.next_hop();
            }
            Err(next) => {
                let scheme = next.scheme();
                let error = format!("unsupported protocol scheme {scheme:?}");
                let shown = shown_url(&next);
                let failed = ResponseFacts {
                    url: next.as_str().into(),
                    ..ResponseFacts::failed(ask, 1000, error.clone())
                };
                return reject(vu, ask, &shown, failed, &error);
            }
        }
    }
}

/// What a request that only the arguments make is known by.
fn key(ask: &Ask) -> RequestKey<'_> {
    RequestKey { method: &ask.method, url: &ask.url, headers: &ask.headers }
}

/// A request that cannot even be tried: it counts as one that failed.
fn refuse(vu: &Vu, ask: &Ask, code: u32, error: String) -> ResponseFacts {
    let shown = without_credentials(&ask.url);
    let url = if code == BAD_URL { Rc::default() } else { Rc::clone(&ask.url) };
    let response = ResponseFacts { url, ..ResponseFacts::failed(ask, code, error) };
    // k6 counts one whose URL can be read, whatever its scheme.
    if code == BAD_URL {
        warn_plainly(vu, ask, &response.error);
        return response;
    }
    let error = response.error.clone();
    reject(vu, ask, &shown, response, &error)
}

/// Counts a request that cannot be sent as one that failed; `why` is what the log says.
fn reject(
    vu: &Vu,
    ask: &Ask,
    shown: &str,
    mut response: ResponseFacts,
    why: &str,
) -> ResponseFacts {
    let exchange = Exchange::faulted(vu.now(), Fault::Malformed("request"));
    note(vu, ask, shown, &response, &exchange);
    response.cause = told(&ask.method, &without_password(&response.url), why);
    warn_plainly(vu, ask, &response.cause);
    response
}

/// Collects a response.
struct Collector {
    connection: ConnectionFacts,
    version: Option<Version>,
    reason: String,
    headers: HeaderList,
    body: Body,
    keep: bool,
    clock: UserClock,
    /// When the request was sent.
    sent: Option<Nanos>,
}

impl Collector {
    fn new(vu: &Vu, keep: bool) -> Self {
        Self {
            connection: ConnectionFacts::default(),
            version: None,
            reason: String::new(),
            headers: HeaderList::default(),
            body: Body::new(&vu.bodies),
            keep,
            clock: vu.clock.clone(),
            sent: None,
        }
    }
}

impl Visitor for Collector {
    fn head(&mut self, head: &ResponseHead<'_>) {
        self.version = Some(head.version);
        self.reason = head.reason.to_owned();
        self.headers = HeaderList::with_room(head.headers.len());
        for header in head.headers {
            self.headers.push(header.name, header.value);
        }
        self.body.clear();
    }

    fn body(&mut self, bytes: &[u8]) {
        if self.keep {
            self.body.extend(bytes);
        }
    }
}

impl ExchangeVisitor for Collector {
    fn connected(&mut self, facts: &ConnectionFacts) {
        self.connection = *facts;
    }

    fn sent(&mut self) {
        self.sent = Some(self.clock.now());
    }
}

/// A request under way: noted as unfinished when it is dropped before its end.
struct Flight<'a> {
    vu: &'a Vu,
    client: &'a Client<UserClock>,
    ask: &'a Ask,
    url: &'a str,
    start: Nanos,
    exchange: Exchange,
    is_over: bool,
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        self.client.end(&mut self.exchange, End::Unfinished);
        if self.exchange.bytes_out > 0 {
            note_cut(self.vu, self.ask, self.url, &self.exchange);
        }
        self.vu.notes.exchange(self.start, self.exchange.clone());
    }
}

impl Hop {
    async fn run(
        &self,
        vu: &Vu,
        client: &Client<UserClock>,
        ask: &Ask,
        end: Nanos,
        may_be_challenged: bool,
    ) -> ResponseFacts {
        let cookies = self.cookies(ask);
        let mut headers = Rc::clone(&self.headers);
        if !cookies.is_empty() {
            join_cookies(Rc::make_mut(&mut headers), &cookies);
        }
        if let Some(why) = self.invalid(&headers) {
            return self.stopped(vu, ask, (1000, &why), &why);
        }
        let shown = self.shown();
        let settings = vu.test.settings();
        let host = self.url.host_str().unwrap_or_default();
        if let Some(blocked) = settings.blocked.host(host) {
            return self.stopped(vu, ask, (blocked.code, blocked.error), &blocked.told);
        }
        let start = vu.now();
        let exchange = Exchange::unfinished(start);
        let mut flight = Flight { vu, client, ask, url: &shown, start, exchange, is_over: false };
        let keep = ask.kind != BodyKind::Dropped;
        let mut collector = Collector::new(vu, keep);
        let mut ip = None;
        let debug_id = settings.http_debug.map(|_| debug::request_id()).unwrap_or_default();
        let prepared = match &self.known {
            Some(known) if cookies.is_empty() => Ok(Rc::clone(known)),
            _ => self.prepare(vu, client, ask, &headers).await,
        };
        match prepared {
            Ok(prepared) => {
                if settings.blocked.looks_at_addresses()
                    && let addresses = client.network().addresses(&prepared)
                    && let Some(blocked) = settings.blocked.address(&addresses)
                {
                    flight.is_over = true;
                    return self.stopped(vu, ask, (blocked.code, blocked.error), &blocked.told);
                }
                ip = addresses_of(client, &prepared);
                if let Some(parts) = settings.http_debug {
                    debug::request(vu, parts, &self.request(&headers), &self.url, &debug_id);
                }
                let deadline = Deadline::within(start, Duration::from_nanos(end - start.min(end)));
                let connect = deadline.connect.min(nanos(DIAL));
                let deadline = Deadline { connect, ..deadline };
                let now = vu.now();
                let exchange = &mut flight.exchange;
                *exchange = Exchange::unfinished(now);
                client.exchange(&prepared, now, deadline, &mut collector, exchange).await;
            }
            Err(fault) => client.end(&mut flight.exchange, End::Fault(fault)),
        }
        flight.is_over = true;
        let instants = Instants { asked: start, sent: collector.sent, received: vu.now() };
        let parts = (collector, instants);
        let mut response = self.response(ask, headers, parts, &flight.exchange);
        if response.refuse_body() {
            flight.exchange.end = End::Fault(Fault::NoMemory);
        }
        response.is_challenge = may_be_challenged && response.status == 401;
        if let Some(parts) = settings.http_debug {
            debug::response(vu, parts, &response, &debug_id);
        }
        self.keep_cookies(ask, &response);
        note(vu, ask, &shown, &response, &flight.exchange);
        vu.notes.exchange(start, flight.exchange.clone());
        if response.status == 0 {
            let why = match flight.exchange.end {
                End::Fault(fault) if response.error_code != 1701 => {
                    codes::told(fault, &self.url, ip, &response.error)
                }
                _ => response.error.clone(),
            };
            response.cause = told(&ask.method, &without_password(&response.url), &why);
            warn_plainly(vu, ask, &response.cause);
        }
        response
    }

    /// Prepares it. One that only the arguments make is remembered.
    async fn prepare(
        &self,
        vu: &Vu,
        client: &Client<UserClock>,
        ask: &Ask,
        headers: &Rc<Vec<(String, String)>>,
    ) -> Result<Rc<PreparedRequest>, Fault> {
        let prepared = Rc::new(client.prepare(&self.request(headers)).await?);
        // Credentials in the URL are taken out of it, or are not for every request.
        let is_plain = ask.authentication == Authentication::Basic && !has_credentials(&self.url);
        let is_as_asked = self.number == 0 && self.body.is_none() && is_plain;
        if is_as_asked && Rc::ptr_eq(headers, &ask.headers) {
            let (url, prepared) = (Rc::clone(&self.url), Rc::clone(&prepared));
            vu.requests.put(KnownRequest::new(&key(ask), url, prepared));
        }
        Ok(prepared)
    }

    /// What comes of a request that is not sent, as one that the options block: it counts as one
    /// that failed.
    fn stopped(&self, vu: &Vu, ask: &Ask, (code, error): (u32, &str), why: &str) -> ResponseFacts {
        let response = ResponseFacts {
            url: self.url_text(),
            method: self.method.clone(),
            ..ResponseFacts::failed(ask, code, error.to_owned())
        };
        reject(vu, ask, &self.shown(), response, why)
    }

    fn response(
        &self,
        ask: &Ask,
        headers: Rc<Vec<(String, String)>>,
        (collector, instants): (Collector, Instants),
        exchange: &Exchange,
    ) -> ResponseFacts {
        let mut response = ResponseFacts {
            url: self.url_text(),
            method: self.method.clone(),
            sent_headers: headers,
            ..ResponseFacts::failed(ask, 0, String::new())
        };
        match exchange.end {
            End::Answered(answer) => {
                response.status = answer.status;
                let connection = collector.connection;
                response.proto = match collector.version {
                    _ if connection.is_http2 => "HTTP/2.0",
                    Some(Version::Http10) => "HTTP/1.0",
                    _ => "HTTP/1.1",
                };
                response.reason = match connection.is_http2 {
                    true => codes::phrase(answer.status).to_owned(),
                    false => collector.reason,
                };
                response.headers = collector.headers;
                let is_bodyless = matches!(answer.status, 204 | 304);
                response.body = (collector.keep && !is_bodyless).then_some(collector.body);
                response.error_code = codes::of_status(answer.status);
                response.timings = Timings::of(exchange, instants);
            }
            End::Fault(fault) => {
                // The bound on opening is one of TCP: what hangs after it is the request.
                let is_open = exchange.connect.is_some();
                let fault = match fault {
                    Fault::ConnectTimeout if is_open => Fault::Timeout(Phase::Connect),
                    fault => fault,
                };
                (response.error_code, response.error) = codes::of(fault);
                response.timings = Timings::of(exchange, instants);
            }
            End::Unfinished => {}
        }
        response.decode();
        if response.status > 0 {
            response.peer = collector.connection.peer;
            response.tls = collector.connection.tls;
        }
        response
    }

    fn keep_cookies(&self, ask: &Ask, response: &ResponseFacts) {
        let set =
            response.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie"));
        for (_, value) in set {
            go_cookies::keep(&mut ask.jar.borrow_mut(), value, &self.url);
        }
    }
}

/// The address that a prepared request goes to: of several one of IPv4 first, as k6 prefers it.
fn addresses_of(client: &Client<UserClock>, prepared: &PreparedRequest) -> Option<IpAddr> {
    let addresses = client.network().addresses(prepared);
    addresses.iter().find(|ip| ip.is_ipv4()).or(addresses.first()).copied()
}

/// An error with its request, as Go tells it.
fn told(method: &str, url: &str, error: &str) -> String {
    let mut method = method.to_owned();
    if method.is_ascii()
        && let Some(rest) = method.get_mut(1..)
    {
        rest.make_ascii_lowercase();
    }
    format!("{method} \"{url}\": {error}")
}

fn warn_plainly(vu: &Vu, ask: &Ask, error: &str) {
    if !ask.throw {
        vu.test.log(LogLevel::Warning, "Request Failed", &[("error", error)]);
    }
}
