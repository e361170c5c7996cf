//! A parsed page: a tree of numbered nodes.

use std::cell::Cell;

use html5ever::QualName;

/// The number of a node in its page.
pub type NodeNumber = usize;

/// Steps of a search between polls.
const STEPS: u32 = 1_024;

/// A page. Node 0 is the document.
#[derive(Debug)]
pub struct Page {
    pub(crate) nodes: Vec<Node>,
    /// Whether a search must end.
    pub(crate) poll: fn() -> bool,
    pub(crate) steps: Cell<u32>,
    pub(crate) is_cut: Cell<bool>,
}

#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) parent: Option<NodeNumber>,
    pub(crate) children: Vec<NodeNumber>,
    pub(crate) depth: usize,
    pub(crate) data: NodeData,
}

/// The kind of a node, with its content.
#[derive(Debug)]
pub enum NodeData {
    /// The root.
    Document,
    /// `<!DOCTYPE ...>`, with its name.
    Doctype(String),
    /// A comment's text.
    Comment(String),
    /// Text.
    Text(String),
    /// An element.
    Element {
        /// Its name.
        name: QualName,
        /// Its attributes, in order.
        attributes: Vec<(String, String)>,
    },
}

impl Page {
    /// The document.
    pub const ROOT: NodeNumber = 0;

    /// Whether a search since the last call was ended by the page's poll, and is incomplete.
    pub fn take_cut(&self) -> bool {
        self.is_cut.replace(false)
    }

    /// Counts a step of a search. Returns false once the search must end.
    pub(crate) fn step(&self) -> bool {
        self.steps.set(self.steps.get().wrapping_add(1));
        if self.steps.get().is_multiple_of(STEPS) && (self.poll)() {
            self.is_cut.set(true);
        }
        !self.is_cut.get()
    }

    /// Whether a node with this number exists; the other methods panic if it does not.
    #[must_use]
    pub fn has(&self, node: NodeNumber) -> bool {
        node < self.nodes.len()
    }

    /// The kind of a node, with its content.
    #[must_use]
    pub fn data(&self, node: NodeNumber) -> &NodeData {
        &self.nodes[node].data
    }

    /// The parent of a node.
    #[must_use]
    pub fn parent(&self, node: NodeNumber) -> Option<NodeNumber> {
        self.nodes[node].parent
    }

    /// The children of a node, in order.
    #[must_use]
    pub fn children(&self, node: NodeNumber) -> &[NodeNumber] {
        &self.nodes[node].children
    }

    /// The child elements of a node, in order.
    pub fn elements(&self, node: NodeNumber) -> impl DoubleEndedIterator<Item = NodeNumber> {
        self.children(node).iter().copied().filter(|child| self.step() && self.is_element(*child))
    }

    /// Whether a node is an element.
    #[must_use]
    pub fn is_element(&self, node: NodeNumber) -> bool {
        matches!(self.data(node), NodeData::Element { .. })
    }

    /// The name of an element; empty for anything else.
    #[must_use]
    pub fn name(&self, node: NodeNumber) -> &str {
        match self.data(node) {
            NodeData::Element { name, .. } => &name.local,
            _ => "",
        }
    }

    /// The attributes of an element; empty for other nodes.
    #[must_use]
    pub fn attributes(&self, node: NodeNumber) -> &[(String, String)] {
        match self.data(node) {
            NodeData::Element { attributes, .. } => attributes,
            _ => &[],
        }
    }

    /// The value of an attribute.
    #[must_use]
    pub fn attribute(&self, node: NodeNumber, name: &str) -> Option<&str> {
        let found = self.attributes(node).iter().find(|(known, _)| known == name)?;
        Some(&found.1)
    }

    /// Every node below a node, in the page's order.
    pub fn descendants(&self, node: NodeNumber) -> impl Iterator<Item = NodeNumber> {
        let mut waiting: Vec<NodeNumber> = self.children(node).iter().rev().copied().collect();
        std::iter::from_fn(move || {
            let next = waiting.pop().filter(|_| self.step())?;
            waiting.extend(self.children(next).iter().rev());
            Some(next)
        })
    }

    /// The text of a node and its descendants.
    #[must_use]
    pub fn text(&self, node: NodeNumber) -> String {
        let all = std::iter::once(node).chain(self.descendants(node));
        all.filter_map(|node| match self.data(node) {
            NodeData::Text(text) => Some(text.as_str()),
            _ => None,
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_through_elements() {
        let page = crate::parse("<p>one <b>two</b><!-- no --></p><p>three");
        assert_eq!(page.text(Page::ROOT), "one twothree");
        let bold = page.descendants(Page::ROOT).find(|node| page.name(*node) == "b").unwrap();
        assert_eq!(page.name(page.parent(bold).unwrap()), "p");
    }
}
