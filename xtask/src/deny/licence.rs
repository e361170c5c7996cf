//! SPDX licence expressions: `MIT OR (Apache-2.0 WITH LLVM-exception AND ISC)`.

use std::collections::BTreeSet;

use anyhow::{Result, bail};

/// Whether an expression can be met with allowed licences. A licence with an exception, which only
/// permits more, is allowed when the licence is.
pub fn is_allowed(expression: &str, allowed: &BTreeSet<String>) -> Result<bool> {
    // `MIT/Apache-2.0` is how older crates write an OR.
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut parser = Parser { words: &words, allowed };
    let met = parser.any()?;
    if let Some(word) = parser.words.first() {
        bail!("`{word}` is not expected");
    }
    Ok(met)
}

struct Parser<'a> {
    words: &'a [&'a str],
    allowed: &'a BTreeSet<String>,
}

impl<'a> Parser<'a> {
    fn any(&mut self) -> Result<bool> {
        let mut met = self.all()?;
        while self.take("OR") {
            met |= self.all()?;
        }
        Ok(met)
    }

    fn all(&mut self) -> Result<bool> {
        let mut met = self.one()?;
        while self.take("AND") {
            met &= self.one()?;
        }
        Ok(met)
    }

    fn one(&mut self) -> Result<bool> {
        if self.take("(") {
            let met = self.any()?;
            if !self.take(")") {
                bail!("a parenthesis is not closed");
            }
            return Ok(met);
        }
        let name = self.name()?;
        if self.take("WITH") {
            self.name()?;
        }
        Ok(self.allowed.contains(name))
    }

    fn name(&mut self) -> Result<&'a str> {
        match self.words.split_first() {
            Some((word, rest)) if !["AND", "OR", "WITH", "(", ")"].contains(word) => {
                self.words = rest;
                Ok(word)
            }
            _ => bail!("a licence is missing"),
        }
    }

    fn take(&mut self, word: &str) -> bool {
        let Some((first, rest)) = self.words.split_first() else { return false };
        let is = *first == word;
        if is {
            self.words = rest;
        }
        is
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_met_or_not() {
        let allowed = ["MIT", "ISC", "Apache-2.0"].map(str::to_owned).into();
        let met = |expression: &str| is_allowed(expression, &allowed).unwrap();
        for good in [
            "MIT",
            "GPL-3.0 OR MIT",
            "MIT/GPL-3.0",
            "Apache-2.0 WITH LLVM-exception",
            "(MIT OR GPL-3.0) AND ISC",
            "GPL-3.0 AND X OR MIT AND ISC",
        ] {
            assert!(met(good), "{good}");
        }
        for bad in ["GPL-3.0", "MIT AND GPL-3.0", "(GPL-3.0 OR X) AND MIT", "mit", "LLVM-exception"]
        {
            assert!(!met(bad), "{bad}");
        }
        for broken in ["", "MIT OR", "(MIT", "MIT)", "MIT ISC", "AND", "MIT WITH"] {
            assert!(is_allowed(broken, &allowed).is_err(), "{broken}");
        }
    }
}
