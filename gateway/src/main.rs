//! `oap-memory`: a principal's memory gateway after OAP RFC 0010.

#![warn(clippy::unwrap_used)]

use std::process::ExitCode;

/// Overwrites what is freed: what was decrypted and served does not outlive its erasure in memory.
#[global_allocator]
static ALLOCATOR: zeroizing_alloc::ZeroAlloc<std::alloc::System> =
    zeroizing_alloc::ZeroAlloc(std::alloc::System);

fn main() -> ExitCode {
    oap_gateway::cli::main()
}
