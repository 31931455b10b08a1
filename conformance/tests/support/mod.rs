//! What the tests of the suite share.

#![allow(dead_code, reason = "each test binary uses its part")]

pub mod among_gateways;
pub mod front;
pub mod inside;
pub mod late;
pub mod lies;
