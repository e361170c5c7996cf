//! Error messages of `JSON.parse` by the published QuickJS.

/// The message for a text that is not JSON; `None`: QuickJS's own.
pub type WhyNotJson = fn(&[u8]) -> Option<String>;

/// Has no effect: the published QuickJS has its own messages.
pub fn explain_json(_: WhyNotJson) {}
