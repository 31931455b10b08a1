//! `oap-memory`: a principal's memory gateway after OAP RFC 0010.

#![warn(clippy::unwrap_used)]

use std::process::ExitCode;
use tikv_jemallocator::Jemalloc;
use zeroizing_alloc::ZeroAlloc;

/// Overwrites what is freed: what was decrypted and served does not outlive its erasure in memory.
#[global_allocator]
static ALLOCATOR: ZeroAlloc<Jemalloc> = ZeroAlloc(Jemalloc);

fn main() -> ExitCode {
    oap_gateway::system::files::keep_private();
    oap_gateway::system::panics::install();
    oap_gateway::cli::main()
}
