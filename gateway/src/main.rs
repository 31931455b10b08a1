//! `oap-memory`: a principal's memory gateway after OAP RFC 0010.

#![warn(clippy::unwrap_used)]

use std::process::ExitCode;

fn main() -> ExitCode {
    oap_gateway::cli::main()
}
