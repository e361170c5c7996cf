//! Parses HTML into a page.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};

use html5ever::interface::{ElemName, ElementFlags, NodeOrText, QuirksMode, TreeSink};
use html5ever::tendril::{StrTendril, TendrilSink};
use html5ever::{Attribute, LocalName, Namespace, ParseOpts, QualName, parse_document};

use crate::page::{Node, NodeData, NodeNumber, Page};

impl Page {
    /// Parses HTML as browsers do. `poll`, which searches of the page call too, returns whether to
    /// end; `fits` is given more and more bytes that the page takes, and returns whether there is
    /// room for them.
    ///
    /// # Errors
    /// When one of them ends it, or elements are nested deeper than [`DEPTH_MAX`].
    pub fn parse(
        mut text: &str,
        poll: fn() -> bool,
        mut fits: impl FnMut(usize) -> bool,
    ) -> Result<Self, ParseError> {
        let builder = PageBuilder {
            nodes: RefCell::default(),
            bytes: Cell::new(0),
            deepest: Cell::new(0),
            poll,
        };
        builder.add(NodeData::Document);
        let mut options = ParseOpts::default();
        options.tree_builder.scripting_enabled = true;
        let mut parser = parse_document(builder, options);
        while !text.is_empty() {
            let (chunk, rest) = text.split_at(text.floor_char_boundary(CHUNK));
            parser.process(StrTendril::from_slice(chunk));
            text = rest;
            let builder = &parser.tokenizer.sink.sink;
            if builder.deepest.get() > DEPTH_MAX {
                return Err(ParseError::TooDeep);
            }
            if !fits(builder.bytes.take()) {
                return Err(ParseError::TooLarge);
            }
            if poll() {
                return Err(ParseError::Ended);
            }
        }
        Ok(parser.finish())
    }
}

/// Maximum depth of nested elements, as in Go: some steps of the parser, and many searches, take as
/// long as an element is deep.
pub const DEPTH_MAX: usize = 512;

/// Bytes parsed between polls.
const CHUNK: usize = 1 << 10;

/// Why a page was not parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParseError {
    /// Elements are nested deeper than [`DEPTH_MAX`].
    TooDeep,
    /// There is no room for it.
    TooLarge,
    /// The caller's poll ended it.
    Ended,
}

struct PageBuilder {
    nodes: RefCell<Vec<Node>>,
    /// Bytes added since they were last counted.
    bytes: Cell<usize>,
    deepest: Cell<usize>,
    poll: fn() -> bool,
}

/// The memory of a node.
fn size(data: &NodeData) -> usize {
    let content = match data {
        NodeData::Document => 0,
        NodeData::Doctype(text) | NodeData::Comment(text) | NodeData::Text(text) => text.len(),
        NodeData::Element { attributes, .. } => {
            let pairs = attributes.iter().map(|(name, value)| name.len() + value.len());
            pairs.sum::<usize>() + attributes.len() * size_of::<(String, String)>()
        }
    };
    // It is also a child.
    size_of::<Node>() + size_of::<NodeNumber>() + content
}

#[derive(Debug)]
struct Name(QualName);

impl ElemName for Name {
    fn ns(&self) -> &Namespace {
        &self.0.ns
    }

    fn local_name(&self) -> &LocalName {
        &self.0.local
    }
}

impl PageBuilder {
    fn add(&self, data: NodeData) -> NodeNumber {
        let mut nodes = self.nodes.borrow_mut();
        self.bytes.update(|bytes| bytes + size(&data));
        nodes.push(Node { parent: None, children: Vec::new(), depth: 0, data });
        nodes.len() - 1
    }

    fn detach(&self, node: NodeNumber) {
        let mut nodes = self.nodes.borrow_mut();
        if let Some(parent) = nodes[node].parent.take() {
            nodes[parent].children.retain(|child| *child != node);
        }
    }

    /// Inserts `child` at `index` of `parent`; text is appended to a text before it.
    fn insert(&self, parent: NodeNumber, index: usize, child: NodeOrText<NodeNumber>) {
        let node = match child {
            NodeOrText::AppendNode(node) => {
                self.detach(node);
                node
            }
            NodeOrText::AppendText(text) => {
                let mut nodes = self.nodes.borrow_mut();
                let before = index.checked_sub(1).map(|index| nodes[parent].children[index]);
                if let Some(before) = before
                    && let NodeData::Text(known) = &mut nodes[before].data
                {
                    known.push_str(&text);
                    self.bytes.update(|bytes| bytes + text.len());
                    return;
                }
                drop(nodes);
                self.add(NodeData::Text(text.to_string()))
            }
        };
        let mut nodes = self.nodes.borrow_mut();
        nodes[node].parent = Some(parent);
        let depth = nodes[parent].depth + 1;
        nodes[node].depth = depth;
        if matches!(nodes[node].data, NodeData::Element { .. }) {
            self.deepest.set(self.deepest.get().max(depth));
        }
        let index = index.min(nodes[parent].children.len());
        nodes[parent].children.insert(index, node);
    }

    fn len(&self, parent: NodeNumber) -> usize {
        self.nodes.borrow()[parent].children.len()
    }
}

fn pairs(attributes: Vec<Attribute>) -> impl Iterator<Item = (String, String)> {
    let pair = |one: Attribute| (one.name.local.to_string(), one.value.to_string());
    attributes.into_iter().map(pair)
}

impl TreeSink for PageBuilder {
    type Handle = NodeNumber;
    type Output = Page;
    type ElemName<'a> = Name;

    fn finish(self) -> Page {
        let (steps, is_cut) = (Cell::new(0), Cell::new(false));
        Page { nodes: self.nodes.into_inner(), poll: self.poll, steps, is_cut }
    }

    fn parse_error(&self, _: Cow<'static, str>) {}

    fn get_document(&self) -> NodeNumber {
        Page::ROOT
    }

    fn elem_name<'a>(&'a self, target: &'a NodeNumber) -> Name {
        match &self.nodes.borrow()[*target].data {
            NodeData::Element { name, .. } => Name(name.clone()),
            _ => Name(QualName::new(None, Namespace::default(), LocalName::default())),
        }
    }

    fn create_element(
        &self,
        name: QualName,
        attributes: Vec<Attribute>,
        _: ElementFlags,
    ) -> NodeNumber {
        self.add(NodeData::Element { name, attributes: pairs(attributes).collect() })
    }

    fn create_comment(&self, text: StrTendril) -> NodeNumber {
        self.add(NodeData::Comment(text.to_string()))
    }

    fn create_pi(&self, target: StrTendril, data: StrTendril) -> NodeNumber {
        self.add(NodeData::Comment(format!("?{target} {data}")))
    }

    fn append(&self, parent: &NodeNumber, child: NodeOrText<NodeNumber>) {
        self.insert(*parent, self.len(*parent), child);
    }

    fn append_based_on_parent_node(
        &self,
        element: &NodeNumber,
        previous: &NodeNumber,
        child: NodeOrText<NodeNumber>,
    ) {
        let has_parent = self.nodes.borrow()[*element].parent.is_some();
        match has_parent {
            true => self.append_before_sibling(element, child),
            false => self.append(previous, child),
        }
    }

    fn append_doctype_to_document(&self, name: StrTendril, _: StrTendril, _: StrTendril) {
        let doctype = self.add(NodeData::Doctype(name.to_string()));
        self.append(&Page::ROOT, NodeOrText::AppendNode(doctype));
    }

    fn get_template_contents(&self, target: &NodeNumber) -> NodeNumber {
        *target
    }

    fn same_node(&self, x: &NodeNumber, y: &NodeNumber) -> bool {
        x == y
    }

    fn set_quirks_mode(&self, _: QuirksMode) {}

    fn append_before_sibling(&self, sibling: &NodeNumber, child: NodeOrText<NodeNumber>) {
        if let NodeOrText::AppendNode(node) = &child {
            self.detach(*node);
        }
        let parent = self.nodes.borrow()[*sibling].parent;
        let Some(parent) = parent else { return };
        let index = self.nodes.borrow()[parent].children.iter().position(|one| one == sibling);
        self.insert(parent, index.unwrap_or_default(), child);
    }

    fn add_attrs_if_missing(&self, target: &NodeNumber, new: Vec<Attribute>) {
        if let NodeData::Element { attributes, .. } = &mut self.nodes.borrow_mut()[*target].data {
            for (name, value) in pairs(new) {
                if !attributes.iter().any(|(known, _)| *known == name) {
                    attributes.push((name, value));
                }
            }
        }
    }

    fn remove_from_parent(&self, target: &NodeNumber) {
        self.detach(*target);
    }

    fn reparent_children(&self, node: &NodeNumber, new_parent: &NodeNumber) {
        let children = std::mem::take(&mut self.nodes.borrow_mut()[*node].children);
        for child in children {
            self.nodes.borrow_mut()[child].parent = None;
            self.append(new_parent, NodeOrText::AppendNode(child));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::CssSelector;

    thread_local!(static LEFT: Cell<u32> = const { Cell::new(0) });

    /// Ends after as many polls as are left.
    fn poll() -> bool {
        LEFT.replace(LEFT.get().saturating_sub(1)) == 0
    }

    #[test]
    fn what_a_page_may_take_is_bounded() {
        let parse = |text: &str, polls, bytes| {
            LEFT.set(polls);
            let mut left: usize = bytes;
            let fits = |bytes| left.checked_sub(bytes).map(|less| left = less).is_some();
            Page::parse(text, poll, fits).map(|page| page.nodes.len())
        };
        let (deep, wide) = ("<div>".repeat(1_000_000), "<b>x</b>".repeat(100_000));
        assert_eq!(parse(&deep, u32::MAX, usize::MAX), Err(ParseError::TooDeep));
        assert_eq!(parse(&wide, 10, usize::MAX), Err(ParseError::Ended));
        assert_eq!(parse(&wide, u32::MAX, 1 << 20), Err(ParseError::TooLarge));
        // Document, html, head, body; an element and its text each.
        assert_eq!(parse(&wide, u32::MAX, 1 << 30), Ok(200_004));
        // html and body are elements, too.
        let nested = "<div>".repeat(DEPTH_MAX - 2) + "x";
        assert_eq!(parse(&nested, u32::MAX, usize::MAX).map(|_| ()), Ok(()));
    }

    #[test]
    fn a_search_ends_when_its_page_is_polled() {
        LEFT.set(u32::MAX);
        let text = "<i>".to_owned() + &"<div><b></b>".repeat(400) + &"<b></b>".repeat(20_000);
        let page = Page::parse(&text, poll, |_| true).unwrap();
        for selector in [
            "div div div div i",
            "b:nth-child(2n+1)",
            "b ~ b",
            ":has(:has(:has(i)))",
            "b:contains(y)",
        ] {
            let selector = CssSelector::parse(selector).unwrap();
            LEFT.set(3);
            let found = selector.below(&page, Page::ROOT).count();
            assert!(page.take_cut(), "{selector:?} found {found}");
        }
        LEFT.set(u32::MAX);
        let selector = CssSelector::parse("div > div > b").unwrap();
        assert_eq!(selector.below(&page, Page::ROOT).count(), 399 + 20_000);
        assert!(!page.take_cut());
    }
}
