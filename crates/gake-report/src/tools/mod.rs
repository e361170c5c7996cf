//! What other tools print: pure text from what was recorded, to the letter of each tool.

mod spectrum;
pub mod wrk;
