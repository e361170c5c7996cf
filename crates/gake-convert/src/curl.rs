//! A curl command, as browsers copy it.

use super::{ConvertError, ConvertedRequest, is_own_header};

/// Flags that change nothing of what a script sends.
const IDLE: [&str; 16] = [
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
    "--compressed",
    "-f",
    "--fail",
    "-k",
    "--insecure",
    "--http1.1",
];

/// Those with a value.
const IDLE_VALUES: [&str; 6] = ["-o", "--output", "-m", "--max-time", "--connect-timeout", "-w"];

/// The request of a command.
pub(super) fn request(command: &str) -> Result<ConvertedRequest, ConvertError> {
    let mut words = words(command)?.into_iter().skip(1);
    let mut request = ConvertedRequest::default();
    let mut method = None;
    let mut data: Vec<String> = Vec::new();
    let mut is_query = false;
    while let Some(word) = words.next() {
        let (flag, attached) = split(&word);
        let mut value = || attached.clone().or_else(|| words.next()).ok_or(ConvertError::CutShort);
        match flag {
            "-X" | "--request" => method = Some(value()?),
            "-H" | "--header" => header(&mut request, &value()?),
            "-d" | "--data" | "--data-raw" | "--data-ascii" | "--data-binary"
            | "--data-urlencode" => data.push(value()?),
            "--json" => {
                data.push(value()?);
                header(&mut request, "Content-Type: application/json");
                header(&mut request, "Accept: application/json");
            }
            "-A" | "--user-agent" => header(&mut request, &format!("User-Agent: {}", value()?)),
            "-e" | "--referer" => header(&mut request, &format!("Referer: {}", value()?)),
            "-b" | "--cookie" => header(&mut request, &format!("Cookie: {}", value()?)),
            "--url" => request.url = value()?,
            "-I" | "--head" => method = Some("HEAD".to_owned()),
            "-G" | "--get" => is_query = true,
            flag if IDLE.contains(&flag) => {}
            flag if IDLE_VALUES.contains(&flag) => drop(value()?),
            flag if flag.starts_with('-') && flag.len() > 1 => {
                return Err(ConvertError::Flag(flag.to_owned()));
            }
            _ => request.url = word,
        }
    }
    if request.url.is_empty() {
        return Err(ConvertError::Empty);
    }
    if !request.url.contains("://") {
        request.url = format!("http://{}", request.url);
    }
    let body = data.join("&");
    if is_query && !data.is_empty() {
        let mark = if request.url.contains('?') { '&' } else { '?' };
        request.url = format!("{}{mark}{body}", request.url);
    } else if !data.is_empty() {
        let typed = request.headers.iter().any(|one| one.0.eq_ignore_ascii_case("content-type"));
        if !typed {
            header(&mut request, "Content-Type: application/x-www-form-urlencoded");
        }
        request.body = Some(body);
    }
    let usual = if request.body.is_some() { "POST" } else { "GET" };
    request.method = method.unwrap_or_else(|| usual.to_owned());
    Ok(request)
}

/// A flag, and the value that is written to it: `-XPOST`, `--request=POST`.
fn split(word: &str) -> (&str, Option<String>) {
    if word.starts_with("--") {
        return match word.split_once('=') {
            Some((flag, value)) => (flag, Some(value.to_owned())),
            None => (word, None),
        };
    }
    let takes_value = ["-X", "-H", "-d", "-A", "-e", "-b", "-o", "-m", "-w"];
    match word.get(..2).filter(|flag| takes_value.contains(flag) && word.len() > 2) {
        Some(flag) => (flag, Some(word[2..].to_owned())),
        None => (word, None),
    }
}

fn header(request: &mut ConvertedRequest, line: &str) {
    if let Some((name, value)) = line.split_once(':')
        && !is_own_header(name.trim())
    {
        request.headers.push((name.trim().to_owned(), value.trim().to_owned()));
    }
}

/// The words of a shell's line: quotes of all kinds, and backslashes.
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
            '\'' => quoted(&mut chars, '\'', false, word.get_or_insert_default())?,
            '"' => quoted(&mut chars, '"', true, word.get_or_insert_default())?,
            '$' if chars.peek() == Some(&'\'') => {
                chars.next();
                quoted(&mut chars, '\'', true, word.get_or_insert_default())?;
            }
            c if c.is_whitespace() => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Ok(words)
}

fn quoted(
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
