//! What happened: outcomes in, mergeable counts and histograms out.

mod close_code;
mod counts;
mod error_code;
mod exact;
mod exchange;
mod failed_bodies;
mod fault;
mod gauges;
mod grpc_status;
mod histogram;
mod iteration;
mod latency;
mod octaves;
mod plain;
mod recorder;
mod run;
mod scenario_end;
mod series;
mod series_point;
mod tally;
mod watch_record;

pub use close_code::CloseCode;
pub use counts::Counts;
pub use error_code::ErrorCode;
pub use exact::FaultCount;
pub use exchange::{CapturedResponse, Exchange, ExchangeEnd, Outcome, ResponseSummary, TcpSample};
pub use failed_bodies::{FAILED_BODY_BYTES, FailedBodies, FailedBody};
pub use fault::{Fault, Phase};
pub use gauges::Gauges;
pub use grpc_status::GrpcStatus;
pub use histogram::{Bucket, Histogram, HistogramError, Sum};
pub use iteration::{Iteration, IterationEnd, IterationStatus};
pub use latency::{Latency, LatencyMetric};
pub use octaves::Octaves;
pub use plain::PlainExchange;
pub use recorder::{ExchangeLog, Interval, Recorder, ScenarioInterval};
pub use run::{AgentRecord, Generator, Provenance, Run, RunEnd, RunEvent, ScenarioRun};
pub use scenario_end::{ScenarioEnd, WorkerEnd};
pub use series::Series;
pub use series_point::{HEAT, LABELS_MAX, LabelPoint, SeriesPoint};
pub use tally::{LabelTally, Tally};
pub use watch_record::{
    GAUGES_MAX, Gauge, GaugeReading, GaugeSample, LevelUnit, MACHINE, PROBE, PROBE_DELAY,
    TargetSetting, UNANSWERED, WatchRecord,
};
