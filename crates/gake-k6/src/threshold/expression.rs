//! Threshold expressions: `p(95) < 200`.

use std::str::FromStr;

use crate::aggregation::Aggregation;

/// A statistic, an operator and a bound.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ThresholdExpression {
    /// The statistic of the metric.
    pub aggregation: Aggregation,
    /// The comparison operator.
    pub operator: ThresholdOperator,
    /// The bound; times are in milliseconds.
    pub bound: f64,
}

/// The comparison of a figure with its bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThresholdOperator {
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `==`, `===`
    Equal,
    /// `!=`
    NotEqual,
}

/// The longer of two operators with the same prefix comes first.
const OPERATORS: [(&str, ThresholdOperator); 7] = [
    ("<=", ThresholdOperator::LessOrEqual),
    ("<", ThresholdOperator::Less),
    (">=", ThresholdOperator::GreaterOrEqual),
    (">", ThresholdOperator::Greater),
    ("===", ThresholdOperator::Equal),
    ("==", ThresholdOperator::Equal),
    ("!=", ThresholdOperator::NotEqual),
];

/// An error in an expression, in k6's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExpressionError {
    /// It has no operator, or nothing after it.
    #[error("failed parsing threshold expression {0:?}; reason: malformed threshold expression")]
    Malformed(String),
    /// The left-hand side is not an aggregation method.
    #[error("failed parsing threshold expression's {text:?} left hand side; reason: {reason}")]
    Method {
        /// The expression.
        text: String,
        /// The error of its method.
        reason: String,
    },
    /// The right-hand side is not a number.
    // The misspelling is k6's: users search for it.
    #[error(
        "failed parsing threshold expresion's {text:?} right hand side; reason: \
         strconv.ParseFloat: parsing {bound:?}: invalid syntax"
    )]
    Bound {
        /// The expression.
        text: String,
        /// The right-hand side.
        bound: String,
    },
}

impl FromStr for ThresholdExpression {
    type Err = ExpressionError;

    fn from_str(text: &str) -> Result<Self, ExpressionError> {
        let malformed = || ExpressionError::Malformed(text.to_owned());
        let found = OPERATORS.iter().filter_map(|(sign, operator)| {
            let at = text.find(sign)?;
            Some((at, *sign, *operator))
        });
        // Of several at the same index, the first listed is the longest.
        let (at, sign, operator) = found.min_by_key(|found| found.0).ok_or_else(malformed)?;
        let method = text[..at].trim();
        let bound = text[at + sign.len()..].trim();
        if bound.is_empty() {
            return Err(malformed());
        }
        let aggregation = method
            .parse()
            .map_err(|reason| ExpressionError::Method { text: text.to_owned(), reason })?;
        let number = bound.parse().map_err(|_| ExpressionError::Bound {
            text: text.to_owned(),
            bound: bound.to_owned(),
        })?;
        Ok(Self { aggregation, operator, bound: number })
    }
}

impl ThresholdOperator {
    /// Whether the comparison of `figure` with `bound` holds.
    #[must_use]
    pub fn holds(self, figure: f64, bound: f64) -> bool {
        match self {
            Self::Less => figure < bound,
            Self::LessOrEqual => figure <= bound,
            Self::Greater => figure > bound,
            Self::GreaterOrEqual => figure >= bound,
            Self::Equal => figure == bound,
            Self::NotEqual => figure != bound,
        }
    }
}
