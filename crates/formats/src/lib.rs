//! What other programs write and read.
//!
//! No store, no network, no clock; files are read where they stand.
//!
//! - [`import`]: what other vendors export, as items
//! - [`sources`]: their files, folders and archives
//! - [`export`]: items in the forms that other programs read
//! - [`limits`]: what foreign files may take
//!
//! ```
//! use oap_formats::import::{self, File, Format, Found, Mapping};
//! use std::ops::ControlFlow;
//!
//! let export = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/exports/mem0/memories.json"));
//! let format = import::recognise("memories.json", export).ok_or("not known")?;
//! assert_eq!(format, Format::Mem0);
//!
//! // What is found is told one by one: memories as their owner would write them, and what is left out and why.
//! let (mut texts, mut left_out) = (Vec::new(), 0);
//! let file = File { name: "memories.json", bytes: &mut &export[..], mapping: &Mapping::default() };
//! (format.importer().read)(file, &mut |found| {
//!     match found {
//!         Found::Record(record) => texts.push(record.item["content"]["text"].clone()),
//!         Found::Skipped { .. } | Found::Refused { .. } => left_out += 1,
//!     }
//!     ControlFlow::Continue(())
//! });
//! assert_eq!(texts, ["Prefers morning meetings", "Works with Bob on the website", "ada works with bob"]);
//! assert_eq!(left_out, 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![warn(clippy::unwrap_used)]

pub mod export;
pub mod import;
pub mod limits;
pub mod sources;
