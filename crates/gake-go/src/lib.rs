//! Texts as Go's standard library reads, writes and refuses them: k6's users see its words and its
//! leniency in cookies, durations, URLs, dates, numbers and JSON.

pub mod cookies;
pub mod date;
pub mod duration;
pub mod json;
pub mod number;
pub mod url;
