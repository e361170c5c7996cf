//! Opens WebSocket connections: the upgrade, its samples and tags.

use std::borrow::Cow;
use std::rc::Rc;
use std::time::Duration;

use gake_codec::websocket::UpgradeResponse;
use gake_core::clock::Nanos;
use gake_core::record::Fault;
use gake_wire::fault::PROXY_REFUSED;
use gake_wire::{Deadline, WebSocketSession};
use url::Url;

use super::socket_params::SocketParams;
use crate::metrics::BuiltinMetric;
use crate::modules::http::{masked, proxy_error};
use crate::user::dial;
use crate::user::request_params::{NotPrepared, PreparedCall};
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
    let (url, text) = upgrade_url(&params.url)?;
    let prepared = params.request.prepare(vu, "GET", (&url, &text), None).await;
    let PreparedCall { client, request, prepared } = prepared.map_err(|why| match why {
        NotPrepared::Refused(why) => why,
        NotPrepared::Fault(fault) => go_text(fault, &url),
    })?;
    let deadline = Deadline::within(vu.now(), TIMEOUT);
    let opened = client.open_websocket(&request, &prepared, deadline).await;
    let (response, session) = opened.map_err(|fault| go_text(fault, &url))?;
    params.request.keep_cookies(&response.headers, &url);
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
        Fault::ClosedEarly(_) => "unexpected EOF".to_owned(),
        Fault::Malformed(_) => BAD_HANDSHAKE.to_owned(),
        Fault::Proxy(reason) if reason != PROXY_REFUSED => proxy_error(reason),
        fault => dial::go_text(fault, host, &address),
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
        &self.params.request.tags
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
