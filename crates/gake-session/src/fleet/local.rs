//! `--local N`: a NATS server and N agents on this machine, for one run.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use gake_fleet::{AllowRule, FleetError, FleetToken, NatsSettings};

use super::failure;
use crate::exit::Failure;

/// The server prints its address behind this when it is ready.
const LISTENING: &str = "Listening for client connections on ";

/// The processes of a local fleet. They end when it is dropped, and with this process.
#[derive(Debug)]
pub struct LocalFleet {
    children: Vec<Child>,
    /// The NATS server.
    pub nats: NatsSettings,
    /// The fleet's token.
    pub token: FleetToken,
}

impl LocalFleet {
    /// Starts a server and `agents` agents.
    ///
    /// # Errors
    /// When one of them cannot be started.
    pub fn start(agents: usize) -> Result<Self, Failure> {
        let random = || FleetToken::random().map_err(failure);
        let (secret, password) = (random()?, random()?);
        let token = FleetToken::new(&secret).map_err(failure)?;
        let mut local = Self { children: Vec::new(), nats: NatsSettings::default(), token };
        let address = local.serve(&password).map_err(|why| {
            let why = format!("nats-server could not be started: {why}; install its package");
            failure(FleetError::System(why))
        })?;
        local.nats = NatsSettings::new(format!("nats://{password}@{address}"));
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        for number in 1..=agents {
            let (name, cores) = (format!("local-{number}"), cores.div_ceil(agents).to_string());
            let mut agent = gake()?;
            // The user decides here which targets are loaded, and by how many users.
            agent.args(["agent", "--quiet", "--name", &name, "--cores", &cores]);
            agent.args(["--parent", &own_id()]);
            for rule in AllowRule::anywhere() {
                agent.args(["--allow", &rule]);
            }
            agent.args(["--scripts", "--max-users", &usize::MAX.to_string()]);
            agent.env("GAKE_NATS", &local.nats.url).env("GAKE_FLEET_TOKEN", &secret);
            agent.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let child = agent.spawn().map_err(|error| {
                Failure::could_not(format!("an agent could not be started: {error}"))
            })?;
            local.children.push(child);
        }
        Ok(local)
    }

    /// Starts the server and returns its address.
    fn serve(&mut self, password: &str) -> Result<String, String> {
        let mut server = gake().map_err(|failure| failure.to_string())?;
        server.args(["agent", "--serve-nats", "--parent", &own_id()]);
        server.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = server.spawn().map_err(|error| error.to_string())?;
        let (stdin, stderr) = (child.stdin.take(), child.stderr.take());
        self.children.push(child);
        let (Some(mut stdin), Some(stderr)) = (stdin, stderr) else {
            return Err("it has no standard streams".to_owned());
        };
        let config =
            format!("host: \"127.0.0.1\"\nport: -1\nauthorization {{ token: \"{password}\" }}\n");
        stdin.write_all(config.as_bytes()).map_err(|error| error.to_string())?;
        drop(stdin);
        let mut lines = BufReader::new(stderr).lines();
        let mut last = "it ended".to_owned();
        while let Some(Ok(line)) = lines.next() {
            if let Some((_, address)) = line.split_once(LISTENING) {
                let address = address.trim().to_owned();
                // The server must not block on its log.
                std::thread::spawn(move || lines.for_each(drop));
                return Ok(address);
            }
            last = line;
        }
        Err(last)
    }
}

impl Drop for LocalFleet {
    fn drop(&mut self) {
        for child in &mut self.children {
            // It may have ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// This program, in a process group of its own: Ctrl-C is for the run, which ends it.
fn gake() -> Result<Command, Failure> {
    let program = std::env::current_exe().map_err(|error| {
        Failure::could_not(format!("the path of this program is not known: {error}"))
    })?;
    let mut command = Command::new(program);
    command.process_group(0);
    Ok(command)
}

fn own_id() -> String {
    std::process::id().to_string()
}
