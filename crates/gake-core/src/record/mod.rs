//! What happened: outcomes in, mergeable counts and histograms out.

mod failed_bodies;
mod close_code;
mod counts;
mod scenario_end;
mod error_code;
mod exact;
mod fault;
mod gauges;
mod grpc_status;
mod histogram;
mod iteration;
mod latency;
mod octaves;
mod exchange;
mod series_point;
mod recorder;
mod run;
mod series;
mod tally;
mod watch_record;

pub use failed_bodies::{FAILED_BODY_BYTES, FailedBodies, FailedBody};
pub use close_code::CloseCode;
pub use counts::Counts;
pub use scenario_end::{ScenarioEnd, WorkerEnd};
pub use error_code::ErrorCode;
pub use exact::FaultCount;
pub use fault::{Fault, Phase};
pub use gauges::Gauges;
pub use grpc_status::GrpcStatus;
pub use histogram::{Bucket, Histogram, HistogramError, Sum};
pub use iteration::{IterationEnd, IterationStatus, Iteration};
pub use latency::{Latency, LatencyMetric};
pub use octaves::Octaves;
pub use exchange::{ResponseSummary, ExchangeEnd, Exchange, CapturedResponse, Outcome, TcpSample};
pub use series_point::{HEAT, LABELS_MAX, LabelPoint, SeriesPoint};
pub use recorder::{ExchangeLog, Interval, ScenarioInterval, Recorder};
pub use run::{AgentRecord, RunEnd, RunEvent, Generator, Provenance, Run, ScenarioRun};
pub use series::Series;
pub use tally::{LabelTally, Tally};
pub use watch_record::{
    GAUGES_MAX, Gauge, LevelUnit, MACHINE, GaugeReading, GaugeSample, TargetSetting, UNANSWERED, WatchRecord,
};
