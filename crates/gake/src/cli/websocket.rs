//! Flags for targets that are WebSockets.

use clap::Args;

/// Messages to a WebSocket.
#[derive(Debug, Args)]
#[command(next_help_heading = "WebSocket (ws:// and wss:// targets)")]
pub struct WebSocketArgs {
    /// The message of each arrival: text, @FILE, or @- for standard input (default: a ping)
    #[arg(long, value_name = "DATA", allow_hyphen_values = true)]
    pub ws_message: Option<String>,

    /// Wait for the message that passes this check, written like that of --expect-body (default:
    /// for the next one)
    #[arg(long, value_name = "CHECK")]
    pub ws_expect: Option<String>,

    /// Do not wait for a response: a message is done when it is written
    #[arg(long, conflicts_with = "ws_expect")]
    pub ws_send_only: bool,
}
