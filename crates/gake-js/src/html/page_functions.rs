//! Native functions of pages, for selections and elements.

use std::rc::Rc;

use rquickjs::{Ctx, Object, Value};
use url::Url;

use super::{HeldPage, SharedPage};
use crate::errors::{fail, go_error};
use crate::native::named;
use crate::value::{self, given};
use gake_html::{CssSelector, NodeData, NodeNumber, Page};

pub(super) fn make<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
    let native = Object::new(ctx.clone())?;
    let parse = |ctx: Ctx<'js>, text: Value<'js>| {
        let text = given(Some(text)).map(|text| value::text(&ctx, &text)).transpose()?;
        page(&ctx, &Rc::new(HeldPage::parse(&ctx, &text.unwrap_or_default())?))
    };
    native.set("parse", named("k6/html", "parseHTML", parse))?;
    native.set("fail", named("Selection", "fail", fail))?;
    // Resolves a URL against another; unchanged if that is invalid.
    let join = |base: String, url: String| match Url::parse(&base) {
        Ok(base) => base.join(&url).map_or(url, String::from),
        Err(_) => url,
    };
    native.set("join", named("Selection", "join", join))?;
    native.set("parts", named("Selection", "parts", parts))?;
    native.set("encode", named("Selection", "encode", |pairs: Vec<Vec<String>>| encode(&pairs)))?;
    Ok(native)
}

/// The components of a URL by the property names of links.
fn parts<'js>(ctx: Ctx<'js>, url: String) -> rquickjs::Result<Object<'js>> {
    let parts = Object::new(ctx)?;
    let Ok(url) = Url::parse(&url) else { return Ok(parts) };
    let host = url.host_str().unwrap_or_default();
    let port = url.port().map_or_else(String::new, |port| port.to_string());
    let prefixed = |sign: &str, text: Option<&str>| match text {
        Some(text) if !text.is_empty() => format!("{sign}{text}"),
        _ => String::new(),
    };
    parts.set("protocol", format!("{}:", url.scheme()))?;
    parts.set("hostname", host)?;
    parts.set("host", format!("{host}{}", prefixed(":", Some(&port))))?;
    parts.set("port", port)?;
    parts.set("pathname", url.path())?;
    parts.set("search", prefixed("?", url.query()))?;
    parts.set("hash", prefixed("#", url.fragment()))?;
    parts.set("origin", url.origin().ascii_serialization())?;
    parts.set("username", url.username())?;
    parts.set("password", url.password().unwrap_or_default())?;
    Ok(parts)
}

fn encode(pairs: &[Vec<String>]) -> String {
    let mut form = url::form_urlencoded::Serializer::new(String::new());
    for pair in pairs {
        if let [name, value] = pair.as_slice() {
            form.append_pair(name, value);
        }
    }
    form.finish()
}

/// The DOM's `nodeName`.
fn name(page: &Page, node: NodeNumber) -> String {
    match page.data(node) {
        NodeData::Document => "#document".to_owned(),
        NodeData::Doctype(name) => name.clone(),
        NodeData::Comment(_) => "#comment".to_owned(),
        NodeData::Text(_) => "#text".to_owned(),
        NodeData::Element { .. } => page.name(node).to_owned(),
    }
}

/// The functions of one page.
fn page<'js>(ctx: &Ctx<'js>, page: &SharedPage) -> rquickjs::Result<Object<'js>> {
    let object = Object::new(ctx.clone())?;
    /// Adds a function of a node.
    macro_rules! node_function {
        ($name:literal, |$page:ident, $node:ident| $value:expr) => {{
            let $page = Rc::clone(page);
            let read = move |ctx: Ctx<'js>, $node: NodeNumber| match $page.has($node) {
                true => $page.found(&ctx, $value),
                false => Err(go_error(&ctx, "no such node")),
            };
            object.set($name, named("Selection", $name, read))?;
        }};
    }
    node_function!("name", |page, node| name(&page, node));
    node_function!("kind", |page, node| match page.data(node) {
        NodeData::Element { .. } => 1,
        NodeData::Text(_) => 3,
        NodeData::Comment(_) => 8,
        NodeData::Document => 9,
        NodeData::Doctype(_) => 10,
    });
    node_function!("value", |page, node| match page.data(node) {
        NodeData::Text(text) | NodeData::Comment(text) => Some(text.clone()),
        _ => None,
    });
    node_function!("parent", |page, node| page.parent(node));
    node_function!("children", |page, node| page.children(node).to_vec());
    node_function!("elements", |page, node| page.elements(node).collect::<Vec<_>>());
    node_function!("text", |page, node| page.text(node));
    node_function!("html", |page, node| page.inner_html(node));
    node_function!("attributes", |page, node| {
        let attributes = page.attributes(node).iter();
        attributes.map(|(name, value)| vec![name.clone(), value.clone()]).collect::<Vec<_>>()
    });
    let shared = Rc::clone(page);
    let attribute = move |node: NodeNumber, name: String| {
        let value = shared.has(node).then(|| shared.attribute(node, &name.to_lowercase()));
        value.flatten().map(str::to_owned)
    };
    object.set("attribute", named("Selection", "attribute", attribute))?;
    let shared = Rc::clone(page);
    let matches = move |ctx: Ctx<'js>, node: NodeNumber, selector: String| {
        let selector = CssSelector::parse(&selector);
        let does = |selector: CssSelector| selector.matches(&shared, node);
        shared.found(&ctx, shared.has(node) && selector.is_some_and(does))
    };
    object.set("matches", named("Selection", "matches", matches))?;
    let shared = Rc::clone(page);
    // Among the descendants of these nodes, each match once.
    let find = move |ctx: Ctx<'js>, nodes: Vec<NodeNumber>, selector: String| {
        let mut found = Vec::new();
        let Some(selector) = CssSelector::parse(&selector) else { return Ok(found) };
        let mut seen = std::collections::HashSet::new();
        for node in nodes.into_iter().filter(|node| shared.has(*node)) {
            found.extend(selector.below(&shared, node).filter(|node| seen.insert(*node)));
        }
        shared.found(&ctx, found)
    };
    object.set("find", named("Selection", "find", find))?;
    Ok(object)
}
