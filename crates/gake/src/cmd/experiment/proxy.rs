//! The shadow proxy of an experiment, with its ledger and what its comparison found.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use gake_shadow::compare::judge::{Report, Terms, judge};
use gake_shadow::compare::{Rules, file};
use serde_json::Value;

use super::server::{self, Server};
use gake_session::Failure;

/// How long the copies in flight may take when the load is over.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two looks at the ledger.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// The names of the backends.
const PRODUCTION: &str = "production";
const SANDBOX: &str = "sandbox";
const SECOND: &str = "second";

/// A proxy between the load and three backends.
#[derive(Debug)]
pub struct ProxyProcess {
    server: Server,
    /// Where its ledger is asked for.
    admin: String,
    folder: PrivateFolder,
}

/// What a proxy has seen.
#[derive(Debug)]
pub struct Mirrored {
    /// What became of each request at the sandbox, by category.
    ledger: Value,
    /// What differs.
    pub report: Report,
}

/// A folder of the user's own that is gone with its value; a second Ctrl-C leaves it behind.
#[derive(Debug)]
struct PrivateFolder(PathBuf);

impl ProxyProcess {
    /// Starts one with these flags. `second` is another instance of production.
    ///
    /// # Errors
    /// When it does not start.
    pub fn start(
        production: &Server,
        sandbox: &str,
        second: Option<&Server>,
        flags: &str,
    ) -> Result<Self, Failure> {
        let folder = PrivateFolder::create()?;
        let backends = [
            ("--master", PRODUCTION, Some(production.url())),
            ("--shadow", SANDBOX, Some(sandbox)),
            ("--noise", SECOND, second.map(Server::url)),
        ];
        let mut args = vec!["--admin".to_owned(), "127.0.0.1:0".to_owned()];
        for (flag, name, url) in backends {
            args.extend(
                url.map(|url| [flag.to_owned(), format!("{name}={url}")]).into_iter().flatten(),
            );
        }
        args.extend(["--diff-out".to_owned(), folder.comparison().display().to_string()]);
        args.extend(flags.split_whitespace().map(str::to_owned));
        let args: Vec<_> = args.iter().map(String::as_str).collect();
        let noise = if second.is_some() { " --noise second=URL" } else { "" };
        let command = format!(
            "{}, behind gake shadow --master production=URL --shadow sandbox=URL{noise} {flags}",
            production.command()
        );
        let mut server = Server::proxy(&args, command.trim_end().to_owned())?;
        let said = server.said("http://")?;
        let address = said.trim_start_matches("http://").split(',').next().unwrap_or_default();
        Ok(Self { admin: address.trim().to_owned(), server, folder })
    }

    /// What is loaded.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Ends it when no copy is under way any more.
    ///
    /// # Errors
    /// When it cannot be asked, or has not written its comparison.
    pub fn end(self) -> Result<(Mirrored, Server), Failure> {
        let ledger = self.settled_ledger()?;
        let Self { mut server, folder, .. } = self;
        server.end()?;
        let path = folder.comparison();
        let comparisons = file::read(&path)
            .map_err(|error| Failure::could_not(format!("{}: {error}", path.display())))?;
        let found = comparisons.iter().find(|one| one.shadow == SANDBOX);
        let found = found
            .ok_or_else(|| Failure::could_not("the proxy compared nothing with the sandbox"))?;
        let report = judge(found, &Rules::default(), Terms::default());
        Ok((Mirrored { ledger, report }, server))
    }

    /// The sandbox's ledger when nothing is in flight, or patience is at its end.
    fn settled_ledger(&self) -> Result<Value, Failure> {
        let until = Instant::now() + PATIENCE;
        loop {
            let page = server::get(&self.admin, "/ledger")?;
            let ledgers: Vec<Value> = serde_json::from_str(&page)
                .map_err(|error| Failure::could_not(format!("the proxy's ledger: {error}")))?;
            let is_settled = ledgers.iter().all(|ledger| ledger["in_flight"] == 0);
            if is_settled || Instant::now() >= until {
                let found = ledgers.into_iter().find(|ledger| ledger["name"] == SANDBOX);
                return Ok(found.unwrap_or_default());
            }
            sleep(LOOK_EVERY);
        }
    }
}

impl Mirrored {
    /// Requests that ended so at the sandbox, all these categories together.
    pub fn copies(&self, categories: &[&str]) -> u64 {
        categories.iter().filter_map(|name| self.ledger[*name].as_u64()).sum()
    }
}

impl PrivateFolder {
    fn create() -> Result<Self, Failure> {
        let unique = rand::random::<u64>();
        let path = std::env::temp_dir().join(format!("gake-experiment-{unique:016x}"));
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|error| Failure::could_not(format!("{}: {error}", path.display())))?;
        Ok(Self(path))
    }

    fn comparison(&self) -> PathBuf {
        self.0.join("comparison.json")
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        // What cannot be removed is in the folder for temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}
