//! Writes a page as HTML, as Go's `net/html` does.

use crate::page::{NodeData, NodeNumber, Page};
use crate::parse::DEPTH_MAX;

/// Elements without an end tag.
const VOID: [&str; 14] = [
    "area", "base", "br", "col", "embed", "hr", "img", "input", "keygen", "link", "meta", "source",
    "track", "wbr",
];

/// Elements whose text is not HTML.
const RAW: [&str; 7] = ["iframe", "noembed", "noframes", "plaintext", "script", "style", "xmp"];

impl Page {
    /// The content of a node as HTML.
    #[must_use]
    pub fn inner_html(&self, node: NodeNumber) -> String {
        let mut html = String::new();
        self.write_children(node, &mut html, 0);
        html
    }

    /// Leaves out what the parser moved far below its depth: this uses the stack.
    fn write_children(&self, node: NodeNumber, html: &mut String, depth: usize) {
        if depth > 2 * DEPTH_MAX {
            return;
        }
        for child in self.children(node) {
            self.write(*child, html, depth + 1);
        }
    }

    fn write(&self, node: NodeNumber, html: &mut String, depth: usize) {
        match self.data(node) {
            NodeData::Document => self.write_children(node, html, depth),
            NodeData::Doctype(name) => html.extend(["<!DOCTYPE ", name, ">"]),
            NodeData::Comment(text) => html.extend(["<!--", text, "-->"]),
            NodeData::Text(text) => {
                let around = self.parent(node).map_or("", |parent| self.name(parent));
                match RAW.contains(&around) {
                    true => html.push_str(text),
                    false => escape(text, html),
                }
            }
            NodeData::Element { name, attributes } => {
                html.extend(["<", &name.local]);
                for (name, value) in attributes {
                    html.extend([" ", name, "=\""]);
                    escape(value, html);
                    html.push('"');
                }
                if VOID.contains(&&*name.local) {
                    html.push_str("/>");
                    return;
                }
                html.push('>');
                self.write_children(node, html, depth);
                html.extend(["</", &name.local, ">"]);
            }
        }
    }
}

fn escape(text: &str, html: &mut String) {
    for c in text.chars() {
        match c {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&#34;"),
            '\'' => html.push_str("&#39;"),
            '\r' => html.push_str("&#13;"),
            c => html.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_written_as_it_was_read() {
        for (text, written) in [
            ("", "<html><head></head><body></body></html>"),
            (
                "<!DOCTYPE html><title>T</title><p id='a\"b'>x &amp; y<br>",
                "<!DOCTYPE html><html><head><title>T</title></head><body><p id=\"a&#34;b\">x &amp; \
                 y<br/></p></body></html>",
            ),
            (
                "<script>a < b</script><!-- c --><table>x<tr><td>1",
                "<html><head><script>a < b</script><!-- c --></head><body>x<table><tbody><tr>\
                 <td>1</td></tr></tbody></table></body></html>",
            ),
        ] {
            assert_eq!(crate::parse(text).inner_html(Page::ROOT), written);
        }
    }
}
