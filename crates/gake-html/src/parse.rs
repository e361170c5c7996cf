//! Parses HTML into a page.

use std::borrow::Cow;
use std::cell::RefCell;

use html5ever::interface::{ElemName, ElementFlags, NodeOrText, QuirksMode, TreeSink};
use html5ever::tendril::{StrTendril, TendrilSink};
use html5ever::{Attribute, LocalName, Namespace, ParseOpts, QualName, parse_document};

use crate::page::{Node, NodeData, NodeNumber, Page};

impl Page {
    /// Parses HTML as browsers do; this never fails.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let document = Node { parent: None, children: Vec::new(), data: NodeData::Document };
        let builder = PageBuilder { nodes: RefCell::new(vec![document]) };
        let mut options = ParseOpts::default();
        options.tree_builder.scripting_enabled = true;
        parse_document(builder, options).one(text)
    }
}

struct PageBuilder {
    nodes: RefCell<Vec<Node>>,
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
        nodes.push(Node { parent: None, children: Vec::new(), data });
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
                    return;
                }
                drop(nodes);
                self.add(NodeData::Text(text.to_string()))
            }
        };
        let mut nodes = self.nodes.borrow_mut();
        nodes[node].parent = Some(parent);
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
        Page { nodes: self.nodes.into_inner() }
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
