//! Names whose values are secrets: for the unit tests, and for the tests that type commands.

/// Of parameters.
pub const PARAMETERS: [&str; 12] = [
    "token",
    "access_token",
    "api_key",
    "password",
    "code",
    "auth",
    "jwt",
    "otp",
    "pwd",
    "session",
    "state",
    "key",
];

/// Of headers.
pub const HEADERS: [&str; 10] = [
    "X-Access-Token",
    "X-Amz-Security-Token",
    "X-Goog-Api-Key",
    "Api-Key",
    "X-Vault-Token",
    "PRIVATE-TOKEN",
    "X-Gitlab-Token",
    "X-CSRF-Token",
    "X-Session-Id",
    "DPoP",
];
