//! A build without modules of other protocols and of made-up data.

use gake_k6::extension::Extension;

pub(super) static EXTENSIONS: &[Extension] = &[];
