//! A build without modules beside k6's own.

use gake_k6::extension::Extension;

pub(super) static EXTENSIONS: &[Extension] = &[];
