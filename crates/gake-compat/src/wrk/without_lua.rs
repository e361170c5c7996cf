//! A build without the feature `lua`.

use std::convert::Infallible;
use std::sync::Arc;

use gake_run::EachSecond;
use gake_session::Failure;

use super::options::WrkOptions;
use super::report::Figures;
use crate::tool_run::{ToolResult, ToolRun};

/// A script; there is none.
#[derive(Debug)]
pub struct LuaScript(Infallible);

impl LuaScript {
    /// Refuses the script.
    pub fn load(_: &str, _: &WrkOptions) -> Result<Self, String> {
        Err("-s is not in this build, which lacks the feature `lua`".to_owned())
    }

    pub fn run(
        self: &Arc<Self>,
        _: &ToolRun<'_>,
        _: &mut EachSecond<'_>,
    ) -> Result<ToolResult, Failure> {
        match self.0 {}
    }

    pub fn done(&self, _: &Figures<'_>) -> Result<(), String> {
        match self.0 {}
    }
}
