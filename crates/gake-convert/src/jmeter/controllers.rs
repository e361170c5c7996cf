//! Controllers.

use super::{Element, JmeterPlan, SamplerScope};
use crate::script::ScriptNode;
use crate::template::{quoted, variable_name};

impl JmeterPlan {
    /// Converts a controller and the elements below it.
    pub(super) fn controller<'a>(
        &mut self,
        own: Element<'a>,
        outer: &SamplerScope<'a>,
        depth: usize,
    ) -> Vec<ScriptNode> {
        let scope = self.scope(outer, own);
        let nodes = self.nodes(own, &scope, depth + 1);
        let text = |name: &str| own.text(name).unwrap_or_default();
        let block = |open: String, nodes| vec![ScriptNode::Block(open, nodes, "}")];
        match own.tag() {
            "GenericController" | "RecordingController" | "CriticalSectionController" => nodes,
            "TransactionController" => {
                vec![ScriptNode::Block(
                    format!("group({}, () => {{", quoted(own.name())),
                    nodes,
                    "});",
                )]
            }
            "LoopController" if text("LoopController.loops") != "-1" => {
                let count = self.number(text("LoopController.loops"));
                let counter = format!("loop{depth}");
                block(
                    format!("for (let {counter} = 0; {counter} < {count}; {counter}++) {{"),
                    nodes,
                )
            }
            "OnceOnlyController" => {
                block("if (exec.vu.iterationInScenario === 0) {".to_owned(), nodes)
            }
            "ThroughputController" if text("ThroughputController.style") == "1" => {
                let percent = child_number(own);
                block(format!("if (Math.random() * 100 < {percent}) {{"), nodes)
            }
            "RandomController" | "InterleaveControl" => self.one_of(own, nodes, depth),
            "IfController" => match condition(text("IfController.condition")) {
                Some(condition) => block(format!("if ({condition}) {{"), nodes),
                None => {
                    let kind = "a condition is not translated: its branch is always sent";
                    self.script.warnings.add(kind, text("IfController.condition"));
                    nodes
                }
            },
            tag => {
                self.script
                    .warnings
                    .add("the contents of a controller are sent once per iteration", tag);
                nodes
            }
        }
    }

    /// One of the nodes, at random or round-robin.
    fn one_of(&mut self, own: Element, nodes: Vec<ScriptNode>, depth: usize) -> Vec<ScriptNode> {
        let count = nodes.len();
        let which = match own.tag() {
            "RandomController" => format!("random(0, {})", count.saturating_sub(1)),
            _ => format!("exec.vu.iterationInScenario % {}", count.max(1)),
        };
        let choice = format!("choice{depth}");
        let blocks = nodes.into_iter().enumerate().map(|(at, node)| {
            ScriptNode::Block(format!("if ({choice} === {at}) {{"), vec![node], "}")
        });
        let inner = std::iter::once(ScriptNode::Lines(vec![format!("const {choice} = {which};")]))
            .chain(blocks);
        vec![ScriptNode::Block("{".to_owned(), inner.collect(), "}")]
    }
}

/// The percentage of a throughput controller.
fn child_number(own: Element) -> String {
    let texts = own.own.descendants().filter(|node| {
        node.attribute("name") == Some("ThroughputController.percentThroughput")
            || node.has_tag_name("value")
    });
    let number = texts.filter_map(|node| node.text()?.trim().parse::<f64>().ok()).next_back();
    number.unwrap_or(100.0).to_string()
}

/// A simple comparison as a JavaScript expression: `"${name}" == "text"`.
fn condition(text: &str) -> Option<String> {
    let text = text.trim();
    let mut inner = text;
    for function in ["${__jexl3(", "${__jexl2(", "${__groovy(", "${__javaScript("] {
        if let Some(rest) = text.strip_prefix(function) {
            inner = rest.strip_suffix(")}")?.trim().trim_end_matches(',').trim();
        }
    }
    if inner == "${JMeterThread.last_sample_ok}" {
        return Some("res.status > 0 && res.status < 400".to_owned());
    }
    if matches!(inner, "true" | "false") {
        return Some(inner.to_owned());
    }
    let mut code = String::new();
    let mut rest = inner.replace("vars.get(\"", "${").replace("vars.get('", "${");
    rest = rest.replace("\")", "}").replace("')", "}");
    let mut rest = rest.as_str();
    while let Some((before, tail)) = rest.split_once("${") {
        let (name, tail) = tail.split_once('}')?;
        // Quotes around a variable make it a string, which it already is.
        let quote =
            before.chars().next_back().filter(|c| ['"', '\''].contains(c) && tail.starts_with(*c));
        let before = quote.map_or(before, |quote| before.strip_suffix(quote).unwrap_or(before));
        let tail = quote.map_or(tail, |quote| tail.strip_prefix(quote).unwrap_or(tail));
        code.push_str(before);
        code.push_str(&format!("vars.{}", variable_name(name)));
        if name.starts_with("__") {
            return None;
        }
        rest = tail;
    }
    code.push_str(rest);
    let is_simple = !code.contains(['(', ';', '{'])
        && ["==", "!=", "<", ">"].iter().any(|sign| code.contains(sign));
    // Both sides are strings.
    is_simple.then_some(code)
}
