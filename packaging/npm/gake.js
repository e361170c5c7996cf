#!/usr/bin/env node
// Starts the binary of the package for this platform, and ends as it ends.
"use strict";

const { spawn } = require("node:child_process");

const name = `gake-${process.platform}-${process.arch}`;
let binary;
try {
  binary = require.resolve(`${name}/gake`);
} catch {
  console.error(
    `gake: the npm package ${name} is not installed. gake runs on Linux (x64, arm64); there, ` +
      "install it without --omit=optional.",
  );
  process.exit(1);
}

const child = spawn(binary, process.argv.slice(2), { stdio: "inherit" });
child.on("error", (error) => {
  console.error(`gake: ${binary} could not be started: ${error.message}`);
  process.exit(1);
});
for (const signal of ["SIGINT", "SIGQUIT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => {
    // A terminal sends Ctrl-C to both processes, and a second one would end a run at once.
    const fromTerminal = process.stdin.isTTY && (signal === "SIGINT" || signal === "SIGQUIT");
    if (!fromTerminal) child.kill(signal);
  });
}
child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
