//! `oap-memory`: a principal's memory gateway after OAP RFC 0010.

#![warn(clippy::unwrap_used)]

use mimalloc::MiMalloc;
use std::process::ExitCode;
use zeroizing_alloc::ZeroAlloc;

/// Overwrites what is freed: what was decrypted and served does not outlive its erasure in memory.
#[global_allocator]
static ALLOCATOR: ZeroAlloc<MiMalloc> = ZeroAlloc(MiMalloc);

fn main() -> ExitCode {
    oap_gateway::cli::main()
}
