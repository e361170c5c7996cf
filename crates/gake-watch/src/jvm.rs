//! What a Java virtual machine counts about itself: the file that it keeps in `/tmp/hsperfdata_USER`
//! for `jstat`. No agent, exporter or setting is needed.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;

/// The most bytes of such a file; the default is 32 KB (`-XX:PerfDataMemorySize`).
const BYTES_MAX: u64 = 1 << 20;

/// The first bytes, whatever the byte order of the rest.
const MAGIC: [u8; 4] = 0xcafe_c0c0_u32.to_be_bytes();

/// The type of 64-bit integers, as in the Java virtual machine's descriptors.
const LONG: u8 = b'J';

/// The counter of the clock's ticks in a second.
const TICKS_PER_SECOND: &str = "sun.os.hrt.frequency";

/// Counters of the ticks that each collector took: pauses, but for Shenandoah's, which include what
/// it does beside the program.
const COLLECTORS: (&str, &str) = ("sun.gc.collector.", ".time");

/// The ticks that the program has been stopped for, whatever the reason.
const STOPPED: &str = "sun.rt.safepointTime";

/// The files of processes, each searched once: a virtual machine makes its own when it starts.
#[derive(Debug, Default)]
pub(crate) struct JvmFiles(HashMap<i32, Option<PathBuf>>);

impl JvmFiles {
    /// Forgets all processes but these.
    pub(crate) fn keep(&mut self, pids: &[i32]) {
        self.0.retain(|pid, _| pids.contains(pid));
    }

    /// Seconds that the program of process `pid` has been stopped for garbage collection, if it is a
    /// Java virtual machine whose file can be read.
    pub(crate) fn collecting_seconds(&mut self, pid: i32) -> Option<f64> {
        let path = self.0.entry(pid).or_insert_with(|| file(pid)).as_ref()?;
        let bytes = gake_files::read(path, "performance data", BYTES_MAX).ok()?;
        collecting(&bytes)
    }
}

/// The file of a process, in the file system and under the process id that it sees itself.
fn file(pid: i32) -> Option<PathBuf> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let own = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?.split_whitespace();
    let own = own.last()?.to_owned();
    let folders = fs::read_dir(format!("/proc/{pid}/root/tmp")).ok()?.flatten();
    let of_java = folders
        .filter(|folder| folder.file_name().as_encoded_bytes().starts_with(b"hsperfdata_"))
        .map(|folder| folder.path().join(&own));
    of_java.into_iter().find(|path| path.is_file())
}

/// The seconds that all collectors have stopped the program; `None` if it is no such file.
///
/// Format 2.0: magic, byte order, version, and at 24 and 28 the place and number of entries; an
/// entry has its length, the place of its name, a length of vectors, its type and the place of its
/// data, counted from its start.
fn collecting(bytes: &[u8]) -> Option<f64> {
    let is_little = match bytes.get(..6)? {
        [a, b, c, d, order, 2] if [*a, *b, *c, *d] == MAGIC => *order == 1,
        _ => return None,
    };
    let number = |at: usize| -> Option<usize> {
        let four = *bytes.get(at..)?.first_chunk()?;
        let number = if is_little { i32::from_le_bytes(four) } else { i32::from_be_bytes(four) };
        usize::try_from(number).ok()
    };
    let long = |at: usize| -> Option<i64> {
        let eight = *bytes.get(at..)?.first_chunk()?;
        Some(if is_little { i64::from_le_bytes(eight) } else { i64::from_be_bytes(eight) })
    };
    let (mut at, entries) = (number(24)?, number(28)?);
    let (mut collectors, mut stopped, mut frequency) = (None, None, None);
    for _ in 0..entries {
        let (length, name, place) = (number(at)?, number(at + 4)?, number(at + 16)?);
        let name = bytes.get(at + name..)?.split(|byte| *byte == 0).next()?;
        let name = std::str::from_utf8(name).unwrap_or_default();
        if *bytes.get(at + 12)? == LONG {
            if name.starts_with(COLLECTORS.0) && name.ends_with(COLLECTORS.1) {
                *collectors.get_or_insert(0.0) += long(at + place)? as f64;
            } else if name == STOPPED {
                stopped = Some(long(at + place)? as f64);
            } else if name == TICKS_PER_SECOND {
                frequency = Some(long(at + place)? as f64);
            }
        }
        // An entry without a length would be read for ever.
        at = at.checked_add(length.max(1))?;
    }
    let frequency = frequency.filter(|frequency| *frequency > 0.0)?;
    Some(f64::min(collectors?, stopped?) / frequency)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, value: i64) -> Vec<u8> {
        let place = (20 + name.len() + 1).next_multiple_of(8);
        let mut entry = Vec::new();
        for number in [place as i32 + 8, 20, 0] {
            entry.extend(number.to_le_bytes());
        }
        entry.extend([LONG, 0, 1, 1]);
        entry.extend((place as i32).to_le_bytes());
        entry.extend(name.as_bytes());
        entry.resize(place, 0);
        entry.extend(value.to_le_bytes());
        entry
    }

    fn data(entries: &[Vec<u8>]) -> Vec<u8> {
        let mut data = MAGIC.to_vec();
        data.extend([1, 2, 0, 1]);
        data.resize(24, 0);
        data.extend(32_i32.to_le_bytes());
        data.extend((entries.len() as i32).to_le_bytes());
        data.extend(entries.concat());
        data
    }

    #[test]
    fn pauses_of_all_collectors_are_summed() {
        let whole = data(&[
            entry("sun.gc.collector.0.time", 1_500),
            entry("java.threads.live", 9),
            entry("sun.gc.collector.1.time", 500),
            entry("sun.rt.safepointTime", 2_100),
            entry("sun.os.hrt.frequency", 1_000),
        ]);
        assert_eq!(collecting(&whole), Some(2.0));
        let concurrent = data(&[
            entry("sun.gc.collector.1.time", 3_400),
            entry("sun.rt.safepointTime", 100),
            entry("sun.os.hrt.frequency", 1_000),
        ]);
        assert_eq!(collecting(&concurrent), Some(0.1));
        assert_eq!(collecting(&data(&[entry("sun.os.hrt.frequency", 1_000)])), None);
        assert_eq!(collecting(b"#!/bin/sh"), None);
        for length in 0..whole.len() {
            assert_eq!(collecting(&whole[..length]), None, "{length} bytes");
        }
        // Any byte may be wrong.
        for at in 0..whole.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut wrong = whole.clone();
                wrong[at] = value;
                let _ = collecting(&wrong);
            }
        }
    }
}
