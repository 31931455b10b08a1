//! The table: name, who could make it, the document, the verdict.

use crate::fixture::{Fixture, Reader};
use oap_grants::bundle::UnverifiedBundle;
use oap_grants::evidence as terms;
use oap_grants::status;
use oap_memory::evidence::{self, VerifiedAnswer, VerifiedItem};
use oap_memory::unchecked::Unchecked;
use oap_memory::{deletion, receipt};
use serde_json::Value;

/// Whose keys the forger holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// None: a carrier, a thief of a file.
    Nobody,
    /// One of its own: another principal, a grantee.
    Mallory,
    /// The owner's: the owner itself, or who stole the key.
    Owner,
}

/// A document to judge.
#[derive(Debug, Clone)]
pub enum Document {
    Item(Value),
    Answer(Value),
    /// An answer under a grant.
    Under(Value, Value),
    Bundle(Vec<u8>),
    Grant(Value),
    Receipt(Value),
    Receipts(Vec<Value>),
    Deletion(Value),
    List(String),
}

/// What the verifier says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// One of these checks refuses.
    Refused(Vec<&'static str>),
    /// It holds, and this is named as not covered.
    Named(&'static str),
}

impl Verdict {
    pub fn fits(&self, found: &Result<Vec<&'static str>, &'static str>) -> bool {
        match (self, found) {
            (Self::Refused(checks), Err(check)) => checks.contains(check),
            (Self::Named(what), Ok(named)) => named.contains(what),
            _ => false,
        }
    }
}

impl Document {
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Item(_) => "item",
            Self::Answer(_) => "answer",
            Self::Under(..) => "answer under a grant",
            Self::Bundle(_) => "bundle",
            Self::Grant(_) => "grant",
            Self::Receipt(_) => "receipt",
            Self::Receipts(_) => "receipts",
            Self::Deletion(_) => "deletion",
            Self::List(_) => "status list",
        }
    }

    /// What is named as not covered, or the check that refuses.
    pub fn judge(&self, reader: &Reader) -> Result<Vec<&'static str>, &'static str> {
        let (documents, now) = (&reader.documents, reader.now);
        let names = |unchecked: &[Unchecked]| unchecked.iter().map(Unchecked::id).collect::<Vec<_>>();
        match self {
            Self::Item(item) => {
                let item = evidence::item(item, documents)
                    .and_then(VerifiedItem::proved)
                    .and_then(|item| item.as_of(now))
                    .map_err(|e| e.id())?;
                // A lone item: nobody says where the chain ends.
                let mut named = vec!["unchecked.chain_end"];
                named.extend(names(&item.unchecked));
                named.extend(item.outside);
                Ok(named)
            }
            Self::Answer(answer) => {
                let answer = answered(answer, reader)?;
                let mut named = names(&answer.unchecked);
                named.extend(answer.items.iter().flat_map(|item| names(&item.unchecked)));
                Ok(named)
            }
            Self::Under(answer, grant) => {
                let terms = terms::grant(grant, &[], documents, now).map_err(|e| e.id())?;
                let verified = answered(answer, reader)?;
                let items = answer["items"].as_array().unwrap();
                let unchecked = terms::under(&verified, items, &terms).map_err(|e| e.id())?;
                Ok(names(&[unchecked, terms.unchecked].concat()))
            }
            Self::Bundle(bytes) => {
                let mut bundle = UnverifiedBundle::new(documents, now);
                for line in bytes.split_inclusive(|byte| *byte == b'\n') {
                    bundle.line(Some(line)).map_err(|e| e.id())?;
                }
                let bundle = bundle.finish().map_err(|e| e.id())?;
                Ok(bundle.unchecked.iter().map(Unchecked::id).collect())
            }
            Self::Grant(grant) => {
                let terms = terms::grant(grant, &[], documents, now).map_err(|e| e.id())?;
                Ok(names(&terms.unchecked))
            }
            Self::Receipt(receipt) => {
                let receipt = receipt::verify(receipt, documents).and_then(|receipt| receipt.as_of(now));
                Ok(names(&receipt.map_err(|e| e.id())?.unchecked))
            }
            Self::Receipts(entries) => {
                receipt::verify_chain(entries.iter().cloned(), documents).map_err(|e| e.id())?;
                Ok(Vec::new())
            }
            Self::Deletion(document) => {
                let deletion = deletion::verify(document, documents, now).map_err(|e| e.id())?;
                Ok(names(&deletion.unchecked))
            }
            Self::List(list) => {
                status::read(list, documents, now).map_err(|e| e.id())?;
                Ok(Vec::new())
            }
        }
    }
}

fn answered(answer: &Value, reader: &Reader) -> Result<VerifiedAnswer, &'static str> {
    evidence::answer(answer, &reader.documents)
        .and_then(VerifiedAnswer::proved)
        .and_then(|answer| answer.as_of(reader.now))
        .map_err(|e| e.id())
}

/// A forged document.
pub struct Forgery {
    pub name: String,
    pub by: By,
    pub document: Document,
    pub verdict: Verdict,
}

impl Forgery {
    pub fn judge(&self, reader: &Reader) -> Result<Vec<&'static str>, &'static str> {
        self.document.judge(reader)
    }
}

/// All of them.
pub struct Table<'f> {
    pub fixture: &'f Fixture,
    forgeries: Vec<Forgery>,
}

impl<'f> Table<'f> {
    pub const fn new(fixture: &'f Fixture) -> Self {
        Self { fixture, forgeries: Vec::new() }
    }

    pub fn forgeries(&self) -> &[Forgery] {
        &self.forgeries
    }

    /// What the forgeries are made of holds as it is.
    pub fn bases(&self) -> Vec<Document> {
        let fixture = self.fixture;
        vec![
            Document::Item(fixture.one.clone()),
            Document::Item(fixture.long.clone()),
            Document::Answer(fixture.answer.clone()),
            Document::Under(fixture.answer.clone(), fixture.grant.clone()),
            Document::Bundle(crate::forge::sealed(fixture, &fixture.bundle)),
            Document::Grant(fixture.grant.clone()),
            Document::Receipts(fixture.log.clone()),
            Document::Deletion(fixture.deletion.clone()),
            Document::List(fixture.list.clone()),
        ]
    }

    pub fn refused(&mut self, by: By, name: impl Into<String>, checks: &[&'static str], document: Document) {
        self.add(by, name.into(), Verdict::Refused(checks.to_vec()), document);
    }

    pub fn named(&mut self, by: By, name: impl Into<String>, what: &'static str, document: Document) {
        self.add(by, name.into(), Verdict::Named(what), document);
    }

    fn add(&mut self, by: By, name: String, verdict: Verdict, document: Document) {
        let name = format!("{}: {name}", document.name());
        self.forgeries.push(Forgery { name, by, document, verdict });
    }
}
