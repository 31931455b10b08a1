//! A version of an item as one SD-JWT (protocol section 4.1), and the item read back from its claims.
//!
//! In the clear: `iss`, `iat`, `item_id`, `seq`, `event`, `prev`, `receipt`. Everything else is concealed, every
//! member and every element with its own salt, containers too: where only leaves are concealed, the names of
//! objects and the lengths of arrays would show. A personal span in a text is an element `{"t": <class>}` with
//! `v` concealed once more, so that a reader who may not see the span still gets proof of its place and class.

use crate::chain::{Event, Link};
use crate::detect::{Segment, SpanClass};
use crate::form::{self, FormError};
use crate::item::{Body, Confidence, ItemError, Kind, Sensitivity};
use crate::sd_jwt::{self, Child, Derived, Disclosure, Node, SdJwtError};
use crate::tree::{Assembly, Step};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use oap_identity::json::{self, JsonError};
use oap_identity::random::{self, Random};
use oap_identity::signed::{SignedError, UnsignedJwt, UnverifiedJwt};
use oap_identity::{Documents, Hash, ItemId, Kid, ReceiptId, ScopeId, Signer, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::OnceLock;

/// The `typ` of an item's SD-JWT.
pub const TYP: &str = "oap-memory-item+sd-jwt";

crate::reasons! {
    /// Why a commitment could not be made or read.
    CommitmentError {
        /// A value without canonical form.
        #[error("{0}")]
        Json(#[from] JsonError) = "commitment.json",
        /// The issuer's signature, or a key that was not in force.
        #[error("{0}")]
        Signature(#[from] SignedError) = "commitment.signature",
        /// The issuer is not the signer.
        #[error("claim \"iss\": the JWT is signed by another")]
        Issuer = "commitment.issuer",
        /// A claim that is missing or of the wrong shape.
        #[error("claim {0:?} is missing or has the wrong shape")]
        Claim(&'static str) = "commitment.claim",
        /// The provenance names another receipt than the version.
        #[error("provenance.source_receipt: must be the capture receipt that the version names")]
        SourceReceipt = "commitment.source_receipt",
        /// What a gateway keeps of a version makes another one.
        #[error("what is stored is not what was committed")]
        OtherVersion = "commitment.other_version",
        /// The claims are no item.
        #[error("{0}")]
        Item(#[from] ItemError) = "commitment.item",
    }
    within {
        /// Not an SD-JWT, or disclosures that do not fit it.
        #[error("{0}")]
        SdJwt(#[from] SdJwtError),
        /// Another form than protocol section 4.1 gives it.
        #[error("{0}")]
        Form(#[from] FormError),
    }
}

/// What a version says of its place in the item's chain: the claims in the clear.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Place {
    pub item_id: ItemId,
    /// The number of the link, from 0.
    pub seq: u32,
    /// What happened.
    pub event: Event,
    /// When it happened.
    pub at: Timestamp,
    /// The hash of the link before; `None` is `genesis`.
    pub prev: Option<Hash>,
    /// The capture receipt.
    pub receipt: ReceiptId,
}

/// What a version was made of. Everything else of it is a function of this: a gateway keeps it, and makes the SD-JWT when it
/// is asked for.
#[derive(Clone, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Made {
    /// The key that signed.
    pub kid: Kid,
    pub place: Place,
    /// What is concealed: the members of the item, its text as segments, a string each or `{"t": <class>, "v": <text>}`.
    pub claims: Map<String, Value>,
    /// The secret seed of its salts and decoys ([`Derived`]).
    pub seed: [u8; 32],
    pub signature: [u8; 64],
    /// The hash of the issuer-signed part.
    pub commitment: Hash,
}

// Neither what it says nor its seed.
impl fmt::Debug for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kid, place, commitment, .. } = self;
        let mut made = f.debug_struct("Made");
        made.field("kid", kid).field("place", place).field("commitment", commitment).finish_non_exhaustive()
    }
}

impl Made {
    /// The part that is signed, and the concealed parts.
    fn unsigned(
        kid: &Kid,
        place: &Place,
        claims: &Map<String, Value>,
        seed: [u8; 32],
    ) -> Result<(UnsignedJwt, Vec<Disclosure>), CommitmentError> {
        let (concealed, disclosures) = sd_jwt::conceal(&nodes(claims), true, &Derived::new(seed))?;
        let mut payload = clear(kid, place);
        payload.insert("_sd_alg".to_owned(), "sha-256".into());
        payload.extend(concealed);
        Ok((UnsignedJwt::with_kid(kid, TYP, &payload)?, disclosures))
    }

    fn write(&self) -> Result<Written, CommitmentError> {
        let (unsigned, disclosures) = Self::unsigned(&self.kid, &self.place, &self.claims, self.seed)?;
        let jwt = unsigned.signed(&self.signature);
        if Hash::of(jwt.as_bytes()) != self.commitment {
            return Err(CommitmentError::OtherVersion);
        }
        Ok(Written { jwt, disclosures })
    }
}

/// A signed version, written out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Written {
    jwt: String,
    /// The concealed parts, parents before their parts.
    disclosures: Vec<Disclosure>,
}

/// A signed version with all its disclosures: what the owner's gateway keeps.
#[derive(Debug, Clone)]
pub struct Committed(Form);

#[derive(Debug, Clone)]
enum Form {
    /// Of this house. It is written out when somebody asks.
    Made(Box<Made>, OnceLock<Written>),
    /// As it was read.
    Read(Written),
}

impl From<Made> for Committed {
    fn from(made: Made) -> Self {
        Self(Form::Made(Box::new(made), OnceLock::new()))
    }
}

impl Written {
    /// Whether an element has another number than the one that it is revealed at, as earlier versions of the program stored it where parts
    /// were held back.
    fn has_gaps(&self) -> bool {
        let places: BTreeSet<&[Step]> = self.disclosures.iter().map(|part| part.path().steps()).collect();
        places.iter().any(|steps| match steps {
            [array @ .., Step::Element(number @ 1..)] => {
                let before = [array, &[Step::Element(number - 1)]].concat();
                !places.contains(before.as_slice())
            }
            _ => false,
        })
    }
}

/// The form of versions that were read, and of all that earlier versions of the program stored.
impl<'de> Deserialize<'de> for Committed {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = Written::deserialize(deserializer)?;
        let has_gaps = written.has_gaps();
        let stored = Self(Form::Read(written));
        if !has_gaps {
            return Ok(stored);
        }
        stored.whole().and_then(|text| Self::read(&text)).map_err(serde::de::Error::custom)
    }
}

impl Serialize for Committed {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.written().map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

impl Committed {
    /// Conceals and signs a version.
    ///
    /// # Errors
    /// [`CommitmentError::Json`] for a value without canonical form.
    pub fn sign(
        body: &Body,
        segments: &[Segment],
        place: &Place,
        signer: &Signer,
        random: &dyn Random,
    ) -> Result<Self, CommitmentError> {
        let (seed, claims) = (random::bytes(random), claims(body, segments, place));
        let (unsigned, disclosures) = Made::unsigned(signer.kid(), place, &claims, seed)?;
        let signature = signer.signature(unsigned.message());
        let jwt = unsigned.signed(&signature);
        let commitment = Hash::of(jwt.as_bytes());
        let (kid, place) = (signer.kid().clone(), place.clone());
        let made = Made { kid, place, claims, seed, signature, commitment };
        Ok(Self(Form::Made(Box::new(made), OnceLock::from(Written { jwt, disclosures }))))
    }

    /// Reads a version with all its disclosures back from an SD-JWT that [`verify`] has accepted.
    ///
    /// # Errors
    /// [`CommitmentError::SdJwt`].
    pub fn read(text: &str) -> Result<Self, CommitmentError> {
        let presentation = sd_jwt::Presentation::parse(text)?;
        let (jwt, disclosures) = (presentation.jwt().to_owned(), presentation.placed()?);
        Ok(Self(Form::Read(Written { jwt, disclosures })))
    }

    /// What it was made of, where it is of this house.
    #[must_use]
    pub fn made(&self) -> Option<&Made> {
        match &self.0 {
            Form::Made(made, _) => Some(made),
            Form::Read(_) => None,
        }
    }

    fn written(&self) -> Result<&Written, CommitmentError> {
        match &self.0 {
            Form::Read(written) => Ok(written),
            Form::Made(made, written) => match written.get() {
                Some(written) => Ok(written),
                None => {
                    let now = made.write()?;
                    Ok(written.get_or_init(|| now))
                }
            },
        }
    }

    /// The commitment: the hash of the issuer-signed part.
    #[must_use]
    pub fn commitment(&self) -> Hash {
        match &self.0 {
            Form::Made(made, _) => made.commitment,
            Form::Read(written) => Hash::of(written.jwt.as_bytes()),
        }
    }

    /// Whether that key signed it.
    #[must_use]
    pub fn is_signed_by(&self, kid: &Kid) -> bool {
        match &self.0 {
            Form::Made(made, _) => made.kid == *kid,
            Form::Read(Written { jwt, .. }) => {
                UnverifiedJwt::parse(jwt, TYP).and_then(|jwt| jwt.kid()).is_ok_and(|signed| signed == *kid)
            }
        }
    }

    /// The concealed parts, parents before their parts.
    ///
    /// # Errors
    /// When what is stored is not what was committed.
    pub fn disclosures(&self) -> Result<&[Disclosure], CommitmentError> {
        Ok(&self.written()?.disclosures)
    }

    /// The SD-JWT with these of its disclosures.
    ///
    /// # Errors
    /// When what is stored is not what was committed.
    pub fn present<'a>(
        &self,
        chosen: impl Iterator<Item = &'a Disclosure>,
    ) -> Result<String, CommitmentError> {
        let jwt = &self.written()?.jwt;
        let mut text = String::with_capacity(jwt.len() + 1024);
        text.push_str(jwt);
        text.push('~');
        for disclosure in chosen {
            text.push_str(&disclosure.encoded());
            text.push('~');
        }
        Ok(text)
    }

    /// The SD-JWT with all of its disclosures.
    ///
    /// # Errors
    /// When what is stored is not what was committed.
    pub fn whole(&self) -> Result<String, CommitmentError> {
        self.present(self.disclosures()?.iter())
    }

    /// All its claims, put together without hashing: for the owner's own gateway, whose store is sealed. A receiver uses
    /// [`crate::sd_jwt::Presentation::reveal`], which must come to the same.
    ///
    /// # Errors
    /// When what is stored is not what was committed.
    pub fn claims(&self) -> Result<Map<String, Value>, CommitmentError> {
        match &self.0 {
            Form::Made(made, _) => {
                let mut claims = clear(&made.kid, &made.place);
                claims.extend(made.claims.clone());
                Ok(claims)
            }
            Form::Read(written) => {
                let mut assembly = Assembly::new(strip(payload(&written.jwt)?));
                for disclosure in &written.disclosures {
                    assembly.put(disclosure.path(), strip_value(disclosure.value()?));
                }
                Ok(assembly.finish())
            }
        }
    }

    /// Whether its text is cut into these segments.
    ///
    /// # Errors
    /// When what is stored is not what was committed.
    pub fn is_cut_as(&self, segments: &[Segment]) -> Result<bool, CommitmentError> {
        let claims = Value::Object(self.claims()?);
        let cut =
            claims.pointer("/content/text").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        Ok(segments.iter().map(segment).eq(cut.iter().cloned()))
    }
}

fn payload(jwt: &str) -> Result<Map<String, Value>, CommitmentError> {
    let part = jwt.split('.').nth(1).unwrap_or_default();
    let bytes = URL_SAFE_NO_PAD.decode(part).map_err(|_| SdJwtError::Malformed)?;
    match json::parse(&bytes)? {
        Value::Object(map) => Ok(map),
        _ => Err(SdJwtError::Malformed.into()),
    }
}

/// The claims in the clear.
fn clear(kid: &Kid, place: &Place) -> Map<String, Value> {
    let prev = Link::write_prev(place.prev);
    let members: [(&str, Value); 7] = [
        ("event", place.event.as_str().into()),
        ("iat", place.at.seconds().into()),
        ("iss", kid.did().as_str().into()),
        ("item_id", place.item_id.to_string().into()),
        ("prev", prev.into()),
        ("receipt", place.receipt.short().into()),
        ("seq", place.seq.into()),
    ];
    members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// A document without the machinery of concealment: no digests, no concealed elements.
fn strip_value(value: Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(strip(map)),
        Value::Array(array) => {
            let hidden = |v: &Value| v.as_object().is_some_and(|o| o.contains_key("..."));
            Value::Array(array.into_iter().filter(|v| !hidden(v)).map(strip_value).collect())
        }
        leaf => leaf,
    }
}

fn strip(map: Map<String, Value>) -> Map<String, Value> {
    let machinery = |name: &str| name == "_sd" || name == "_sd_alg";
    map.into_iter().filter(|(name, _)| !machinery(name)).map(|(name, v)| (name, strip_value(v))).collect()
}

/// Everything of a version that is concealed: its members, the text as segments.
fn claims(body: &Body, segments: &[Segment], place: &Place) -> Map<String, Value> {
    let mut members = body.members(place.receipt);
    if let Some(text) = members.get_mut("content").and_then(|content| content.get_mut("text")) {
        *text = Value::Array(segments.iter().map(segment).collect());
    }
    members
}

fn segment(segment: &Segment) -> Value {
    match segment.class {
        None => Value::String(segment.text.clone()),
        Some(class) => json!({"t": class, "v": segment.text}),
    }
}

/// How each of them is concealed: by itself, but for the class of a span.
fn nodes(claims: &Map<String, Value>) -> Vec<(String, Child)> {
    let concealed = |node| Child { node, concealed: true };
    let member = |(name, value): (&String, &Value)| {
        let node = match (name.as_str(), value) {
            ("content", Value::Object(content)) => {
                let part = |(name, value): (&String, &Value)| {
                    let node = match (name.as_str(), value) {
                        ("text", Value::Array(segments)) => text_node(segments),
                        _ => Node::concealed(value),
                    };
                    (name.clone(), concealed(node))
                };
                Node::Object(content.iter().map(part).collect())
            }
            _ => Node::concealed(value),
        };
        (name.clone(), concealed(node))
    };
    claims.iter().map(member).collect()
}

fn text_node(segments: &[Value]) -> Node {
    let element = |segment: &Value| match segment {
        Value::Object(span) => Node::Object(
            span.iter()
                .map(|(name, value)| {
                    (name.clone(), Child { node: Node::Leaf(value.clone()), concealed: name != "t" })
                })
                .collect(),
        ),
        text => Node::Leaf(text.clone()),
    };
    Node::Array(segments.iter().map(|segment| Child { node: element(segment), concealed: true }).collect())
}

/// A version's claims after its signature was checked. Only [`verify`] makes one.
#[derive(Debug, Clone)]
pub struct VerifiedClaims {
    claims: Map<String, Value>,
    place: Place,
    commitment: Hash,
}

#[allow(missing_docs, reason = "the names say it")]
impl VerifiedClaims {
    /// The disclosed claims.
    #[must_use]
    pub const fn claims(&self) -> &Map<String, Value> {
        &self.claims
    }

    /// The place in the chain.
    #[must_use]
    pub const fn place(&self) -> &Place {
        &self.place
    }

    #[must_use]
    pub const fn commitment(&self) -> Hash {
        self.commitment
    }
}

/// Checks an SD-JWT against its issuer's document, one of those given: signature by a key that was in force, the form
/// of protocol section 4.1, disclosures that fit, claims of an item and no others.
///
/// # Errors
/// [`CommitmentError`].
pub fn verify(text: &str, documents: &dyn Documents) -> Result<VerifiedClaims, CommitmentError> {
    let presentation = sd_jwt::Presentation::parse(text)?;
    let jwt = UnverifiedJwt::parse(presentation.jwt(), TYP)?;
    let kid = jwt.kid()?;
    let key = documents.key_of(&kid).ok_or(SignedError::OtherKey)?;
    jwt.verify_with::<Value>(key.public())?;
    form::check(&presentation)?;
    let claims = presentation.reveal()?;
    spans(&presentation)?;
    form::names(&claims)?;
    if claims.get("iss").is_none_or(|iss| iss != kid.did().as_str()) {
        return Err(CommitmentError::Issuer);
    }
    let place = place(&claims)?;
    shapes(&claims, &place)?;
    key.usable_at(place.at)?;
    Ok(VerifiedClaims { claims, place, commitment: Hash::of(presentation.jwt().as_bytes()) })
}

/// That a class stands in the clear at the spans of the text, and nowhere else: beside it a part would be sent that no level shows.
fn spans(presentation: &sd_jwt::Presentation) -> Result<(), CommitmentError> {
    for (index, part) in presentation.placed()?.iter().enumerate() {
        let Value::Object(members) = part.value()? else { continue };
        if !members.is_empty() && members.contains_key("t") != is_segment(part.path().steps()) {
            return Err(FormError::Plain(index).into());
        }
    }
    Ok(())
}

fn place(claims: &Map<String, Value>) -> Result<Place, CommitmentError> {
    let text =
        |name: &'static str| claims.get(name).and_then(Value::as_str).ok_or(CommitmentError::Claim(name));
    let number =
        |name: &'static str| claims.get(name).and_then(Value::as_i64).ok_or(CommitmentError::Claim(name));
    Ok(Place {
        item_id: text("item_id")?.parse().map_err(|_| CommitmentError::Claim("item_id"))?,
        seq: u32::try_from(number("seq")?).map_err(|_| CommitmentError::Claim("seq"))?,
        event: text("event")?.parse().map_err(|_| CommitmentError::Claim("event"))?,
        at: Timestamp::from_seconds(number("iat")?),
        prev: Link::parse_prev(text("prev")?).ok_or(CommitmentError::Claim("prev"))?,
        receipt: text("receipt")?.parse().map_err(|_| CommitmentError::Claim("receipt"))?,
    })
}

/// That every disclosed claim has the shape that an item's member has.
fn shapes(claims: &Map<String, Value>, place: &Place) -> Result<(), CommitmentError> {
    fn parses<T: std::str::FromStr>(value: &Value) -> bool {
        value.as_str().is_some_and(|text| text.parse::<T>().is_ok())
    }
    fn all(value: &Value, fits: impl Fn(&Value) -> bool) -> bool {
        value.as_array().is_some_and(|values| values.iter().all(fits))
    }
    type Shape = (&'static str, fn(&Value) -> bool);
    const SHAPES: [Shape; 12] = [
        ("scope_id", parses::<ScopeId>),
        ("kind", parses::<Kind>),
        ("subject_entity_id", Value::is_string),
        ("embedding", Value::is_object),
        ("provenance", Value::is_object),
        ("labels", |value| all(value, Value::is_string)),
        ("ttl_days", |value| value.as_u64().is_some_and(|days| u32::try_from(days).is_ok())),
        ("expires_at", parses::<Timestamp>),
        ("exportable", Value::is_boolean),
        ("sensitivity", parses::<Sensitivity>),
        ("derived_from", |value| all(value, parses::<ItemId>)),
        ("extensions", Value::is_object),
    ];
    for (name, fits) in SHAPES {
        if claims.get(name).is_some_and(|value| !fits(value)) {
            return Err(CommitmentError::Claim(name));
        }
    }
    let Some(provenance) = claims.get("provenance") else { return Ok(()) };
    if provenance.get("captured_at").is_some_and(|at| !parses::<Timestamp>(at)) {
        return Err(CommitmentError::Claim("provenance.captured_at"));
    }
    let confident = |value: &Value| value.as_f64().is_some_and(|c| Confidence::try_from(c).is_ok());
    if provenance.get("confidence").is_some_and(|value| !confident(value)) {
        return Err(CommitmentError::Claim("provenance.confidence"));
    }
    if provenance.get("source_receipt").is_some_and(|receipt| *receipt != place.receipt.short()) {
        return Err(CommitmentError::SourceReceipt);
    }
    Ok(())
}

/// Of all claims those in the clear, and the concealed ones as far as `shows` says of each place: what a receiver puts together of those
/// disclosures.
#[must_use]
pub fn shown(claims: &Value, shows: impl Fn(&[Step]) -> bool) -> Map<String, Value> {
    let mut shown = Map::new();
    let mut at = Vec::new();
    for (name, value) in claims.as_object().into_iter().flatten() {
        if form::CLEAR.contains(&name.as_str()) {
            shown.insert(name.clone(), value.clone());
            continue;
        }
        at.push(Step::Member(name.clone()));
        if let Some(value) = part(value, &mut at, &shows) {
            shown.insert(name.clone(), value);
        }
        at.pop();
    }
    shown
}

/// What is shown of what stands at a concealed place; `None` where that is hidden.
fn part(value: &Value, at: &mut Vec<Step>, shows: &impl Fn(&[Step]) -> bool) -> Option<Value> {
    if !shows(at) {
        return None;
    }
    let is_span = is_segment(at);
    Some(match value {
        Value::Object(members) => Value::Object(
            members
                .iter()
                .filter_map(|(name, value)| {
                    // A span's class is shown with its place.
                    if is_span && name == "t" {
                        return Some((name.clone(), value.clone()));
                    }
                    at.push(Step::Member(name.clone()));
                    let part = part(value, at, shows);
                    at.pop();
                    Some((name.clone(), part?))
                })
                .collect(),
        ),
        // They close up over those that are hidden.
        Value::Array(elements) => Value::Array(
            (0..)
                .zip(elements)
                .filter_map(|(number, value)| {
                    at.push(Step::Element(number));
                    let part = part(value, at, shows);
                    at.pop();
                    part
                })
                .collect(),
        ),
        leaf => leaf.clone(),
    })
}

fn is_segment(at: &[Step]) -> bool {
    let [Step::Member(content), Step::Member(text), Step::Element(_)] = at else { return false };
    content == "content" && text == "text"
}

/// The wire form of an item from its disclosed claims, but for `status`, which the chain says: the same for the gateway
/// that projects and for the receiver that checks. A hidden span reads `[class]`.
///
/// # Errors
/// [`CommitmentError::Claim`] when a claim has not the shape that a commitment gives it.
pub fn wire(claims: &Map<String, Value>) -> Result<Map<String, Value>, CommitmentError> {
    let mut item = Map::new();
    for (name, value) in claims {
        match name.as_str() {
            "iss" => item.insert("owner_did".into(), value.clone()),
            "seq" => {
                let seq = value.as_u64().ok_or(CommitmentError::Claim("seq"))?;
                item.insert("version".into(), json!(seq + 1))
            }
            "iat" | "event" | "prev" | "receipt" => None,
            "content" => item.insert(name.clone(), Value::Object(content(value)?)),
            _ => item.insert(name.clone(), value.clone()),
        };
    }
    Ok(item)
}

fn content(value: &Value) -> Result<Map<String, Value>, CommitmentError> {
    let mut content = value.as_object().ok_or(CommitmentError::Claim("content"))?.clone();
    if content.keys().any(|name| name != "text" && name != "structured")
        || content.get("structured").is_some_and(|structured| !structured.is_object())
    {
        return Err(CommitmentError::Claim("content"));
    }
    if let Some(segments) = content.get("text") {
        let segments = segments.as_array().ok_or(CommitmentError::Claim("content.text"))?;
        let text: Option<String> = segments.iter().map(segment_text).collect();
        content.insert("text".into(), Value::String(text.ok_or(CommitmentError::Claim("content.text"))?));
    }
    Ok(content)
}

fn segment_text(segment: &Value) -> Option<String> {
    match segment {
        Value::String(text) => Some(text.clone()),
        Value::Object(span) if span.keys().all(|name| name == "t" || name == "v") => {
            let class = span.get("t")?.as_str()?.parse::<SpanClass>().ok()?;
            match span.get("v") {
                Some(shown) => Some(shown.as_str()?.to_owned()),
                None => Some(class.placeholder()),
            }
        }
        _ => None,
    }
}
