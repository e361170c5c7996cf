//! Modules that are not k6's own, such as `k6/x/redis`: the crate above adds them to a test.

use std::fmt;
use std::sync::OnceLock;

use rquickjs::{Ctx, Object};

use crate::version::K6Version;

/// Creates the exports of a module for the user of a context.
pub type MakeModule = for<'js> fn(&Ctx<'js>) -> rquickjs::Result<Object<'js>>;

/// A module that scripts may import.
#[derive(Clone, Copy)]
pub struct Extension {
    /// The name of the import.
    pub name: &'static str,
    /// Creates its exports.
    pub make: MakeModule,
    /// The only version of k6 that has it; all if `None`.
    pub version: Option<K6Version>,
}

impl fmt::Debug for Extension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Extension").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The extensions of a test.
#[derive(Debug, Default)]
pub struct Extensions(OnceLock<Vec<&'static Extension>>);

impl Extensions {
    /// Sets them, once.
    pub fn set(&self, extensions: impl IntoIterator<Item = &'static Extension>) {
        let _ = self.0.set(extensions.into_iter().collect());
    }

    /// The extension that scripts import by this name under a version of k6.
    pub(crate) fn find(&self, name: &str, version: K6Version) -> Option<&'static Extension> {
        let is_it = |known: &&&Extension| {
            known.name == name && known.version.is_none_or(|only| only == version)
        };
        self.0.get()?.iter().find(is_it).copied()
    }

    /// Whether scripts may drive a browser.
    #[must_use]
    pub fn have_browser(&self) -> bool {
        self.0.get().is_some_and(|all| all.iter().any(|known| known.name == "k6/browser"))
    }

    /// The names of those whose name starts so.
    pub(crate) fn names(&self, start: &str) -> Vec<&'static str> {
        let all = self.0.get().into_iter().flatten();
        all.map(|known| known.name).filter(|name| name.starts_with(start)).collect()
    }
}
