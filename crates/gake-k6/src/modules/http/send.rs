//! Sending a request: its redirects, its cookies, its samples.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use gake_core::clock::{Clock, Nanos, nanos};
use gake_core::record::{End, Exchange, Fault};
use gake_wire::http1::{ResponseHead, Version, Visitor};
use gake_wire::{Client, ConnectionFacts, Deadline, HttpRequest, PreparedRequest};
use url::Url;

use super::ask::{Ask, Authentication, BodyKind};
use super::codes;
use super::cookies::values_for;
use super::credentials::{has_credentials, shown_url, without_credentials};
use super::debug;
use super::facts::{ResponseFacts, Timings};
use super::go_url::{BAD_URL, checked, sent};
use super::headers::HeaderList;
use super::login::Login;
use super::samples::{note, note_cut};
use crate::blocked::Blocked;
use crate::bodies::Body;
use crate::test::LogLevel;
use crate::user::clock::UserClock;
use crate::user::requests::{KnownRequest, RequestKey};
use crate::user::vu::Vu;

const AUTHORIZATION: &str = "Authorization";
const REFERER: &str = "Referer";

/// Sends what a script asked for and follows its redirects.
pub(super) async fn send(vu: &Vu, ask: &Ask) -> ResponseFacts {
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
        referer: None,
    };
    let mut login = Login::new(ask.authentication, &mut hop.url);
    loop {
        let mut response = hop.run(vu, &client, ask, end, login.may_be_challenged()).await;
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
        let Some(next) = hop.next(&response) else { return response };
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
            Err(error) => return ResponseFacts { error, error_code: 1000, ..response },
        }
    }
}

/// What a request that only the arguments make is known by.
fn key(ask: &Ask) -> RequestKey<'_> {
    RequestKey { method: &ask.method, url: &ask.url, headers: &ask.headers }
}

/// A request that cannot even be tried: it counts as one that failed.
fn refuse(vu: &Vu, ask: &Ask, code: u32, error: String) -> ResponseFacts {
    let now = vu.now();
    let shown = without_credentials(&ask.url);
    let url = if code == BAD_URL { Rc::default() } else { Rc::clone(&shown) };
    let response = ResponseFacts { url, ..ResponseFacts::failed(ask, code, error) };
    let exchange = Exchange::faulted(now, Fault::Malformed("request"));
    // k6 counts one whose URL can be read, whatever its scheme.
    if code == BAD_URL {
        warn_plainly(vu, ask, &response.error);
    } else {
        note(vu, ask, &shown, &response, &exchange);
        warn(vu, ask, &shown, &response.error);
    }
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
    /// The URL that led to it, which a script does not see among its headers.
    referer: Option<String>,
}

/// Collects a response.
struct Collector {
    connection: ConnectionFacts,
    version: Option<Version>,
    reason: String,
    headers: HeaderList,
    body: Body,
    keep: bool,
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
        }
    }
}

impl Visitor for Collector {
    fn connected(&mut self, facts: &ConnectionFacts) {
        self.connection = *facts;
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
        // The first one as the script wrote it, without its credentials.
        let shown: Rc<str> = match self.number {
            0 => without_credentials(&ask.url),
            _ => shown_url(&self.url).into(),
        };
        let settings = vu.test.settings();
        let host = self.url.host_str().unwrap_or_default();
        if let Some(blocked) = settings.blocked.host(host) {
            return self.stopped(vu, ask, &shown, blocked);
        }
        let start = vu.now();
        let exchange = Exchange::unfinished(start);
        let mut flight = Flight { vu, client, ask, url: &shown, start, exchange, is_over: false };
        let keep = ask.kind != BodyKind::Dropped;
        let mut collector = Collector::new(vu, keep);
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
                    return self.stopped(vu, ask, &shown, blocked);
                }
                if let Some(parts) = settings.http_debug {
                    debug::request(vu, parts, &self.request(ask, &headers), &self.url);
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
        let url = Rc::clone(&shown);
        let mut response = self.response(ask, url, headers, collector, &flight.exchange);
        if response.refuse_body() {
            flight.exchange.end = End::Fault(Fault::NoMemory);
        }
        response.sent_cookies = cookies;
        response.is_challenge = may_be_challenged && response.status == 401;
        if let Some(parts) = settings.http_debug {
            debug::response(vu, parts, &response);
        }
        self.keep_cookies(ask, &response);
        note(vu, ask, &shown, &response, &flight.exchange);
        vu.notes.exchange(start, flight.exchange.clone());
        if response.status == 0 {
            warn(vu, ask, &shown, &response.error);
        }
        response
    }

    /// What it says, with these headers.
    fn request(&self, ask: &Ask, headers: &[(String, String)]) -> HttpRequest {
        let url = match self.number {
            0 => sent(&ask.url, &self.url),
            // Where a redirect leads is resolved.
            _ => Cow::Borrowed(self.url.as_str()),
        };
        let (mut headers, body) = (headers.to_vec(), self.body.clone());
        headers.extend(self.referer.iter().map(|url| (REFERER.to_owned(), url.clone())));
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
        let prepared = Rc::new(client.prepare(&self.request(ask, headers)).await?);
        // Credentials in the URL are taken out of it, or are not for every request.
        let is_plain = ask.authentication == Authentication::Basic && !has_credentials(&self.url);
        let is_as_asked = self.number == 0 && self.body.is_none() && is_plain;
        if is_as_asked && Rc::ptr_eq(headers, &ask.headers) {
            let (url, prepared) = (Rc::clone(&self.url), Rc::clone(&prepared));
            vu.requests.put(KnownRequest::new(&key(ask), url, prepared));
        }
        Ok(prepared)
    }

    /// What comes of a request that the options block: it counts as one that failed.
    fn stopped(&self, vu: &Vu, ask: &Ask, shown: &str, blocked: Blocked) -> ResponseFacts {
        let exchange = Exchange::faulted(vu.now(), Fault::Malformed("request"));
        let response = ResponseFacts {
            url: shown.into(),
            method: self.method.clone(),
            ..ResponseFacts::failed(ask, blocked.code, blocked.error.to_owned())
        };
        note(vu, ask, shown, &response, &exchange);
        warn(vu, ask, shown, &blocked.told);
        response
    }

    fn response(
        &self,
        ask: &Ask,
        url: Rc<str>,
        headers: Rc<Vec<(String, String)>>,
        collector: Collector,
        exchange: &Exchange,
    ) -> ResponseFacts {
        let mut response = ResponseFacts {
            url,
            method: self.method.clone(),
            sent_headers: headers,
            sent_body: match self.number {
                0 => ask.plain_body.clone(),
                _ => self.body.clone(),
            },
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
                response.timings = Timings::of(exchange);
            }
            End::Fault(fault) => {
                (response.error_code, response.error) = codes::of(fault);
                response.timings = Timings::of(exchange);
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

    /// The cookies that it sends: those of the jar, and the request's own.
    fn cookies(&self, ask: &Ask) -> Vec<(String, String)> {
        let mut cookies: Vec<(String, String)> = values_for(&ask.jar.borrow(), &self.url)
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        if self.number == 0 {
            for (name, value, replace) in &ask.cookies {
                if *replace {
                    cookies.retain(|(known, _)| known != name);
                }
                cookies.push((name.clone(), value.clone()));
            }
        }
        cookies
    }

    fn keep_cookies(&self, ask: &Ask, response: &ResponseFacts) {
        let set =
            response.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie"));
        for (_, value) in set {
            // Invalid cookies, and those of other hosts, are left out.
            let _ = ask.jar.borrow_mut().parse(value, &self.url);
        }
    }

    /// Where the response leads, if it is a redirect.
    fn next(&self, response: &ResponseFacts) -> Option<Result<Self, String>> {
        if !matches!(response.status, 301 | 302 | 303 | 307 | 308) {
            return None;
        }
        let location = response.header("location").filter(|location| !location.is_empty())?;
        let url = match self.url.join(location) {
            Ok(url) if matches!(url.scheme(), "http" | "https") => Rc::new(url),
            _ => return Some(Err(format!("invalid redirect to {location:?}"))),
        };
        let becomes_get =
            matches!(response.status, 301..=303) && !matches!(&*self.method, "GET" | "HEAD");
        let mut next = Self {
            method: if becomes_get { "GET".into() } else { self.method.clone() },
            headers: Rc::clone(&self.headers),
            body: if becomes_get { None } else { self.body.clone() },
            known: None,
            number: self.number + 1,
            referer: self.referer_of(&url),
            url,
        };
        let is_elsewhere = next.url.host_str() != self.url.host_str();
        Rc::make_mut(&mut next.headers).retain(|(name, _)| {
            let name = name.to_ascii_lowercase();
            let is_secret =
                matches!(name.as_str(), "authorization" | "cookie" | "www-authenticate");
            let is_content = name.starts_with("content-");
            name != "host" && !(is_elsewhere && is_secret) && !(becomes_get && is_content)
        });
        Some(Ok(next))
    }

    /// What `next` is told to come from: nothing where that would tell a page over TLS to whoever
    /// reads plain HTTP, or where the script itself says it.
    fn referer_of(&self, next: &Url) -> Option<String> {
        let is_told = self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(REFERER));
        if is_told || (self.url.scheme() == "https" && next.scheme() == "http") {
            return None;
        }
        let mut url = (*self.url).clone();
        // An HTTP URL has a place for both.
        let _ = (url.set_username(""), url.set_password(None));
        Some(url.into())
    }
}

/// Adds cookies to the header, which may be there.
fn join_cookies(headers: &mut Vec<(String, String)>, cookies: &[(String, String)]) {
    let pairs: Vec<String> =
        cookies.iter().map(|(name, value)| format!("{name}={}", cookie_value(value))).collect();
    let pairs = pairs.join("; ");
    match headers.iter_mut().find(|(name, _)| name.eq_ignore_ascii_case("cookie")) {
        Some((_, value)) => *value = format!("{value}; {pairs}"),
        None => headers.push(("Cookie".to_owned(), pairs)),
    }
}

/// The value of a cookie as Go sends it: in quotes where a blank or comma might end it.
fn cookie_value(value: &str) -> Cow<'_, str> {
    let is_quoted = value.starts_with('"');
    match value.contains([' ', ',']) && !is_quoted {
        true => format!("\"{value}\"").into(),
        false => value.into(),
    }
}

/// An error with its request, as Go tells it.
pub(super) fn told(method: &str, url: &str, error: &str) -> String {
    let mut method = method.to_ascii_lowercase();
    if let Some(first) = method.get_mut(0..1) {
        first.make_ascii_uppercase();
    }
    format!("{method} \"{url}\": {error}")
}

fn warn(vu: &Vu, ask: &Ask, url: &str, error: &str) {
    let error = told(&ask.method, url, error);
    warn_plainly(vu, ask, &error);
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
            referer: None,
        };
        let referer = |from: &str, headers: &[(&str, &str)], to: &str| {
            hop(from, headers).referer_of(&Url::parse(to).unwrap())
        };
        let told = referer("http://me:secret@a/x?y=1", &[], "http://b/");
        assert_eq!(told.as_deref(), Some("http://a/x?y=1"));
        assert_eq!(referer("https://a/", &[], "http://a/"), None);
        assert_eq!(referer("https://a/", &[], "https://b/").as_deref(), Some("https://a/"));
        assert_eq!(referer("http://a/", &[("referer", "http://own/")], "http://b/"), None);
    }
}
