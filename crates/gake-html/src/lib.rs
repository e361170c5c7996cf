//! HTML: parsed pages, and selectors that find their elements.
//!
//! [`Page`] is a tree of numbered nodes, parsed by `html5ever`; [`CssSelector`] finds elements.

mod page;
mod parse;
mod selector;
mod selector_text;
mod write;

pub use page::{NodeData, NodeNumber, Page};
pub use selector::CssSelector;
