//! Parameters of requests that modules beside `k6/http` send: headers, tags, cookies.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use cookie_store::CookieStore;
use gake_core::record::Fault;
use gake_go::cookies::{keep, written};
use gake_js::errors::go_error;
use gake_js::value;
use gake_wire::{Client, HttpRequest, PreparedRequest};
use rquickjs::{Class, Ctx, Value};
use url::{Position, Url};

use super::clock::UserClock;
use super::vu::Vu;
use crate::modules::{CookieJar, request_headers, values_for};

/// The parameters that requests have in common.
#[derive(Debug, Clone)]
pub struct RequestParams {
    /// By canonical name.
    pub headers: Vec<(String, String)>,
    /// The script's own tags.
    pub tags: Vec<(String, String)>,
    /// The cookies, which responses change.
    pub jar: Rc<RefCell<CookieStore>>,
}

impl RequestParams {
    /// The defaults of a user.
    #[must_use]
    pub fn new(vu: &Vu) -> Self {
        let jar = Rc::clone(&vu.jar.borrow());
        Self { headers: vu.headers.to_vec(), tags: Vec::new(), jar }
    }

    /// Reads `headers`, `tags` and `jar`; `call` is the function in errors. Returns whether the key
    /// is one of them.
    ///
    /// # Errors
    /// As an exception of the script.
    pub fn read<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        (key, value): (&str, &Value<'js>),
        call: &str,
    ) -> rquickjs::Result<bool> {
        match key {
            "headers" => {
                let Some(headers) = value.as_object() else { return Ok(true) };
                let own = headers.props::<String, Value<'js>>().map(|header| {
                    let (name, value) = header?;
                    Ok((name, value::text(ctx, &value)?))
                });
                let own = own.collect::<rquickjs::Result<Vec<_>>>()?;
                request_headers::set_all(&mut self.headers, own);
            }
            "tags" => {
                self.tags = value::tags(ctx, Some(value.clone()))?.map_err(|why| {
                    go_error(ctx, &format!("invalid {call}() metric tags: {why}"))
                })?;
            }
            "jar" => {
                if let Some(jar) = value.as_object().and_then(Class::<CookieJar>::from_object) {
                    self.jar = Rc::clone(&jar.borrow().store);
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Sets a header.
    pub fn set_header(&mut self, name: &str, value: &str) {
        request_headers::set(&mut self.headers, name, value.to_owned());
    }

    /// Prepares a request to `url`, whose text is `text`, with the cookies for it, unless an option
    /// forbids its host or addresses.
    ///
    /// # Errors
    /// When it is blocked, or its host cannot be resolved.
    pub async fn prepare(
        &self,
        vu: &Vu,
        method: &str,
        (url, text): (&Url, &str),
        body: Option<Arc<[u8]>>,
    ) -> Result<PreparedCall, NotPrepared> {
        let Some(client) = vu.client.borrow().clone() else {
            return Err(NotPrepared::Refused("no connections outside of a run".to_owned()));
        };
        let blocked = &vu.test.settings().blocked;
        let host = url.host_str().unwrap_or_default();
        if let Some(reason) = blocked.host(host) {
            return Err(NotPrepared::Refused(reason.log_message));
        }
        let mut request = HttpRequest::new(method, text);
        let authority = url[Position::BeforeHost..Position::AfterPort].to_owned();
        let length = body.as_ref().map(|body| body.len());
        request.headers = request_headers::written(&self.headers, (method, length), &authority);
        request.body = body;
        let cookies: Vec<_> = {
            let jar = self.jar.borrow();
            let values = values_for(&jar, url).into_iter();
            values.map(|(name, value)| written(name, value)).collect()
        };
        if !cookies.is_empty() {
            request.headers.push(("Cookie".to_owned(), cookies.join("; ")));
        }
        let prepared = client.prepare(&request).await.map_err(NotPrepared::Fault)?;
        if let Some(reason) = blocked.address(&client.network().addresses(&prepared)) {
            return Err(NotPrepared::Refused(reason.log_message));
        }
        Ok(PreparedCall { client, request, prepared })
    }

    /// Keeps the cookies of a response.
    pub fn keep_cookies(&self, headers: &[(String, String)], url: &Url) {
        for (name, value) in headers {
            if name.eq_ignore_ascii_case("set-cookie") {
                keep(&mut self.jar.borrow_mut(), value, url);
            }
        }
    }
}

/// A name of a header as Go writes it.
#[must_use]
pub fn canonical(name: &str) -> String {
    request_headers::canonical(name)
}

/// Why a request is not sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotPrepared {
    /// An option forbids it, or there are no connections; with k6's error.
    Refused(String),
    /// Its host cannot be resolved, or it is malformed.
    Fault(Fault),
}

/// A request, and the client that sends it.
#[derive(Debug)]
pub struct PreparedCall {
    /// The user's client.
    pub client: Client<UserClock>,
    /// The request as it is sent.
    pub request: HttpRequest,
    /// The same, prepared.
    pub prepared: PreparedRequest,
}
