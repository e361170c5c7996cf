//! The module `k6/metrics`: custom metrics.

#![expect(
    unsafe_code,
    reason = "rquickjs's JsLifetime of a class: unsafe to implement, trivial without a lifetime"
)]

use gake_js::native::named;
use std::ffi::CStr;
use std::rc::Rc;

use gake_core::metric::{MetricKind, MetricUnit};
use gake_js::errors::{go_error, go_error_of, through_native};
use gake_js::value::{self, given, truthy};
use gake_script::user::{LazyList, lazily};
use rquickjs::class::{JsClass, Readable, Trace, Tracer};
use rquickjs::function::{Constructor, Opt, This};
use rquickjs::object::Property;
use rquickjs::{Class, Coerced, Ctx, FromJs, JsLifetime, Object, Value};

use crate::metrics::MetricNumber;
use crate::test::LogLevel;
use crate::user::vu::{Vu, VuStage};

const MILLISECOND: f64 = 1e6;

/// A metric of a script.
struct ScriptMetric {
    vu: Rc<Vu>,
    name: String,
    number: MetricNumber,
    /// Converts a script's values to core's: milliseconds to nanoseconds.
    scale: f64,
}

impl<'js> Trace<'js> for ScriptMetric {
    fn trace<'a>(&self, _: Tracer<'a, 'js>) {}
}

// SAFETY: it holds no value of a script.
unsafe impl<'js> JsLifetime<'js> for ScriptMetric {
    type Changed<'to> = Self;
}

impl<'js> JsClass<'js> for ScriptMetric {
    const NAME: &'static str = "Metric";
    type Mutable = Readable;

    fn prototype(ctx: &Ctx<'js>) -> rquickjs::Result<Option<Object<'js>>> {
        let prototype = Object::new(ctx.clone())?;
        prototype.set("add", named("Metric", "add", add))?;
        Ok(Some(prototype))
    }

    fn constructor(_: &Ctx<'js>) -> rquickjs::Result<Option<Constructor<'js>>> {
        Ok(None)
    }
}

pub(super) static LIST: LazyList =
    LazyList::new(&[c"Counter", c"Gauge", c"Rate", c"Trend"], make_property);

pub(super) fn make<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
    let module = Object::new(ctx.clone())?;
    lazily(&module, &LIST)?;
    Ok(module)
}

fn make_property<'js>(module: &Object<'js>, name: &'static CStr) -> rquickjs::Result<()> {
    let ctx = module.ctx();
    let vu = Vu::of(ctx)?;
    let name = name.to_str()?;
    let kind = match name {
        "Counter" => MetricKind::Counter,
        "Gauge" => MetricKind::Gauge,
        "Rate" => MetricKind::Rate,
        _ => MetricKind::Trend,
    };
    let make = move |ctx: Ctx<'js>, name: String, is_time: Opt<Value<'js>>| {
        metric(&ctx, &vu, kind, name, is_time.0)
    };
    module.set(name, Constructor::new_class::<ScriptMetric, _, _>(ctx.clone(), make)?)
}

fn metric<'js>(
    ctx: &Ctx<'js>,
    vu: &Rc<Vu>,
    kind: MetricKind,
    name: String,
    is_time: Option<Value<'js>>,
) -> rquickjs::Result<Class<'js, ScriptMetric>> {
    if vu.stage.get() != VuStage::Init {
        let message = "metrics must be declared in the init context";
        return Err(go_error(ctx, message));
    }
    let is_time = given(is_time).map_or(Ok(false), |value| truthy(ctx, value))?;
    let unit = if is_time { MetricUnit::Time } else { MetricUnit::Number };
    let number = vu.series_index.metric(&name, kind, unit);
    let number = number.map_err(|error| go_error(ctx, &error.to_string()))?;
    let scale = if is_time { MILLISECOND } else { 1.0 };
    let metric = ScriptMetric { vu: Rc::clone(vu), name: name.clone(), number, scale };
    let metric = Class::instance(ctx.clone(), metric)?;
    metric.prop("name", Property::from(name).enumerable())?;
    Ok(metric)
}

/// Records a sample; returns false if it is not a number.
fn add<'js>(
    ctx: Ctx<'js>,
    this: This<Class<'js, ScriptMetric>>,
    sample: Opt<Value<'js>>,
    tags: Opt<Value<'js>>,
) -> rquickjs::Result<bool> {
    let metric = this.0.borrow();
    let (vu, name) = (&metric.vu, &metric.name);
    let native = "go.k6.io/k6/v2/internal/js/modules/k6/metrics.Metric.add-fm";
    let refuse = |message: String| {
        if vu.test.settings().throw {
            return Err(go_error_of(&ctx, native, &message));
        }
        vu.test.log(LogLevel::Warning, &message, &[]);
        Ok(false)
    };
    through_native(&ctx, native, vu.not_in_init(&ctx, "Adding to metrics"))?;
    let Some(sample) = sample.0 else {
        return refuse(format!(
            "no value was provided for metric '{name}', a number or a boolean value is expected"
        ));
    };
    let number = match sample.is_null() {
        true => f64::NAN,
        false => Coerced::<f64>::from_js(&ctx, sample.clone())?.0,
    };
    // As in k6, a truthy value whose number is 0 counts as 1.
    let is_one = number == 0.0 && truthy(&ctx, sample.clone())?;
    let value = if is_one { 1.0 } else { number };
    if !value.is_finite() {
        let text = value::text(&ctx, &sample)?;
        return refuse(format!(
            "'{text}' is an invalid value for metric '{name}', a number or a boolean value is \
             expected"
        ));
    }
    let tags = value::tags(&ctx, tags.0)?.map_err(|why| {
        let message = format!("cannot add tags for the '{name}' custom metric: {why}");
        go_error_of(&ctx, native, &message)
    })?;
    vu.record_tagged(metric.number, &tags, value * metric.scale);
    Ok(true)
}
