//! The module `k6/browser` of a program without one (an extension replaces it): importing it is
//! allowed, since scripts may use it in only some of their scenarios; a scenario that needs a
//! browser is refused.

use gake_js::native::named;
use std::rc::Rc;

use gake_core::metric::{MetricKind, MetricUnit};
use gake_js::errors::go_error;
use gake_js::value::evaluate;
use rquickjs::{Ctx, Function, Object};

use crate::user::vu::Vu;

/// k6's error in a scenario without a browser. Its log line names the module.
pub const NO_BROWSER: &str = "browser not found in registry. make sure to set browser type \
                                     option in scenario definition in order to use the browser \
                                     module";

/// Creates the module from a function that throws.
const BROWSER: &str = "(fail) => {
    const none = Object.freeze({});
    const reject = (why) => () => Promise.reject(why);
    return (why) => ({
        browser: {
            context: fail,
            closeContext: reject(why),
            isConnected: fail,
            newContext: reject(why),
            newPage: reject(why),
            userAgent: fail,
            version: fail,
        },
        devices: none,
        networkProfiles: none,
    });
}";

/// Its metrics.
pub const METRICS: [(&str, MetricKind, MetricUnit); 9] = [
    ("browser_data_sent", MetricKind::Counter, MetricUnit::Bytes),
    ("browser_data_received", MetricKind::Counter, MetricUnit::Bytes),
    ("browser_http_req_duration", MetricKind::Trend, MetricUnit::Time),
    ("browser_http_req_failed", MetricKind::Rate, MetricUnit::Number),
    ("browser_web_vital_cls", MetricKind::Trend, MetricUnit::Number),
    ("browser_web_vital_fcp", MetricKind::Trend, MetricUnit::Time),
    ("browser_web_vital_inp", MetricKind::Trend, MetricUnit::Time),
    ("browser_web_vital_lcp", MetricKind::Trend, MetricUnit::Time),
    ("browser_web_vital_ttfb", MetricKind::Trend, MetricUnit::Time),
];

pub(super) fn make<'js>(ctx: &Ctx<'js>, vu: &Rc<Vu>) -> rquickjs::Result<Object<'js>> {
    for (name, kind, unit) in METRICS {
        vu.series_index
            .metric(name, kind, unit)
            .map_err(|error| go_error(ctx, &error.to_string()))?;
    }
    let fail = |ctx: Ctx<'js>| -> rquickjs::Result<()> { Err(go_error(&ctx, NO_BROWSER)) };
    let make: Function<'js> = evaluate(ctx, BROWSER)?;
    let make: Function<'js> = make.call((named("browser", "fail", fail),))?;
    make.call((NO_BROWSER,))
}
