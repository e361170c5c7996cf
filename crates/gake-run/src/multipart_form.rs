//! `-F`: bodies of `multipart/form-data` (RFC 7578), in curl's notation.

use std::path::Path;

use crate::bodies::body_file;

#[derive(Debug, PartialEq)]
struct FormPart {
    name: String,
    filename: Option<String>,
    content_type: Option<String>,
    content: Vec<u8>,
}

/// The content type and body of a form with these fields. The boundary depends only on the
/// contents.
///
/// # Errors
/// When a field is not valid, or its file cannot be read.
pub fn multipart_form<'a>(
    fields: impl Iterator<Item = &'a str>,
) -> Result<(String, Vec<u8>), String> {
    let parts = fields.map(part).collect::<Result<Vec<_>, _>>()?;
    let boundary = boundary(&parts);
    let mut body = Vec::new();
    for part in &parts {
        let quoted =
            |text: &str| text.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A");
        let mut head = format!("--{boundary}\r\nContent-Disposition: form-data; name=\"");
        head.push_str(&quoted(&part.name));
        head.push('"');
        if let Some(filename) = &part.filename {
            head.push_str(&format!("; filename=\"{}\"", quoted(filename)));
        }
        if let Some(content_type) = &part.content_type {
            head.push_str(&format!("\r\nContent-Type: {content_type}"));
        }
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(b"\r\n\r\n");
        body.extend_from_slice(&part.content);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    Ok((format!("multipart/form-data; boundary={boundary}"), body))
}

/// The first numbered boundary that no field contains: the same form always has the same bytes.
fn boundary(parts: &[FormPart]) -> String {
    let mut number = 0_u64;
    loop {
        let boundary = format!("----formdata-gake-{number:032x}");
        let holds = |part: &FormPart| {
            part.content.windows(boundary.len()).any(|bytes| bytes == boundary.as_bytes())
        };
        if !parts.iter().any(holds) {
            return boundary;
        }
        number += 1;
    }
}

/// Parses `name=text`, `name=@file` or `name=<file`, with optional `;type=` and `;filename=`.
fn part(field: &str) -> Result<FormPart, String> {
    let wrong = |why: &str| format!("-F {field:?}: {why}");
    let (name, rest) =
        field.split_once('=').ok_or_else(|| wrong("write name=value or name=@file"))?;
    let (value, attributes) = attributes(rest);
    let file = |path: &str| {
        body_file(path).map_err(|error| wrong(&format!("{path} cannot be read: {error}")))
    };
    let (content, own_name) = match (value.strip_prefix('@'), value.strip_prefix('<')) {
        (Some(path), _) => {
            (file(path)?, Path::new(path).file_name().and_then(|name| name.to_str()))
        }
        (None, Some(path)) => (file(path)?, None),
        (None, None) => (value.as_bytes().to_vec(), None),
    };
    let attribute = |wanted: &str| {
        let mut given = attributes.iter().filter(|(name, _)| *name == wanted);
        given.next().map(|(_, value)| (*value).to_owned())
    };
    let content_type = attribute("type");
    if content_type.as_deref().is_some_and(|text| text.contains(char::is_control)) {
        return Err(wrong("its type contains a control character"));
    }
    Ok(FormPart {
        name: name.to_owned(),
        filename: attribute("filename").or_else(|| own_name.map(str::to_owned)),
        content_type,
        content,
    })
}

/// Splits off trailing attributes. A semicolon before anything else belongs to the value.
fn attributes(text: &str) -> (&str, Vec<(&str, &str)>) {
    let mut value = text;
    let mut attributes = Vec::new();
    while let Some((before, last)) = value.rsplit_once(';') {
        let Some((name @ ("type" | "filename"), given)) = last.trim_start().split_once('=') else {
            break;
        };
        attributes.push((name, given.trim_matches('"')));
        value = before;
    }
    (value, attributes)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_form_is_what_curl_and_oha_send() {
        let path = std::env::temp_dir().join(format!("gake-form-{}", std::process::id()));
        fs::write(&path, "filebody").unwrap();
        let path = path.to_str().unwrap();
        let fields =
            ["name=a;b".to_owned(), format!("f=@{path};type=a/b;filename=z"), format!("g=<{path}")];
        let (content_type, body) = multipart_form(fields.iter().map(String::as_str)).unwrap();
        fs::remove_file(path).unwrap();
        let boundary = content_type.strip_prefix("multipart/form-data; boundary=").unwrap();
        let expected = format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"name\"\r\n\r\na;b\r\n\
             --{boundary}\r\nContent-Disposition: form-data; name=\"f\"; filename=\"z\"\r\n\
             Content-Type: a/b\r\n\r\nfilebody\r\n\
             --{boundary}\r\nContent-Disposition: form-data; name=\"g\"\r\n\r\nfilebody\r\n\
             --{boundary}--\r\n"
        );
        assert_eq!(String::from_utf8(body).unwrap(), expected);
    }

    #[test]
    fn no_field_can_end_a_form() {
        let (first, _) = multipart_form(["a=b"].into_iter()).unwrap();
        let inside = format!("a=--{}", first.split_once("boundary=").unwrap().1);
        let (second, _) = multipart_form([inside.as_str()].into_iter()).unwrap();
        assert_ne!(first, second);
        for field in ["a", "a=@/does/not/exist"] {
            assert!(multipart_form([field].into_iter()).unwrap_err().contains(field), "{field}");
        }
    }
}
