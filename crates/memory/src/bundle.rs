//! The portable bundle, version 1 (protocol section 8, `docs/bundle-v1.md`): JSON Lines, each line in canonical form.
//!
//! A header, then items with everything that proves them, grants and receipts where they were asked for, and a signed
//! trailer with the hash of all lines before it.

use crate::lines::whole_lines;
use crate::profile::TrustLevel;
use crate::record::Meta;
use crate::unchecked::Unchecked;
use oap_identity::UnverifiedDocument;
use oap_identity::json::{self, JsonError};
use oap_identity::signed::{SignedError, UnverifiedSignature, sign_document};
use oap_identity::{BundleId, Did, Documents, GrantId, Hash, ScopeId, Signer, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::io::{self, Read};
use std::ops::ControlFlow;

/// The format that is written and read here.
pub const FORMAT: &str = "oap-memory-bundle/1";
/// Longest line, in bytes.
pub const MAX_LINE: usize = 16 << 20;

/// What a bundle holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Counts {
    pub items: u64,
    pub grants: u64,
    pub receipts: u64,
}

/// The first line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Header {
    /// [`FORMAT`].
    pub format: String,
    pub bundle_id: BundleId,
    /// Whose memory.
    pub principal: Did,
    /// The scopes of its items.
    pub scopes: Vec<ScopeId>,
    /// When it was begun.
    pub created_at: Timestamp,
    /// How many items it holds.
    pub items: u64,
    /// Of a grantee's bundle: what it shows, and under which grant. Such a bundle is for reading; it is not imported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub projected: Option<Projection>,
    /// The DID documents of all who signed something in it, as its writer knew them.
    pub documents: Vec<Value>,
}

/// What a projected bundle shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Projection {
    pub grant_id: GrantId,
    pub profile: String,
    /// The trust level.
    pub trust_level: TrustLevel,
    /// Who may have it.
    pub grantee: Did,
}

/// An item with everything that proves it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ItemLine {
    /// The item in its wire form, with `integrity`.
    pub item: Value,
    /// The record behind it; not in a projected bundle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<Meta>,
    /// The SD-JWTs of replaced versions that are still kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub superseded: Vec<String>,
}

/// The last line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Trailer {
    pub bundle_id: BundleId,
    /// What it holds.
    pub counts: Counts,
    /// Lines before this one.
    pub lines: u64,
    /// The hash of all of them, with their line feeds.
    pub hash: Hash,
    /// When it was finished.
    pub finished_at: Timestamp,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
#[allow(missing_docs, reason = "the names say it")]
pub enum Line {
    Header(Header),
    Item(Box<ItemLine>),
    /// A grant document.
    Grant {
        grant: Value,
    },
    Receipt {
        receipt: Value,
    },
    /// The last; its signature stands beside its members.
    Trailer(Value),
}

crate::reasons! {
    /// Why a bundle or one of its lines was refused.
    BundleError {
        /// A line that is none.
        #[error("{0}")]
        Malformed(#[from] JsonError) = "bundle.malformed",
        /// Too long.
        #[error("the line is longer than {MAX_LINE} bytes")]
        TooLong = "bundle.too_long",
        /// Without its line feed.
        #[error("the line does not end with a line feed")]
        LineFeed = "bundle.line_feed",
        /// Not the bytes that its content has.
        #[error("the line is not in canonical form, or has members that it must not have")]
        NotCanonical = "bundle.not_canonical",
        /// Another format.
        #[error("the format is {0:?}; this program reads {FORMAT:?}")]
        Format(String) = "bundle.format",
        /// The first line is no header, or there is another one.
        #[error("a bundle begins with one header")]
        Header = "bundle.header",
        /// Something after the trailer.
        #[error("something follows the trailer")]
        AfterTrailer = "bundle.after_trailer",
        /// The trailer is missing.
        #[error("the bundle has no trailer: its end was cut off")]
        Cut = "bundle.cut",
        /// The trailer is of another bundle.
        #[error("the trailer is of another bundle")]
        OtherBundle = "bundle.other_bundle",
        /// The lines are not those that were signed.
        #[error("the lines are not those that the trailer was signed for: {0}")]
        Changed(&'static str) = "bundle.changed",
        /// The header counts other items.
        #[error("header: it says {0} items, and there are {1}")]
        HeaderCount(u64, u64) = "bundle.header_count",
        /// Finished before it was begun.
        #[error("trailer: finished_at is earlier than created_at")]
        Times = "bundle.times",
        /// The trailer's signature.
        #[error("the trailer's signature: {0}")]
        Signature(#[from] SignedError) = "bundle.signature",
    }
}

/// Counts and hashes the lines of a bundle, as it is written or read.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    counts: Counts,
    lines: u64,
    hash: Sha256,
}

impl Tally {
    /// Takes a line, without its line feed, into account.
    pub fn add(&mut self, line: &Line, bytes: &[u8]) {
        match line {
            Line::Item(_) => self.counts.items += 1,
            Line::Grant { .. } => self.counts.grants += 1,
            Line::Receipt { .. } => self.counts.receipts += 1,
            Line::Header(_) | Line::Trailer(_) => {}
        }
        self.skip(bytes);
    }

    /// Takes a line into account that could not be read.
    pub fn skip(&mut self, bytes: &[u8]) {
        self.lines += 1;
        self.hash.update(bytes);
        self.hash.update(b"\n");
    }

    /// The trailer of what was added.
    #[must_use]
    pub fn trailer(&self, bundle_id: BundleId, now: Timestamp) -> Trailer {
        let hash = Hash::from_bytes(self.hash.clone().finalize().into());
        Trailer { bundle_id, counts: self.counts, lines: self.lines, hash, finished_at: now }
    }
}

/// Writes a line in canonical form, without a line feed.
///
/// # Errors
/// When something in it has no canonical form.
pub fn write(line: &Line) -> Result<Vec<u8>, JsonError> {
    json::canonical(line)
}

impl Trailer {
    /// Signs it, as a line.
    ///
    /// # Errors
    /// [`SignedError`].
    pub fn sign(&self, signer: &Signer) -> Result<Line, SignedError> {
        let mut document = serde_json::to_value(self).map_err(|e| SignedError::Claims(e.to_string()))?;
        sign_document(&mut document, signer)?;
        Ok(Line::Trailer(document))
    }
}

/// Reads a bundle line by line.
#[derive(Debug, Default)]
pub struct Reader {
    tally: Tally,
    header: Option<Header>,
    trailer: Option<Value>,
}

impl Reader {
    /// Reads a line as it stands in the file, with its line feed. Whatever it is, the bundle goes on with the next.
    ///
    /// # Errors
    /// [`BundleError`].
    pub fn read_line(&mut self, line: &[u8]) -> Result<Line, BundleError> {
        match line.strip_suffix(b"\n") {
            Some(text) => self.read(text),
            None => {
                let read = self.read(line);
                read.and(Err(BundleError::LineFeed))
            }
        }
    }

    /// Reads a line, without its line feed. Whatever it is, the bundle goes on with the next.
    ///
    /// # Errors
    /// [`BundleError`].
    pub fn read(&mut self, bytes: &[u8]) -> Result<Line, BundleError> {
        if self.trailer.is_some() {
            return Err(BundleError::AfterTrailer);
        }
        let line = parse(bytes);
        match &line {
            Ok(Line::Trailer(trailer)) => self.trailer = Some(trailer.clone()),
            Ok(line) => self.tally.add(line, bytes),
            Err(_) => self.tally.skip(bytes),
        }
        let line = line?;
        match (&line, &self.header) {
            (Line::Header(header), None) => self.header = Some(header.clone()),
            (Line::Header(_), Some(_)) | (_, None) => return Err(BundleError::Header),
            _ => {}
        }
        Ok(line)
    }

    /// Reads a line as [`whole_lines`] gives it: `None` is one that was too long to be kept.
    ///
    /// # Errors
    /// [`BundleError`].
    pub fn take(&mut self, line: Option<&[u8]>) -> Result<Line, BundleError> {
        match line {
            Some(line) => self.read_line(line),
            None => {
                self.tally.skip(b"");
                Err(BundleError::TooLong)
            }
        }
    }

    /// Reads all lines of a file. `take` gets the number of each, its bytes, and what it says; a break ends the reading.
    ///
    /// # Errors
    /// What the reader of the file says.
    pub fn read_all(
        file: impl Read,
        mut take: impl FnMut(usize, usize, Result<Line, BundleError>) -> ControlFlow<()>,
    ) -> io::Result<Self> {
        let mut bundle = Self::default();
        whole_lines(file, MAX_LINE, |number, line| {
            take(number, line.map_or(0, <[u8]>::len), bundle.take(line))
        })?;
        Ok(bundle)
    }

    /// The header, once it was read.
    #[must_use]
    pub const fn header(&self) -> Option<&Header> {
        self.header.as_ref()
    }

    /// What of the trailer counts only because it is dated before its key was compromised.
    #[must_use]
    pub fn dated(&self, documents: &dyn Documents) -> Option<Unchecked> {
        let signature = UnverifiedSignature::of(self.trailer.as_ref()?).ok()?;
        let since = documents.key_of(signature.kid())?.revoked_at()?;
        Some(Unchecked::DatedByCompromisedKey { kid: signature.kid().clone(), since })
    }

    /// Checks the whole against its trailer.
    ///
    /// # Errors
    /// [`BundleError`].
    pub fn finish(self, documents: &dyn Documents) -> Result<Trailer, BundleError> {
        let header = self.header.ok_or(BundleError::Header)?;
        let document = self.trailer.ok_or(BundleError::Cut)?;
        let parsed = UnverifiedDocument::<Trailer>::parse(document)?;
        let (claimed, kid) = (parsed.unverified(), parsed.kid()?);
        if claimed.bundle_id != header.bundle_id || *kid.did() != header.principal {
            return Err(BundleError::OtherBundle);
        }
        let finished_at = claimed.finished_at;
        let (_, trailer) = parsed.verify(documents, finished_at)?;
        let found = self.tally.trailer(trailer.bundle_id, trailer.finished_at);
        if header.items != found.counts.items && found.counts == trailer.counts {
            return Err(BundleError::HeaderCount(header.items, found.counts.items));
        }
        if trailer.finished_at < header.created_at {
            return Err(BundleError::Times);
        }
        let differs = match () {
            () if found.lines != trailer.lines => Some("another number of lines"),
            () if found.hash != trailer.hash => Some("another hash"),
            () if found.counts != trailer.counts => Some("other counts"),
            () => None,
        };
        differs.map_or(Ok(trailer), |what| Err(BundleError::Changed(what)))
    }
}

fn parse(bytes: &[u8]) -> Result<Line, BundleError> {
    if bytes.len() > MAX_LINE {
        return Err(BundleError::TooLong);
    }
    let mut value = json::parse(bytes)?;
    if json::canonical(&value)? != bytes {
        return Err(BundleError::NotCanonical);
    }
    if value["type"] == "trailer" {
        if let Some(members) = value.as_object_mut() {
            members.remove("type");
        }
        return Ok(Line::Trailer(value));
    }
    if value["type"] == "header" && value["format"] != FORMAT {
        let format = value["format"].as_str().unwrap_or_default();
        return Err(BundleError::Format(format.chars().take(40).collect()));
    }
    let line = json::from_value(value)?;
    // What the types do not keep has no place in a line.
    if write(&line)? == bytes { Ok(line) } else { Err(BundleError::NotCanonical) }
}
