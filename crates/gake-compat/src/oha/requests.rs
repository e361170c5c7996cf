//! What oha sends: URLs by bodies, and the headers of all.

use std::io;
use std::sync::Arc;

use gake_core::spec::{BodySpec, RequestDefaults, RequestSource, RequestSpec};
use gake_wire::basic_authorization;

use crate::flags::Parsed;
use gake_run::body_file;
use gake_run::multipart_form;
use gake_session::Failure;
use gake_session::options::values::header as read_header;

/// Different requests held at most: URLs by bodies.
const REQUESTS_MAX: usize = 1_000_000;

/// What oha calls itself to servers, which they may look for.
const USER_AGENT: &str = "oha/1.16.0";

/// What is sent.
#[derive(Debug)]
pub struct Requests {
    /// The requests, sent in turn.
    pub source: RequestSource,
    /// What they have in common.
    pub defaults: RequestDefaults,
    /// The file that holds their URLs, when one does.
    pub file: Option<String>,
}

/// The requests of a command line.
///
/// # Errors
/// When one cannot be made, or a file cannot be read.
pub fn sent(parsed: &Parsed, target: &str) -> Result<Requests, Failure> {
    let from_file = parsed.on("urls-from-file").map_err(Failure::usage)?;
    let urls = if from_file { lines(target)? } else { vec![target.to_owned()] };
    let urls: Vec<_> = urls.iter().filter(|url| !url.trim().is_empty()).collect();
    if let Some(url) = urls.iter().find(|url| !url.contains("://")) {
        return Err(Failure::could_not(format!("{url:?} is not a URL: it begins with http://")));
    }
    let (bodies, content_type) = bodies(parsed)?;
    let different = urls.len().saturating_mul(bodies.len());
    if different == 0 {
        return Err(Failure::could_not("there is nothing to send: a file of lines is empty"));
    }
    if different > REQUESTS_MAX {
        return Err(Failure::could_not(format!(
            "{different} different requests are more than the {REQUESTS_MAX} that are held"
        )));
    }
    let method = match (parsed.last("method"), content_type.is_some()) {
        (None | Some("GET"), true) => "POST",
        (method, _) => method.unwrap_or("GET"),
    };
    let request = |body: &Body, url: &String| RequestSpec {
        body: body.clone().map(BodySpec::Bytes),
        ..RequestSpec::new(url.trim())
    };
    let all = bodies.iter().flat_map(|body| urls.iter().map(move |url| request(body, url)));
    Ok(Requests {
        source: RequestSource::Requests(all.collect()),
        defaults: RequestDefaults {
            method: Some(method.to_owned()),
            headers: headers(parsed, content_type)?,
            ..RequestDefaults::default()
        },
        file: from_file.then(|| target.to_owned()),
    })
}

/// A body, when there is one.
type Body = Option<Arc<[u8]>>;

/// The bodies, at least one unless a file is empty, and what a form says
/// that it is.
fn bodies(parsed: &Parsed) -> Result<(Vec<Body>, Option<String>), Failure> {
    if parsed.last("form").is_some() {
        let (content_type, body) =
            multipart_form(parsed.all("form")).map_err(Failure::could_not)?;
        return Ok((vec![Some(body.into())], Some(content_type)));
    }
    if let Some(path) = parsed.last("Z") {
        let lines = lines(path)?.into_iter();
        return Ok((lines.map(|line| Some(Arc::from(line.into_bytes()))).collect(), None));
    }
    let body = match (parsed.last("d"), parsed.last("D")) {
        (Some(text), _) => Some(Arc::from(text.as_bytes())),
        (None, Some(path)) => Some(body_file(path).map_err(|e| unread(path, &e))?.into()),
        (None, None) => None,
    };
    Ok((vec![body], None))
}

/// The header lines; of those with the same name the last one holds.
fn headers(parsed: &Parsed, form: Option<String>) -> Result<Vec<(String, String)>, Failure> {
    let mut headers: Vec<(String, String)> = Vec::new();
    let mut set = |name: &str, value: &str| {
        headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        headers.push((name.to_owned(), value.to_owned()));
    };
    set("accept", parsed.last("A").unwrap_or("*/*"));
    if !parsed.on("disable-compression").map_err(Failure::usage)? {
        set("accept-encoding", "gzip, compress, deflate, br");
    }
    set("user-agent", USER_AGENT);
    if let Some(content_type) = parsed.last("T").or(form.as_deref()) {
        set("content-type", content_type);
    }
    if let Some(host) = parsed.last("host") {
        set("host", host);
    }
    if let Some(user) = parsed.last("a") {
        if !user.contains(':') {
            return Err(Failure::could_not(format!("-a {user:?}: write user:password")));
        }
        set("authorization", &basic_authorization(user).1);
    }
    for line in parsed.all("H") {
        let (name, value) =
            read_header(line).map_err(|error| Failure::usage(format!("-H {line:?}: {error}")))?;
        set(&name, &value);
    }
    Ok(headers)
}

fn lines(path: &str) -> Result<Vec<String>, Failure> {
    let bytes = body_file(path).map_err(|error| unread(path, &error))?;
    let text = String::from_utf8(bytes)
        .map_err(|error| unread(path, &io::Error::new(io::ErrorKind::InvalidData, error)))?;
    Ok(text.lines().map(str::to_owned).collect())
}

fn unread(path: &str, error: &io::Error) -> Failure {
    Failure::could_not(format!("{path} cannot be read: {error}"))
}
