//! What a panic leaves behind: where it was, never what it says. A message may hold content.

use std::panic::{self, PanicHookInfo};
use std::sync::Once;

/// Makes every panic of the process tell its place alone. Cheap to call again.
pub fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| panic::set_hook(Box::new(|info| tell(&place(info)))));
}

/// File and line, without the payload.
fn place(info: &PanicHookInfo) -> String {
    info.location().map_or_else(|| "an unknown place".to_owned(), |at| format!("{}:{}", at.file(), at.line()))
}

fn tell(place: &str) {
    if tracing::dispatcher::has_been_set() {
        tracing::error!(place, "panicked");
    } else {
        use std::io::Write;
        let _ = writeln!(std::io::stderr(), "error: the program panicked at {place}; this is a defect of it");
    }
}
