//! How a gRPC call ended: its status.

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

    /// The server does not know why the call failed.
    pub const UNKNOWN: Self = Self(2);

    /// The deadline passed before the call ended.
    pub const DEADLINE_EXCEEDED: Self = Self(4);

    /// The server has shed the call, or the caller is over its quota.
    pub const RESOURCE_EXHAUSTED: Self = Self(8);

    /// The server does not have the method.
    pub const UNIMPLEMENTED: Self = Self(12);

    /// The server cannot take the call now.
    pub const UNAVAILABLE: Self = Self(14);

    /// The status with this number.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Its number.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// Its name; none if the number is not assigned.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        NAMES.get(self.0 as usize).copied()
    }

    /// All assigned codes with their names.
    pub fn all() -> impl Iterator<Item = (Self, &'static str)> {
        (0..).map(Self).zip(NAMES)
    }

    /// Reads what `to_string` has written; [`GrpcStatus::UNKNOWN`] for anything else.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let number = text.split(' ').next().and_then(|number| number.parse().ok());
        number.map_or(Self::UNKNOWN, Self)
    }
}

impl fmt::Display for GrpcStatus {
    /// The number, and the name if it has one.
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
    fn statuses_have_their_names_and_come_back() {
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
