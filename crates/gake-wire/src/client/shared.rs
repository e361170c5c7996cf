//! The state shared by the clients of one thread.

use std::rc::Rc;
use std::sync::Arc;

use gake_core::clock::Clock;

use crate::client::dial::Dialer;
use crate::client::meter::Meter;
use crate::client::network::Network;
use crate::net::alarm::Alarms;
use crate::net::scratch::Scratch;

#[derive(Debug)]
pub(crate) struct Shared<C> {
    pub(crate) network: Arc<Network>,
    pub(crate) clock: C,
    pub(crate) dialer: Dialer<C>,
    pub(crate) scratch: Rc<Scratch>,
    pub(crate) alarms: Rc<Alarms>,
    pub(crate) meter: Rc<Meter>,
}

impl<C: Clock + Clone + 'static> Shared<C> {
    /// `first`: the start of the round-robin of addresses, different for each thread.
    pub(crate) fn new(network: Arc<Network>, clock: C, first: usize) -> Self {
        let meter = Rc::new(Meter::default());
        let (scratch, alarms) = (Rc::new(Scratch::new()), Alarms::new());
        let means = (Rc::clone(&meter), Rc::clone(&scratch));
        let dialer = Dialer::new(Arc::clone(&network), clock.clone(), means, first);
        Self { network, clock, dialer, scratch, alarms, meter }
    }
}
