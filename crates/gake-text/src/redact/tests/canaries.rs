//! Names of secrets, for unit tests and tests of commands.

/// Names of parameters.
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

/// Names of headers.
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
