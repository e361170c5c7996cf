//! The formats of a summary.

pub mod csv;
pub mod json;
pub mod text;
