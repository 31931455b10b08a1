//! A record as triples.

use crate::record::{Former, Link, Record, Target};
use crate::vocabulary::{
    AGENT, BRAIN, ITEM, OAP, OTHER, OTHER_SOURCE, PROV, RELATION, TOPIC, encoded, iri_or, term,
};
use oxrdf::vocab::{rdf, rdfs, xsd};
use oxrdf::{Literal, NamedNode, NamedNodeRef, Term, Triple};
use std::collections::BTreeSet;

/// Which graph a triple is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// What is in force, and where it comes from.
    Current(Option<NamedNode>),
    /// What was corrected or taken back.
    History,
}

/// Puts the triples of records where they belong.
pub(crate) struct Describing<'a, F> {
    /// The ids of the records in force: a link to any other record is not shown.
    pub in_force: &'a BTreeSet<&'a str>,
    /// Takes the triples.
    pub put: F,
}

/// The triples of one thing.
struct Thing<'p, F> {
    subject: NamedNode,
    place: &'p Place,
    put: &'p mut F,
}

impl<F: FnMut(&Place, Triple)> Thing<'_, F> {
    fn is(&mut self, class: NamedNode) {
        self.put(rdf::TYPE.into_owned(), class);
    }

    fn put(&mut self, predicate: NamedNode, object: impl Into<Term>) {
        (self.put)(self.place, Triple::new(self.subject.clone(), predicate, object));
    }

    fn literal(&mut self, predicate: NamedNode, text: &str, datatype: NamedNodeRef) {
        self.put(predicate, Literal::new_typed_literal(text, datatype));
    }

    fn at(&mut self, predicate: &str, time: Option<&str>) {
        if let Some(time) = time {
            self.literal(term(PROV, predicate), time, xsd::DATE_TIME);
        }
    }
}

impl<'a, F: FnMut(&Place, Triple)> Describing<'a, F> {
    /// Everything that a record says.
    pub fn record(&mut self, record: &'a Record) {
        let fact = iri_or(ITEM, &record.id);
        let source = record.source.as_deref().map(|source| iri_or(OTHER_SOURCE, source));
        let place = match record.retracted_at {
            None => Place::Current(source.clone()),
            Some(_) => Place::History,
        };
        self.fact(record, &fact, &place);
        self.origin(record, &fact, source, &place);
        for former in &record.corrections {
            self.former(former, &fact, &place);
        }
        if record.retracted_at.is_none() {
            for link in &record.links {
                self.link(link, &fact, &place);
            }
        }
    }

    fn thing<'p>(&'p mut self, subject: &NamedNode, place: &'p Place) -> Thing<'p, F> {
        Thing { subject: subject.clone(), place, put: &mut self.put }
    }

    /// What it says, and how far it is to be believed.
    fn fact(&mut self, record: &Record, fact: &NamedNode, place: &Place) {
        let mut thing = self.thing(fact, place);
        thing.is(term(PROV, "Entity"));
        thing.is(term(BRAIN, if record.retracted_at.is_none() { "Fact" } else { "Retraction" }));
        if let Some(content) = &record.content {
            thing.put(term(BRAIN, "content"), Literal::from(content.as_str()));
        }
        for tag in &record.tags {
            thing.put(term(OAP, "label"), Literal::from(tag.as_str()));
        }
        if let Some(confidence) = record.confidence.filter(|confidence| confidence.is_finite()) {
            thing.literal(term(BRAIN, "confidence"), &confidence.to_string(), xsd::FLOAT);
        }
        if let Some(level) = &record.level {
            thing.put(term(OAP, "level"), Literal::from(level.as_str()));
        }
        if let Some(scope) = &record.scope {
            thing.put(term(BRAIN, "scope"), Literal::from(scope.as_str()));
        }
        if let Some(verified) = record.human_verified {
            thing.put(term(BRAIN, "humanVerified"), Literal::from(verified));
        }
        if let Some(version) = record.version {
            thing.literal(term(OAP, "version"), &version.to_string(), xsd::INTEGER);
        }
        thing.at("invalidatedAtTime", record.retracted_at.as_deref());
        if let Some(topic) = &record.topic {
            let named = encoded(TOPIC, topic);
            thing.put(term(BRAIN, "topic"), named.clone());
            let mut thing = self.thing(&named, place);
            thing.is(term(BRAIN, "Topic"));
            thing.put(rdfs::LABEL.into_owned(), Literal::from(topic.as_str()));
        }
    }

    /// Who learned it, when, and from what.
    fn origin(&mut self, record: &Record, fact: &NamedNode, source: Option<NamedNode>, place: &Place) {
        self.said(fact, record.author.as_deref(), record.learned_at.as_deref(), place);
        // It is named by the version that it made.
        if let Some(version) = record.version {
            let learning = part(fact, &format!("learned-{version}"));
            self.thing(fact, place).put(term(PROV, "wasGeneratedBy"), learning.clone());
            let author = record.author.as_deref().map(|author| iri_or(AGENT, author));
            let mut thing = self.thing(&learning, place);
            thing.is(term(PROV, "Activity"));
            thing.at("endedAtTime", record.said_at.as_deref());
            if let Some(author) = author {
                thing.put(term(PROV, "wasAssociatedWith"), author);
            }
            if let Some(source) = &source {
                thing.put(term(PROV, "used"), source.clone());
            }
        }
        if let Some(source) = source {
            let mut thing = self.thing(fact, place);
            thing.put(term(BRAIN, "source"), source.clone());
            thing.put(term(PROV, "hadPrimarySource"), source.clone());
            let mut thing = self.thing(&source, place);
            thing.is(term(BRAIN, "Source"));
            if let Some(named) = &record.source {
                thing.put(rdfs::LABEL.into_owned(), Literal::from(named.as_str()));
            }
        }
    }

    /// Whose word a thing is, and since when.
    fn said(&mut self, thing: &NamedNode, author: Option<&str>, at: Option<&str>, place: &Place) {
        self.thing(thing, place).at("generatedAtTime", at);
        if let Some(author) = author {
            let author = iri_or(AGENT, author);
            self.thing(thing, place).put(term(PROV, "wasAttributedTo"), author.clone());
            self.thing(&author, place).is(term(PROV, "Agent"));
        }
    }

    /// What the record said before. That it did is in force; what it said is history.
    fn former(&mut self, former: &Former, fact: &NamedNode, place: &Place) {
        let was = part(fact, &format!("version-{}", former.version));
        let mut thing = self.thing(fact, place);
        thing.is(term(BRAIN, "Correction"));
        thing.put(term(BRAIN, "supersedes"), was.clone());
        thing.put(term(PROV, "wasRevisionOf"), was.clone());
        let mut thing = self.thing(&was, &Place::History);
        thing.is(term(PROV, "Entity"));
        thing.put(term(BRAIN, "content"), Literal::from(former.content.as_str()));
        thing.literal(term(OAP, "version"), &former.version.to_string(), xsd::INTEGER);
        thing.put(term(PROV, "specializationOf"), fact.clone());
        thing.at("invalidatedAtTime", former.corrected_at.as_deref());
        self.said(&was, former.author.as_deref(), former.learned_at.as_deref(), &Place::History);
    }

    /// A link, as a thing that somebody said, and as one triple that paths can follow.
    fn link(&mut self, link: &Link, from: &NamedNode, place: &Place) {
        let to = match &link.to {
            Target::Record(id) if !self.in_force.contains(id.as_str()) => return,
            Target::Record(id) => iri_or(ITEM, id),
            Target::Elsewhere(iri) => iri_or(OTHER, iri),
        };
        let said = part(from, &format!("link-{}-{}", link.relationship, to.as_str()));
        let mut thing = self.thing(&said, place);
        thing.is(term(PROV, "Entity"));
        thing.is(term(BRAIN, "Link"));
        thing.put(term(BRAIN, "relationship"), Literal::from(link.relationship.as_str()));
        thing.put(term(OAP, "from"), from.clone());
        thing.put(term(BRAIN, "relatedTo"), to.clone());
        self.thing(from, place).put(encoded(RELATION, &link.relationship), to);
        self.said(&said, link.author.as_deref(), link.linked_at.as_deref(), place);
    }
}

/// A part of a thing: its IRI with a fragment, or with more of one.
fn part(of: &NamedNode, name: &str) -> NamedNode {
    let mark = if of.as_str().contains('#') { "." } else { "#" };
    encoded(&format!("{}{mark}", of.as_str()), name)
}
