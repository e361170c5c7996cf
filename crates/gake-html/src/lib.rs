//! HTML: parsed pages, and selectors that find their elements.
//!
//! [`Page`] is a tree of numbered nodes, parsed by `html5ever`; [`CssSelector`] finds elements.

mod page;
mod parse;
mod selector;
mod selector_text;
mod write;

pub use page::{NodeData, NodeNumber, Page};
pub use parse::{DEPTH_MAX, ParseError};
pub use selector::CssSelector;

/// A page without limits.
#[cfg(test)]
fn parse(text: &str) -> Page {
    Page::parse(text, || false, |_| true).unwrap_or_else(|why| panic!("{why:?}"))
}
