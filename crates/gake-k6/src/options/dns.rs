//! How names are resolved.

use serde::Serialize;
use serde_json::Value;

use super::value::{OptionValue, known, object};

/// The options of name resolution.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct DnsOptions {
    /// The time to live of cached addresses: a duration, `inf` or `0`.
    pub ttl: Option<String>,
    /// The selection of an address: `first`, `random`, `roundRobin`.
    pub select: Option<String>,
    /// The address family: `preferIPv4`, `preferIPv6`, `onlyIPv4`, `onlyIPv6`, `any`.
    pub policy: Option<String>,
}

const SELECT: [&str; 3] = ["first", "random", "roundRobin"];
const POLICY: [&str; 5] = ["preferIPv4", "preferIPv6", "onlyIPv4", "onlyIPv6", "any"];

fn one_of(value: &Value, choices: &[&str], what: &str) -> Result<Option<String>, String> {
    let text = String::from_json(value)?;
    match &text {
        Some(text) if !choices.contains(&text.as_str()) => {
            Err(format!("{text} does not belong to {what} values"))
        }
        _ => Ok(text),
    }
}

impl OptionValue for DnsOptions {
    fn from_json(value: &Value) -> Result<Option<Self>, String> {
        let (entries, _) = known(object(value, "types.DNSConfig")?, &["ttl", "select", "policy"]);
        let mut dns = Self::default();
        for (key, value) in entries {
            match key {
                "ttl" => dns.ttl = OptionValue::from_json(value)?,
                "select" => dns.select = one_of(value, &SELECT, "DNSSelect")?,
                _ => dns.policy = one_of(value, &POLICY, "DNSPolicy")?,
            }
        }
        Ok(Some(dns))
    }
}
