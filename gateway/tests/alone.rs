//! What is not to run beside the other tests: `limits` sets the umask of the process, `limits` and `meanwhile` serve in it, after which a panic
//! tells its place alone, and `time` and `time_live` measure. These are last by name, so that little else runs meanwhile.

mod common;
mod limits;
mod meanwhile;
mod program;
#[path = "attacks/target.rs"]
mod target;
#[path = "attacks/time.rs"]
mod time;
#[path = "attacks/time_live.rs"]
mod time_live;
