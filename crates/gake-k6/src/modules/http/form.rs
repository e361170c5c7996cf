//! Bodies of requests: strings, bytes, forms.

use rquickjs::{Ctx, Exception, Object, Value};
use url::form_urlencoded::Serializer;

use crate::modules::value;

/// Separates the parts of a form with files; random enough not to stand in one.
const BOUNDARY: &str = "gake-8f14e45fceea167a5a36dedd4bea2543";

/// The bytes of a body, and their type when the body says it.
pub(super) fn body<'js>(
    ctx: &Ctx<'js>,
    body: &Value<'js>,
) -> rquickjs::Result<(Vec<u8>, Option<String>)> {
    if let Some(bytes) = value::bytes(ctx, body)? {
        return Ok((bytes, None));
    }
    let is_form = |object: &&Object<'js>| !object.is_function() && !object.is_array();
    let Some(object) = body.as_object().filter(is_form) else {
        let message = format!("the body of a request cannot be {}", kind(body));
        return Err(Exception::throw_type(ctx, &message));
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
                    form.append_pair(name, &text(ctx, &value?)?);
                }
            }
            None => {
                form.append_pair(name, &text(ctx, field)?);
            }
        }
    }
    let content_type = "application/x-www-form-urlencoded".to_owned();
    Ok((form.finish().into_bytes(), Some(content_type)))
}

/// What a value is, for who reads that it cannot be sent.
fn kind(value: &Value<'_>) -> String {
    match value.is_array() {
        true => "an array: write JSON.stringify(body)".to_owned(),
        false => format!("of type {}", value.type_name()),
    }
}

/// A field as k6 writes it: nothing as Go does.
fn text<'js>(ctx: &Ctx<'js>, field: &Value<'js>) -> rquickjs::Result<String> {
    if field.is_null() || field.is_undefined() {
        return Ok("<nil>".to_owned());
    }
    value::text(ctx, field)
}

/// What `http.file` made, if a field is that.
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
    for (name, field) in fields {
        let name = quoted(name);
        bytes.extend_from_slice(format!("--{BOUNDARY}\r\n").as_bytes());
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
            Some(file) => value::bytes(ctx, &file.get("data")?)?.unwrap_or_default(),
            None => value::text(ctx, field)?.into_bytes(),
        };
        bytes.extend_from_slice(&content);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(format!("--{BOUNDARY}--\r\n").as_bytes());
    Ok((bytes, Some(format!("multipart/form-data; boundary={BOUNDARY}"))))
}

fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace(['\r', '\n'], "")
}
