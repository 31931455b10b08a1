//! `oap-memory`: a principal's memory gateway after OAP RFC 0010.

use std::process::ExitCode;

fn main() -> ExitCode {
    oap_gateway::cli::main()
}
