//! Sizes that a script chooses: calls of the fuzz target `sizes`. Alone in its process, whose memory
//! it measures.

#![allow(clippy::expect_used, missing_docs)] // the harness is a test too

#[path = "../../../fuzz/fuzz_targets/border/harness.rs"]
mod harness;

use gake_testkit::{Counting, live_bytes, peak_bytes, reset_peak};
use harness::{Crossed, HEAP, call_with_sizes};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn calls_with_sizes_return_or_throw_within_the_heap() {
    // More than there are functions: the numbers begin again.
    let functions: Vec<u8> = (0..80).collect();
    let one_by_one = |calls: &[[u8; 3]]| {
        for call in calls {
            call_with_sizes(std::slice::from_ref(call));
        }
    };
    // 255, 2^53 - 1, -2^63, NaN and Infinity of sizes.js; the second is often an offset.
    for [size, second] in [[3, 15], [15, 15], [22, 24], [25, 3]] {
        for functions in functions.chunks(8) {
            let calls: Vec<_> = functions.iter().map(|&one| [one, size, second]).collect();
            reset_peak();
            let before = live_bytes();
            // A call that does not end hides the others.
            if call_with_sizes(&calls) == Crossed::Stopped {
                one_by_one(&calls);
            }
            let peak = peak_bytes() - before;
            assert!(peak <= 2 * HEAP, "{calls:?}: {peak} bytes");
        }
    }
}
