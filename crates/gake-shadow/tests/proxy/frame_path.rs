//! What holds for requests that pass as bytes holds for those that are taken apart: the same tests
//! once more, with a hook that has a say and says nothing.

use crate::{ON_FRAME_PATH, hostile, passing};

/// Runs a test with proxies that take every request apart.
fn on_frame_path(test: fn()) {
    ON_FRAME_PATH.set(true);
    test();
}

#[test]
fn what_two_servers_could_read_in_two_ways_reaches_none() {
    on_frame_path(hostile::what_two_servers_could_read_in_two_ways_reaches_none);
}

#[test]
fn a_bad_chunk_never_becomes_a_whole_request() {
    on_frame_path(hostile::a_bad_chunk_never_becomes_a_whole_request);
}

#[test]
fn what_is_only_odd_is_written_anew_for_both() {
    on_frame_path(hostile::what_is_only_odd_is_written_anew_for_both);
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
fn a_client_that_takes_no_answer_does_not_keep_its_place() {
    on_frame_path(hostile::a_client_that_takes_no_answer_does_not_keep_its_place);
}

#[test]
fn who_leaves_before_the_master_is_asked_has_asked_no_shadow() {
    on_frame_path(hostile::who_leaves_before_the_master_is_asked_has_asked_no_shadow);
}

#[test]
fn clients_beyond_the_limit_wait_outside() {
    on_frame_path(hostile::clients_beyond_the_limit_wait_outside);
}

#[test]
fn whatever_comes_a_shadow_sees_whole_requests_that_the_master_saw_too() {
    on_frame_path(hostile::whatever_comes_a_shadow_sees_whole_requests_that_the_master_saw_too);
}

#[test]
fn a_request_arrives_as_it_was_sent_at_both() {
    on_frame_path(passing::a_request_arrives_as_it_was_sent_at_both);
}

#[test]
fn names_of_a_request_keep_their_case() {
    on_frame_path(passing::names_of_a_request_keep_their_case);
}

#[test]
fn names_of_an_answer_keep_their_case() {
    on_frame_path(passing::names_of_an_answer_keep_their_case);
}

#[test]
fn host_and_forwarding_are_as_told() {
    on_frame_path(passing::host_and_forwarding_are_as_told);
}

#[test]
fn answers_without_a_body_keep_the_connection() {
    on_frame_path(passing::answers_without_a_body_keep_the_connection);
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
fn a_client_that_expects_100_gets_it_and_backends_do_not_hear_of_it() {
    on_frame_path(passing::a_client_that_expects_100_gets_it_and_backends_do_not_hear_of_it);
}

#[test]
fn an_old_client_gets_an_answer_it_understands() {
    on_frame_path(passing::an_old_client_gets_an_answer_it_understands);
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
fn an_answer_that_breaks_off_breaks_off_for_the_client() {
    on_frame_path(passing::an_answer_that_breaks_off_breaks_off_for_the_client);
}

#[test]
fn an_answer_that_breaks_off_is_an_error_to_an_old_client() {
    on_frame_path(passing::an_answer_that_breaks_off_is_an_error_to_an_old_client);
}

#[test]
fn an_answer_that_the_proxys_end_cuts_is_an_error_to_an_old_client() {
    on_frame_path(passing::an_answer_that_the_proxys_end_cuts_is_an_error_to_an_old_client);
}

#[test]
fn a_connection_that_the_master_closed_is_not_the_clients_trouble() {
    on_frame_path(passing::a_connection_that_the_master_closed_is_not_the_clients_trouble);
}

#[test]
fn an_upload_that_is_cut_short_is_not_copied_as_whole() {
    on_frame_path(passing::an_upload_that_is_cut_short_is_not_copied_as_whole);
}

#[test]
fn an_early_answer_reaches_a_client_that_still_sends() {
    on_frame_path(passing::an_early_answer_reaches_a_client_that_still_sends);
}

#[test]
fn a_websocket_goes_to_the_master_alone() {
    on_frame_path(passing::a_websocket_goes_to_the_master_alone);
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
fn a_proxy_that_is_told_to_stop_finishes_what_it_has() {
    on_frame_path(passing::a_proxy_that_is_told_to_stop_finishes_what_it_has);
}
