//! The pauses of a user's garbage collection.

#![allow(clippy::expect_used, clippy::unwrap_used, missing_docs)] // the helpers are tests too

use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use gake_core::clock::{Clock, Nanos};
use gake_k6::Stacks;
use gake_k6::files::ScriptFiles;
use gake_k6::scenario::ScenarioFacts;
use gake_k6::test::{Test, UserSettings};
use gake_k6::user::clock::UserClock;
use gake_k6::user::script_user::ScriptUser;
use gake_k6::user::series_index::SeriesIndex;
use gake_k6::user::vu::VuContext;
use rustix::time::{ClockId, clock_gettime};

/// A script with the modules that most import, and a thousand records of its own.
const SCRIPT: &str = "
import http from 'k6/http';
import { check, group, sleep } from 'k6';
import { Counter, Trend } from 'k6/metrics';
const took = new Trend('took', true);
const orders = new Counter('orders');
export const options = { vus: 1000, duration: '1m', thresholds: { took: ['p(95)<300'] } };
const people = Array.from({ length: 1000 }, (_, at) => (
  { name: `user${at}`, password: `secret${at}`, roles: ['buyer', at % 10 ? 'guest' : 'admin'] }
));
export default function () {
  const person = people[Math.floor(Math.random() * people.length)];
  group('order', () => {
    const response = http.post(`${__ENV.URL}/orders`, JSON.stringify(person));
    check(response, { created: (r) => r.status === 201 && r.json().id > 0 });
    took.add(response.timings.duration);
    orders.add(1);
  });
  sleep(1);
}
";

/// The bound on 99 of 100 pauses.
const PAUSE_MAX: Duration = Duration::from_millis(2);

struct Still;

impl Clock for Still {
    fn now(&self) -> Nanos {
        0
    }

    async fn sleep_until(&self, _: Nanos) {}
}

/// The CPU time of this thread, independent of the machine's load.
fn spent() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap()
}

#[test]
fn a_collection_takes_a_fraction_of_a_millisecond() {
    let main = Path::new("/s.js");
    let files = ScriptFiles::on_disk(None).with(main, SCRIPT.into());
    let test = Test::new(main, files, UserSettings::default(), Arc::new(|_| {}));
    let parts = VuContext {
        test: Arc::new(test),
        series_index: Rc::new(SeriesIndex::new([], false)),
        requests: Rc::default(),
        clock: UserClock::new(Still),
        scenario: Rc::new(ScenarioFacts::default()),
        number: 1,
        number_in_test: 1,
    };
    let user = ScriptUser::load(&Stacks::new(), parts).expect("the script loads");
    let mut pauses: Vec<Duration> = (0..1_000)
        .map(|_| {
            let start = spent();
            user.collect_garbage();
            spent() - start
        })
        .collect();
    pauses.sort();
    let (median, most) = (pauses[500], pauses[990]);
    assert!(median > Duration::from_micros(10), "{median:?}: nothing was collected from");
    assert!(most <= PAUSE_MAX, "median {median:?}, p99 {most:?}");
}
