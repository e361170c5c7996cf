//! curl commands, as browsers copy them.

use crate::script::{
    MultipartPart, ScriptDraft, ScriptNode, ScriptRequest, basic_auth, is_own_header,
};
use crate::template::{Template, component, quoted};
use crate::{ConvertError, default_function};

/// Flags without an effect on what a script sends.
const IDLE: [&str; 14] = [
    "-s",
    "--silent",
    "-S",
    "--show-error",
    "-v",
    "--verbose",
    "-i",
    "--include",
    "-L",
    "--location",
    "-f",
    "--fail",
    "--http1.1",
    "-N",
];

/// Such flags with a value.
const IDLE_VALUES: [&str; 4] = ["-o", "--output", "--connect-timeout", "-w"];

/// A shell command line of separate words.
#[must_use]
pub fn command_line(words: &[String]) -> String {
    let quoted = |word: &String| format!("'{}'", word.replace('\'', "'\\''"));
    // The first word is the command's name.
    let first = words.first().cloned().unwrap_or_default();
    let rest = words.iter().skip(1).map(|word| format!(" {}", quoted(word)));
    first + &rest.collect::<String>()
}

pub(crate) fn script(command: &str) -> Result<ScriptDraft, ConvertError> {
    let mut words = words(command)?.into_iter().skip(1);
    let mut script = ScriptDraft::default();
    let mut request = ScriptRequest::default();
    let (mut url, mut method, mut is_query) = (String::new(), None, false);
    let (mut data, mut parts): (Vec<Template>, Vec<MultipartPart>) = Default::default();
    while let Some(word) = words.next() {
        let (flag, attached) = split(&word);
        let mut value = || attached.clone().or_else(|| words.next()).ok_or(ConvertError::CutShort);
        match flag {
            "-X" | "--request" => method = Some(value()?),
            "-H" | "--header" => header(&mut request, &value()?),
            "-d" | "--data" | "--data-ascii" => data.push(body(&mut script, &value()?, true)),
            "--data-binary" => data.push(body(&mut script, &value()?, false)),
            "--data-raw" => data.push(value()?.into()),
            "--data-urlencode" => data.push(encoded(&value()?).into()),
            "--json" => {
                data.push(body(&mut script, &value()?, false));
                request.default_header("Content-Type", "application/json");
                request.default_header("Accept", "application/json");
            }
            "-F" | "--form" => parts.push(part(&mut script, &value()?)?),
            "--form-string" => parts.push(text_part(&value()?)?),
            "-A" | "--user-agent" => header(&mut request, &format!("User-Agent: {}", value()?)),
            "-e" | "--referer" => header(&mut request, &format!("Referer: {}", value()?)),
            "-b" | "--cookie" => header(&mut request, &format!("Cookie: {}", value()?)),
            "-u" | "--user" => {
                let pair = value()?;
                let (user, password) = pair.split_once(':').unwrap_or((&pair, ""));
                request.set_header("Authorization", basic_auth(&user.into(), &password.into()));
            }
            "-m" | "--max-time" => {
                request.params.push(format!("timeout: {}", quoted(&(value()? + "s"))))
            }
            "-k" | "--insecure" => script.options = INSECURE.map(str::to_owned).to_vec(),
            "--compressed" => request.default_header("Accept-Encoding", "deflate, gzip, br, zstd"),
            "--url" => url = value()?,
            "-I" | "--head" => method = Some("HEAD".to_owned()),
            "-G" | "--get" => is_query = true,
            flag if IDLE.contains(&flag) => {}
            flag if IDLE_VALUES.contains(&flag) => drop(value()?),
            flag if flag.starts_with('-') && flag.len() > 1 => {
                return Err(ConvertError::Flag(flag.to_owned()));
            }
            _ => url = word,
        }
    }
    if url.is_empty() {
        return Err(ConvertError::Empty);
    }
    if !url.contains("://") {
        url = format!("http://{url}");
    }
    request.url = url.into();
    let has_body = !parts.is_empty() || !data.is_empty() && !is_query;
    let usual = if has_body { "POST" } else { "GET" };
    request.method = method.unwrap_or_else(|| usual.to_owned());
    match parts.is_empty() {
        true => add_data(&mut request, data, is_query),
        false => request.multipart_body(&parts, "----gakeFormBoundary", &mut script.warnings),
    }
    script.functions = default_function(vec![ScriptNode::Request(Box::new(request))]);
    Ok(script)
}

const INSECURE: [&str; 3] = ["vus: 1,", "iterations: 1,", "insecureSkipTLSVerify: true,"];

/// Puts the data into the URL or the body.
fn add_data(request: &mut ScriptRequest, data: Vec<Template>, is_query: bool) {
    if data.is_empty() {
        return;
    }
    let mut joined = Template::default();
    for (at, one) in data.into_iter().enumerate() {
        joined.push(if at > 0 { "&" } else { "" });
        joined.append(one);
    }
    if is_query {
        request.url.push(if request.url.contains("?") { "&" } else { "?" });
        request.url.append(joined);
    } else {
        request.default_header("Content-Type", "application/x-www-form-urlencoded");
        request.body = Some(joined);
    }
}

/// A part of a form: `name=value`, `name=@file` (sent as a file), `name=<file` (its text), with
/// `;type=` and `;filename=` behind.
fn part(script: &mut ScriptDraft, form: &str) -> Result<MultipartPart, ConvertError> {
    let mut fields = form.split(';');
    let mut part = text_part(fields.next().unwrap_or_default())?;
    let value = form.split_once('=').map_or("", |(_, value)| value);
    let value = value.split(';').next().unwrap_or_default();
    if let Some(path) = value.strip_prefix('@') {
        part.value = Template::code(script.file(path));
        part.file = Some(path.rsplit('/').next().unwrap_or_default().to_owned());
    } else if let Some(path) = value.strip_prefix('<') {
        part.value = body(script, &format!("@{path}"), false);
    }
    for field in fields {
        match field.split_once('=').map(|(key, value)| (key.trim(), value.trim_matches('"'))) {
            Some(("type", kind)) => part.kind = Some(kind.to_owned()),
            Some(("filename", file)) if part.file.is_some() => part.file = Some(file.to_owned()),
            _ => {}
        }
    }
    Ok(part)
}

fn text_part(form: &str) -> Result<MultipartPart, ConvertError> {
    let (name, value) = form.split_once('=').ok_or(ConvertError::CutShort)?;
    Ok(MultipartPart { name: name.into(), value: value.into(), file: None, kind: None })
}

/// Data, or the file that it refers to; `-d` strips line breaks from files.
fn body(script: &mut ScriptDraft, data: &str, is_one_line: bool) -> Template {
    let Some(path) = data.strip_prefix('@') else { return data.into() };
    let file = script.file(path);
    if !is_one_line {
        return Template::code(file);
    }
    // As text, so that it can be joined with more.
    let opening = format!("const {file} = open({}, 'b');", quoted(path));
    let as_text = format!("const {file} = open({}).replace(/[\\r\\n]/g, '');", quoted(path));
    script
        .init
        .iter_mut()
        .filter(|line| **line == opening)
        .for_each(|line| line.clone_from(&as_text));
    Template::code(file)
}

/// The value of `--data-urlencode`: `content`, `=content`, `name=content`.
fn encoded(value: &str) -> String {
    match value.split_once('=') {
        Some(("", content)) => component(content),
        Some((name, content)) => format!("{name}={}", component(content)),
        None => component(value),
    }
}

/// A flag and an attached value: `-XPOST`, `--request=POST`.
fn split(word: &str) -> (&str, Option<String>) {
    if word.starts_with("--") {
        return match word.split_once('=') {
            Some((flag, value)) => (flag, Some(value.to_owned())),
            None => (word, None),
        };
    }
    let takes_value = ["-X", "-H", "-d", "-A", "-e", "-b", "-o", "-m", "-w", "-u"];
    match word.get(..2).filter(|flag| takes_value.contains(flag) && word.len() > 2) {
        Some(flag) => (flag, Some(word[2..].to_owned())),
        None => (word, None),
    }
}

fn header(request: &mut ScriptRequest, line: &str) {
    if let Some((name, value)) = line.split_once(':')
        && !is_own_header(name.trim())
    {
        request.headers.push((name.trim().to_owned(), value.trim().into()));
    }
}

/// Splits a shell command into words, with all kinds of quotes and backslashes.
fn words(line: &str) -> Result<Vec<String>, ConvertError> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('\n') => {}
                Some('\r') if chars.peek() == Some(&'\n') => drop(chars.next()),
                Some(next) => word.get_or_insert_default().push(next),
                None => return Err(ConvertError::CutShort),
            },
            '\'' => quoted_part(&mut chars, '\'', false, word.get_or_insert_default())?,
            '"' => quoted_part(&mut chars, '"', true, word.get_or_insert_default())?,
            '$' if chars.peek() == Some(&'\'') => {
                chars.next();
                quoted_part(&mut chars, '\'', true, word.get_or_insert_default())?;
            }
            c if c.is_whitespace() => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Ok(words)
}

fn quoted_part(
    chars: &mut impl Iterator<Item = char>,
    end: char,
    escapes: bool,
    word: &mut String,
) -> Result<(), ConvertError> {
    loop {
        match chars.next().ok_or(ConvertError::CutShort)? {
            c if c == end => return Ok(()),
            '\\' if escapes => match chars.next().ok_or(ConvertError::CutShort)? {
                'n' if end == '\'' => word.push('\n'),
                'r' if end == '\'' => word.push('\r'),
                't' if end == '\'' => word.push('\t'),
                '\n' => {}
                c if end == '\'' || ['"', '\\', '$', '`'].contains(&c) => word.push(c),
                c => word.extend(['\\', c]),
            },
            c => word.push(c),
        }
    }
}
