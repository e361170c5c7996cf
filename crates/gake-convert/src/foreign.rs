//! Formats that cannot be converted, recognised by their content.

pub(crate) struct ForeignFormat {
    /// Texts that must all occur in it.
    signs: &'static [&'static str],
    advice: &'static str,
}

const FOREIGN: &[ForeignFormat] = &[
    ForeignFormat { signs: &["scenarios:", "flow:"], advice: ARTILLERY },
    ForeignFormat { signs: &["\"scenarios\"", "\"flow\""], advice: ARTILLERY },
    ForeignFormat { signs: &["config:", "phases:"], advice: ARTILLERY },
    ForeignFormat { signs: &["from locust"], advice: LOCUST },
    ForeignFormat { signs: &["import locust"], advice: LOCUST },
    ForeignFormat { signs: &["io.gatling"], advice: GATLING },
    ForeignFormat { signs: &["@gatling.io/"], advice: GATLING },
    ForeignFormat { signs: &["wrk.", "function "], advice: WRK },
    ForeignFormat { signs: &["wrk.method"], advice: WRK },
    ForeignFormat { signs: &["wrk.headers"], advice: WRK },
    ForeignFormat { signs: &["wrk.format"], advice: WRK },
    ForeignFormat { signs: &["from 'k6", "export "], advice: K6 },
    ForeignFormat { signs: &["from \"k6", "export "], advice: K6 },
    ForeignFormat { signs: &["_postman_variable_scope"], advice: ENVIRONMENT },
    ForeignFormat { signs: &["\"requests\"", "\"order\"", "\"folders\""], advice: COLLECTION_1 },
    ForeignFormat { signs: &["<soapui-project"], advice: SOAP_UI },
    ForeignFormat { signs: &["_type", "\"export\"", "insomnia"], advice: INSOMNIA },
];

const ARTILLERY: &str = "an Artillery test, which cannot be converted: record what it does as a \
    HAR (gake shadow --record, or a browser), or write each of its flows as a function of a k6 \
    script; its phases are the stages of ramping-arrival-rate";
const LOCUST: &str = "a Locust file, which is a program in Python and cannot be converted: send \
    its traffic through gake shadow --record FILE and run the recording, or write each user class \
    as a scenario of a k6 script";
const GATLING: &str = "a Gatling simulation, which is a program and cannot be converted: convert \
    the HAR from which it was recorded, or send its traffic through gake shadow --record FILE and \
    run the recording";
const WRK: &str = "a Lua script of wrk, which runs as it is: gake as wrk -s FILE URL, or gake as \
    wrk2 -R RATE -s FILE URL";
const K6: &str = "a k6 script already: gake run FILE runs it";
const ENVIRONMENT: &str = "a Postman environment, which has no requests: convert the collection, \
    and give its values with -e NAME=VALUE";
const COLLECTION_1: &str = "a Postman collection of version 1: import it in Postman and export it \
    as version 2.1";
const SOAP_UI: &str = "a SoapUI project, which cannot be converted: record its requests as a HAR, \
    or send them through gake shadow --record FILE and run the recording";
const INSOMNIA: &str = "an Insomnia export, which cannot be converted: export it as HAR";

/// What to do with a text whose format is known but has no converter.
pub(crate) fn recognised(text: &str) -> Option<&'static str> {
    let is = |foreign: &&ForeignFormat| foreign.signs.iter().all(|sign| text.contains(sign));
    FOREIGN.iter().find(is).map(|foreign| foreign.advice)
}
