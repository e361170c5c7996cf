//! Flags for targets that are methods of gRPC.

use std::path::PathBuf;

use clap::{Args, ValueHint};

/// Calls of a method of gRPC.
#[derive(Debug, Args)]
#[command(next_help_heading = "gRPC (grpc://HOST:PORT/package.Service/Method, grpcs:// over TLS)")]
pub struct GrpcArgs {
    /// A file that defines the service: a .proto source or a compiled descriptor set; repeatable
    /// (default: ask the server's reflection). --data is the message in JSON, -H the metadata
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub proto: Vec<PathBuf>,

    /// A folder that .proto sources import from; repeatable (default: their own)
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, requires = "proto")]
    pub proto_path: Vec<PathBuf>,
}
