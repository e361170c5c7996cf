//! The parameters of `connect` and of calls.

use std::time::Duration;

use gake_js::errors::go_error;
use gake_js::value::{self, given};
use rquickjs::{Ctx, Value};

use crate::duration::GoDuration;

/// The default timeout of `connect`.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(60);

/// Default maximum bytes of a received message, as in gRPC for Go.
const RECEIVE_MAX: usize = 4 << 20;

/// The parameters of `connect`.
#[derive(Debug)]
pub(super) struct ConnectParams {
    pub(super) is_plain: bool,
    /// Whether definitions are loaded by server reflection.
    pub(super) reflects: bool,
    pub(super) reflection_metadata: Vec<(String, String)>,
    pub(super) timeout: Duration,
    /// `:authority`, if it is not the address.
    pub(super) authority: Option<String>,
    /// Maximum bytes of a received message.
    pub(super) max_receive: usize,
}

/// The parameters of a call.
#[derive(Debug)]
pub(super) struct CallParams {
    pub(super) metadata: Vec<(String, String)>,
    pub(super) tags: Vec<(String, String)>,
    /// Zero if unset.
    pub(super) timeout: Duration,
    /// Whether the message of the response is discarded.
    pub(super) discards: bool,
}

impl ConnectParams {
    pub(super) fn read<'js>(ctx: &Ctx<'js>, params: Option<Value<'js>>) -> rquickjs::Result<Self> {
        let mut parsed = Self {
            is_plain: false,
            reflects: false,
            reflection_metadata: Vec::new(),
            timeout: CONNECT_TIMEOUT,
            authority: None,
            max_receive: RECEIVE_MAX,
        };
        for (key, value) in fields(params)? {
            let wrong =
                |why: &str| go_error(ctx, &format!("invalid grpc.connect() parameters: {why}"));
            match key.as_str() {
                "plaintext" => {
                    parsed.is_plain = value
                        .as_bool()
                        .ok_or_else(|| wrong("invalid plaintext value: it needs to be boolean"))?
                }
                "reflect" => {
                    parsed.reflects = value
                        .as_bool()
                        .ok_or_else(|| wrong("invalid reflect value: it needs to be boolean"))?
                }
                "reflectMetadata" => {
                    parsed.reflection_metadata = metadata(ctx, &value)?
                        .map_err(|why| wrong(&format!("invalid reflectMetadata param: {why}")))?;
                }
                "timeout" => {
                    parsed.timeout = time(ctx, &value)?
                        .map_err(|why| wrong(&format!("invalid timeout value: {why}")))?
                }
                "authority" => parsed.authority = Some(value::text(ctx, &value)?),
                "maxReceiveSize" => {
                    let wrong = |what| {
                        wrong(&format!("invalid maxReceiveSize value: it needs to be {what}"))
                    };
                    let size = value.as_number().filter(|size| size.fract() == 0.0);
                    match size.ok_or_else(|| wrong("an integer"))? {
                        ..0.0 => return Err(wrong("a positive integer")),
                        0.0 => {}
                        size => parsed.max_receive = size as usize,
                    }
                }
                // Messages of any size are sent.
                "maxSendSize" => {}
                "tls" => {
                    return Err(wrong("gake reads TLS settings only from the script's options"));
                }
                other => return Err(wrong(&format!("unknown connect param: {other:?}"))),
            }
        }
        Ok(parsed)
    }
}

impl CallParams {
    /// Parses the parameters of `what`.
    pub(super) fn read<'js>(
        ctx: &Ctx<'js>,
        what: &str,
        params: Option<Value<'js>>,
    ) -> rquickjs::Result<Self> {
        let (metadata_lines, tags) = (Vec::new(), Vec::new());
        let mut parsed =
            Self { metadata: metadata_lines, tags, timeout: Duration::ZERO, discards: false };
        for (key, value) in fields(params)? {
            let wrong = |why: &str| go_error(ctx, &format!("invalid {what} parameters: {why}"));
            match key.as_str() {
                "metadata" => {
                    parsed.metadata = metadata(ctx, &value)?
                        .map_err(|why| wrong(&format!("invalid metadata param: {why}")))?;
                }
                "tags" => {
                    parsed.tags = value::tags(ctx, Some(value))?
                        .map_err(|why| wrong(&format!("metric tags: {why}")))?;
                }
                "timeout" => {
                    parsed.timeout = time(ctx, &value)?
                        .map_err(|why| wrong(&format!("invalid timeout value: {why}")))?
                }
                "discardResponseMessage" => parsed.discards = value.as_bool().unwrap_or(false),
                other => return Err(wrong(&format!("unknown param: {other:?}"))),
            }
        }
        Ok(parsed)
    }
}

/// The properties that are neither `undefined` nor `null`.
fn fields<'js>(params: Option<Value<'js>>) -> rquickjs::Result<Vec<(String, Value<'js>)>> {
    let Some(params) = given(params) else { return Ok(Vec::new()) };
    let Some(params) = params.as_object() else { return Ok(Vec::new()) };
    let all: Vec<(String, Value<'js>)> = params.props().collect::<rquickjs::Result<_>>()?;
    Ok(all.into_iter().filter(|(_, value)| given(Some(value.clone())).is_some()).collect())
}

/// A duration: a number of milliseconds, or a string such as `1m30s`.
fn time<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> rquickjs::Result<Result<Duration, String>> {
    if let Some(ms) = value.as_number() {
        let time = Duration::try_from_secs_f64(ms / 1000.0);
        return Ok(time.map_err(|error| error.to_string()));
    }
    let text = value::text(ctx, value)?;
    Ok(GoDuration::parse(&text).map(GoDuration::to_std).map_err(|error| error.to_string()))
}

/// The metadata of an object: strings, or bytes (sent in base64) if the name ends in `-bin`.
fn metadata<'js>(
    ctx: &Ctx<'js>,
    value: &Value<'js>,
) -> rquickjs::Result<Result<Vec<(String, String)>, String>> {
    use base64::Engine as _;
    let Some(object) = value.as_object().cloned() else {
        return Ok(Err("must be an object with key-value pairs".to_owned()));
    };
    let mut lines = Vec::new();
    for line in object.props::<String, Value<'js>>() {
        let (name, value) = line?;
        let name = name.to_ascii_lowercase();
        if name.ends_with("-bin") {
            let bytes = value::bytes(ctx, &value)?.filter(|_| !value.is_string());
            let Some(bytes) = bytes else {
                return Ok(Err(format!("{name:?} value must be binary")));
            };
            let text = base64::engine::general_purpose::STANDARD_NO_PAD.encode(bytes);
            lines.push((name, text));
        } else if value.is_string() {
            lines.push((name, value::text(ctx, &value)?));
        } else {
            return Ok(Err(format!("{name:?} value must be a string")));
        }
    }
    Ok(Ok(lines))
}
