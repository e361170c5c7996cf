//! Scripts of requests, folders and collections.

use serde_json::Value;

use super::javascript::{TranslatedScript, translate};
use super::{is_enabled, list};
use crate::script::{ScriptDraft, ScriptRequest};
use crate::template::quoted;
use crate::writer::comment;

/// The scripts before and after a request, outer ones first.
#[derive(Clone, Default)]
pub(super) struct EventScripts<'a>(Vec<EventScript<'a>>);

#[derive(Clone)]
struct EventScript<'a> {
    is_test: bool,
    /// The name of the item that defines it.
    owner: &'a str,
    /// The depth of the item: the request's own script or a folder's.
    depth: usize,
    code: String,
}

impl<'a> EventScripts<'a> {
    /// Adds the scripts of an item.
    pub(super) fn add(&mut self, events: Option<&'a Value>, owner: &'a str) {
        let depth = self.0.last().map_or(0, |event| event.depth + 1);
        for event in list(events).filter(|event| is_enabled(event)) {
            let code = match event.pointer("/script/exec") {
                Some(Value::Array(lines)) => {
                    lines.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n")
                }
                Some(Value::String(code)) => code.clone(),
                _ => continue,
            };
            let is_test = event.get("listen").and_then(Value::as_str) == Some("test");
            if !code.trim().is_empty() {
                self.0.push(EventScript { is_test, owner, depth, code });
            }
        }
    }

    /// Adds the scripts to a request, quoting what cannot be translated.
    pub(super) fn translate(&self, request: &mut ScriptRequest, script: &mut ScriptDraft) {
        let title = request.remarks.first().cloned().unwrap_or_default();
        for event in &self.0 {
            let translated = translate(&event.code, event.is_test);
            quote(&translated, event, event.owner == title, request, script);
            let lines = block(&translated, event.owner);
            match event.is_test {
                true => {
                    request.has_own_checks |= translated.has_checks;
                    request.after.extend(lines);
                }
                false => request.before.extend(lines),
            }
        }
    }
}

/// Quotes what is not translated: at the request, or for a folder once at the top.
fn quote(
    translated: &TranslatedScript,
    event: &EventScript,
    is_own: bool,
    request: &mut ScriptRequest,
    script: &mut ScriptDraft,
) {
    if translated.lost.is_empty() {
        return;
    }
    let what = if event.is_test { "test script" } else { "pre-request script" };
    let mut lines = vec![format!("// Not translated, of the {what} of {}:", quoted(event.owner))];
    let lost = translated.lost.iter().flat_map(|statement| statement.lines());
    lines.extend(lost.map(|line| comment(&format!("  {line}"))));
    let is_new = if is_own {
        match event.is_test {
            true => request.after.extend(lines),
            false => request.before.extend(lines),
        }
        true
    } else {
        let text = lines.join("\n");
        let is_new = !script.init.contains(&text);
        if is_new {
            script.init.push(text);
        }
        is_new
    };
    if is_new {
        let kind = "a Postman script is translated only in part: the rest is quoted in comments";
        script.warnings.add(kind, event.owner);
    }
}

/// The lines, wrapped so that an error does not end the iteration if they can throw.
fn block(translated: &TranslatedScript, owner: &str) -> Vec<String> {
    let lines = translated.lines.iter().flat_map(|one| one.lines()).map(str::to_owned);
    if !translated.can_throw {
        return lines.collect();
    }
    let open = format!("attempt({}, () => {{", quoted(owner));
    let lines = lines.map(|line| format!("  {line}"));
    std::iter::once(open).chain(lines).chain(["});".to_owned()]).collect()
}
