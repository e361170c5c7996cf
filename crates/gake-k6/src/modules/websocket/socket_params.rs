//! The arguments of a WebSocket connection.

use gake_js::errors::go_error;
use gake_js::value::{self, given};
use rquickjs::{Ctx, Object, Value};

use crate::user::request_params::RequestParams;
use crate::user::vu::Vu;

#[derive(Debug, Clone)]
pub(super) struct SocketParams {
    /// As written.
    pub(super) url: String,
    /// The tags `name` and `url`, if the URL has a name.
    pub(super) name: Option<String>,
    pub(super) request: RequestParams,
}

impl SocketParams {
    pub(super) fn read<'js>(
        ctx: &Ctx<'js>,
        vu: &Vu,
        url: String,
        params: Option<Value<'js>>,
        protocols: &[String],
    ) -> rquickjs::Result<Self> {
        let mut parsed = Self { url, name: None, request: RequestParams::new(vu) };
        if let Some(params) = given(params).as_ref().and_then(Value::as_object) {
            parsed.read_params(ctx, params)?;
        }
        if !protocols.is_empty() {
            let header = ("Sec-WebSocket-Protocol".to_owned(), protocols.join(", "));
            parsed.request.headers.push(header);
        }
        Ok(parsed)
    }

    fn read_params<'js>(&mut self, ctx: &Ctx<'js>, params: &Object<'js>) -> rquickjs::Result<()> {
        for property in params.props::<String, Value<'js>>() {
            let (key, value) = property?;
            let Some(value) = given(Some(value)) else { continue };
            if self.request.read(ctx, (&key, &value), "ws.connect")? || key != "compression" {
                continue;
            }
            match value::text(ctx, &value)?.as_str() {
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
            }
        }
        Ok(())
    }

    /// Takes its name from its tags, or from its URL: `k6/websockets` tags its samples so, `k6/ws`
    /// does not.
    pub(super) fn named(mut self) -> Self {
        let at = self.request.tags.iter().position(|(key, _)| key == "name");
        self.name = Some(at.map_or_else(|| self.url.clone(), |at| self.request.tags.remove(at).1));
        self
    }
}
