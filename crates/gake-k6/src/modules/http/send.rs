//! Sending a request: its redirects, its cookies, its samples.

use std::borrow::Cow;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use gake_core::clock::{Clock, Nanos, nanos};
use gake_core::record::{End, Exchange, Fault};
use gake_wire::http1::{ResponseHead, Version, Visitor};
use gake_wire::{Client, ConnectionFacts, Deadline, HttpRequest, PreparedRequest};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use url::{Host, Url};

use super::ask::{Ask, Authentication, BodyKind};
use super::codes;
use super::cookies::values_for;
use super::credentials::{self, has_credentials, shown_url, without_credentials, without_password};
use super::debug;
use super::facts::{Instants, ResponseFacts, Timings};
use super::go_cookies;
use super::go_url::{BAD_URL, checked, host_of, sent};
use super::headers::HeaderList;
use super::request_headers;
use super::login::Login;
use super::samples::{note, note_cut};
use crate::bodies::Body;
use crate::test::LogLevel;
use crate::user::clock::UserClock;
use crate::user::requests::{KnownRequest, RequestKey};
use crate::user::vu::Vu;

const AUTHORIZATION: &str = "Authorization";
const REFERER: &str = "Referer";
const COOKIE: &str = "Cookie";

/// Headers that tell who sends a request: not for other servers than the first.
const SECRET: [&str; 6] = [
    AUTHORIZATION,
    "Www-Authenticate",
    COOKIE,
    "Cookie2",
    "Proxy-Authorization",
    "Proxy-Authenticate",
];

/// Headers of a body, which go with it.
const OF_BODY: [&str; 4] =
    ["Content-Encoding", "Content-Language", "Content-Location", "Content-Type"];

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

/// One request on the wire.
struct Hop {
    method: Cow<'static, str>,
    url: Rc<Url>,
    headers: Rc<Vec<(String, String)>>,
    body: Option<Arc<[u8]>>,
    /// What is sent, if it has been prepared before and no cookies join it.
    known: Option<Rc<PreparedRequest>>,
    number: u32,
    /// The URL as a script or a server wrote it.
    text: Rc<str>,
    /// The URL that led to it.
    referer: Option<String>,
    /// Whether redirects have left the first server.
    has_left: bool,
    /// Whether redirects have dropped the body.
    has_no_body: bool,
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
    fn connected(&mut self, facts: &ConnectionFacts) {
        self.connection = *facts;
    }

    fn sent(&mut self) {
        self.sent = Some(self.clock.now());
    }

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

    /// Why it cannot be sent, in Go's words.
    fn invalid(&self, headers: &[(String, String)]) -> Option<String> {
        request_headers::invalid(headers).or_else(|| {
            let is_method = !self.method.is_empty() && request_headers::is_token(&self.method);
            (!is_method).then(|| format!("net/http: invalid method {:?}", self.method))
        })
    }

    /// What it says, with these headers.
    fn request(&self, headers: &[(String, String)]) -> HttpRequest {
        let url = match self.number {
            0 => sent(&self.text, &self.url),
            // Where a redirect leads is resolved.
            _ => Cow::Borrowed(self.url.as_str()),
        };
        let length = self.body.as_ref().map(|body| body.len());
        let host = host_of(&self.text, &self.url);
        let mut headers = Cow::Borrowed(headers);
        // As in Go a user without a password has an empty one.
        if has_credentials(&self.url) && request_headers::get(&headers, AUTHORIZATION).is_none() {
            headers.to_mut().push((AUTHORIZATION.to_owned(), basic(&self.url)));
        }
        if let Some(referer) = &self.referer {
            headers.to_mut().push((REFERER.to_owned(), referer.clone()));
        }
        let headers = request_headers::written(&headers, (&self.method, length), &host);
        let body = self.body.clone();
        HttpRequest { headers, body, ..HttpRequest::new(&*self.method, url) }
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

    /// Its URL, as a script sees it.
    fn url_text(&self) -> Rc<str> {
        match self.number {
            0 => Rc::clone(&self.text),
            _ => self.url.as_str().into(),
        }
    }

    /// Its URL, as it is tagged: without its credentials.
    fn shown(&self) -> Rc<str> {
        match self.number {
            0 => without_credentials(&self.text),
            _ => shown_url(&self.url).into(),
        }
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

    /// The cookies that it sends: the request's own, and those of the jar that they do not replace.
    fn cookies(&self, ask: &Ask) -> Vec<String> {
        let own = ask.cookies.iter().map(|(name, value, _)| go_cookies::written(name, value));
        let jar = ask.jar.borrow();
        let is_replaced =
            |name: &str| ask.cookies.iter().any(|(own, _, replace)| *replace && own == name);
        let kept = values_for(&jar, &self.url).into_iter();
        let kept = kept.filter(|(name, _)| !is_replaced(name));
        own.chain(kept.map(|(name, value)| go_cookies::written(name, value))).collect()
    }

    fn keep_cookies(&self, ask: &Ask, response: &ResponseFacts) {
        let set =
            response.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie"));
        for (_, value) in set {
            go_cookies::keep(&mut ask.jar.borrow_mut(), value, &self.url);
        }
    }

    /// Where the response leads, if it is a redirect; a URL of another protocol is an error.
    fn next(&self, response: &ResponseFacts, origin: &Url) -> Option<Result<Self, Box<Url>>> {
        if !matches!(response.status, 301 | 302 | 303 | 307 | 308) {
            return None;
        }
        let location = response.header("location").filter(|location| !location.is_empty())?;
        let url = match self.url.join(location) {
            Ok(url) if matches!(url.scheme(), "http" | "https") => Rc::new(url),
            Ok(url) => return Some(Err(Box::new(url))),
            Err(_) => return None,
        };
        let drops_body = matches!(response.status, 301..=303);
        let becomes_get = drops_body && !matches!(&*self.method, "GET" | "HEAD");
        let has_left = self.has_left || !is_at_home(&url, origin);
        let has_no_body = self.has_no_body || drops_body;
        let is_relative = Url::parse(location).is_err();
        let mut headers = self.headers.to_vec();
        headers.retain(|(name, _)| {
            let name = name.as_str();
            let is_out = (has_left && SECRET.contains(&name))
                || (has_no_body && OF_BODY.contains(&name))
                // Those of the jar, and of the request itself, are added for each hop.
                || name == COOKIE
                || (name == "Host" && !is_relative);
            !is_out
        });
        Some(Ok(Self {
            method: if becomes_get { "GET".into() } else { self.method.clone() },
            headers: Rc::new(headers),
            body: if has_no_body { None } else { self.body.clone() },
            known: None,
            number: self.number + 1,
            referer: self.referer_of(&url),
            text: if is_relative { url.as_str().into() } else { location.into() },
            has_left,
            has_no_body,
            url,
        }))
    }

    /// What `next` is told to come from: nothing where that would tell a page over TLS to whoever
    /// reads plain HTTP, or where the script itself says it.
    fn referer_of(&self, next: &Url) -> Option<String> {
        let is_told = request_headers::get(&self.headers, REFERER).is_some();
        if is_told || (self.url.scheme() == "https" && next.scheme() == "http") {
            return None;
        }
        let mut url = (*self.url).clone();
        // An HTTP URL has a place for both.
        let _ = (url.set_username(""), url.set_password(None));
        Some(url.into())
    }
}

/// Whether a URL is of the host of the first request, or of one below it.
fn is_at_home(url: &Url, origin: &Url) -> bool {
    let (Some(host), Some(first)) = (url.host_str(), origin.host_str()) else { return false };
    let is_below = || host.strip_suffix(first).is_some_and(|rest| rest.ends_with('.'));
    host == first || (matches!(url.host(), Some(Host::Domain(_))) && is_below())
}

/// The value of `Authorization` for the credentials of a URL.
fn basic(url: &Url) -> String {
    let (user, password) = credentials::decoded(url);
    format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
}

/// The address that a prepared request goes to: of several one of IPv4 first, as k6 prefers it.
fn addresses_of(client: &Client<UserClock>, prepared: &PreparedRequest) -> Option<IpAddr> {
    let addresses = client.network().addresses(prepared);
    addresses.iter().find(|ip| ip.is_ipv4()).or(addresses.first()).copied()
}

/// Adds cookies to the header, which may be there.
fn join_cookies(headers: &mut Vec<(String, String)>, cookies: &[String]) {
    let cookies = cookies.join("; ");
    let joined = match request_headers::get(headers, COOKIE).filter(|own| !own.is_empty()) {
        Some(own) => format!("{own}; {cookies}"),
        None => cookies,
    };
    request_headers::set(headers, COOKIE, joined);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_says_where_it_comes_from() {
        let hop = |url: &str, headers: &[(&str, &str)]| Hop {
            method: "GET".into(),
            url: Rc::new(Url::parse(url).unwrap()),
            headers: Rc::new(headers.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect()),
            body: None,
            known: None,
            number: 0,
            text: url.into(),
            referer: None,
            has_left: false,
            has_no_body: false,
        };
        let referer = |from: &str, headers: &[(&str, &str)], to: &str| {
            hop(from, headers).referer_of(&Url::parse(to).unwrap())
        };
        let told = referer("http://me:secret@a/x?y=1", &[], "http://b/");
        assert_eq!(told.as_deref(), Some("http://a/x?y=1"));
        assert_eq!(referer("https://a/", &[], "http://a/"), None);
        assert_eq!(referer("https://a/", &[], "https://b/").as_deref(), Some("https://a/"));
        assert_eq!(referer("http://a/", &[("Referer", "http://own/")], "http://b/"), None);
    }
}
