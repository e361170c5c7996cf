//! Repeats the tests of the direct path on the frame path.

use crate::{ON_FRAME_PATH, faults, hostile, passing};

macro_rules! on_frame_path {
    ($($module:ident { $($test:ident,)+ })+) => { $($(
        #[test]
        fn $test() {
            ON_FRAME_PATH.set(true);
            $module::$test();
        }
    )+)+ };
}

on_frame_path! {
    faults {
        a_master_that_fails_is_a_502_and_a_slow_one_a_504,
        a_response_that_ends_early_does_so_for_the_client,
        a_response_that_ends_early_is_an_error_to_an_http10_client,
        a_response_cut_by_shutdown_is_an_error_to_an_http10_client,
        a_connection_closed_by_the_master_is_retried,
        an_aborted_upload_is_not_copied,
        a_draining_proxy_finishes_running_requests,
    }
    hostile {
        ambiguous_requests_reach_no_backend,
        bad_chunks_never_become_a_complete_request,
        unusual_requests_are_normalised,
        a_length_of_many_digits_frames_one_body,
        slow_clients_are_closed,
        a_client_that_does_not_read_is_closed,
        a_client_that_leaves_before_the_master_connects_reaches_no_shadow,
        clients_over_the_limit_wait_in_the_backlog,
        a_shadow_gets_only_complete_requests_that_the_master_got,
    }
    passing {
        a_request_arrives_unchanged_at_both_backends,
        names_of_a_request_keep_their_case,
        names_of_a_response_keep_their_case,
        host_and_forwarding_follow_the_settings,
        responses_without_a_body_keep_the_connection,
        bodies_stream_both_ways_and_large_ones_are_not_copied,
        chunks_and_trailers_arrive_even_on_a_get,
        the_proxy_itself_sends_100_continue,
        an_http10_client_gets_no_chunks,
        a_body_of_empty_lines_is_a_body,
        an_early_response_reaches_a_client_that_still_sends,
        a_websocket_goes_to_the_master_only,
        http2_in_cleartext_is_not_tunnelled,
        only_what_policy_allows_is_copied,
    }
}
