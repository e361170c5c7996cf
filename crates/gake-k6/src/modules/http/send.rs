//! Sends requests: redirects, authentication, cookies, samples.

use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

use gake_codec::http1::{ResponseHead, Version, Visitor};
use gake_core::clock::{Clock, Nanos, nanos};
use gake_core::record::{Exchange, ExchangeEnd, Fault, Phase};
use gake_wire::{Client, ConnectionFacts, Deadline, ExchangeVisitor, PreparedRequest};

use super::credentials::{
    has_credentials, shown_url, without_credentials, without_password, without_user,
};
use super::debug;
use super::error_codes;
use super::headers::HeaderList;
use super::hop::{AUTHORIZATION, Hop, join_cookies};
use super::login::Login;
use super::request_headers;
use super::response_facts::{RequestInstants, ResponseFacts, Timings};
use super::samples::{record, record_unfinished};
use super::script_request::{Authentication, BodyKind, ScriptRequest};
use super::target_url::{BAD_URL, checked};
use crate::bodies::ResponseBody;
use crate::test::LogLevel;
use crate::user::clock::UserClock;
use crate::user::requests::{CachedRequest, RequestKey};
use crate::user::vu::Vu;

/// Timeout of opening a connection.
pub(super) const DIAL: Duration = Duration::from_secs(30);

/// Sends a script's request and follows redirects. The response refers to the first request.
pub(super) async fn send(vu: &Vu, request: &ScriptRequest) -> ResponseFacts {
    let mut first = None;
    let mut response = follow(vu, request, &mut first).await;
    response.asked_method = request.method.clone();
    if response.status == 0 && response.url == request.url {
        response.url = Rc::clone(&request.written);
    }
    response.sent_body.clone_from(&request.plain_body);
    if let Some(first) = first {
        response.sent_headers = first;
    }
    response
}

type SharedHeaders = Rc<Vec<(String, String)>>;

/// Sends a request and its redirects; sets `first` to the headers of the first one.
async fn follow(
    vu: &Vu,
    request: &ScriptRequest,
    first: &mut Option<SharedHeaders>,
) -> ResponseFacts {
    let Some(client) = vu.client.borrow().clone() else {
        return ResponseFacts::failed(request, 1000, "no connections outside of a run".to_owned());
    };
    let known = match request.body {
        None => vu.requests.get(&key(request)),
        Some(_) => None,
    };
    let url = match &known {
        Some(known) => Rc::clone(&known.url),
        None => match checked(&request.url) {
            Ok(url) => Rc::new(url),
            Err((code, error)) => return refuse(vu, request, code, error),
        },
    };
    if let Some(pause) = vu.test.pace() {
        vu.clock.sleep_until(vu.now().saturating_add(nanos(pause))).await;
    }
    let start = vu.now();
    let end = start.saturating_add(nanos(request.timeout));
    let mut hop = Hop {
        method: request.method.clone(),
        headers: Rc::clone(&request.headers),
        body: request.body.clone(),
        url,
        known: known.map(|known| Rc::clone(&known.prepared)),
        number: 0,
        text: Rc::clone(&request.url),
        referer: None,
        has_left: false,
        has_no_body: false,
    };
    let origin = Rc::clone(&hop.url);
    let mut login = Login::new(request.authentication, &mut hop.url);
    if let Some(header) = login.preemptive()
        && request_headers::get(&hop.headers, AUTHORIZATION).is_none()
    {
        Rc::make_mut(&mut hop.headers).push((AUTHORIZATION.to_owned(), header));
        hop.known = None;
    }
    loop {
        let mut response = hop.run(vu, &client, request, end, Some(&login)).await;
        first.get_or_insert_with(|| Rc::clone(&response.sent_headers));
        while let Some(header) = login.respond(&response, &hop.method, &hop.url) {
            let headers = Rc::make_mut(&mut hop.headers);
            if request.authentication == Authentication::Digest {
                headers.retain(|(name, _)| !name.eq_ignore_ascii_case(AUTHORIZATION));
            }
            headers.push((AUTHORIZATION.to_owned(), header));
            hop.known = None;
            response = hop.run(vu, &client, request, end, None).await;
            if request.authentication == Authentication::Ntlm {
                // NTLM authenticates the connection: later requests do not repeat the header.
                Rc::make_mut(&mut hop.headers).pop();
                let sent = Rc::make_mut(&mut response.sent_headers);
                sent.retain(|(name, _)| name != AUTHORIZATION);
            }
        }
        if request.authentication == Authentication::Digest && response.status > 0 {
            response.url = without_user(&response.url);
        }
        let Some(next) = hop.next(&response, &origin) else { return response };
        if hop.number >= request.redirects {
            if !request.bounds_redirects {
                let message = format!(
                    "Stopped after {} redirects and returned the redirection; pass {{ redirects: n \
                     }} in request params or set global maxRedirects to silence this",
                    request.redirects + 1
                );
                vu.test.log(LogLevel::Warning, &message, &[("url", &*request.url)]);
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
                    ..ResponseFacts::failed(request, 1000, error.clone())
                };
                return reject(vu, request, &shown, failed, &error);
            }
        }
    }
}

/// The cache key of a request.
fn key(request: &ScriptRequest) -> RequestKey<'_> {
    RequestKey { method: &request.method, url: &request.url, headers: &request.headers }
}

/// The response to a request with an invalid URL.
fn refuse(vu: &Vu, request: &ScriptRequest, code: u32, error: String) -> ResponseFacts {
    let shown = without_credentials(&request.url);
    let url = if code == BAD_URL { Rc::default() } else { Rc::clone(&request.url) };
    let response = ResponseFacts { url, ..ResponseFacts::failed(request, code, error) };
    // k6 counts it as failed if its URL can be parsed.
    if code == BAD_URL {
        warn_plainly(vu, request, &response.error);
        return response;
    }
    let error = response.error.clone();
    reject(vu, request, &shown, response, &error)
}

/// Counts a request that cannot be sent as failed, and logs `why`.
fn reject(
    vu: &Vu,
    request: &ScriptRequest,
    shown: &str,
    mut response: ResponseFacts,
    why: &str,
) -> ResponseFacts {
    let exchange = Exchange::faulted(vu.now(), Fault::Malformed("request"));
    record(vu, request, shown, &response, &exchange);
    response.cause = go_text(&request.method, &without_password(&response.url), why);
    warn_plainly(vu, request, &response.cause);
    response
}

struct ResponseCollector {
    connection: ConnectionFacts,
    version: Option<Version>,
    reason: String,
    headers: HeaderList,
    body: ResponseBody,
    keep: bool,
    clock: UserClock,
    /// When the request was sent.
    sent: Option<Nanos>,
}

impl ResponseCollector {
    fn new(vu: &Vu, keep: bool) -> Self {
        Self {
            connection: ConnectionFacts::default(),
            version: None,
            reason: String::new(),
            headers: HeaderList::default(),
            body: ResponseBody::new(&vu.bodies),
            keep,
            clock: vu.clock.clone(),
            sent: None,
        }
    }
}

impl Visitor for ResponseCollector {
    fn head(&mut self, head: &ResponseHead<'_>) {
        self.version = Some(head.version);
        self.reason = head.reason.to_owned();
        self.headers = HeaderList::with_capacity(head.headers.len());
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

impl ExchangeVisitor for ResponseCollector {
    fn connected(&mut self, facts: &ConnectionFacts) {
        self.connection = *facts;
    }

    fn sent(&mut self) {
        self.sent = Some(self.clock.now());
    }
}

/// A request in flight: recorded as unfinished if dropped before its end.
struct RequestFlight<'a> {
    vu: &'a Vu,
    client: &'a Client<UserClock>,
    request: &'a ScriptRequest,
    url: &'a str,
    start: Nanos,
    exchange: Exchange,
    is_over: bool,
}

impl Drop for RequestFlight<'_> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        self.client.end(&mut self.exchange, ExchangeEnd::Unfinished);
        if self.exchange.bytes_out > 0 {
            record_unfinished(self.vu, self.request, self.url, &self.exchange);
        }
        self.vu.pending.exchange(self.start, self.exchange.clone());
    }
}

impl Hop {
    async fn run(
        &self,
        vu: &Vu,
        client: &Client<UserClock>,
        request: &ScriptRequest,
        end: Nanos,
        login: Option<&Login>,
    ) -> ResponseFacts {
        let cookies = self.cookies(request);
        let mut headers = Rc::clone(&self.headers);
        if !cookies.is_empty() {
            join_cookies(Rc::make_mut(&mut headers), &cookies);
        }
        if let Some(why) = self.invalid(&headers) {
            return self.stopped(vu, request, (1000, &why), &why);
        }
        let shown = self.shown();
        let settings = vu.test.settings();
        let host = self.url.host_str().unwrap_or_default();
        if let Some(blocked) = settings.blocked.host(host) {
            return self.stopped(vu, request, (blocked.code, blocked.error), &blocked.log_message);
        }
        let start = vu.now();
        let exchange = Exchange::unfinished(start);
        let mut flight =
            RequestFlight { vu, client, request, url: &shown, start, exchange, is_over: false };
        let keep = request.kind != BodyKind::Dropped;
        let mut collector = ResponseCollector::new(vu, keep);
        let mut ip = None;
        let debug_id = settings.http_debug.map(|_| debug::request_id()).unwrap_or_default();
        let prepared = match &self.known {
            Some(known) if cookies.is_empty() => Ok(Rc::clone(known)),
            _ => self.prepare(vu, client, request, &headers).await,
        };
        match prepared {
            Ok(prepared) => {
                if settings.blocked.has_networks()
                    && let addresses = client.network().addresses(&prepared)
                    && let Some(blocked) = settings.blocked.address(&addresses)
                {
                    flight.is_over = true;
                    return self.stopped(
                        vu,
                        request,
                        (blocked.code, blocked.error),
                        &blocked.log_message,
                    );
                }
                ip = address_of(client, &prepared);
                if let Some(what) = settings.http_debug {
                    debug::request(vu, what, &self.request(&headers), &self.url, &debug_id);
                }
                let deadline = Deadline::within(start, Duration::from_nanos(end - start.min(end)));
                let connect = deadline.connect.min(nanos(DIAL));
                let deadline = Deadline { connect, ..deadline };
                let now = vu.now();
                let exchange = &mut flight.exchange;
                *exchange = Exchange::unfinished(now);
                client.exchange(&prepared, now, deadline, &mut collector, exchange).await;
            }
            Err(fault) => client.end(&mut flight.exchange, ExchangeEnd::Fault(fault)),
        }
        flight.is_over = true;
        let instants = RequestInstants { asked: start, sent: collector.sent, received: vu.now() };
        let parts = (collector, instants);
        let mut response = self.response(request, headers, parts, &flight.exchange);
        if response.refuse_body() {
            flight.exchange.end = ExchangeEnd::Fault(Fault::NoMemory);
        }
        response.expected = login.and_then(|login| login.judge(response.status));
        if let Some(what) = settings.http_debug {
            debug::response(vu, what, &response, &debug_id);
        }
        self.keep_cookies(request, &response);
        record(vu, request, &shown, &response, &flight.exchange);
        vu.pending.exchange(start, flight.exchange.clone());
        if response.status == 0 {
            let why = match flight.exchange.end {
                ExchangeEnd::Fault(fault) if response.error_code != 1701 => {
                    error_codes::go_text(fault, &self.url, ip, &response.error)
                }
                _ => response.error.clone(),
            };
            // Other schemes take the credentials out of the URL.
            let url = match request.authentication {
                Authentication::Basic => without_password(&response.url),
                Authentication::Digest | Authentication::Ntlm => {
                    without_user(&response.url).to_string().into()
                }
            };
            response.cause = go_text(&request.method, &url, &why);
            warn_plainly(vu, request, &response.cause);
        }
        response
    }

    /// Prepares the request; caches it if it depends only on the script's arguments.
    async fn prepare(
        &self,
        vu: &Vu,
        client: &Client<UserClock>,
        request: &ScriptRequest,
        headers: &Rc<Vec<(String, String)>>,
    ) -> Result<Rc<PreparedRequest>, Fault> {
        let prepared = Rc::new(client.prepare(&self.request(headers)).await?);
        // Credentials change the URL or the headers.
        let is_plain =
            request.authentication == Authentication::Basic && !has_credentials(&self.url);
        let is_as_asked = self.number == 0 && self.body.is_none() && is_plain;
        if is_as_asked && Rc::ptr_eq(headers, &request.headers) {
            let (url, prepared) = (Rc::clone(&self.url), Rc::clone(&prepared));
            vu.requests.put(CachedRequest::new(&key(request), url, prepared));
        }
        Ok(prepared)
    }

    /// The response to a request that is not sent, for example a blocked one: it counts as failed.
    fn stopped(
        &self,
        vu: &Vu,
        request: &ScriptRequest,
        (code, error): (u32, &str),
        why: &str,
    ) -> ResponseFacts {
        let response = ResponseFacts {
            url: self.url_text(),
            method: self.method.clone(),
            ..ResponseFacts::failed(request, code, error.to_owned())
        };
        reject(vu, request, &self.shown(), response, why)
    }

    fn response(
        &self,
        request: &ScriptRequest,
        headers: Rc<Vec<(String, String)>>,
        (collector, instants): (ResponseCollector, RequestInstants),
        exchange: &Exchange,
    ) -> ResponseFacts {
        let mut response = ResponseFacts {
            url: self.url_text(),
            method: self.method.clone(),
            sent_headers: headers,
            ..ResponseFacts::failed(request, 0, String::new())
        };
        match exchange.end {
            ExchangeEnd::Response(summary) => {
                response.status = summary.status;
                let connection = collector.connection;
                response.proto = match collector.version {
                    _ if connection.is_http2 => "HTTP/2.0",
                    _ if connection.is_http3 => "HTTP/3.0",
                    Some(Version::Http10) => "HTTP/1.0",
                    _ => "HTTP/1.1",
                };
                response.reason = match connection.is_http2 || connection.is_http3 {
                    true => error_codes::phrase(summary.status).to_owned(),
                    false => collector.reason,
                };
                response.headers = collector.headers;
                let is_bodyless = matches!(summary.status, 204 | 304);
                response.body = (collector.keep && !is_bodyless).then_some(collector.body);
                response.error_code = error_codes::of_status(summary.status);
                response.timings = Timings::of(exchange, instants);
            }
            ExchangeEnd::Fault(fault) => {
                // The connect timeout covers only TCP: after it, the request has timed out.
                let is_open = exchange.connect.is_some();
                let fault = match fault {
                    Fault::ConnectTimeout if is_open => Fault::Timeout(Phase::Connect),
                    fault => fault,
                };
                (response.error_code, response.error) = error_codes::of(fault, &self.url);
                response.timings = Timings::of(exchange, instants);
            }
            ExchangeEnd::Unfinished => {}
        }
        response.decode();
        if response.status > 0 {
            response.peer = collector.connection.peer;
            response.tls = collector.connection.tls;
        }
        response
    }

    fn keep_cookies(&self, request: &ScriptRequest, response: &ResponseFacts) {
        let set =
            response.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie"));
        for (_, value) in set {
            gake_go::cookies::keep(&mut request.jar.borrow_mut(), value, &self.url);
        }
    }
}

/// The address of a prepared request: IPv4 first, as in k6.
fn address_of(client: &Client<UserClock>, prepared: &PreparedRequest) -> Option<IpAddr> {
    let addresses = client.network().addresses(prepared);
    addresses.iter().find(|ip| ip.is_ipv4()).or(addresses.first()).copied()
}

/// An error with its request, as Go writes it.
fn go_text(method: &str, url: &str, error: &str) -> String {
    let mut method = method.to_owned();
    if method.is_ascii()
        && let Some(rest) = method.get_mut(1..)
    {
        rest.make_ascii_lowercase();
    }
    format!("{method} \"{url}\": {error}")
}

fn warn_plainly(vu: &Vu, request: &ScriptRequest, error: &str) {
    if !request.throw {
        vu.test.log(LogLevel::Warning, "Request Failed", &[("error", error)]);
    }
}
