//! Counters of a worker's connections, outside single exchanges.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use gake_codec::http2::ConnectionCounts;
use gake_core::clock::Nanos;
use gake_core::record::Counts;
use gake_core::work::Gauges;

use crate::client::address_load::AddressLoad;
use crate::net::permit::PermittedConnection;
use crate::tls::handshakes::Handshake;

#[derive(Debug, Default)]
pub(crate) struct Meter {
    pub(crate) opened: Cell<u64>,
    /// Connections opened so far, which numbers them.
    numbered: Cell<u32>,
    pub(crate) stale_reconnects: Cell<u64>,
    pub(crate) excess: Cell<u64>,
    pub(crate) idle_lost: Cell<u64>,
    pub(crate) idle_failed: Cell<u64>,
    /// Idle connections not yet opened.
    pub(crate) idle_pending: Cell<u64>,
    pub(crate) redirects: Cell<u64>,
    pub(crate) streams: Cell<u64>,
    pub(crate) http3_streams: Cell<u64>,
    pub(crate) http3_fallbacks: Cell<u64>,
    quic_packets: Cell<u64>,
    quic_lost: Cell<u64>,
    pub(crate) unhandled: Cell<u64>,
    pub(crate) sessions: Cell<u64>,
    pub(crate) sessions_ended: Cell<u64>,
    stream_resets: Cell<u64>,
    goaways: Cell<u64>,
    header_bytes: Cell<u64>,
    header_text_bytes: Cell<u64>,
    window_waits: Cell<u64>,
    window_wait_time: Cell<Nanos>,
    stream_waits: Cell<u64>,
    streams_allowed: Cell<u64>,
    /// A server's limit on streams per connection, if it is below our own.
    streams_bound: Cell<Option<u32>>,
    /// Bytes of connections that belong to no exchange.
    bytes_in: Cell<u64>,
    bytes_out: Cell<u64>,
    connects: Cell<u64>,
    connect_cpu: Cell<Nanos>,
    open: Cell<u64>,
    peak: Cell<u64>,
    /// TLS handshakes by their parameters.
    handshakes: RefCell<Vec<(Handshake, u64)>>,
    pub(crate) addresses: RefCell<AddressLoad>,
}

pub(crate) fn bump(counter: &Cell<u64>) {
    counter.set(counter.get() + 1);
}

impl Meter {
    /// Counts a connection as open for as long as the guard lives, which keeps its permit.
    pub(crate) fn opened(self: &Rc<Self>, permitted: Option<PermittedConnection>) -> OpenGuard {
        bump(&self.opened);
        bump(&self.open);
        self.peak.set(self.peak.get().max(self.open.get()));
        self.numbered.set(self.numbered.get().wrapping_add(1));
        OpenGuard { meter: Rc::clone(self), number: self.numbered.get(), _permitted: permitted }
    }

    /// Counts a call of connect() that took `cpu` of this thread's time.
    pub(crate) fn connect_called(&self, cpu: Nanos) {
        bump(&self.connects);
        self.connect_cpu.set(self.connect_cpu.get() + cpu);
    }

    pub(crate) fn handshake(&self, handshake: Handshake) {
        let mut all = self.handshakes.borrow_mut();
        match all.iter_mut().find(|(known, _)| *known == handshake) {
            Some((_, count)) => *count += 1,
            None => all.push((handshake, 1)),
        }
    }

    /// Takes the handshakes since the last call, by their parameters.
    pub(crate) fn take_handshakes(&self) -> Vec<(Handshake, u64)> {
        self.handshakes.take()
    }

    /// Adds the counts of an HTTP/2 or HTTP/3 connection.
    #[inline]
    pub(crate) fn add_http2(&self, counts: &ConnectionCounts) {
        let add = |to: &Cell<u64>, count: u64| to.set(to.get() + count);
        add(&self.stream_resets, counts.resets);
        add(&self.goaways, counts.goaways);
        add(&self.header_bytes, counts.header_bytes);
        add(&self.header_text_bytes, counts.header_text_bytes);
        add(&self.window_waits, counts.window_waits);
        add(&self.bytes_in, counts.bytes_in);
        add(&self.bytes_out, counts.bytes_out);
    }

    /// Adds QUIC packets sent, and lost among them.
    pub(crate) fn add_packets(&self, sent: u64, lost: u64) {
        self.quic_packets.set(self.quic_packets.get() + sent);
        self.quic_lost.set(self.quic_lost.get() + lost);
    }

    /// Adds bytes that belong to no exchange.
    pub(crate) fn add_bytes(&self, bytes_in: u64, bytes_out: u64) {
        self.bytes_in.set(self.bytes_in.get() + bytes_in);
        self.bytes_out.set(self.bytes_out.get() + bytes_out);
    }

    /// Adds time during which bodies waited for a server's window.
    pub(crate) fn waited_for_window(&self, time: Nanos) {
        self.window_wait_time.set(self.window_wait_time.get() + time);
    }

    /// Records a server's limit on streams per connection, if it is below our own.
    pub(crate) fn bound_streams(&self, bound: Option<u32>) {
        self.streams_bound.set(bound);
    }

    /// Counts a request that waits for a slot while no further connection may be opened.
    pub(crate) fn waits_for_slot(&self) {
        if let Some(bound) = self.streams_bound.get() {
            bump(&self.stream_waits);
            self.streams_allowed.set(self.streams_allowed.get() + u64::from(bound));
        }
    }

    /// Counts an idle connection that was opened, or failed.
    pub(crate) fn idle_settled(&self, opened: bool) {
        self.idle_pending.set(self.idle_pending.get().saturating_sub(1));
        if !opened {
            bump(&self.idle_failed);
        }
    }

    /// Counts the idle connections not yet opened as failed, at the end of the run.
    pub(crate) fn idle_over(&self) {
        self.idle_failed.set(self.idle_failed.get() + self.idle_pending.take());
    }

    /// Moves the counters to `counts`, and returns the gauges.
    pub(crate) fn take(&self, counts: &mut Counts) -> Gauges {
        counts.opened += self.opened.take();
        counts.stale_reconnects += self.stale_reconnects.take();
        counts.excess += self.excess.take();
        counts.idle_lost += self.idle_lost.take();
        counts.idle_failed += self.idle_failed.take();
        counts.redirects += self.redirects.take();
        counts.streams += self.streams.take();
        counts.http3_streams += self.http3_streams.take();
        counts.http3_fallbacks += self.http3_fallbacks.take();
        counts.quic_packets += self.quic_packets.take();
        counts.quic_lost += self.quic_lost.take();
        counts.unhandled += self.unhandled.take();
        counts.sessions += self.sessions.take();
        counts.sessions_ended += self.sessions_ended.take();
        counts.stream_resets += self.stream_resets.take();
        counts.goaways += self.goaways.take();
        counts.header_bytes += self.header_bytes.take();
        counts.header_text_bytes += self.header_text_bytes.take();
        counts.window_waits += self.window_waits.take();
        counts.window_wait_time += self.window_wait_time.take();
        counts.stream_waits += self.stream_waits.take();
        counts.streams_allowed += self.streams_allowed.take();
        counts.bytes_in += self.bytes_in.take();
        counts.bytes_out += self.bytes_out.take();
        counts.connects += self.connects.take();
        counts.connect_cpu += self.connect_cpu.take();
        let open = self.open.get();
        Gauges { open, peak: self.peak.replace(open) }
    }
}

/// Counts a connection as open until it is dropped.
#[derive(Debug)]
pub(crate) struct OpenGuard {
    meter: Rc<Meter>,
    number: u32,
    _permitted: Option<PermittedConnection>,
}

impl OpenGuard {
    pub(crate) fn meter(&self) -> &Meter {
        &self.meter
    }

    /// The number of the connection within its worker, from 1.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }
}

impl Drop for OpenGuard {
    fn drop(&mut self) {
        self.meter.open.set(self.meter.open.get() - 1);
    }
}
