//! Repeats the tests of the direct path on the frame path.

use crate::{ON_FRAME_PATH, hostile, passing};

fn on_frame_path(test: fn()) {
    ON_FRAME_PATH.set(true);
    test();
}

#[test]
fn ambiguous_requests_reach_no_backend() {
    on_frame_path(hostile::ambiguous_requests_reach_no_backend);
}

#[test]
fn bad_chunks_never_become_a_complete_request() {
    on_frame_path(hostile::bad_chunks_never_become_a_complete_request);
}

#[test]
fn unusual_requests_are_normalised() {
    on_frame_path(hostile::unusual_requests_are_normalised);
}

#[test]
fn a_length_of_many_digits_frames_one_body() {
    on_frame_path(hostile::a_length_of_many_digits_frames_one_body);
}

#[test]
fn slow_clients_are_closed() {
    on_frame_path(hostile::slow_clients_are_closed);
}

#[test]
fn a_client_that_does_not_read_is_closed() {
    on_frame_path(hostile::a_client_that_does_not_read_is_closed);
}

#[test]
fn a_client_that_leaves_before_the_master_connects_reaches_no_shadow() {
    on_frame_path(hostile::a_client_that_leaves_before_the_master_connects_reaches_no_shadow);
}

#[test]
fn clients_over_the_limit_wait_in_the_backlog() {
    on_frame_path(hostile::clients_over_the_limit_wait_in_the_backlog);
}

#[test]
fn a_shadow_gets_only_complete_requests_that_the_master_got() {
    on_frame_path(hostile::a_shadow_gets_only_complete_requests_that_the_master_got);
}

#[test]
fn a_request_arrives_unchanged_at_both_backends() {
    on_frame_path(passing::a_request_arrives_unchanged_at_both_backends);
}

#[test]
fn names_of_a_request_keep_their_case() {
    on_frame_path(passing::names_of_a_request_keep_their_case);
}

#[test]
fn names_of_a_response_keep_their_case() {
    on_frame_path(passing::names_of_a_response_keep_their_case);
}

#[test]
fn host_and_forwarding_follow_the_settings() {
    on_frame_path(passing::host_and_forwarding_follow_the_settings);
}

#[test]
fn responses_without_a_body_keep_the_connection() {
    on_frame_path(passing::responses_without_a_body_keep_the_connection);
}

#[test]
fn bodies_stream_both_ways_and_large_ones_are_not_copied() {
    on_frame_path(passing::bodies_stream_both_ways_and_large_ones_are_not_copied);
}

#[test]
fn chunks_and_trailers_arrive_even_on_a_get() {
    on_frame_path(passing::chunks_and_trailers_arrive_even_on_a_get);
}

#[test]
fn the_proxy_itself_sends_100_continue() {
    on_frame_path(passing::the_proxy_itself_sends_100_continue);
}

#[test]
fn an_http10_client_gets_no_chunks() {
    on_frame_path(passing::an_http10_client_gets_no_chunks);
}

#[test]
fn a_master_that_fails_is_a_502_and_a_slow_one_a_504() {
    on_frame_path(passing::a_master_that_fails_is_a_502_and_a_slow_one_a_504);
}

#[test]
fn a_body_of_empty_lines_is_a_body() {
    on_frame_path(passing::a_body_of_empty_lines_is_a_body);
}

#[test]
fn a_response_that_ends_early_does_so_for_the_client() {
    on_frame_path(passing::a_response_that_ends_early_does_so_for_the_client);
}

#[test]
fn a_response_that_ends_early_is_an_error_to_an_http10_client() {
    on_frame_path(passing::a_response_that_ends_early_is_an_error_to_an_http10_client);
}

#[test]
fn a_response_cut_by_shutdown_is_an_error_to_an_http10_client() {
    on_frame_path(passing::a_response_cut_by_shutdown_is_an_error_to_an_http10_client);
}

#[test]
fn a_connection_closed_by_the_master_is_retried() {
    on_frame_path(passing::a_connection_closed_by_the_master_is_retried);
}

#[test]
fn an_aborted_upload_is_not_copied() {
    on_frame_path(passing::an_aborted_upload_is_not_copied);
}

#[test]
fn an_early_response_reaches_a_client_that_still_sends() {
    on_frame_path(passing::an_early_response_reaches_a_client_that_still_sends);
}

#[test]
fn a_websocket_goes_to_the_master_only() {
    on_frame_path(passing::a_websocket_goes_to_the_master_only);
}

#[test]
fn http2_in_cleartext_is_not_tunnelled() {
    on_frame_path(passing::http2_in_cleartext_is_not_tunnelled);
}

#[test]
fn only_what_policy_allows_is_copied() {
    on_frame_path(passing::only_what_policy_allows_is_copied);
}

#[test]
fn a_draining_proxy_finishes_running_requests() {
    on_frame_path(passing::a_draining_proxy_finishes_running_requests);
}
