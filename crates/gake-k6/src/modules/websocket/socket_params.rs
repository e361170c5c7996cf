//! The arguments of a WebSocket connection.

use std::cell::RefCell;
use std::rc::Rc;

use cookie_store::CookieStore;
use gake_js::errors::go_error;
use gake_js::value::{self, given};
use rquickjs::{Class, Ctx, Object, Value};

use crate::modules::http::{CookieJar, request_headers};
use crate::user::vu::Vu;

#[derive(Debug, Clone)]
pub(super) struct SocketParams {
    /// As written.
    pub(super) url: String,
    /// The tags `name` and `url`, if the URL has a name.
    pub(super) name: Option<String>,
    pub(super) headers: Vec<(String, String)>,
    pub(super) tags: Vec<(String, String)>,
    pub(super) jar: Rc<RefCell<CookieStore>>,
}

impl SocketParams {
    pub(super) fn read<'js>(
        ctx: &Ctx<'js>,
        vu: &Vu,
        url: String,
        params: Option<Value<'js>>,
        protocols: &[String],
    ) -> rquickjs::Result<Self> {
        let jar = Rc::clone(&vu.jar.borrow());
        let headers = vu.headers.to_vec();
        let mut parsed = Self { url, name: None, headers, tags: Vec::new(), jar };
        if let Some(params) = given(params).as_ref().and_then(Value::as_object) {
            parsed.read_params(ctx, params)?;
        }
        if !protocols.is_empty() {
            parsed.headers.push(("Sec-WebSocket-Protocol".to_owned(), protocols.join(", ")));
        }
        Ok(parsed)
    }

    fn read_params<'js>(&mut self, ctx: &Ctx<'js>, params: &Object<'js>) -> rquickjs::Result<()> {
        for property in params.props::<String, Value<'js>>() {
            let (key, value) = property?;
            let Some(value) = given(Some(value)) else { continue };
            match key.as_str() {
                "headers" => {
                    let Some(headers) = value.as_object() else { continue };
                    let own = headers.props::<String, Value<'js>>().map(|header| {
                        let (name, value) = header?;
                        Ok((name, value::text(ctx, &value)?))
                    });
                    let own = own.collect::<rquickjs::Result<Vec<_>>>()?;
                    request_headers::set_all(&mut self.headers, own);
                }
                "tags" => {
                    self.tags = value::tags(ctx, Some(value))?.map_err(|why| {
                        go_error(ctx, &format!("invalid ws.connect() metric tags: {why}"))
                    })?;
                }
                "jar" => {
                    if let Some(jar) = value.as_object().and_then(Class::<CookieJar>::from_object) {
                        self.jar = Rc::clone(&jar.borrow().store);
                    }
                }
                "compression" => match value::text(ctx, &value)?.as_str() {
                    "" => {}
                    "deflate" => {
                        return Err(go_error(ctx, "gake does not support compressed WebSockets"));
                    }
                    other => {
                        let message = format!(
                            "unsupported compression algorithm '{other}', supported algorithm is \
                             'deflate'"
                        );
                        return Err(go_error(ctx, &message));
                    }
                },
                _ => {}
            }
        }
        Ok(())
    }

    /// Takes its name from its tags, or from its URL: `k6/websockets` tags its samples so, `k6/ws`
    /// does not.
    pub(super) fn named(mut self) -> Self {
        let at = self.tags.iter().position(|(key, _)| key == "name");
        self.name = Some(at.map_or_else(|| self.url.clone(), |at| self.tags.remove(at).1));
        self
    }
}
