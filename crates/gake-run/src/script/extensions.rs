//! Modules that scripts may import beside k6's own.

pub(super) use gake_extensions::EXTENSIONS;
