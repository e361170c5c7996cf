//! The exact encoding of tallies.

use std::collections::BTreeMap;
use std::sync::Mutex;

use serde::de::Error as _;
use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::close_code::CloseCode;
use super::counts::Counts;
use super::error_code::ErrorCode;
use super::fault::{Fault, Phase};
use super::grpc_status::GrpcStatus;
use super::histogram::Histogram;
use super::latency::LatencyMetric;
use super::tally::{LabelTally, Tally};
use crate::metric::SeriesTable;

/// A fault and its count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultCount {
    name: String,
    /// The detail beyond the name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    reason: String,
    /// The errno of `other`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    errno: Option<i32>,
    /// Number of occurrences.
    pub count: u64,
}

impl FaultCount {
    /// `count` times `fault`.
    #[must_use]
    pub fn new(fault: Fault, count: u64) -> Self {
        let errno = match fault {
            Fault::Unreachable(errno) | Fault::Other(errno) => Some(errno),
            _ => None,
        };
        Self { name: fault.name().to_owned(), reason: fault.detail(), errno, count }
    }

    /// The fault, or `None` when this version does not know it.
    #[must_use]
    pub fn fault(&self) -> Option<Fault> {
        let known = [
            Fault::Dns,
            Fault::ConnectRefused,
            Fault::ConnectTimeout,
            Fault::ConnectReset,
            Fault::NoLocalPort,
            Fault::NoDescriptors,
            Fault::NoMemory,
            Fault::Write,
            Fault::Reset,
            Fault::RedirectLimit,
            Fault::Script,
        ];
        if let Some(fault) = known.into_iter().find(|fault| fault.name() == self.name) {
            return Some(fault);
        }
        Some(match self.name.as_str() {
            "not_allowed" => Fault::NotAllowed(interned(&self.reason)),
            "tls" => Fault::Tls(interned(&self.reason)),
            "malformed" => Fault::Malformed(interned(&self.reason)),
            "too_large" => Fault::TooLarge(interned(&self.reason)),
            "proxy" => Fault::Proxy(interned(&self.reason)),
            "quic" => Fault::Quic(interned(&self.reason)),
            "stream_reset" => Fault::StreamReset(ErrorCode::from_name(&self.reason)),
            "goaway" => Fault::Goaway(ErrorCode::from_name(&self.reason)),
            "websocket_closed" => Fault::WebSocketClosed(CloseCode::read(&self.reason)),
            "grpc_status" => Fault::Grpc(GrpcStatus::read(&self.reason)),
            "unreachable" => Fault::Unreachable(self.errno.unwrap_or(0)),
            "other" => Fault::Other(self.errno.unwrap_or(0)),
            // Old files do not distinguish the phases and have no reason.
            "closed_early" => Fault::ClosedEarly(match self.reason.is_empty() {
                true => Phase::Body,
                false => Phase::FirstByte,
            }),
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

/// Counts by fault name, for [`SeriesPoint`](super::SeriesPoint).
pub(super) mod names {
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::FaultCount;

    pub(in crate::record) fn serialize<S: Serializer>(
        faults: &[(&'static str, u64)],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        faults.serialize(serializer)
    }

    pub(in crate::record) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<(&'static str, u64)>, D::Error> {
        let faults = Vec::<(String, u64)>::deserialize(deserializer)?;
        let known = |(name, count): (String, u64)| {
            // The name does not depend on the reason.
            let reason = String::from("known");
            let fault = FaultCount { name, reason, errno: None, count };
            let known = fault.fault().map(|fault| (fault.name(), count));
            known.ok_or_else(|| D::Error::custom(format!("unknown fault {:?}", fault.name)))
        };
        faults.into_iter().map(known).collect()
    }
}

/// Maximum number of decoded reasons, which are leaked: faults hold static texts.
const REASONS_MAX: usize = 256;

fn interned(reason: &str) -> &'static str {
    static REASONS: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());
    let mut list = REASONS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(known) = list.iter().find(|known| **known == reason) {
        return known;
    }
    if list.len() >= REASONS_MAX || reason.len() > 200 {
        return "another reason";
    }
    let text: &'static str = Box::leak(reason.to_owned().into_boxed_str());
    list.push(text);
    text
}

/// Maximum number of distinct statuses, and of faults, of a tally.
const KINDS_MAX: usize = 4_096;

#[derive(Default, Deserialize)]
#[serde(default)]
struct TallyJson {
    counts: Counts,
    latency: BTreeMap<String, Histogram>,
    statuses: Vec<(u16, u64)>,
    faults: Vec<FaultCount>,
    labels: Vec<LabelTally>,
    series: SeriesTable,
    in_flight_ns: DecimalU128,
    fired: u64,
}

/// A 128-bit number as a JSON string.
#[derive(Default, Clone, Copy)]
struct DecimalU128(u128);

impl Serialize for DecimalU128 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for DecimalU128 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Self).map_err(D::Error::custom)
    }
}

impl Serialize for Tally {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let histograms = LatencyMetric::ALL.map(|metric| (metric.name(), self.latency.of(metric)));
        let latency: BTreeMap<_, _> =
            histograms.into_iter().filter(|(_, histogram)| !histogram.is_empty()).collect();
        let faults = self.faults().iter().map(|(fault, count)| FaultCount::new(*fault, *count));
        let mut form = serializer.serialize_struct("Tally", 8)?;
        form.serialize_field("counts", &self.counts)?;
        form.serialize_field("latency", &latency)?;
        form.serialize_field("statuses", self.statuses())?;
        form.serialize_field("faults", &faults.collect::<Vec<_>>())?;
        form.serialize_field("labels", self.labels())?;
        form.serialize_field("series", &self.series)?;
        form.serialize_field("in_flight_ns", &DecimalU128(self.in_flight_ns))?;
        form.serialize_field("fired", &self.fired)?;
        form.end()
    }
}

impl<'de> Deserialize<'de> for Tally {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        TallyJson::deserialize(deserializer)?.tally().map_err(D::Error::custom)
    }
}

impl TallyJson {
    fn tally(self) -> Result<Tally, String> {
        let mut tally = Tally::default();
        tally.counts = self.counts;
        for (name, histogram) in self.latency {
            let metric = LatencyMetric::ALL.into_iter().find(|metric| metric.name() == name);
            let metric = metric.ok_or_else(|| format!("unknown latency {name:?}"))?;
            *tally.latency.of_mut(metric) = histogram;
        }
        if self.statuses.len().max(self.faults.len()) > KINDS_MAX {
            return Err("too many statuses or faults".to_owned());
        }
        for (status, count) in self.statuses {
            tally.add_status(status, count);
        }
        for form in self.faults {
            let fault = form.fault().ok_or_else(|| format!("unknown fault {:?}", form.name))?;
            tally.add_fault(fault, form.count);
        }
        if self.labels.len() > usize::from(u16::MAX) + 1 {
            return Err("too many labels".to_owned());
        }
        tally.set_labels(self.labels);
        tally.series = self.series;
        tally.in_flight_ns = self.in_flight_ns.0;
        tally.fired = self.fired;
        Ok(tally)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_survives_the_encoding() {
        for fault in [
            Fault::Dns,
            Fault::ConnectRefused,
            Fault::ConnectTimeout,
            Fault::ConnectReset,
            Fault::NoLocalPort,
            Fault::NoDescriptors,
            Fault::NoMemory,
            Fault::NotAllowed("its host is outside --allow"),
            Fault::Tls("unknown issuer"),
            Fault::Write,
            Fault::Reset,
            Fault::ClosedEarly(Phase::FirstByte),
            Fault::ClosedEarly(Phase::Body),
            Fault::Malformed("bad \"status\" line"),
            Fault::Timeout(Phase::Connect),
            Fault::Timeout(Phase::FirstByte),
            Fault::Timeout(Phase::Body),
            Fault::TooLarge("head"),
            Fault::Proxy("it refused CONNECT"),
            Fault::RedirectLimit,
            Fault::StreamReset(ErrorCode::Cancel),
            Fault::StreamReset(ErrorCode::Unknown),
            Fault::StreamReset(ErrorCode::H3RequestCancelled),
            Fault::Goaway(ErrorCode::NoError),
            Fault::Quic("idle_timeout"),
            Fault::WebSocketClosed(CloseCode::NONE),
            Fault::WebSocketClosed(CloseCode::new(1001)),
            Fault::WebSocketClosed(CloseCode::new(4321)),
            Fault::Grpc(GrpcStatus::UNAVAILABLE),
            Fault::Grpc(GrpcStatus::new(77)),
            Fault::Script,
            Fault::Unreachable(101),
            Fault::Other(0),
            Fault::Other(113),
        ] {
            let text = serde_json::to_string(&FaultCount::new(fault, 7)).unwrap();
            let form: FaultCount = serde_json::from_str(&text).unwrap();
            assert_eq!((form.fault(), form.count), (Some(fault), 7), "{text}");
        }
        let unknown = FaultCount { name: "new".into(), ..FaultCount::new(Fault::Dns, 1) };
        assert_eq!(unknown.fault(), None);
    }
}
