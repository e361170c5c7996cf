//! Bodies of requests: strings, bytes, URL-encoded and multipart forms.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use aws_lc_rs::rand::fill;
use gake_js::crypto::hex;
use gake_js::errors::go_error;
use gake_js::value;
use rquickjs::{Ctx, Object, Value};
use url::form_urlencoded::Serializer;

use super::go_value;
use crate::test::LogLevel;
use crate::user::vu::Vu;

/// The files that `open` gave a user as text though they are not UTF-8.
#[derive(Default)]
pub(crate) struct OpenedBinaries(RefCell<Vec<Arc<[u8]>>>);

impl OpenedBinaries {
    /// The files of a user.
    pub(crate) fn of(vu: &Vu) -> Rc<Self> {
        vu.shared("opened_binaries")
    }

    pub(crate) fn push(&self, bytes: Arc<[u8]>) {
        self.0.borrow_mut().push(bytes);
    }
}

/// The bytes of a string or a buffer. As in k6, the unchanged text of a binary file is sent as the
/// bytes of the file.
fn content<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> rquickjs::Result<Option<Vec<u8>>> {
    let bytes = value::bytes(ctx, value)?;
    let opened = OpenedBinaries::of(&*Vu::of(ctx)?);
    let opened = opened.0.borrow();
    let of_file = bytes.as_ref().filter(|_| value.is_string()).and_then(|text| {
        opened.iter().find(|file| String::from_utf8_lossy(file).as_bytes() == text.as_slice())
    });
    Ok(of_file.map(|file| file.to_vec()).or(bytes))
}

/// The bytes of a body, and the content type of a form.
pub(super) fn body<'js>(
    ctx: &Ctx<'js>,
    body: &Value<'js>,
) -> rquickjs::Result<(Vec<u8>, Option<String>)> {
    if let Some(bytes) = content(ctx, body)? {
        return Ok((bytes, None));
    }
    let type_name = go_value::type_name(ctx, body);
    let Some(object) = body.as_object().filter(|_| type_name.starts_with("map[")) else {
        return Err(go_error(ctx, &format!("unknown request body type {type_name}")));
    };
    let mut fields = Vec::new();
    for property in object.props::<String, Value<'js>>() {
        fields.push(property?);
    }
    fields.sort_by(|a, b| a.0.cmp(&b.0));
    if fields.iter().any(|(_, value)| file(value).is_some()) {
        return multipart(ctx, &fields);
    }
    let mut form = Serializer::new(String::new());
    for (name, field) in &fields {
        match field.as_array() {
            Some(values) => {
                for value in value::elements(ctx, values)? {
                    form.append_pair(name, &field_text(ctx, &value?)?);
                }
            }
            None => {
                form.append_pair(name, &field_text(ctx, field)?);
            }
        }
    }
    let content_type = "application/x-www-form-urlencoded".to_owned();
    Ok((form.finish().into_bytes(), Some(content_type)))
}

/// The text of a field: empty for nothing, and for what a form cannot hold.
fn field_text<'js>(ctx: &Ctx<'js>, field: &Value<'js>) -> rquickjs::Result<String> {
    let type_name = go_value::type_name(ctx, field);
    match type_name {
        "<nil>" => Ok(String::new()),
        "map[string]interface {}" | "[]interface {}" => {
            let warning = format!(
                "cannot urlencode a nested {type_name} value in a request form body; encoding it \
                 as an empty value, use JSON.stringify() to send structured data"
            );
            Vu::of(ctx)?.test.log(LogLevel::Warning, &warning, &[]);
            Ok(String::new())
        }
        _ => go_value::printed(ctx, field),
    }
}

/// The object of `http.file`, if a field is one.
fn file<'a, 'js>(value: &'a Value<'js>) -> Option<&'a Object<'js>> {
    let object = value.as_object()?;
    let has = |name| object.contains_key(name).unwrap_or(false);
    (has("data") && has("filename") && has("content_type")).then_some(object)
}

fn multipart<'js>(
    ctx: &Ctx<'js>,
    fields: &[(String, Value<'js>)],
) -> rquickjs::Result<(Vec<u8>, Option<String>)> {
    let mut bytes = Vec::new();
    let boundary = boundary();
    for (name, field) in fields {
        let name = quoted(name);
        bytes.extend_from_slice(format!("--{boundary}\r\n").as_bytes());
        let head = match file(field) {
            Some(file) => {
                let filename = quoted(&file.get::<_, String>("filename")?);
                let content_type: String = file.get("content_type")?;
                format!(
                    "Content-Disposition: form-data; name=\"{name}\"; filename=\"{filename}\"\r\n\
                     Content-Type: {content_type}\r\n\r\n"
                )
            }
            None => format!("Content-Disposition: form-data; name=\"{name}\"\r\n\r\n"),
        };
        bytes.extend_from_slice(head.as_bytes());
        let content = match file(field) {
            Some(file) => content(ctx, &file.get("data")?)?.unwrap_or_default(),
            None => field_text(ctx, field)?.into_bytes(),
        };
        bytes.extend_from_slice(&content);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    Ok((bytes, Some(format!("multipart/form-data; boundary={boundary}"))))
}

/// The boundary of a multipart form: random, as Go's.
fn boundary() -> String {
    let mut random = [0; 30];
    // Without randomness the boundary is constant, but still unlikely to occur in a part.
    let _ = fill(&mut random);
    hex(&random)
}

fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace(['\r', '\n'], "")
}
