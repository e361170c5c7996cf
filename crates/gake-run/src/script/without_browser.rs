//! A build that drives no browser.

use gake_k6::extension::Extension;

pub(super) static BROWSER: Option<&Extension> = None;
