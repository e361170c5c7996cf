//! Feeds bytes in given slices and records the observable outcome.

use super::super::{
    Eof, Header, Malformed, ParseProgress, Response, ResponseHead, ResponseLimits, ResponseParser,
    Version, Visitor,
};

type Headers = Vec<(String, Vec<u8>)>;

/// How a stream of bytes ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ending {
    Done(ParsedResponse),
    /// Complete because the peer closed.
    Closed(ParsedResponse),
    Nothing,
    Cut,
    Bad(Malformed),
}

/// A response without the fields that depend on the slices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ParsedResponse {
    pub(super) status: u16,
    pub(super) version: Version,
    pub(super) body_bytes: u64,
    pub(super) keep_alive: bool,
    /// Bytes of the stream that belong to the response.
    pub(super) consumed: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) ending: Ending,
    pub(super) body: Vec<u8>,
    pub(super) heads: Vec<(u16, Headers)>,
    pub(super) trailers: Headers,
}

#[derive(Default)]
pub(super) struct CollectingVisitor {
    pub(super) body: Vec<u8>,
    pub(super) heads: Vec<(u16, Headers)>,
    pub(super) trailers: Headers,
}

fn collected(headers: &[Header<'_>]) -> Headers {
    headers.iter().map(|h| (h.name.to_owned(), h.value.to_vec())).collect()
}

impl Visitor for CollectingVisitor {
    fn head(&mut self, head: &ResponseHead<'_>) {
        self.heads.push((head.status, collected(head.headers)));
    }

    fn wants_trailers(&self) -> bool {
        true
    }

    fn trailers(&mut self, trailers: &[Header<'_>]) {
        assert!(!trailers.is_empty() && self.trailers.is_empty());
        self.trailers = collected(trailers);
    }

    fn body(&mut self, bytes: &[u8]) {
        assert!(!bytes.is_empty());
        self.body.extend_from_slice(bytes);
    }
}

fn parsed(response: Response, consumed: usize) -> ParsedResponse {
    let Response { status, version, body_bytes, keep_alive, .. } = response;
    ParsedResponse { status, version, body_bytes, keep_alive, consumed }
}

/// Feeds `bytes`, cut at `cuts`, then closes.
pub(super) fn run(parser: &mut ResponseParser, bytes: &[u8], cuts: &[usize]) -> Outcome {
    let mut cuts: Vec<usize> = cuts.iter().map(|&cut| cut.min(bytes.len())).collect();
    cuts.push(bytes.len());
    cuts.sort_unstable();
    let mut collect = CollectingVisitor::default();
    let (mut at, mut ending) = (0, None);
    for cut in cuts {
        match parser.feed_with(&bytes[at..cut], &mut collect) {
            Ok(ParseProgress::More) => at = cut,
            Ok(ParseProgress::Done(response)) => {
                assert_eq!(response.excess, response.consumed < cut - at);
                ending = Some(Ending::Done(parsed(response, at + response.consumed)));
                break;
            }
            Err(fault) => {
                ending = Some(Ending::Bad(fault));
                break;
            }
        }
    }
    let ending = ending.unwrap_or_else(|| match parser.eof() {
        Eof::Complete(response) => Ending::Closed(parsed(response, at)),
        Eof::Nothing => Ending::Nothing,
        Eof::Cut => Ending::Cut,
    });
    Outcome { ending, body: collect.body, heads: collect.heads, trailers: collect.trailers }
}

/// The outcome of `bytes` as the response to GET, fed whole and byte by byte: both must agree.
pub(super) fn get(bytes: impl AsRef<[u8]>) -> Outcome {
    both_ways(bytes.as_ref(), false, ResponseLimits::default())
}

/// The same as the response to HEAD.
pub(super) fn head(bytes: impl AsRef<[u8]>) -> Outcome {
    both_ways(bytes.as_ref(), true, ResponseLimits::default())
}

/// The same under other limits.
pub(super) fn bounded(bytes: impl AsRef<[u8]>, limits: ResponseLimits) -> Outcome {
    both_ways(bytes.as_ref(), false, limits)
}

/// The same for a lenient parser.
pub(super) fn leniently(bytes: impl AsRef<[u8]>) -> Outcome {
    fed(ResponseParser::default().lenient(), bytes.as_ref(), false)
}

fn both_ways(bytes: &[u8], is_head: bool, limits: ResponseLimits) -> Outcome {
    fed(ResponseParser::new(limits), bytes, is_head)
}

fn fed(mut parser: ResponseParser, bytes: &[u8], is_head: bool) -> Outcome {
    parser.start(is_head);
    let whole = run(&mut parser, bytes, &[]);
    parser.start(is_head);
    let single = run(&mut parser, bytes, &(0..bytes.len()).collect::<Vec<_>>());
    assert_eq!(whole, single, "whole against byte by byte");
    whole
}

impl Outcome {
    pub(super) fn bad(&self) -> Option<Malformed> {
        match self.ending {
            Ending::Bad(fault) => Some(fault),
            _ => None,
        }
    }

    pub(super) fn done(&self) -> ParsedResponse {
        match self.ending {
            Ending::Done(response) => response,
            ref other => panic!("not done: {other:?}"),
        }
    }
}

/// A 200 with these header lines and what follows the head.
pub(super) fn ok(headers: &str, rest: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{headers}\r\n{rest}")
}
