//! Giving the figures of a run to its sinks.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;

use gake_core::clock::Nanos;
use gake_core::record::{GaugeReading, Run};
use gake_engine::{JoinedSecond, LogBatch, LogSender, log_channel};

use super::mailbox::{Item, Mailbox};
use super::threads::spawn;
use super::{Loss, Sink, SinkLosses, SinkSecond, SinkStart, SinkStep};
use crate::RunError;

/// Seconds that may wait for a sink.
const SECONDS_MAX: usize = 64;

/// Batches of readings that may wait for a sink.
const READINGS_MAX: usize = 1_024;

/// Seconds that were given to every sink and are kept to see when all are done with them.
const SHARED_MAX: usize = 4;

/// The sinks of a run in progress.
pub(crate) struct Fanout {
    feeds: Vec<Feed>,
    /// Seconds whose memory is used again when every sink has let go of them.
    shared: Vec<Arc<SinkSecond>>,
    distributor: Option<JoinHandle<()>>,
}

/// One sink's queue, thread and losses.
struct Feed {
    mailbox: Arc<Mailbox>,
    thread: JoinHandle<Fed>,
    takes_outcomes: bool,
    seconds_lost: u64,
    readings_lost: u64,
    /// Counted by the thread that distributes outcomes.
    outcomes_lost: Arc<AtomicU64>,
}

/// A sink that takes what comes; its thread gives it back.
struct Fed {
    sink: Box<dyn Sink>,
    /// The first one.
    error: Option<(SinkStep, std::io::Error)>,
    /// It could not take some outcomes, and gets no more of them.
    is_cut: bool,
}

impl Fanout {
    /// Begins every sink and starts its thread. The sender is for the workers, when a sink takes
    /// outcomes.
    ///
    /// # Errors
    /// When a sink cannot take the run.
    pub(crate) fn start(
        mut sinks: Vec<Box<dyn Sink>>,
        start: &SinkStart<'_>,
    ) -> Result<(Self, Option<LogSender>), RunError> {
        for sink in &mut sinks {
            sink.begin(start).map_err(RunError::Sink)?;
        }
        let wanted: Vec<_> = sinks.iter().filter_map(|sink| sink.takes().outcomes).collect();
        let alone = wanted.len() == 1;
        let feeds = sinks.into_iter().map(|sink| Feed::start(sink, alone));
        let feeds = feeds.collect::<Result<Vec<_>, _>>()?;
        let mut fanout = Self { feeds, shared: Vec::new(), distributor: None };
        let (batches, bytes) = (
            wanted.iter().map(|bounds| bounds.batches).max(),
            wanted.iter().map(|bounds| bounds.bytes).max().unwrap_or(0),
        );
        let Some(batches) = batches else { return Ok((fanout, None)) };
        let (sender, receiver) = log_channel(batches, bytes);
        let takers = fanout.feeds.iter().filter(|feed| feed.takes_outcomes);
        let takers: Vec<_> = takers
            .map(|feed| (Arc::clone(&feed.mailbox), Arc::clone(&feed.outcomes_lost)))
            .collect();
        let distribute = move || distribute(&receiver, &takers);
        fanout.distributor = Some(spawn("gake-outcomes", distribute).map_err(RunError::cannot)?);
        Ok((fanout, Some(sender)))
    }

    /// Gives a second to every sink. Gives seconds back that all are done with.
    pub(crate) fn second(
        &mut self,
        second: JoinedSecond,
        asked: Option<f64>,
        mut done: impl FnMut(JoinedSecond),
    ) {
        if self.feeds.is_empty() {
            done(second);
            return;
        }
        let second = Arc::new(SinkSecond { second, asked });
        for feed in &mut self.feeds {
            let offered = feed.mailbox.offer(Item::Second(Arc::clone(&second)));
            feed.seconds_lost += u64::from(offered.is_err());
        }
        self.shared.push(second);
        let mut waiting = Vec::with_capacity(self.shared.len());
        for second in self.shared.drain(..) {
            match Arc::try_unwrap(second) {
                Ok(free) => done(free.second),
                Err(second) => waiting.push(second),
            }
        }
        // Those that are held for long are given up to whoever holds them.
        let held = waiting.len().saturating_sub(SHARED_MAX);
        waiting.drain(..held);
        self.shared = waiting;
    }

    /// Gives readings to every sink.
    pub(crate) fn readings(&mut self, at: Nanos, readings: &[GaugeReading]) {
        let readings: Arc<[GaugeReading]> = readings.into();
        for feed in &mut self.feeds {
            let offered = feed.mailbox.offer(Item::Readings(at, Arc::clone(&readings)));
            feed.readings_lost += u64::from(offered.is_err());
        }
    }

    /// Ends every sink when it has taken what waits for it. Gives what was lost, with the
    /// `log_lost` outcomes that did not come this far.
    pub(crate) fn finish(self, run: &Run, log_lost: u64) -> Vec<Loss> {
        // Threads of the lowest class may wait for a core for minutes on a busy machine. There is no
        // load any more, so they end, and this thread does the rest.
        for feed in &self.feeds {
            feed.mailbox.close();
        }
        if let Some(distributor) = self.distributor {
            // It ends when the workers' senders are gone.
            let _ = distributor.join();
        }
        let mut losses = Vec::new();
        for (number, feed) in self.feeds.into_iter().enumerate() {
            let sentences = feed.finish(run, log_lost).into_iter();
            losses.extend(sentences.map(|text| Loss { sink: number, text }));
        }
        losses
    }
}

impl Feed {
    /// `alone`: no other sink takes outcomes, so that the workers' channel is its queue.
    fn start(sink: Box<dyn Sink>, alone: bool) -> Result<Self, RunError> {
        let bounds = sink.takes().outcomes;
        let batches = if alone { 1 } else { bounds.map_or(0, |bounds| bounds.batches) };
        let mailbox = Arc::new(Mailbox::new([SECONDS_MAX, batches, READINGS_MAX]));
        let reader = Arc::clone(&mailbox);
        let thread = spawn("gake-sink", move || feed(sink, &reader)).map_err(RunError::cannot)?;
        Ok(Self {
            mailbox,
            thread,
            takes_outcomes: bounds.is_some(),
            seconds_lost: 0,
            readings_lost: 0,
            outcomes_lost: Arc::default(),
        })
    }

    fn finish(self, run: &Run, log_lost: u64) -> Vec<String> {
        let log_lost = if self.takes_outcomes { log_lost } else { 0 };
        let mut losses = SinkLosses {
            seconds: self.seconds_lost,
            readings: self.readings_lost,
            outcomes: self.outcomes_lost.load(Relaxed) + log_lost,
            error: None,
        };
        let Ok(mut fed) = self.thread.join() else {
            // It catches panics, so that there is always a sink to end.
            return losses.sentences("a sink");
        };
        while let Some(item) = self.mailbox.rest() {
            fed.give(&item, &self.mailbox);
        }
        losses.error = fed.error;
        if let Err(error) = fed.sink.end(run)
            && losses.error.is_none()
        {
            losses.error = Some((SinkStep::End, error));
        }
        fed.sink.losses(&losses)
    }
}

/// Gives a sink what comes, until its mailbox is closed.
fn feed(sink: Box<dyn Sink>, mailbox: &Mailbox) -> Fed {
    let mut fed = Fed { sink, error: None, is_cut: false };
    while let Some(item) = mailbox.take() {
        fed.give(&item, mailbox);
    }
    fed
}

impl Fed {
    fn give(&mut self, item: &Item, mailbox: &Mailbox) {
        let Self { sink, is_cut, .. } = self;
        let call = AssertUnwindSafe(|| match item {
            Item::Second(second) => (SinkStep::Second, sink.second(second)),
            Item::Outcomes(_) if *is_cut => (SinkStep::Outcomes, Ok(())),
            Item::Outcomes(batch) => (SinkStep::Outcomes, sink.outcomes(batch)),
            Item::Readings(at, readings) => (SinkStep::Readings, sink.readings(*at, readings)),
        });
        let (step, result) = catch_unwind(call).unwrap_or_else(|_| {
            mailbox.abandon();
            (SinkStep::Panic, Err(std::io::Error::other("a panic")))
        });
        self.is_cut |= step == SinkStep::Outcomes && result.is_err();
        if let Err(first) = result {
            self.error.get_or_insert((step, first));
        }
    }
}

/// Gives every batch to all who take outcomes. One alone may take its time: the workers' channel
/// is its queue, and what finds no room there is counted there.
fn distribute(receiver: &Receiver<LogBatch>, takers: &[(Arc<Mailbox>, Arc<AtomicU64>)]) {
    for batch in receiver {
        let batch = Arc::new(batch);
        if let [(only, _)] = takers {
            only.put(Item::Outcomes(batch));
            continue;
        }
        for (mailbox, lost) in takers {
            if mailbox.offer(Item::Outcomes(Arc::clone(&batch))).is_err() {
                lost.fetch_add(batch.len() as u64, Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Duration;

    use gake_core::Load;
    use gake_core::plan::Plan;
    use gake_core::record::{Provenance, RunEnd};
    use gake_engine::Collector;

    use super::super::Takes;
    use super::*;

    /// Says when it was given a second, and waits until it may go on.
    struct Stuck {
        taken: Sender<()>,
        go_on: Receiver<()>,
    }

    impl Sink for Stuck {
        fn name(&self) -> String {
            "a stuck sink".to_owned()
        }

        fn takes(&self) -> Takes {
            Takes::default()
        }

        fn begin(&mut self, _: &SinkStart<'_>) -> Result<(), String> {
            Ok(())
        }

        fn end(&mut self, _: &Run) -> io::Result<()> {
            Ok(())
        }

        fn second(&mut self, _: &SinkSecond) -> io::Result<()> {
            let _ = self.taken.send(());
            // Its sender is gone when it may take everything.
            let _ = self.go_on.recv();
            Ok(())
        }
    }

    #[test]
    fn seconds_and_readings_that_find_no_room_are_counted_and_told() {
        let load = Load::Closed { users: 1, think: Duration::ZERO };
        let plan = Arc::new(Plan::new("http://127.0.0.1:1/", load));
        let (taken_sender, taken) = channel();
        let (hold, go_on) = channel::<()>();
        let sink: Box<dyn Sink> = Box::new(Stuck { taken: taken_sender, go_on });
        let origin = Provenance::default();
        let start = SinkStart { plan: &plan, started_unix_ns: 1, origin: &origin, settings: &[] };
        let (mut fanout, _) = Fanout::start(vec![sink], &start).unwrap();
        fanout.second(JoinedSecond::default(), None, drop);
        taken.recv().unwrap();
        for _ in 0..SECONDS_MAX + 5 {
            fanout.second(JoinedSecond::default(), None, drop);
        }
        for _ in 0..READINGS_MAX + 7 {
            fanout.readings(0, &[]);
        }
        drop(hold);
        let run = Collector::new(&plan, 0, 0).finish(1, RunEnd::Done, 1);
        let told: Vec<_> = fanout.finish(&run, 0).into_iter().map(|loss| loss.text).collect();
        let [seconds, readings] = &told[..] else { panic!("{told:?}") };
        assert!(seconds.starts_with("a stuck sink: 5 seconds are missing"), "{seconds}");
        assert!(readings.starts_with("a stuck sink: 7 samples of the target"), "{readings}");
        assert_eq!(taken.iter().count(), SECONDS_MAX, "what found room was given to it");
    }
}
