//! JMeter plans.

mod checks;
mod controllers;
mod extractors;
mod sampler;
mod threads;
mod values;

use roxmltree::{Document, Node as Xml};

use crate::ConvertError;
use crate::script::{ScriptDraft, ScriptNode};
use crate::template::{Template, quoted};

/// An element and its hash tree.
#[derive(Clone, Copy)]
struct Element<'a> {
    own: Xml<'a, 'a>,
    below: Option<Xml<'a, 'a>>,
}

/// What the enclosing elements add to a sampler.
#[derive(Clone, Default)]
struct SamplerScope<'a> {
    /// Request defaults, the innermost first.
    defaults: Vec<Element<'a>>,
    headers: Vec<(String, Template)>,
    credentials: Vec<(String, Template)>,
    /// Lines before a request: pauses.
    before: Vec<String>,
    checks: Vec<(String, String)>,
    /// Lines after a request: extractors.
    after: Vec<String>,
}

/// A plan in conversion.
#[derive(Default)]
struct JmeterPlan {
    script: ScriptDraft,
    /// Lines at the start of each iteration: rows of the files of the plan and of a thread group.
    start: Vec<String>,
}

const DEPTH_MAX: usize = 64;

/// The number of an iteration of a user.
const USERS_ITERATION: &str = "exec.vu.iterationInScenario";
/// The number of an iteration over all users.
const ITERATION: &str = "exec.scenario.iterationInTest";

/// The script of a plan: one scenario per thread group.
pub(crate) fn script(text: &str) -> Result<ScriptDraft, ConvertError> {
    let document = Document::parse(text).map_err(|error| ConvertError::Xml(error.to_string()))?;
    let mut plan = JmeterPlan::default();
    let top = document.root_element().children().find(|node| node.has_tag_name("hashTree"));
    for element in top.map(elements).unwrap_or_default() {
        plan.user_variables(element);
        let scope = plan.scope(&SamplerScope::default(), element);
        for inner in element.elements() {
            plan.thread_group(inner, &scope);
        }
    }
    if !plan.script.options.is_empty() {
        plan.script.options.insert(0, "scenarios: {".to_owned());
        plan.script.options.push("},".to_owned());
    }
    Ok(plan.script)
}

/// The enabled elements of a tree, each with its hash tree.
fn elements<'a>(tree: Xml<'a, 'a>) -> Vec<Element<'a>> {
    let nodes: Vec<Xml> = tree.children().filter(Xml::is_element).collect();
    let mut elements = Vec::new();
    for (at, own) in nodes.iter().enumerate().filter(|(_, node)| !node.has_tag_name("hashTree")) {
        if own.attribute("enabled") != Some("false") {
            let below = nodes.get(at + 1).copied().filter(|node| node.has_tag_name("hashTree"));
            elements.push(Element { own: *own, below });
        }
    }
    elements
}

impl<'a> Element<'a> {
    fn tag(&self) -> &'a str {
        // The tags of plugins are class names.
        let name = self.own.tag_name().name();
        name.rsplit('.').next().unwrap_or(name)
    }

    fn name(&self) -> &'a str {
        self.own.attribute("testname").unwrap_or_default()
    }

    fn elements(&self) -> Vec<Self> {
        self.below.map(elements).unwrap_or_default()
    }

    /// A child by its attribute `name`.
    fn child(&self, name: &str) -> Option<Xml<'a, 'a>> {
        child(self.own, name)
    }

    /// The text of a property, unless it is empty.
    fn text(&self, name: &str) -> Option<&'a str> {
        self.child(name).and_then(|node| node.text()).map(str::trim).filter(|text| !text.is_empty())
    }

    fn is(&self, name: &str) -> bool {
        self.text(name) == Some("true")
    }

    /// Properties of a collection, such as the arguments of a request.
    fn list(&self, collection: &str) -> Vec<Self> {
        let list = self.own.descendants().find(|node| node.attribute("name") == Some(collection));
        let items = list.into_iter().flat_map(|list| list.children().filter(Xml::is_element));
        items.map(|own| Element { own, below: None }).collect()
    }
}

fn child<'a>(node: Xml<'a, 'a>, name: &str) -> Option<Xml<'a, 'a>> {
    node.children().find(|child| child.attribute("name") == Some(name))
}

impl JmeterPlan {
    /// The variables of the plan or of a list of user-defined variables.
    fn user_variables(&mut self, element: Element) {
        for argument in element.list("Arguments.arguments") {
            let value = argument.text("Argument.value").unwrap_or_default();
            if let Some(name) = argument.text("Argument.name") {
                let value = self.template(value);
                self.script.variables.push((name.to_owned(), value));
            }
        }
    }

    /// The scope below an element: its hash tree in addition to the enclosing scope.
    fn scope<'a>(&mut self, outer: &SamplerScope<'a>, owner: Element<'a>) -> SamplerScope<'a> {
        let mut scope = outer.clone();
        for element in owner.elements() {
            let text = |name: &str| element.text(name).unwrap_or_default();
            match element.tag() {
                "ConfigTestElement" => scope.defaults.insert(0, element),
                "Arguments" => self.user_variables(element),
                "HeaderManager" => {
                    for header in element.list("HeaderManager.headers") {
                        let value = self.template(header.text("Header.value").unwrap_or_default());
                        let Some(name) = header.text("Header.name") else { continue };
                        scope.headers.retain(|known| !known.0.eq_ignore_ascii_case(name));
                        scope.headers.push((name.to_owned(), value));
                    }
                }
                "AuthManager" => {
                    for one in element.list("AuthManager.auth_list") {
                        let field = |name: &str| one.text(name).unwrap_or_default();
                        let user = self.template(field("Authorization.username"));
                        let password = self.template(field("Authorization.password"));
                        let value = crate::script::basic_auth(&user, &password);
                        scope.credentials.push((field("Authorization.url").to_owned(), value));
                    }
                }
                "CSVDataSet" => self.csv(element),
                "CounterConfig" => self.counter(element),
                "RandomVariableConfig" => {
                    let (least, most) =
                        (self.number(text("minimumValue")), self.number(text("maximumValue")));
                    let name = crate::template::variable_name(text("variableName"));
                    self.start.push(format!("vars.{name} = random({least}, {most});"));
                }
                tag if tag.ends_with("Timer") => scope.before.extend(self.timer(element)),
                tag if tag.ends_with("Assertion") => self.assertion(element, &mut scope.checks),
                tag if tag.ends_with("Extractor") || tag.ends_with("PostProcessor") => {
                    self.extractor(element, &mut scope.after);
                }
                tag if tag.ends_with("PreProcessor") || tag == "UserParameters" => {
                    let lines = self.quoted_code(element);
                    scope.before.extend(lines);
                }
                _ => {}
            }
        }
        scope
    }

    /// A CSV file: one row per iteration, its cells in variables.
    fn csv(&mut self, element: Element) {
        let Some(file) = element.text("filename") else {
            self.script.warnings.add("a data set names no file, and is left out", element.name());
            return;
        };
        let file = self.template(file).js();
        let delimiter = element.text("delimiter").unwrap_or(",");
        let delimiter = if delimiter == "\\t" { "\t" } else { delimiter };
        let names = element.text("variableNames").unwrap_or_default();
        let number = self.script.init.len() + 1;
        let skip =
            if element.is("ignoreFirstLine") && !names.is_empty() { ".slice(1)" } else { "" };
        self.script.warnings.add("a file is read by the script, from its folder", &file);
        self.script.init.push(format!(
            "const data{number} = new SharedArray('data{number}', () => rows(open({file}), {}){skip});",
            quoted(delimiter)
        ));
        let index = match element.text("shareMode") {
            Some("shareMode.thread") => USERS_ITERATION,
            _ => ITERATION,
        };
        // Without names in the plan, the first row has them.
        let (count, first) = match names.is_empty() {
            true => (format!("(data{number}.length - 1)"), " + 1"),
            false => (format!("data{number}.length"), ""),
        };
        if element.text("recycle") == Some("false") && element.text("stopThread") == Some("true") {
            self.start.push(format!("if ({index} >= {count}) return;"));
        }
        self.start.push(format!("const row{number} = data{number}[({index} % {count}){first}];"));
        if names.is_empty() {
            self.start.push(format!(
                "data{number}[0].forEach((name, at) => (vars[name.trim()] = row{number}[at]));"
            ));
        }
        for (at, name) in
            names.split(',').map(str::trim).enumerate().filter(|(_, name)| !name.is_empty())
        {
            let name = crate::template::variable_name(name);
            self.start.push(format!("vars.{name} = row{number}[{at}];"));
        }
    }

    fn counter(&mut self, element: Element) {
        let text = |name: &str| element.text(name).unwrap_or_default();
        let (start, step) =
            (self.number(text("CounterConfig.start")), self.number(text("CounterConfig.incr")));
        let step = if text("CounterConfig.incr").is_empty() { "1".to_owned() } else { step };
        let index = match element.is("CounterConfig.per_user") {
            true => USERS_ITERATION,
            false => ITERATION,
        };
        let name = crate::template::variable_name(text("CounterConfig.name"));
        self.start.push(format!("vars.{name} = {start} + {index} * {step};"));
    }

    /// The pause of a timer, in seconds.
    fn timer(&mut self, element: Element) -> Option<String> {
        let mut number = |name: &str| self.number(element.text(name).unwrap_or_default());
        let seconds = match element.tag() {
            "ConstantTimer" => seconds(&number("ConstantTimer.delay")),
            "UniformRandomTimer" => {
                let (delay, range) = (number("ConstantTimer.delay"), number("RandomTimer.range"));
                format!("({delay} + Math.random() * {range}) / 1000")
            }
            "GaussianRandomTimer" | "PoissonRandomTimer" => {
                // The mean, and a deviation of about the same width.
                let (delay, range) = (number("ConstantTimer.delay"), number("RandomTimer.range"));
                let sum = "(Math.random() + Math.random() + Math.random() - 1.5)";
                format!("Math.max(0, {delay} + 2 * {sum} * {range}) / 1000")
            }
            tag => {
                self.script.warnings.add("a timer that paces several threads is left out", tag);
                return None;
            }
        };
        Some(format!("sleep({seconds});"))
    }

    /// Code of another language, as a comment.
    fn quoted_code(&mut self, element: Element) -> Vec<String> {
        self.script
            .warnings
            .add("a JMeter script is not translated, and is quoted in a comment", element.name());
        let code = ["script", "BeanShellSampler.query", "BeanShellPreProcessor.query"];
        let code = code
            .iter()
            .chain(&["BeanShellPostProcessor.query"])
            .find_map(|name| element.text(name));
        let first = format!("// Not translated: {} {}", element.tag(), quoted(element.name()));
        let lines = code.unwrap_or_default().lines();
        std::iter::once(first)
            .chain(lines.map(|line| crate::writer::comment(&format!("  {line}"))))
            .collect()
    }

    /// The nodes of the hash tree below an element.
    fn nodes<'a>(
        &mut self,
        owner: Element<'a>,
        scope: &SamplerScope<'a>,
        depth: usize,
    ) -> Vec<ScriptNode> {
        let mut nodes = Vec::new();
        if depth > DEPTH_MAX {
            self.script.warnings.add("elements nested too deeply are left out", owner.name());
            return nodes;
        }
        for element in owner.elements() {
            let tag = element.tag();
            if tag.starts_with("HTTPSampler") {
                let scope = self.scope(scope, element);
                let request = self.request(element, &scope);
                nodes.push(ScriptNode::Request(Box::new(request)));
            } else if tag.ends_with("Controller")
                || tag == "InterleaveControl"
                || tag == "RandomOrderController"
            {
                nodes.extend(self.controller(element, scope, depth));
            } else if tag == "TestAction" {
                if element.text("ActionProcessor.action") == Some("1") {
                    let pause =
                        self.number(element.text("ActionProcessor.duration").unwrap_or_default());
                    nodes.push(ScriptNode::Lines(vec![format!("sleep({});", seconds(&pause))]));
                }
                let scope = self.scope(&SamplerScope::default(), element);
                nodes.push(ScriptNode::Lines(scope.before));
            } else if ["JSR223Sampler", "BeanShellSampler"].contains(&tag) {
                nodes.push(ScriptNode::Lines(self.quoted_code(element)));
            } else if tag.ends_with("Sampler") && tag != "DebugSampler" {
                self.script.warnings.add("a non-HTTP sampler is left out", tag);
            }
        }
        nodes
    }
}

/// Seconds, from an expression of milliseconds.
fn seconds(milliseconds: &str) -> String {
    match milliseconds.parse::<f64>() {
        Ok(number) => (number / 1000.0).to_string(),
        Err(_) => format!("{milliseconds} / 1000"),
    }
}
