//! Opens WebSocket connections: the upgrade, its samples and tags.

use std::borrow::Cow;
use std::rc::Rc;
use std::time::Duration;

use gake_codec::websocket::UpgradeResponse;
use gake_core::clock::Nanos;
use gake_core::record::Fault;
use gake_wire::fault::{PROXY_REFUSED, go_tls_error};
use gake_wire::lookup::{self, LookupError};
use gake_wire::{Deadline, HttpRequest, WebSocketSession};
use url::{Position, Url};

use super::socket_params::SocketParams;
use crate::metrics::BuiltinMetric;
use crate::modules::http::{
    keep_cookie, masked, proxy_error, request_headers, values_for, written_cookie,
};
use crate::user::request_tags::RequestTags;
use crate::user::series_index::TagSet;
use crate::user::vu::Vu;

/// Timeout of the upgrade.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The result of an attempt to connect.
pub(super) struct ConnectResult {
    pub(super) response: Option<UpgradeResponse>,
    pub(super) session: Option<WebSocketSession>,
    /// Why there is no session.
    pub(super) error: Option<String>,
    /// The tags of the session's samples.
    pub(super) tags: Rc<TagSet>,
    /// When the attempt began.
    pub(super) start: Nanos,
}

/// Connects and records the samples.
pub(super) async fn open(vu: &Vu, params: &SocketParams) -> ConnectResult {
    let start = vu.now();
    let connected = connect(vu, params).await;
    let took = vu.now().saturating_sub(start);
    let (response, session, error) = match connected {
        Ok((response, Some(session))) => (Some(response), Some(session), None),
        Ok((response, None)) => (Some(response), None, Some(BAD_HANDSHAKE.to_owned())),
        Err(error) => (None, None, Some(error)),
    };
    let tags = vu.series_index.tag_set(&SessionTags { vu, params, response: response.as_ref() });
    vu.record(BuiltinMetric::WsSessions, &tags, 1.0);
    vu.record(BuiltinMetric::WsConnecting, &tags, took as f64);
    ConnectResult { response, session, error, tags, start }
}

const BAD_HANDSHAKE: &str = "websocket: bad handshake";

async fn connect(
    vu: &Vu,
    params: &SocketParams,
) -> Result<(UpgradeResponse, Option<WebSocketSession>), String> {
    let Some(client) = vu.client.borrow().clone() else {
        return Err("no connections outside of a run".to_owned());
    };
    let (url, text) = upgrade_url(&params.url)?;
    let settings = vu.test.settings();
    if let Some(blocked) = settings.blocked.host(url.host_str().unwrap_or_default()) {
        return Err(blocked.log_message);
    }
    let mut request = HttpRequest::new("GET", text);
    let host = url[Position::BeforeHost..Position::AfterPort].to_owned();
    request.headers = request_headers::written(&params.headers, ("GET", None), &host);
    let cookies: Vec<_> = {
        let jar = params.jar.borrow();
        let values = values_for(&jar, &url).into_iter();
        values.map(|(name, value)| written_cookie(name, value)).collect()
    };
    if !cookies.is_empty() {
        request.headers.push(("Cookie".to_owned(), cookies.join("; ")));
    }
    let prepared = client.prepare(&request).await.map_err(|fault| go_text(fault, &url))?;
    if let Some(blocked) = settings.blocked.address(&client.network().addresses(&prepared)) {
        return Err(blocked.log_message);
    }
    let deadline = Deadline::within(vu.now(), TIMEOUT);
    let opened = client.open_websocket(&request, &prepared, deadline).await;
    let (response, session) = opened.map_err(|fault| go_text(fault, &url))?;
    for (name, value) in &response.headers {
        if name.eq_ignore_ascii_case("set-cookie") {
            keep_cookie(&mut params.jar.borrow_mut(), value, &url);
        }
    }
    Ok((response, session))
}

const MALFORMED: &str = "malformed ws or wss URL";

/// The URL of the upgrade, parsed and as text.
fn upgrade_url(text: &str) -> Result<(Url, String), String> {
    let (scheme, rest) = text.split_once("://").unwrap_or_default();
    let upgrade = match scheme {
        "ws" => format!("http://{rest}"),
        "wss" => format!("https://{rest}"),
        _ => return Err(MALFORMED.to_owned()),
    };
    let wrong = |error| format!("parse {:?}: {error}", masked(text));
    let url = Url::parse(&upgrade).map_err(wrong)?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(MALFORMED.to_owned());
    }
    Ok((url, upgrade))
}

/// Go's message for a fault.
fn go_text(fault: Fault, url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    let address = format!("{host}:{}", url.port_or_known_default().unwrap_or_default());
    match fault {
        Fault::ConnectRefused => format!("dial tcp {address}: connect: connection refused"),
        Fault::ConnectReset => format!("dial tcp {address}: connect: connection reset by peer"),
        Fault::ConnectTimeout | Fault::Timeout(_) => format!("dial tcp {address}: i/o timeout"),
        Fault::Dns => match lookup::error(host) {
            LookupError { is_not_found: true, .. } => format!("lookup {host}: no such host"),
            unknown => unknown.text,
        },
        Fault::ClosedEarly(_) => "unexpected EOF".to_owned(),
        Fault::Malformed(_) => BAD_HANDSHAKE.to_owned(),
        Fault::Tls(reason) => go_tls_error(reason),
        Fault::Proxy(PROXY_REFUSED) => "dial tcp: connect: connection refused".to_owned(),
        Fault::Proxy(reason) => proxy_error(reason),
        other => other.to_string(),
    }
}

struct SessionTags<'a> {
    vu: &'a Vu,
    params: &'a SocketParams,
    response: Option<&'a UpgradeResponse>,
}

impl RequestTags for SessionTags<'_> {
    const SYSTEM: &'static [&'static str] = &["url", "name", "status", "subproto"];

    fn vu(&self) -> &Vu {
        self.vu
    }

    fn own(&self) -> &[(String, String)] {
        &self.params.tags
    }

    fn name(&self) -> Option<&str> {
        self.params.name.as_deref()
    }

    fn system(&self, key: &str) -> Option<Cow<'_, str>> {
        let Self { params, response, .. } = self;
        match key {
            "url" => Some(params.name.as_deref().unwrap_or(&params.url).into()),
            "name" => self.own_or_users(key),
            "status" => response.map(|response| response.status.to_string().into()),
            _ => response.map(|response| {
                let lines = response.headers.iter();
                let mut chosen =
                    lines.filter(|(name, _)| name.eq_ignore_ascii_case("sec-websocket-protocol"));
                chosen.next().map_or("", |(_, value)| value.as_str()).into()
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upgrades_go_to_the_http_url() {
        assert_eq!(upgrade_url("ws://h:1/a?ws://").unwrap().1, "http://h:1/a?ws://");
        assert_eq!(upgrade_url("wss://h/").unwrap().0.scheme(), "https");
        assert_eq!(upgrade_url("http://h/").unwrap_err(), MALFORMED);
        assert_eq!(upgrade_url("ws://me:secret@h/").unwrap_err(), MALFORMED);
        let wrong = upgrade_url("ws://me:secret@h:port/").unwrap_err();
        assert!(wrong.starts_with("parse \"ws://****:****@h:port/\": "), "{wrong}");
    }
}
