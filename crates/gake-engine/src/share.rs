//! How a total is split over workers so that the parts are the whole.

/// The part of `worker` of `workers` in `total` things: they differ by one at most.
pub(crate) fn part(total: usize, worker: usize, workers: usize) -> usize {
    total / workers + usize::from(worker < total % workers)
}

/// How many of the numbers 0..`total` are `worker` modulo `workers`.
pub(crate) fn numbers(total: u64, worker: usize, workers: usize) -> u64 {
    let (worker, workers) = (worker as u64, workers as u64);
    total / workers + u64::from(worker < total % workers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_the_whole() {
        for total in 0..40 {
            for workers in 1..9 {
                assert_eq!((0..workers).map(|w| part(total, w, workers)).sum::<usize>(), total);
                for worker in 0..workers {
                    let count = (0..total).filter(|n| n % workers == worker).count() as u64;
                    assert_eq!(numbers(total as u64, worker, workers), count);
                }
            }
        }
    }
}
