//! gake: load tests HTTP services, and reports whether the measurement can be believed.
//!
//! Only this crate sees arguments, environment, standard streams and the exit code.

#![forbid(unsafe_code)]

mod cli;
mod cmd;
mod parent;
mod personality;
#[cfg(test)]
mod refusals;
mod settings;
mod spec;

use std::process::ExitCode;

use gake_session::Console;
use settings::Settings;

// Faster than the system's for the few allocations there are, and it gives memory back.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    gake_session::console::install_panic_hook();
    // The thread that first touches a huge page may wait milliseconds while the kernel makes room
    // for it. A kernel without huge pages refuses, and has nothing to disable.
    let _ = rustix::thread::disable_transparent_huge_pages(true);
    let console = Console::new();
    let args: Vec<_> = std::env::args_os().collect();
    let result = personality::run(&args, &console).unwrap_or_else(|| {
        let cli::Cli { mut command, color } = cli::parse(args)?;
        // Another tool's behaviour does not depend on our settings.
        let is_other = matches!(command, cli::Command::As { .. });
        let settings = if is_other { Settings::default() } else { Settings::read()? };
        settings.apply(&mut command, &console);
        cmd::run(command, &settings.console(color, &console))
    });
    let exit = result.unwrap_or_else(|failure| {
        console.failure(&failure);
        failure.exit()
    });
    ExitCode::from(exit.code())
}
