//! Status codes of gRPC calls.

use std::fmt;

/// The status code of a gRPC call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GrpcStatus(u32);

/// The names of the codes, by number.
const NAMES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

impl GrpcStatus {
    /// The call succeeded.
    pub const OK: Self = Self(0);

    /// Unknown error.
    pub const UNKNOWN: Self = Self(2);

    /// The deadline passed before the call ended.
    pub const DEADLINE_EXCEEDED: Self = Self(4);

    /// The call was shed, or the caller is over its quota.
    pub const RESOURCE_EXHAUSTED: Self = Self(8);

    /// The server does not implement the method.
    pub const UNIMPLEMENTED: Self = Self(12);

    /// The server is currently unavailable.
    pub const UNAVAILABLE: Self = Self(14);

    /// The status with this number.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// The number of the code.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// The name of the code; `None` if it is not assigned.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        NAMES.get(self.0 as usize).copied()
    }

    /// All assigned codes with their names.
    pub fn all() -> impl Iterator<Item = (Self, &'static str)> {
        (0..).map(Self).zip(NAMES)
    }

    /// Parses the output of `to_string`; [`GrpcStatus::UNKNOWN`] if invalid.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let number = text.split(' ').next().and_then(|number| number.parse().ok());
        number.map_or(Self::UNKNOWN, Self)
    }
}

impl fmt::Display for GrpcStatus {
    /// The number and the name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{} {name}", self.0),
            None => write!(f, "{}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_displayed_with_their_names_and_parsed() {
        for (status, text) in
            [(0, "0 OK"), (5, "5 NOT_FOUND"), (16, "16 UNAUTHENTICATED"), (77, "77")]
        {
            assert_eq!(GrpcStatus::new(status).to_string(), text);
            assert_eq!(GrpcStatus::read(text), GrpcStatus::new(status));
        }
        assert_eq!(GrpcStatus::read("?"), GrpcStatus::UNKNOWN);
        assert!(GrpcStatus::all().any(|one| one == (GrpcStatus::UNAVAILABLE, "UNAVAILABLE")));
    }
}
