//! `gake run` and `gake report` as their users start them, against real peers.
//!
//! Bounds are counts, or times that a busy machine can only lengthen. What the verdict says of
//! the machine is left open unless it is what a test is about.

#![allow(clippy::unwrap_used, clippy::expect_used)] // the helpers are tests too

#[path = "../common/mod.rs"]
mod support;

mod annotate;
mod bad_input;
mod bad_servers;
mod bodies;
mod compare;
mod counts;
mod escapes;
mod exits;
mod expect;
mod experiment;
mod fleet;
mod fleet_accounts;
mod fleet_attach;
mod fleet_attach_script;
mod fleet_clocks;
mod fleet_figures;
mod fleet_partition;
mod fleet_script;
mod fleet_script_ends;
mod fleet_script_run;
mod golang;
mod grpc;
mod grpc_go;
mod h2spec;
mod history;
mod http2;
mod http3;
mod implementations;
mod limits;
mod logs;
mod manners;
mod nginx;
mod once;
mod output;
mod parts;
mod pool;
mod proxy;
mod reconcile;
mod replay;
mod report;
mod scripts;
mod sent;
mod signals;
mod sinks;
mod specs;
mod syscalls;
mod tables;
mod threads;
mod tls;
mod traces;
mod tui;
mod users_db;
mod varying;
mod viewers;
mod watch;
mod ways;
mod web;
mod websocket;
