//! WebSocket messages.

use super::super::error::{FieldPath, SpecError};
use super::super::{HttpVersion, RequestSource, WebSocketSpec};
use super::scenario::ScenarioResolver;

impl ScenarioResolver<'_> {
    /// The source of `url`: a WebSocket or a request, by its scheme.
    pub(super) fn url(&mut self) -> Result<Option<RequestSource>, SpecError> {
        let url = self.draft.url.take();
        let message = self.draft.ws_message.take().map(|message| message.0);
        let expect = self.draft.ws_expect.take();
        let send_only = self.draft.ws_send_only.take().unwrap_or(false);
        match url {
            Some(url) if WebSocketSpec::has_scheme(&url) => {
                let websocket = WebSocketSpec { url, message, expect, send_only };
                self.check_websocket(&websocket)?;
                Ok(Some(RequestSource::WebSocket(websocket)))
            }
            other => {
                let given = [
                    ("ws_message", message.is_some()),
                    ("ws_expect", expect.is_some()),
                    ("ws_send_only", send_only),
                ];
                match given.into_iter().find(|(_, is_given)| *is_given) {
                    Some((key, _)) => {
                        let problem = "it needs a URL that begins with ws:// or wss://";
                        Err(self.refuse(key, problem))
                    }
                    None => Ok(other.map(RequestSource::Url)),
                }
            }
        }
    }

    fn check_websocket(&self, websocket: &WebSocketSpec) -> Result<(), SpecError> {
        self.without(&["method"], "a WebSocket has no methods")?;
        self.without(&["body"], "a WebSocket has no body: its messages are ws_message")?;
        if self.draft.stream == Some(true) {
            return Err(self.refuse("stream", "the response of a WebSocket is a single message"));
        }
        if websocket.send_only {
            if websocket.message.is_none() {
                return Err(self.refuse("ws_send_only", "it needs a message (ws_message)"));
            }
            if websocket.expect.is_some() || self.draft.expect_body.is_some() {
                let problem = "there is no response to check";
                return Err(self.refuse("ws_send_only", problem));
            }
        }
        let refuse = |key, problem| {
            Err(SpecError::new(FieldPath::root().key("connection").key(key), problem))
        };
        if self.connection.http != HttpVersion::Http11 {
            return refuse("http", "a WebSocket needs HTTP/1.1");
        }
        if !self.connection.keepalive {
            return refuse("keepalive", "WebSocket sessions stay open");
        }
        if self.connection.max_redirects > 0 {
            return refuse("max_redirects", "a WebSocket follows no redirects");
        }
        Ok(())
    }
}
