//! Assertions as checks.

use super::sampler::pattern;
use super::{Element, JmeterPlan};
use crate::template::quoted;

/// Bits of a response assertion's type.
const WHOLE: u32 = 1;
const NOT: u32 = 4;
const EQUALS: u32 = 8;
const SUBSTRING: u32 = 16;
const OR: u32 = 32;

/// The fields that a response assertion can check.
const FIELDS: [(&str, &str); 6] = [
    ("Assertion.response_data", "r.body"),
    ("Assertion.response_data_as_document", "r.body"),
    ("Assertion.response_code", "`${r.status}`"),
    ("Assertion.response_message", "r.status_text"),
    ("Assertion.response_headers", "JSON.stringify(r.headers)"),
    ("Assertion.sample_label", "r.url"),
];

impl JmeterPlan {
    /// Adds the checks of an assertion.
    pub(super) fn assertion(&mut self, own: Element, checks: &mut Vec<(String, String)>) {
        let text = |name: &str| own.text(name).unwrap_or_default();
        let holds = match own.tag() {
            "ResponseAssertion" => self.response_assertion(own),
            "DurationAssertion" => {
                let most = self.number(text("DurationAssertion.duration"));
                Some(format!("r.timings.duration <= {most}"))
            }
            "JSONPathAssertion" => super::extractors::gjson(text("JSON_PATH")).map(|path| {
                let found = format!("json(r, {}, 1)", quoted(&path));
                let expected = self.template(text("EXPECTED_VALUE"));
                let holds = match (own.is("JSONVALIDATION"), own.is("ISREGEX")) {
                    (false, _) => format!("{found} !== undefined"),
                    (true, true) => format!("{}.test({found})", pattern(&expected, "")),
                    (true, false) => format!("{found} === {}", expected.js()),
                };
                if own.is("INVERT") { format!("!({holds})") } else { holds }
            }),
            _ => None,
        };
        match holds {
            Some(holds) => checks.push((own.name().to_owned(), holds)),
            None => self.script.warnings.add("an assertion is left out", own.tag()),
        }
    }

    fn response_assertion(&mut self, own: Element) -> Option<String> {
        let field = own.text("Assertion.test_field").unwrap_or("Assertion.response_data");
        let field = FIELDS.iter().find(|known| known.0 == field)?.1;
        let kind: u32 =
            own.text("Assertion.test_type").and_then(|kind| kind.parse().ok()).unwrap_or(2);
        // Sic: the first name is JMeter's.
        let mut patterns = own.list("Asserion.test_strings");
        patterns.extend(own.list("Assertion.test_strings"));
        let mut holds = Vec::new();
        for one in patterns {
            let text = self.template(one.own.text().unwrap_or_default());
            let is_found = match kind & !(NOT | OR) {
                EQUALS => format!("{field} === {}", text.js()),
                // The body of a failed request is null.
                SUBSTRING => format!("String({field}).includes({})", text.js()),
                WHOLE => {
                    let mut whole = crate::template::Template::from("^(?:");
                    whole.append(text);
                    whole.push(")$");
                    format!("{}.test({field})", pattern(&whole, ""))
                }
                _ => format!("{}.test({field})", pattern(&text, "")),
            };
            holds.push(if kind & NOT > 0 { format!("!({is_found})") } else { is_found });
        }
        let by = if kind & OR > 0 { " || " } else { " && " };
        (!holds.is_empty()).then(|| holds.join(by))
    }
}
