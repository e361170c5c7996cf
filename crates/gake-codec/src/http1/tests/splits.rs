//! The outcome does not depend on how the bytes are split.

use proptest::collection::vec;
use proptest::prelude::*;

use super::super::{ParseProgress, ResponseLimits, ResponseParser};
use super::generate::{damaged, response};
use super::harness::{CollectingVisitor, Ending, Outcome, run};

fn outcome(bytes: &[u8], is_head: bool, limits: ResponseLimits, cuts: &[usize]) -> Outcome {
    let mut parser = ResponseParser::new(limits);
    parser.start(is_head);
    run(&mut parser, bytes, cuts)
}

/// Cuts anywhere in `len` bytes, or between all of them.
fn cuts() -> impl Strategy<Value = Vec<usize>> {
    prop_oneof![
        vec(0..2_000_usize, 0..12),
        (0..200_usize, 1..9_usize).prop_map(|(from, step)| (from..2_000).step_by(step).collect()),
    ]
}

fn limits() -> impl Strategy<Value = ResponseLimits> {
    prop_oneof![
        2 => Just(ResponseLimits::default()),
        1 => (1..300_usize, 0..8_usize, 0..3_u32, 1..12_usize).prop_map(
            |(head_bytes, headers, interim, chunk_line)| {
                ResponseLimits { head_bytes, headers, interim, chunk_line }
            }
        ),
    ]
}

proptest! {
    #[test]
    fn a_valid_response_is_understood(generated in response(), cuts in cuts()) {
        let outcome = outcome(&generated.bytes, generated.is_head, ResponseLimits::default(), &cuts);
        let response = match outcome.ending {
            Ending::Done(response) if !generated.closes => response,
            Ending::Closed(response) if generated.closes => response,
            other => panic!("{other:?}"),
        };
        prop_assert_eq!(response.status, generated.status);
        prop_assert_eq!(response.keep_alive, generated.keep_alive);
        prop_assert_eq!(response.body_bytes, generated.body.len() as u64);
        prop_assert_eq!(response.consumed, generated.bytes.len());
        prop_assert_eq!(outcome.body, generated.body);
    }

    #[test]
    fn no_split_changes_the_outcome(
        generated in prop_oneof![response(), damaged()],
        limits in limits(),
        cuts in cuts(),
    ) {
        let whole = outcome(&generated.bytes, generated.is_head, limits, &[]);
        let split = outcome(&generated.bytes, generated.is_head, limits, &cuts);
        prop_assert_eq!(whole, split);
    }

    #[test]
    fn arbitrary_bytes_do_no_harm(
        bytes in vec(any::<u8>(), 0..200),
        prefix in prop::sample::select(&["", "HTTP/1.1 200 OK\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"][..]),
        cuts in cuts(),
    ) {
        let bytes = [prefix.as_bytes(), &bytes].concat();
        let whole = outcome(&bytes, false, ResponseLimits::default(), &[]);
        prop_assert_eq!(whole, outcome(&bytes, false, ResponseLimits::default(), &cuts));
    }

    #[test]
    fn responses_in_a_row(
        all in vec(response().prop_filter("framed", |g| !g.closes), 1..5),
        size in 1..400_usize,
    ) {
        let stream: Vec<u8> = all.iter().flat_map(|g| g.bytes.iter().copied()).collect();
        let mut parser = ResponseParser::default();
        let mut slices = stream.chunks(size);
        let mut rest: &[u8] = &[];
        for generated in &all {
            parser.start(generated.is_head);
            let mut collect = CollectingVisitor::default();
            loop {
                if rest.is_empty() {
                    rest = slices.next().unwrap();
                }
                match parser.feed_with(rest, &mut collect).unwrap() {
                    ParseProgress::More => rest = &[],
                    ParseProgress::Done(response) => {
                        prop_assert_eq!(response.status, generated.status);
                        prop_assert_eq!(response.excess, response.consumed < rest.len());
                        rest = &rest[response.consumed..];
                        break;
                    }
                }
            }
            prop_assert_eq!(&collect.body, &generated.body);
        }
        prop_assert!(rest.is_empty() && slices.next().is_none());
    }
}
