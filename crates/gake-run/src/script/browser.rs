//! The module `k6/browser`.

use gake_k6::extension::Extension;

pub(super) static BROWSER: Option<&Extension> = Some(&gake_browser::BROWSER);
