//! HTML for scripts: a parsed page, and selectors on it.
//!
//! [`Page`] is what `html5ever` makes of a text; [`CssSelector`] finds elements in it. Both are plain
//! values and know nothing of scripts.

mod page;
mod parse;
mod selector;
mod selector_text;
mod write;

pub use page::{NodeData, NodeNumber, Page};
pub use selector::CssSelector;
