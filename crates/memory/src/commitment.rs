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
use crate::sd_jwt::{self, Child, Disclosure, Node, SdJwtError};
use crate::tree::Assembly;
use oap_identity::json::{self, JsonError};
use oap_identity::random::Random;
use oap_identity::signed::{SignedError, UnverifiedJwt};
use oap_identity::{Documents, Hash, ItemId, Kid, ReceiptId, ScopeId, Signer, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

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

/// A signed version with all its disclosures: what the owner's gateway keeps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Committed {
    jwt: String,
    disclosures: Vec<Disclosure>,
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
        let (concealed, disclosures) = sd_jwt::conceal(&claims(body, segments, place), true, random)?;
        let mut payload = json!({
            "iss": signer.did(),
            "iat": place.at.seconds(),
            "item_id": place.item_id,
            "seq": place.seq,
            "event": place.event,
            "prev": place.prev.map_or_else(|| "genesis".to_owned(), |hash| hash.to_string()),
            "receipt": place.receipt.short(),
            "_sd_alg": "sha-256",
        });
        for (name, value) in concealed {
            payload[name] = value;
        }
        let jwt = oap_identity::signed::sign_jwt(signer, TYP, &payload)?;
        Ok(Self { jwt, disclosures })
    }

    /// Reads a version with all its disclosures back from an SD-JWT that [`verify`] has accepted.
    ///
    /// # Errors
    /// [`CommitmentError::SdJwt`].
    pub fn read(text: &str) -> Result<Self, CommitmentError> {
        let presentation = sd_jwt::Presentation::parse(text)?;
        Ok(Self { jwt: presentation.jwt().to_owned(), disclosures: presentation.placed()? })
    }

    /// The commitment: the hash of the issuer-signed part.
    #[must_use]
    pub fn commitment(&self) -> Hash {
        Hash::of(self.jwt.as_bytes())
    }

    /// The issuer-signed part.
    #[must_use]
    pub fn jwt(&self) -> &str {
        &self.jwt
    }

    /// Whether that key signed it.
    #[must_use]
    pub fn is_signed_by(&self, kid: &Kid) -> bool {
        UnverifiedJwt::parse(&self.jwt, TYP).and_then(|jwt| jwt.kid()).is_ok_and(|signed| signed == *kid)
    }

    /// The concealed parts, parents before their parts.
    #[must_use]
    pub fn disclosures(&self) -> &[Disclosure] {
        &self.disclosures
    }

    /// The SD-JWT with these of its disclosures.
    #[must_use]
    pub fn present<'a>(&self, chosen: impl Iterator<Item = &'a Disclosure>) -> String {
        let mut text = String::with_capacity(self.jwt.len() + 1024);
        text.push_str(&self.jwt);
        text.push('~');
        for disclosure in chosen {
            text.push_str(&disclosure.encoded());
            text.push('~');
        }
        text
    }

    /// The claims that these disclosures show, put together without hashing: for the owner's own gateway, whose
    /// store is sealed. A receiver uses [`crate::sd_jwt::Presentation::reveal`], which must come to the same.
    ///
    /// # Errors
    /// When the stored bytes are not what was committed.
    pub fn claims<'a>(
        &self,
        chosen: impl Iterator<Item = &'a Disclosure>,
    ) -> Result<Map<String, Value>, CommitmentError> {
        let mut assembly = Assembly::new(strip(self.payload()?));
        for disclosure in chosen {
            assembly.put(disclosure.path(), strip_value(disclosure.value()?));
        }
        Ok(assembly.finish())
    }

    /// Whether its text is cut into these segments.
    ///
    /// # Errors
    /// When the stored bytes are not what was committed.
    pub fn is_cut_as(&self, segments: &[Segment]) -> Result<bool, CommitmentError> {
        let claims = Value::Object(self.claims(self.disclosures.iter())?);
        let cut =
            claims.pointer("/content/text").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let wanted = segments.iter().map(|segment| match segment.class {
            None => json!(segment.text),
            Some(class) => json!({"t": class, "v": segment.text}),
        });
        Ok(wanted.eq(cut.iter().cloned()))
    }

    fn payload(&self) -> Result<Map<String, Value>, CommitmentError> {
        use base64::Engine;
        let part = self.jwt.split('.').nth(1).unwrap_or_default();
        let bytes = base64::engine::general_purpose::URL_SAFE_NO_PAD
            .decode(part)
            .map_err(|_| SdJwtError::Malformed)?;
        match json::parse(&bytes)? {
            Value::Object(map) => Ok(map),
            _ => Err(SdJwtError::Malformed.into()),
        }
    }
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

/// Everything of a version that is concealed.
fn claims(body: &Body, segments: &[Segment], place: &Place) -> Vec<(String, Child)> {
    let mut members = body.members(place.receipt);
    let text = members.get_mut("content").and_then(|c| c.as_object_mut()).and_then(|c| c.remove("text"));
    members
        .into_iter()
        .map(|(name, value)| {
            let mut node = Node::concealed(&value);
            if name == "content" && text.is_some() {
                let text = ("text".to_owned(), Child { node: text_node(segments), concealed: true });
                match &mut node {
                    Node::Object(members) => members.push(text),
                    _ => node = Node::Object(vec![text]),
                }
            }
            (name, Child { node, concealed: true })
        })
        .collect()
}

fn text_node(segments: &[Segment]) -> Node {
    let element = |segment: &Segment| match segment.class {
        None => Node::Leaf(Value::String(segment.text.clone())),
        Some(class) => Node::Object(vec![
            ("t".to_owned(), Child { node: Node::Leaf(json!(class)), concealed: false }),
            (
                "v".to_owned(),
                Child { node: Node::Leaf(Value::String(segment.text.clone())), concealed: true },
            ),
        ]),
    };
    Node::Array(segments.iter().map(|s| Child { node: element(s), concealed: true }).collect())
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
    form::names(&claims)?;
    if claims.get("iss").is_none_or(|iss| iss != kid.did().as_str()) {
        return Err(CommitmentError::Issuer);
    }
    let place = place(&claims)?;
    shapes(&claims, &place)?;
    key.usable_at(place.at)?;
    Ok(VerifiedClaims { claims, place, commitment: Hash::of(presentation.jwt().as_bytes()) })
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
        Value::Object(span) => {
            let class = span.get("t")?.as_str()?.parse::<SpanClass>().ok()?;
            match span.get("v") {
                Some(shown) => Some(shown.as_str()?.to_owned()),
                None => Some(class.placeholder()),
            }
        }
        _ => None,
    }
}
