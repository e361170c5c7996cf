//! CSS selectors, and jQuery's extensions that k6 supports.

use crate::page::{NodeData, NodeNumber, Page};

/// A list of selectors: an element matches when it matches one of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CssSelector(pub(crate) Vec<Complex>);

/// A complex selector: the conditions on an element, and on its ancestors and preceding siblings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Complex {
    pub(crate) own: Vec<Condition>,
    /// From the element outwards.
    pub(crate) context: Vec<(Combinator, Vec<Condition>)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Combinator {
    Descendant,
    Child,
    Next,
    Sibling,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Condition {
    Any,
    Name(String),
    Class(String),
    Attribute {
        name: String,
        test: AttributeTest,
        value: String,
        ignores_case: bool,
    },
    /// The position among its siblings (of its own name if `of_type`) is `a·n + b`.
    Nth {
        a: i64,
        b: i64,
        from_end: bool,
        of_type: bool,
    },
    Only {
        of_type: bool,
    },
    Empty,
    Root,
    Input,
    Not(CssSelector),
    Is(CssSelector),
    Has(CssSelector),
    HasChild(CssSelector),
    Contains(String),
    ContainsOwn(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AttributeTest {
    Exists,
    Equals,
    Differs,
    Word,
    Dash,
    Starts,
    Ends,
    Contains,
}

impl CssSelector {
    /// Whether a node matches; only elements can.
    #[must_use]
    pub fn matches(&self, page: &Page, node: NodeNumber) -> bool {
        page.is_element(node) && self.0.iter().any(|complex| complex.matches(page, node))
    }

    /// The elements below a node that match, in the page's order.
    pub fn below(&self, page: &Page, node: NodeNumber) -> impl Iterator<Item = NodeNumber> {
        page.descendants(node).filter(|node| self.matches(page, *node))
    }
}

impl Complex {
    fn matches(&self, page: &Page, node: NodeNumber) -> bool {
        all(&self.own, page, node) && context_matches(&self.context, page, node)
    }
}

fn all(conditions: &[Condition], page: &Page, node: NodeNumber) -> bool {
    page.step() && conditions.iter().all(|condition| condition.holds(page, node))
}

/// Whether ancestors and preceding siblings match, from the inside out.
fn context_matches(rest: &[(Combinator, Vec<Condition>)], page: &Page, node: NodeNumber) -> bool {
    let Some(((combinator, conditions), rest)) = rest.split_first() else { return true };
    let fits = |node| all(conditions, page, node) && context_matches(rest, page, node);
    match combinator {
        Combinator::Child => parent_element(page, node).is_some_and(fits),
        Combinator::Descendant => {
            std::iter::successors(parent_element(page, node), |node| parent_element(page, *node))
                .any(fits)
        }
        Combinator::Next => preceding(page, node).last().is_some_and(fits),
        Combinator::Sibling => preceding(page, node).any(fits),
    }
}

fn parent_element(page: &Page, node: NodeNumber) -> Option<NodeNumber> {
    page.parent(node).filter(|parent| page.is_element(*parent))
}

/// The sibling elements before an element, in order.
fn preceding(page: &Page, node: NodeNumber) -> impl Iterator<Item = NodeNumber> {
    let siblings = page.parent(node).into_iter().flat_map(|parent| page.elements(parent));
    siblings.take_while(move |sibling| *sibling != node)
}

impl Condition {
    fn holds(&self, page: &Page, node: NodeNumber) -> bool {
        match self {
            Self::Any => true,
            Self::Name(name) => page.name(node) == name,
            Self::Class(class) => {
                let classes = page.attribute(node, "class").unwrap_or_default();
                classes.split_whitespace().any(|one| one == class)
            }
            Self::Attribute { name, test, value, ignores_case } => {
                let given = page.attribute(node, name);
                match ignores_case {
                    true => {
                        test.holds(given.map(str::to_lowercase).as_deref(), &value.to_lowercase())
                    }
                    false => test.holds(given, value),
                }
            }
            Self::Nth { a, b, from_end, of_type } => {
                let steps = position(page, node, *from_end, *of_type) - b;
                if *a == 0 { steps == 0 } else { steps % a == 0 && steps / a >= 0 }
            }
            Self::Only { of_type } => {
                [false, true].iter().all(|end| position(page, node, *end, *of_type) == 1)
            }
            Self::Empty => page.children(node).iter().all(|child| {
                !matches!(page.data(*child), NodeData::Element { .. } | NodeData::Text(_))
            }),
            Self::Root => page.parent(node) == Some(Page::ROOT),
            Self::Input => {
                matches!(page.name(node), "input" | "select" | "textarea" | "button")
            }
            Self::Not(selector) => !selector.matches(page, node),
            Self::Is(selector) => selector.matches(page, node),
            Self::Has(selector) => selector.below(page, node).next().is_some(),
            Self::HasChild(selector) => {
                page.elements(node).any(|child| selector.matches(page, child))
            }
            Self::Contains(text) => page.text(node).to_lowercase().contains(text),
            Self::ContainsOwn(text) => {
                let own = page.children(node).iter().filter_map(|child| match page.data(*child) {
                    NodeData::Text(text) => Some(text.as_str()),
                    _ => None,
                });
                own.collect::<String>().to_lowercase().contains(text)
            }
        }
    }
}

/// The position of an element among its siblings, from 1.
fn position(page: &Page, node: NodeNumber, from_end: bool, of_type: bool) -> i64 {
    let Some(parent) = page.parent(node) else { return 0 };
    let fits = |one: &NodeNumber| !of_type || page.name(*one) == page.name(node);
    let mut all: Vec<NodeNumber> = page.elements(parent).filter(fits).collect();
    if from_end {
        all.reverse();
    }
    all.iter().position(|one| *one == node).map_or(0, |index| index as i64 + 1)
}

impl AttributeTest {
    fn holds(self, given: Option<&str>, value: &str) -> bool {
        if self == Self::Differs {
            return given != Some(value);
        }
        let Some(given) = given else { return false };
        match self {
            Self::Exists => true,
            Self::Equals => given == value,
            Self::Differs => given != value,
            Self::Word => given.split_whitespace().any(|word| word == value),
            Self::Dash => {
                given == value
                    || given.strip_prefix(value).is_some_and(|rest| rest.starts_with('-'))
            }
            Self::Starts => !value.is_empty() && given.starts_with(value),
            Self::Ends => !value.is_empty() && given.ends_with(value),
            Self::Contains => !value.is_empty() && given.contains(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "<div id=x class='a b'><p>one</p><p lang=en-GB data-k=v>Two <b>bold</b></p>\
                        <a href=/q>link</a></div><ul><li>1<li class=on>2<li>3<li>4</ul>\
                        <form><input name=a><input type=checkbox checked><select><option \
                        selected>o</select></form>";

    fn found(selector: &str) -> Vec<String> {
        let page = crate::parse(PAGE);
        let selector = CssSelector::parse(selector).unwrap_or_else(|| panic!("{selector}"));
        selector.below(&page, Page::ROOT).map(|node| page.text(node)).collect()
    }

    #[test]
    fn elements_are_found() {
        for (selector, texts) in [
            ("p", &["one", "Two bold"][..]),
            ("P:first-child", &["one"]),
            ("#x > p + p, ul", &["Two bold", "1234"]),
            ("div.a.b a[href]", &["link"]),
            ("[data-k=v] b", &["bold"]),
            ("[data-k = 'V' i]", &["Two bold"]),
            ("[lang|=en]", &["Two bold"]),
            ("a[href^='/'], a[href$=zz], a[href*=q]", &["link"]),
            ("li:nth-child(2n+1)", &["1", "3"]),
            ("li:nth-child(even)", &["2", "4"]),
            ("li:nth-last-child(-n+2)", &["3", "4"]),
            ("li:not(.on):not(:last-child)", &["1", "3"]),
            (".on ~ li", &["3", "4"]),
            ("p:has(b)", &["Two bold"]),
            ("p:contains('TWO')", &["Two bold"]),
            ("p:containsOwn('bold')", &[]),
            ("li[class!=on]", &["1", "3", "4"]),
            ("option:checked", &["o"]),
            ("b:only-child", &["bold"]),
            ("div:first-of-type > :last-of-type", &["Two bold", "link"]),
            ("body > *", &["oneTwo boldlink", "1234", "o"]),
        ] {
            assert_eq!(found(selector), texts, "{selector}");
        }
        assert_eq!(found(":input").len(), 3);
        assert_eq!(found("input:empty, html:root").len(), 3);
    }

    #[test]
    fn invalid_selectors_are_refused() {
        for text in ["", "p[", "p >", "li:first", "a,", "..x", ":nth-child(x)", "p:has(", "#"] {
            assert_eq!(CssSelector::parse(text), None, "{text}");
        }
    }
}
