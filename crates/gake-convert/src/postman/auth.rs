//! Authorization of requests.

use serde_json::Value;

use super::{plain, template};
use crate::script::{ScriptDraft, ScriptRequest, basic_auth};
use crate::template::{Template, url_text};

/// The attributes of an authorization: a list of pairs, or an object in version 2.0.
struct Attributes<'a>(Option<&'a Value>);

impl Attributes<'_> {
    fn text(&self, name: &str) -> Option<String> {
        let value = match self.0? {
            Value::Array(pairs) => {
                let of_name = |one: &&Value| one.get("key").and_then(Value::as_str) == Some(name);
                pairs.iter().find(of_name)?.get("value")
            }
            object => object.get(name),
        };
        value.map(plain).filter(|text| !text.is_empty())
    }

    fn get(&self, name: &str, script: &mut ScriptDraft) -> Option<Template> {
        self.text(name).map(|text| template(&text, script))
    }
}

/// Adds the credentials of an authorization.
pub(super) fn add(auth: Option<&Value>, request: &mut ScriptRequest, script: &mut ScriptDraft) {
    let Some(auth) = auth else { return };
    let kind = auth.get("type").and_then(Value::as_str).unwrap_or("noauth");
    let own = Attributes(auth.get(kind));
    match kind {
        "noauth" => {}
        "bearer" => {
            if let Some(token) = own.get("token", script) {
                authorize(request, "Bearer ", token);
            }
        }
        "basic" => {
            let (user, password) = (own.get("username", script), own.get("password", script));
            let value = basic_auth(&user.unwrap_or_default(), &password.unwrap_or_default());
            request.set_header("Authorization", value);
        }
        "apikey" => {
            let (key, value) = (own.get("key", script), own.get("value", script));
            let Some(key) = key else { return };
            let (key, value) = (key.label(), value.unwrap_or_default());
            match own.text("in").as_deref() {
                Some("query") => request.add_query(&key, value.map(url_text)),
                _ => request.set_header(&key, value),
            }
        }
        "oauth2" => {
            let token = own.get("accessToken", script);
            let token = token.unwrap_or_else(|| Template::variable("access_token"));
            match own.text("addTokenTo").as_deref() {
                Some("queryParams") => request.add_query("access_token", token),
                _ => {
                    let prefix = own.text("headerPrefix").unwrap_or_else(|| "Bearer".to_owned());
                    authorize(request, &format!("{} ", prefix.trim()), token);
                }
            }
        }
        "digest" | "ntlm" => {
            let (user, password) = (own.get("username", script), own.get("password", script));
            credentials(request, kind, user.unwrap_or_default(), password.unwrap_or_default());
        }
        _ => script.warnings.add("an authorization that k6 does not support is left out", kind),
    }
}

fn authorize(request: &mut ScriptRequest, prefix: &str, token: Template) {
    let mut value = Template::from(prefix);
    value.append(token);
    request.set_header("Authorization", value);
}

/// k6 takes them from the URL: `http://user:password@host`.
fn credentials(request: &mut ScriptRequest, kind: &str, user: Template, password: Template) {
    request.params.push(format!("auth: {}", crate::template::quoted(kind)));
    let mut pair = user.encoded(crate::template::component);
    pair.push(":");
    pair.append(password.encoded(crate::template::component));
    let url = std::mem::take(&mut request.url);
    let Some((scheme, _)) = url.start().split_once("://") else {
        // The whole origin is a variable.
        request.url.push_code(
            format!("{}.replace('://', `://${{{}}}@`)", url.js(), pair.js()),
            &url.label(),
        );
        return;
    };
    let at = scheme.len() + 3;
    request.url = Template::from(&url.start()[..at]);
    request.url.append(pair);
    request.url.push("@");
    request.url.append(url.without_start(at));
}
