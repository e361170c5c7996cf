//! Basic authentication.

/// The header of basic authentication (RFC 7617) for `user:password`.
#[must_use]
pub fn basic_authorization(user: &str) -> (String, String) {
    use base64::Engine as _;
    let encoded = base64::engine::general_purpose::STANDARD.encode(user);
    ("Authorization".to_owned(), format!("Basic {encoded}"))
}
