//! Programs of other packages that tests run against or with: where one is, and which Debian
//! package has it.

use std::path::PathBuf;
use std::process::Command;

/// A program and the package it comes in.
pub struct Program {
    /// The program's name, or the path of another file.
    pub name: &'static str,
    /// The Debian package that has it.
    pub package: &'static str,
}

const fn of(name: &'static str, package: &'static str) -> Program {
    Program { name, package }
}

/// A module of Python is no program: the package is there when its file is.
const PYTHON_KUBERNETES: &str = "/usr/lib/python3/dist-packages/kubernetes/__init__.py";

/// Debian's Python has no file of its own for this package.
const PYTHON_VENV: &str = "/usr/share/doc/python3-venv/copyright";

/// What the build needs for the HTML page, and what the end-to-end tests run against or with.
pub const PROGRAMS: &[Program] = &[
    of("node", "nodejs"),
    of("npm", "npm"),
    of("chromium", "chromium"),
    of("nginx", "nginx-light"),
    of("curl", "curl"),
    of("ss", "iproute2"),
    of("go", "golang-go"),
    of("java", "default-jdk-headless"),
    of("javac", "default-jdk-headless"),
    of("mvn", "maven"),
    of("mariadbd", "mariadb-server-core"),
    of("mariadb-install-db", "mariadb-server-core"),
    of("postgres", "postgresql"),
    of("initdb", "postgresql"),
    of("influxd", "influxdb"),
    of("redis-server", "redis-server"),
    of("prometheus", "prometheus"),
    of("promtool", "prometheus"),
    of("cc", "gcc"),
    of("python3", "python3-minimal"),
    of("zstd", "zstd"),
    of("nats-server", "nats-server"),
    of(PYTHON_KUBERNETES, "python3-kubernetes"),
    of("wrk", "wrk"),
    of("ab", "apache2-utils"),
    of("h2load", "nghttp2-client"),
    of("nghttpd", "nghttp2-server"),
    of("git", "git"),
    of("strace", "strace"),
    of(PYTHON_VENV, "python3-venv"),
    of("dpkg", "dpkg"),
    of("rpm", "rpm"),
    of("unshare", "util-linux"),
    of("valgrind", "valgrind"),
];

/// Where a program is: PATH, and the directories of servers that a user's PATH lacks. A file with a
/// path is where that says.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Debian keeps each version of PostgreSQL in a folder of its own.
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin", "/usr/local/go/bin"].map(PathBuf::from))
        .chain(versions.map(|version| version.path().join("bin")))
        .map(|dir| dir.join(program))
        .find(|file| file.is_file())
}

/// A command of a program of [`PROGRAMS`].
///
/// # Panics
/// If it is not installed, with a sentence that names its package.
pub fn command(program: &str) -> Command {
    Command::new(find(program).unwrap_or_else(|| panic!("{}", needed(program))))
}

fn needed(program: &str) -> String {
    let known = PROGRAMS.iter().find(|known| known.name == program);
    match known {
        Some(known) => format!("this test needs {program}: apt-get install {}", known.package),
        None => format!("this test needs {program}, which is not installed"),
    }
}

/// The packages whose programs are not here.
pub fn missing(programs: &[Program]) -> Vec<&'static str> {
    let absent = programs.iter().filter(|program| find(program.name).is_none());
    let mut packages: Vec<_> = absent.map(|program| program.package).collect();
    packages.dedup();
    packages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_or_not() {
        assert!(find("sh").is_some());
        assert!(find("no-such-program-anywhere").is_none());
    }

    #[test]
    fn only_what_is_absent_is_missing() {
        assert_eq!(missing(&[of("sh", "dash"), of("no-such-program", "nowhere")]), ["nowhere"]);
    }

    #[test]
    fn a_missing_program_is_a_sentence_with_its_package() {
        assert_eq!(needed("nginx"), "this test needs nginx: apt-get install nginx-light");
        assert_eq!(needed("x"), "this test needs x, which is not installed");
    }

    /// nextest shows what it prints at the end of a run of the default profile.
    #[test]
    fn what_the_default_profile_leaves_out() {
        let missing = missing(PROGRAMS);
        println!("left out: tests with servers, browsers and tools of other packages");
        if missing.is_empty() {
            println!("all packages are here: `cargo nextest run --profile everything` runs them");
        } else {
            println!("`cargo xtask test` installs and runs them: {}", missing.join(", "));
        }
    }
}
