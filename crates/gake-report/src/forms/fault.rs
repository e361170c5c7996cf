//! Faults, as the run file has them.

use std::sync::Mutex;

use gake_core::record::{Fault, Phase};
use serde::{Deserialize, Serialize};

/// A fault and how often it occurred.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FaultForm {
    name: String,
    /// What is known beyond the name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    reason: String,
    /// The system's error number, of `other`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    errno: Option<i32>,
    pub(crate) count: u64,
}

impl FaultForm {
    pub(crate) fn new(fault: Fault, count: u64) -> Self {
        let errno = if let Fault::Other(errno) = fault { Some(errno) } else { None };
        Self { name: fault.name().to_owned(), reason: fault.detail(), errno, count }
    }

    /// The fault, or `None` when the name is not one we know.
    pub(crate) fn fault(&self) -> Option<Fault> {
        let known = [
            Fault::Dns,
            Fault::ConnectRefused,
            Fault::ConnectTimeout,
            Fault::ConnectReset,
            Fault::NoLocalPort,
            Fault::NoDescriptors,
            Fault::Write,
            Fault::Reset,
            Fault::ClosedEarly,
            Fault::RedirectLimit,
            Fault::Script,
        ];
        if let Some(fault) = known.into_iter().find(|fault| fault.name() == self.name) {
            return Some(fault);
        }
        Some(match self.name.as_str() {
            "tls" => Fault::Tls(kept(&self.reason)),
            "malformed" => Fault::Malformed(kept(&self.reason)),
            "too_large" => Fault::TooLarge(kept(&self.reason)),
            "other" => Fault::Other(self.errno.unwrap_or(0)),
            "timeout" => Fault::Timeout(
                [Phase::Connect, Phase::FirstByte, Phase::Body]
                    .into_iter()
                    .find(|phase| Fault::Timeout(*phase).detail() == self.reason)
                    .unwrap_or(Phase::FirstByte),
            ),
            _ => return None,
        })
    }
}

/// Reasons kept for the life of the process, at most so many: the core's faults hold static
/// texts, and those of a file are not.
const KEPT_MAX: usize = 256;

fn kept(reason: &str) -> &'static str {
    static KEPT: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());
    // A panic elsewhere cannot leave the list half written.
    let mut list = KEPT.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(known) = list.iter().find(|known| **known == reason) {
        return known;
    }
    if list.len() >= KEPT_MAX || reason.len() > 200 {
        return "another reason";
    }
    let text: &'static str = Box::leak(reason.to_owned().into_boxed_str());
    list.push(text);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_comes_back() {
        for fault in [
            Fault::Dns,
            Fault::ConnectRefused,
            Fault::ConnectTimeout,
            Fault::ConnectReset,
            Fault::NoLocalPort,
            Fault::NoDescriptors,
            Fault::Tls("unknown issuer"),
            Fault::Write,
            Fault::Reset,
            Fault::ClosedEarly,
            Fault::Malformed("bad \"status\" line"),
            Fault::Timeout(Phase::Connect),
            Fault::Timeout(Phase::FirstByte),
            Fault::Timeout(Phase::Body),
            Fault::TooLarge("head"),
            Fault::RedirectLimit,
            Fault::Script,
            Fault::Other(0),
            Fault::Other(113),
        ] {
            let text = serde_json::to_string(&FaultForm::new(fault, 7)).unwrap();
            let form: FaultForm = serde_json::from_str(&text).unwrap();
            assert_eq!((form.fault(), form.count), (Some(fault), 7), "{text}");
        }
        let unknown = FaultForm { name: "new".into(), ..FaultForm::new(Fault::Dns, 1) };
        assert_eq!(unknown.fault(), None);
    }
}
