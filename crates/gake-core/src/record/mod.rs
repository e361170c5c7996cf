//! What happened: outcomes in, mergeable counts and histograms out.

mod fault;
mod histogram;
mod octaves;
mod outcome;
mod recorder;
mod run;
mod series;
mod tally;
mod watched;

pub use fault::{Fault, Phase};
pub use histogram::Histogram;
pub use octaves::Octaves;
pub use outcome::{Answer, End, Exchange, Kept, Outcome, TcpSample};
pub use recorder::{Interval, Recorder};
pub use run::{Ending, Event, Generator, Run};
pub use series::{HEAT, Point, Series};
pub use tally::{Counts, LabelTally, Latency, Metric, Tally};
pub use watched::{GAUGES_MAX, Gauge, Reading, Sample, Setting, Unit, Watched};
