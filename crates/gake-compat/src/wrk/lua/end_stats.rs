//! The arguments of `done`.

use gake_core::record::Histogram;
use mlua::{Lua, MetaMethod, Table, UserData, UserDataFields, UserDataMethods};

use super::super::report::{Figures, stdev};
use crate::spectrum::in_microseconds;

/// Values with their counts.
pub(super) struct EndStats {
    values: Histogram,
    /// The mean and the standard deviation.
    moments: (f64, f64),
}

impl EndStats {
    /// Latencies in nanoseconds, shown in microseconds.
    pub(super) fn micros(latency: &Histogram) -> Self {
        let moments = (latency.mean() / 1e3, stdev(latency) / 1e3);
        Self { values: in_microseconds(latency), moments }
    }

    pub(super) fn whole(values: &Histogram) -> Self {
        Self { values: values.clone(), moments: (values.mean(), stdev(values)) }
    }
}

impl UserData for EndStats {
    fn add_fields<F: UserDataFields<Self>>(fields: &mut F) {
        fields.add_field_method_get("min", |_, this| Ok(this.values.min()));
        fields.add_field_method_get("max", |_, this| Ok(this.values.max()));
        fields.add_field_method_get("mean", |_, this| Ok(this.moments.0));
        fields.add_field_method_get("stdev", |_, this| Ok(this.moments.1));
    }

    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_method("percentile", |_, this, percent: f64| {
            Ok(this.values.quantile((percent / 100.0).clamp(0.0, 1.0)))
        });
        methods.add_meta_method(MetaMethod::Call, |_, this, number: usize| {
            let bucket = number.checked_sub(1).and_then(|i| this.values.buckets().nth(i));
            Ok(bucket.map_or((0, 0), |bucket| (bucket.high.min(this.values.max()), bucket.count)))
        });
        methods.add_meta_method(MetaMethod::Len, |_, this, ()| Ok(this.values.buckets().count()));
    }
}

/// The first argument of `done`.
pub(super) fn summary(lua: &Lua, figures: &Figures<'_>) -> mlua::Result<Table> {
    let errors = lua.create_table()?;
    errors.set("connect", figures.errors.connect)?;
    errors.set("read", figures.errors.read)?;
    errors.set("write", figures.errors.write)?;
    errors.set("status", figures.bad_statuses)?;
    errors.set("timeout", figures.errors.timeout)?;
    let summary = lua.create_table()?;
    summary.set("duration", figures.runtime.as_micros() as u64)?;
    summary.set("requests", figures.requests)?;
    summary.set("bytes", figures.bytes)?;
    summary.set("errors", errors)?;
    Ok(summary)
}
