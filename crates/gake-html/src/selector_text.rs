//! Parses selectors.

use crate::selector::{AttributeTest, Combinator, Complex, Condition, CssSelector};

/// Nesting of selectors, as in `:not(:has(a))`.
const DEPTH_MAX: usize = 16;

impl CssSelector {
    /// Parses a selector; `None` if it is not valid.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut reader = Reader { rest: text, depth: 0 };
        let selector = reader.list()?;
        reader.rest.is_empty().then_some(selector)
    }
}

struct Reader<'a> {
    rest: &'a str,
    depth: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, token: &str) -> bool {
        let rest = self.rest.strip_prefix(token);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Skips blanks. Returns whether there were any.
    fn blanks(&mut self) -> bool {
        let rest = self.rest.trim_start();
        let were = rest.len() < self.rest.len();
        self.rest = rest;
        were
    }

    fn word(&mut self) -> Option<String> {
        let mut word = String::new();
        let mut chars = self.rest.chars();
        loop {
            let rest = chars.as_str();
            match chars.next() {
                Some('\\') => word.push(chars.next()?),
                Some(c) if c.is_alphanumeric() || c == '-' || c == '_' || !c.is_ascii() => {
                    word.push(c);
                }
                _ => {
                    self.rest = rest;
                    return (!word.is_empty()).then_some(word);
                }
            }
        }
    }

    fn list(&mut self) -> Option<CssSelector> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return None;
        }
        let mut all = Vec::new();
        loop {
            all.push(self.complex()?);
            if !self.take(",") {
                self.depth -= 1;
                return Some(CssSelector(all));
            }
        }
    }

    fn complex(&mut self) -> Option<Complex> {
        self.blanks();
        let mut own = self.compound()?;
        let mut context = Vec::new();
        loop {
            let blank = self.blanks();
            let combinator = match self.rest.chars().next() {
                None | Some(',' | ')') => break,
                Some('>') => Combinator::Child,
                Some('+') => Combinator::Next,
                Some('~') => Combinator::Sibling,
                Some(_) if blank => Combinator::Descendant,
                Some(_) => return None,
            };
            if combinator != Combinator::Descendant {
                self.rest = &self.rest[1..];
                self.blanks();
            }
            context.insert(0, (combinator, own));
            own = self.compound()?;
        }
        Some(Complex { own, context })
    }

    fn compound(&mut self) -> Option<Vec<Condition>> {
        let mut conditions = Vec::new();
        if self.take("*") {
            conditions.push(Condition::Any);
        } else if let Some(name) = self.word() {
            conditions.push(Condition::Name(name.to_lowercase()));
        }
        loop {
            let condition = match self.rest.chars().next() {
                Some('#') => {
                    self.rest = &self.rest[1..];
                    let (name, value) = ("id".to_owned(), self.word()?);
                    Condition::Attribute {
                        name,
                        test: AttributeTest::Equals,
                        value,
                        ignores_case: false,
                    }
                }
                Some('.') => {
                    self.rest = &self.rest[1..];
                    Condition::Class(self.word()?)
                }
                Some('[') => self.attribute()?,
                Some(':') => self.pseudo()?,
                _ => return (!conditions.is_empty()).then_some(conditions),
            };
            conditions.push(condition);
        }
    }

    fn attribute(&mut self) -> Option<Condition> {
        self.rest = &self.rest[1..];
        self.blanks();
        let name = self.word()?.to_lowercase();
        self.blanks();
        const TESTS: [(&str, AttributeTest); 7] = [
            ("=", AttributeTest::Equals),
            ("!=", AttributeTest::Differs),
            ("~=", AttributeTest::Word),
            ("|=", AttributeTest::Dash),
            ("^=", AttributeTest::Starts),
            ("$=", AttributeTest::Ends),
            ("*=", AttributeTest::Contains),
        ];
        let test = TESTS.into_iter().find(|(sign, _)| self.take(sign));
        let Some((_, test)) = test else {
            let (test, value) = (AttributeTest::Exists, String::new());
            return self.take("]").then_some(Condition::Attribute {
                name,
                test,
                value,
                ignores_case: false,
            });
        };
        self.blanks();
        let value = self.value()?;
        self.blanks();
        let ignores_case = self.take("i");
        self.blanks();
        self.take("]").then_some(Condition::Attribute { name, test, value, ignores_case })
    }

    /// A word or a quoted text.
    fn value(&mut self) -> Option<String> {
        let Some(quote) = self.rest.chars().next().filter(|c| matches!(c, '"' | '\'')) else {
            return self.word();
        };
        let (value, rest) = self.rest[1..].split_once(quote)?;
        self.rest = rest;
        Some(value.to_owned())
    }

    fn pseudo(&mut self) -> Option<Condition> {
        self.rest = &self.rest[1..];
        let name = self.word()?.to_lowercase();
        let nth = |a, b, from_end, of_type| Condition::Nth { a, b, from_end, of_type };
        Some(match name.as_str() {
            "first-child" => nth(0, 1, false, false),
            "last-child" => nth(0, 1, true, false),
            "first-of-type" => nth(0, 1, false, true),
            "last-of-type" => nth(0, 1, true, true),
            "only-child" => Condition::Only { of_type: false },
            "only-of-type" => Condition::Only { of_type: true },
            "empty" => Condition::Empty,
            "root" => Condition::Root,
            "input" => Condition::Input,
            "checked" => is("input[checked], option[selected]")?,
            "disabled" => {
                is("input[disabled], select[disabled], textarea[disabled], button[disabled], \
                 option[disabled], optgroup[disabled], fieldset[disabled]")?
            }
            "enabled" => {
                is("input:not([disabled]), select:not([disabled]), textarea:not([disabled]), \
                 button:not([disabled]), option:not([disabled]), a[href], link[href]")?
            }
            "link" => is("a[href], area[href], link[href]")?,
            _ => return self.function(&name),
        })
    }

    fn function(&mut self, name: &str) -> Option<Condition> {
        if !self.take("(") {
            return None;
        }
        let condition = match name {
            "not" => Condition::Not(self.list()?),
            "is" | "where" | "matches" => Condition::Is(self.list()?),
            "has" => Condition::Has(self.list()?),
            "haschild" => Condition::HasChild(self.list()?),
            "contains" | "containsown" => {
                self.blanks();
                let text = self.value()?.to_lowercase();
                match name {
                    "contains" => Condition::Contains(text),
                    _ => Condition::ContainsOwn(text),
                }
            }
            "nth-child" | "nth-last-child" | "nth-of-type" | "nth-last-of-type" => {
                let (text, _) = self.rest.split_once(')')?;
                self.rest = &self.rest[text.len()..];
                let (a, b) = steps(text)?;
                let (from_end, of_type) = (name.contains("last"), name.ends_with("type"));
                Condition::Nth { a, b, from_end, of_type }
            }
            _ => return None,
        };
        self.blanks();
        self.take(")").then_some(condition)
    }
}

fn is(text: &str) -> Option<Condition> {
    CssSelector::parse(text).map(Condition::Is)
}

/// The `a` and `b` of `an+b`: `2n+1`, `odd`, `-n + 3`, `4`.
fn steps(text: &str) -> Option<(i64, i64)> {
    let text: String = text.to_lowercase().split_whitespace().collect();
    match text.as_str() {
        "even" => return Some((2, 0)),
        "odd" => return Some((2, 1)),
        _ => {}
    }
    let Some((a, b)) = text.split_once('n') else {
        return text.parse().ok().map(|b| (0, b));
    };
    let a = match a {
        "" | "+" => 1,
        "-" => -1,
        a => a.parse().ok()?,
    };
    let b = if b.is_empty() { 0 } else { b.parse().ok()? };
    Some((a, b))
}
