//! What stands for hooks in JavaScript in a build without the feature `scripts`: they are refused.

use std::sync::Arc;

use crate::Proxy;
use crate::config::Config;
pub use crate::hooks::HookScript;

impl HookScript {
    /// Refuses.
    ///
    /// # Errors
    /// Always.
    pub fn add(&self, _: &Config, _: ConsoleSink, _: Proxy) -> Result<Proxy, String> {
        Err(format!(
            "{}: this build runs no scripts: it was made without the feature `scripts`",
            self.path.display()
        ))
    }
}

/// What a line of a script's console is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// `console.log`, `info` and `debug`.
    Log,
    /// `console.warn`.
    Warn,
    /// `console.error`.
    Error,
}

/// Where the lines of scripts would go.
pub type ConsoleSink = Arc<dyn Fn(Level, &str) + Send + Sync>;
