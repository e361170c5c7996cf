//! What holds for requests that pass as bytes holds for those that are taken apart: the same tests
//! once more, with a hook that has a say and says nothing.

use crate::{IN_PARTS, hostile, passing};

/// Runs a test with proxies that take every request apart.
fn in_parts(test: fn()) {
    IN_PARTS.set(true);
    test();
}

#[test]
fn what_two_servers_could_read_in_two_ways_reaches_none() {
    in_parts(hostile::what_two_servers_could_read_in_two_ways_reaches_none);
}

#[test]
fn a_bad_chunk_never_becomes_a_whole_request() {
    in_parts(hostile::a_bad_chunk_never_becomes_a_whole_request);
}

#[test]
fn what_is_only_odd_is_written_anew_for_both() {
    in_parts(hostile::what_is_only_odd_is_written_anew_for_both);
}

#[test]
fn a_length_of_many_digits_frames_one_body() {
    in_parts(hostile::a_length_of_many_digits_frames_one_body);
}

#[test]
fn slow_clients_are_closed() {
    in_parts(hostile::slow_clients_are_closed);
}

#[test]
fn a_client_that_takes_no_answer_does_not_keep_its_place() {
    in_parts(hostile::a_client_that_takes_no_answer_does_not_keep_its_place);
}

#[test]
fn who_leaves_before_the_master_is_asked_has_asked_no_shadow() {
    in_parts(hostile::who_leaves_before_the_master_is_asked_has_asked_no_shadow);
}

#[test]
fn clients_beyond_the_limit_wait_outside() {
    in_parts(hostile::clients_beyond_the_limit_wait_outside);
}

#[test]
fn whatever_comes_a_shadow_sees_whole_requests_that_the_master_saw_too() {
    in_parts(hostile::whatever_comes_a_shadow_sees_whole_requests_that_the_master_saw_too);
}

#[test]
fn a_request_arrives_as_it_was_sent_at_both() {
    in_parts(passing::a_request_arrives_as_it_was_sent_at_both);
}

#[test]
fn names_of_a_request_keep_their_case() {
    in_parts(passing::names_of_a_request_keep_their_case);
}

#[test]
fn names_of_an_answer_keep_their_case() {
    in_parts(passing::names_of_an_answer_keep_their_case);
}

#[test]
fn host_and_forwarding_are_as_told() {
    in_parts(passing::host_and_forwarding_are_as_told);
}

#[test]
fn answers_without_a_body_keep_the_connection() {
    in_parts(passing::answers_without_a_body_keep_the_connection);
}

#[test]
fn bodies_stream_both_ways_and_large_ones_are_not_copied() {
    in_parts(passing::bodies_stream_both_ways_and_large_ones_are_not_copied);
}

#[test]
fn chunks_and_trailers_arrive_even_on_a_get() {
    in_parts(passing::chunks_and_trailers_arrive_even_on_a_get);
}

#[test]
fn a_client_that_expects_100_gets_it_and_backends_do_not_hear_of_it() {
    in_parts(passing::a_client_that_expects_100_gets_it_and_backends_do_not_hear_of_it);
}

#[test]
fn an_old_client_gets_an_answer_it_understands() {
    in_parts(passing::an_old_client_gets_an_answer_it_understands);
}

#[test]
fn a_master_that_fails_is_a_502_and_a_slow_one_a_504() {
    in_parts(passing::a_master_that_fails_is_a_502_and_a_slow_one_a_504);
}

#[test]
fn a_body_of_empty_lines_is_a_body() {
    in_parts(passing::a_body_of_empty_lines_is_a_body);
}

#[test]
fn an_answer_that_breaks_off_breaks_off_for_the_client() {
    in_parts(passing::an_answer_that_breaks_off_breaks_off_for_the_client);
}

#[test]
fn an_answer_that_breaks_off_is_an_error_to_an_old_client() {
    in_parts(passing::an_answer_that_breaks_off_is_an_error_to_an_old_client);
}

#[test]
fn an_answer_that_the_proxys_end_cuts_is_an_error_to_an_old_client() {
    in_parts(passing::an_answer_that_the_proxys_end_cuts_is_an_error_to_an_old_client);
}

#[test]
fn a_connection_that_the_master_closed_is_not_the_clients_trouble() {
    in_parts(passing::a_connection_that_the_master_closed_is_not_the_clients_trouble);
}

#[test]
fn an_upload_that_is_cut_short_is_not_copied_as_whole() {
    in_parts(passing::an_upload_that_is_cut_short_is_not_copied_as_whole);
}

#[test]
fn an_early_answer_reaches_a_client_that_still_sends() {
    in_parts(passing::an_early_answer_reaches_a_client_that_still_sends);
}

#[test]
fn a_websocket_goes_to_the_master_alone() {
    in_parts(passing::a_websocket_goes_to_the_master_alone);
}

#[test]
fn http2_in_cleartext_is_not_tunnelled() {
    in_parts(passing::http2_in_cleartext_is_not_tunnelled);
}

#[test]
fn only_what_policy_allows_is_copied() {
    in_parts(passing::only_what_policy_allows_is_copied);
}

#[test]
fn a_proxy_that_is_told_to_stop_finishes_what_it_has() {
    in_parts(passing::a_proxy_that_is_told_to_stop_finishes_what_it_has);
}
