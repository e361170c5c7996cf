//! `cargo xtask dist`: see `gake_packaging`.

use std::process::ExitCode;

fn main() -> ExitCode {
    gake_packaging::main()
}
