//! What a user did and nobody has recorded yet.
//!
//! A user's code runs on a stack of its own and knows no iteration of the engine. It notes what it
//! does; whoever polls it records the notes right after.

use std::cell::RefCell;
use std::rc::Rc;

use gake_core::clock::Nanos;
use gake_core::record::Exchange;
use gake_core::work::Iteration;

use super::book::{Book, TagSet};
use crate::metrics::MetricNumber;

/// Notes of one user, in order. Their room is used again.
#[derive(Debug, Default)]
pub struct Notes(RefCell<Vec<Note>>);

#[derive(Debug)]
enum Note {
    /// A request asked for at `start`.
    Exchange { start: Nanos, exchange: Box<Exchange> },
    /// A sample.
    Sample { metric: MetricNumber, tags: Rc<TagSet>, value: f64 },
}

impl Notes {
    /// Notes a request that was asked for at `start`.
    pub fn exchange(&self, start: Nanos, exchange: Exchange) {
        self.0.borrow_mut().push(Note::Exchange { start, exchange: Box::new(exchange) });
    }

    /// Notes a sample.
    pub fn sample(&self, metric: MetricNumber, tags: &Rc<TagSet>, value: f64) {
        let tags = Rc::clone(tags);
        self.0.borrow_mut().push(Note::Sample { metric, tags, value });
    }

    /// Records everything noted.
    pub fn record(&self, book: &Book, iteration: &Iteration<'_>) {
        for note in self.0.borrow_mut().drain(..) {
            match note {
                Note::Exchange { start, exchange } => iteration.exchange_from(start, *exchange),
                Note::Sample { metric, tags, value } => {
                    if let Some(series) = book.series(metric, &tags, iteration.recorder()) {
                        iteration.sample(series, value);
                    }
                }
            }
        }
    }
}
