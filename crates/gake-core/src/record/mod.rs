//! What happened: outcomes in, mergeable counts and histograms out.

mod bodies;
mod close_code;
mod counts;
mod end;
mod error_code;
mod exact;
mod fault;
mod gauges;
mod grpc_status;
mod histogram;
mod iteration;
mod latency;
mod octaves;
mod outcome;
mod point;
mod recorder;
mod run;
mod series;
mod tally;
mod watched;

pub use bodies::{FAILED_BODY_BYTES, FailedBodies, FailedBody};
pub use close_code::CloseCode;
pub use counts::Counts;
pub use end::{ScenarioEnd, WorkerEnd};
pub use error_code::ErrorCode;
pub use exact::FaultCount;
pub use fault::{Fault, Phase};
pub use gauges::Gauges;
pub use grpc_status::GrpcStatus;
pub use histogram::{Bucket, Histogram, HistogramError, Sum};
pub use iteration::{IterationEnd, IterationStatus, Iteration};
pub use latency::{Latency, LatencyMetric};
pub use octaves::Octaves;
pub use outcome::{ResponseSummary, ExchangeEnd, Exchange, CapturedResponse, Outcome, TcpSample};
pub use point::{HEAT, LABELS_MAX, LabelPoint, SeriesPoint};
pub use recorder::{ExchangeLog, Interval, ScenarioInterval, Recorder};
pub use run::{AgentRecord, RunEnd, RunEvent, Generator, Provenance, Run, ScenarioRun};
pub use series::Series;
pub use tally::{LabelTally, Tally};
pub use watched::{
    GAUGES_MAX, Gauge, LevelUnit, MACHINE, GaugeReading, GaugeSample, TargetSetting, UNANSWERED, WatchRecord,
};
