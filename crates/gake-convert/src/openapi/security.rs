//! Security schemes of operations, with credentials in variables.

use serde_json::Value;

use super::{Description, object};
use crate::script::{ScriptRequest, basic_auth};
use crate::template::Template;

impl<'a> Description<'a> {
    /// Adds the credentials of an operation's first security requirement, if any.
    pub(super) fn secure(&mut self, operation: &'a Value, request: &mut ScriptRequest) {
        let requirements = operation.get("security").or_else(|| self.root.get("security"));
        let requirements =
            requirements.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let is_empty = |one: &Value| one.as_object().is_none_or(serde_json::Map::is_empty);
        if requirements.iter().any(is_empty) {
            return;
        }
        for (name, _) in object(requirements.first()) {
            let schemes = self.root.pointer("/components/securitySchemes");
            let schemes = schemes.or_else(|| self.root.get("securityDefinitions"));
            match schemes.and_then(|schemes| schemes.get(name)) {
                Some(scheme) => {
                    let scheme = self.resolve(scheme);
                    self.scheme(name, scheme, request);
                }
                None => self.script.warnings.add("a security scheme is not described", name),
            }
        }
    }

    fn scheme(&mut self, name: &str, scheme: &Value, request: &mut ScriptRequest) {
        let text = |key: &str| scheme.get(key).and_then(Value::as_str).unwrap_or_default();
        let own = Template::variable(name);
        match (text("type"), text("scheme").to_lowercase().as_str(), text("in")) {
            ("apiKey", _, "query") => request.add_query(text("name"), own),
            ("apiKey", _, "cookie") => {
                let mut cookie = Template::from(format!("{}=", text("name")));
                cookie.append(own);
                // The writer joins it with other cookies.
                request.headers.push(("Cookie".to_owned(), cookie));
            }
            ("apiKey", ..) => request.set_header(text("name"), own),
            ("basic", ..) | ("http", "basic", _) => {
                let (user, password) =
                    (Template::variable("username"), Template::variable("password"));
                request.set_header("Authorization", basic_auth(&user, &password));
            }
            ("http", "bearer", _) | ("oauth2" | "openIdConnect", ..) => {
                let mut value = Template::from("Bearer ");
                value.append(own);
                request.set_header("Authorization", value);
            }
            (kind, scheme, _) => {
                let kind = if scheme.is_empty() { kind } else { scheme };
                self.script
                    .warnings
                    .add("a security scheme that k6 does not support is left out", kind);
            }
        }
    }
}
