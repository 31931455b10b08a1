//! SD-JWT (RFC 9901): concealing a document part by part, and showing some of the parts.
//!
//! `ssi-sd-jwt` decodes and discloses. It does not conceal members inside array elements, adds no decoys and
//! leaves digests in the order of the claims, so concealing is here; and it lets some things pass that RFC 9901
//! section 7.1 refuses, so [`Presentation::reveal`] checks those first.

use crate::tree::Path;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use oap_identity::json::{self, JsonError};
use oap_identity::random::{self, Random};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use ssi_sd_jwt::SdJwt;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};

/// Digest arrays are filled up with decoys to a multiple of this, so that they do not count hidden members.
pub const DECOY_STEP: usize = 8;
/// The digest array at the root has at least so many: more than an item has optional members, so that it never
/// tells how many of them there are.
pub const ROOT_DIGESTS: usize = 16;
/// Most disclosures of one SD-JWT. No item that is accepted has more ([`crate::size`]).
pub const MAX_DISCLOSURES: usize = 4096;
/// Deepest place of a part.
pub const MAX_DEPTH: usize = 128;

crate::reasons! {
    /// Why an SD-JWT was refused.
    SdJwtError {
        /// Not `<issuer JWT>~<disclosure>~…~`.
        #[error("not an SD-JWT: <issuer JWT>~<disclosure>~…~")]
        Malformed = "sd_jwt.malformed",
        /// A key-binding JWT, which nothing here asks for.
        #[error("a key-binding JWT has no place here")]
        KeyBinding = "sd_jwt.key_binding",
        /// The payload or a disclosure is not JSON that the wire allows.
        #[error("{0}")]
        Json(#[from] JsonError) = "sd_jwt.json",
        /// A disclosure that is no array of salt, name and value, or of salt and value.
        #[error("disclosure {0} is not [salt, name, value] or [salt, value]")]
        Disclosure(usize) = "sd_jwt.disclosure",
        /// A disclosure of a member that belongs to the machinery (RFC 9901 section 7.1, 3.c.ii).
        #[error("a disclosure names the member {0:?}, which is reserved")]
        Reserved(String) = "sd_jwt.reserved",
        /// The same digest twice (RFC 9901 section 7.1, 4).
        #[error("a digest appears more than once")]
        RepeatedDigest = "sd_jwt.repeated_digest",
        /// A disclosure that appears twice.
        #[error("disclosure {0} appears twice")]
        RepeatedDisclosure(usize) = "sd_jwt.repeated_disclosure",
        /// Digests where none can stand, or something else where they must.
        #[error("{0:?} out of place")]
        OutOfPlace(String) = "sd_jwt.out_of_place",
        /// A disclosure that no digest asks for, or one that hides a member that is there.
        #[error("the disclosures do not fit the digests: {0}")]
        Disclosures(String) = "sd_jwt.disclosures",
        /// Nested too deeply.
        #[error("nested deeper than {MAX_DEPTH} steps")]
        TooDeep = "sd_jwt.too_deep",
        /// `_sd_alg` is missing (`ssi` asks for it) or not sha-256.
        #[error("_sd_alg must be sha-256")]
        Algorithm = "sd_jwt.algorithm",
    }
}

/// A document whose parts can be concealed one by one.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Node {
    /// A value without concealed parts.
    Leaf(Value),
    Object(Vec<(String, Child)>),
    Array(Vec<Child>),
}

/// A part of a document.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Child {
    pub node: Node,
    /// Whether it is replaced by its digest.
    pub concealed: bool,
}

impl Node {
    /// A value with every member and every element concealed, at every depth.
    #[must_use]
    pub fn concealed(value: &Value) -> Self {
        let child = |value| Child { node: Self::concealed(value), concealed: true };
        match value {
            Value::Object(map) if !map.is_empty() => {
                Self::Object(map.iter().map(|(name, value)| (name.clone(), child(value))).collect())
            }
            Value::Array(array) if !array.is_empty() => Self::Array(array.iter().map(child).collect()),
            leaf => Self::Leaf(leaf.clone()),
        }
    }
}

/// One concealed part: where it is, and the disclosure as it was written and hashed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disclosure {
    path: Path,
    json: String,
}

impl Disclosure {
    /// The canonical form of `[salt, name, value]` or `[salt, value]`. A salt is base64url.
    fn new(path: Path, salt: &str, name: Option<&str>, value: &Value) -> Result<Self, JsonError> {
        let value = json::canonical_text(value)?;
        let json = match name {
            Some(name) => format!(r#"["{salt}",{},{value}]"#, json::canonical_text(&name)?),
            None => format!(r#"["{salt}",{value}]"#),
        };
        Ok(Self { path, json })
    }

    /// Where the part is.
    #[must_use]
    pub const fn path(&self) -> &Path {
        &self.path
    }

    /// The disclosure as it stands in an SD-JWT.
    #[must_use]
    pub fn encoded(&self) -> String {
        URL_SAFE_NO_PAD.encode(&self.json)
    }

    /// The value that is disclosed; parts concealed within it are digests still.
    ///
    /// # Errors
    /// When the stored bytes are not a disclosure, which means that the store was changed.
    pub fn value(&self) -> Result<Value, SdJwtError> {
        match json::parse(self.json.as_bytes())? {
            Value::Array(mut parts) => parts.pop().ok_or(SdJwtError::Disclosure(0)),
            _ => Err(SdJwtError::Disclosure(0)),
        }
    }
}

/// The salts and decoys of one document: the bytes that SHA-256 gives for a secret seed and the numbers from 0 on, 32 at a time, each
/// time as many of them as are asked for. Who sees some of them learns nothing of the others.
pub struct Derived {
    seed: [u8; 32],
    next: AtomicU64,
}

impl Derived {
    /// Those of a seed that is random and used for nothing else.
    #[must_use]
    pub const fn new(seed: [u8; 32]) -> Self {
        Self { seed, next: AtomicU64::new(0) }
    }
}

impl Random for Derived {
    fn fill(&self, buffer: &mut [u8]) {
        for part in buffer.chunks_mut(32) {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let block = Sha256::new().chain_update(self.seed).chain_update(number.to_le_bytes()).finalize();
            part.copy_from_slice(&block[..part.len()]);
        }
    }
}

fn digest(encoded: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(encoded))
}

/// Conceals the parts of an object: what remains to be signed, and the disclosures, parents before their parts.
///
/// Each part has a salt of 128 bits. Digest arrays are sorted; they and arrays with concealed elements are
/// filled up with `decoys` to a multiple of [`DECOY_STEP`], at the root to [`ROOT_DIGESTS`] at least.
///
/// # Errors
/// When a value has no canonical form.
pub fn conceal(
    members: &[(String, Child)],
    decoys: bool,
    random: &dyn Random,
) -> Result<(Map<String, Value>, Vec<Disclosure>), JsonError> {
    let mut work = Concealing { decoys, random, disclosures: Vec::new() };
    let payload = work.object(members, &Path::default())?;
    work.disclosures.sort_by(|a, b| a.path.cmp(&b.path));
    Ok((payload, work.disclosures))
}

struct Concealing<'a> {
    decoys: bool,
    random: &'a dyn Random,
    disclosures: Vec<Disclosure>,
}

impl Concealing<'_> {
    fn node(&mut self, node: &Node, path: &Path) -> Result<Value, JsonError> {
        match node {
            Node::Leaf(value) => Ok(value.clone()),
            Node::Object(members) => self.object(members, path).map(Value::Object),
            Node::Array(elements) => self.array(elements, path).map(Value::Array),
        }
    }

    fn object(&mut self, members: &[(String, Child)], path: &Path) -> Result<Map<String, Value>, JsonError> {
        let mut object = Map::new();
        let mut digests = Vec::new();
        for (name, child) in members {
            let place = path.member(name);
            let value = self.node(&child.node, &place)?;
            if child.concealed {
                digests.push(self.disclose(place, Some(name), &value)?);
            } else {
                object.insert(name.clone(), value);
            }
        }
        if !digests.is_empty() {
            let least = if path.steps().is_empty() { ROOT_DIGESTS } else { DECOY_STEP };
            for _ in 0..self.missing(digests.len(), least) {
                digests.push(self.decoy());
            }
            digests.sort_unstable();
            object.insert("_sd".to_owned(), json!(digests));
        }
        Ok(object)
    }

    fn array(&mut self, elements: &[Child], path: &Path) -> Result<Vec<Value>, JsonError> {
        let mut array = Vec::new();
        for (index, child) in elements.iter().enumerate() {
            let place = path.element(index);
            let value = self.node(&child.node, &place)?;
            array.push(if child.concealed {
                json!({"...": self.disclose(place, None, &value)?})
            } else {
                value
            });
        }
        if elements.iter().any(|child| child.concealed) {
            for _ in 0..self.missing(array.len(), DECOY_STEP) {
                array.push(json!({"...": self.decoy()}));
            }
        }
        Ok(array)
    }

    fn disclose(&mut self, path: Path, name: Option<&str>, value: &Value) -> Result<String, JsonError> {
        let salt = URL_SAFE_NO_PAD.encode(random::bytes::<16>(self.random));
        let disclosure = Disclosure::new(path, &salt, name, value)?;
        let digest = digest(&disclosure.encoded());
        self.disclosures.push(disclosure);
        Ok(digest)
    }

    fn missing(&self, length: usize, least: usize) -> usize {
        if self.decoys { length.next_multiple_of(DECOY_STEP).max(least) - length } else { 0 }
    }

    fn decoy(&self) -> String {
        URL_SAFE_NO_PAD.encode(random::bytes::<32>(self.random))
    }
}

/// An SD-JWT as it was received: the issuer's JWT and the disclosures that came with it. Nothing is verified.
#[derive(Debug, Clone, Copy)]
pub struct Presentation<'a> {
    text: &'a str,
    jwt: &'a str,
}

impl<'a> Presentation<'a> {
    /// Splits the text.
    ///
    /// # Errors
    /// [`SdJwtError::Malformed`], [`SdJwtError::KeyBinding`].
    pub fn parse(text: &'a str) -> Result<Self, SdJwtError> {
        let (jwt, rest) = text.split_once('~').ok_or(SdJwtError::Malformed)?;
        if !rest.is_empty() && !rest.ends_with('~') {
            return Err(SdJwtError::KeyBinding);
        }
        if jwt.split('.').count() != 3 || rest.split_terminator('~').count() > MAX_DISCLOSURES {
            return Err(SdJwtError::Malformed);
        }
        Ok(Self { text, jwt })
    }

    /// The issuer's JWT: what the commitment is the hash of.
    #[must_use]
    pub const fn jwt(&self) -> &'a str {
        self.jwt
    }

    /// The claims with the disclosed parts in their places and the machinery removed (RFC 9901 section 7.1).
    /// The issuer's signature is checked elsewhere.
    ///
    /// # Errors
    /// [`SdJwtError`]; a disclosure that no digest asks for is one.
    pub fn reveal(&self) -> Result<Map<String, Value>, SdJwtError> {
        let payload = self.payload()?;
        if payload.get("_sd_alg").is_none_or(|algorithm| algorithm != "sha-256") {
            return Err(SdJwtError::Algorithm);
        }
        let mut digests = Digests::default();
        digests.collect(&Value::Object(payload))?;
        let mut seen = BTreeSet::new();
        for (index, encoded) in self.encoded().enumerate() {
            if !seen.insert(encoded) {
                return Err(SdJwtError::RepeatedDisclosure(index));
            }
            let parts = disclosure_parts(index, encoded)?;
            digests.collect(parts.last().unwrap_or(&Value::Null))?;
        }
        // What follows goes as deep as disclosures hold each other, and a stack ends.
        let refused = |e: String| SdJwtError::Disclosures(e);
        let _placed = self.placed().map_err(|e| match e {
            SdJwtError::TooDeep => e,
            other => refused(other.to_string()),
        })?;
        let sd_jwt = SdJwt::new(self.text).map_err(|_| SdJwtError::Malformed)?;
        let revealed = sd_jwt.decode_reveal_any().map_err(|e| refused(e.to_string()))?;
        let claims = serde_json::to_value(revealed.claims()).map_err(|e| refused(e.to_string()))?;
        match claims {
            Value::Object(mut claims) => {
                claims.remove("_sd_alg");
                Ok(claims)
            }
            _ => Err(SdJwtError::Malformed),
        }
    }
}

impl Presentation<'_> {
    /// The issuer's payload, as it was signed.
    ///
    /// # Errors
    /// [`SdJwtError::Malformed`], [`SdJwtError::Json`].
    pub fn payload(&self) -> Result<Map<String, Value>, SdJwtError> {
        let payload = self.jwt.split('.').nth(1).unwrap_or_default();
        let payload = URL_SAFE_NO_PAD.decode(payload).map_err(|_| SdJwtError::Malformed)?;
        match json::parse(&payload)? {
            Value::Object(payload) => Ok(payload),
            _ => Err(SdJwtError::Malformed),
        }
    }

    /// The disclosures, each `[salt, name, value]` or `[salt, value]`; digests are not compared.
    ///
    /// # Errors
    /// [`SdJwtError::Disclosure`], [`SdJwtError::Reserved`], [`SdJwtError::Json`].
    pub fn disclosures(&self) -> Result<Vec<Vec<Value>>, SdJwtError> {
        self.encoded().enumerate().map(|(index, encoded)| disclosure_parts(index, encoded)).collect()
    }

    fn encoded(&self) -> impl Iterator<Item = &str> {
        self.text.get(self.jwt.len() + 1..).unwrap_or_default().split_terminator('~')
    }

    /// The disclosures in their places, as the owner keeps them; for a presentation whose [`Presentation::reveal`] succeeded. The elements
    /// of an array follow each other as they are revealed: those that are not disclosed, and decoys, have no number.
    ///
    /// # Errors
    /// [`SdJwtError`].
    pub fn placed(&self) -> Result<Vec<Disclosure>, SdJwtError> {
        let mut by_digest = BTreeMap::new();
        for (index, encoded) in self.encoded().enumerate() {
            let bytes = URL_SAFE_NO_PAD.decode(encoded).map_err(|_| SdJwtError::Disclosure(index))?;
            let json = String::from_utf8(bytes).map_err(|_| SdJwtError::Disclosure(index))?;
            by_digest.insert(digest(encoded), json);
        }
        let mut placed = Vec::with_capacity(by_digest.len());
        place(&Value::Object(self.payload()?), &Path::default(), &by_digest, &mut placed)?;
        if placed.len() != by_digest.len() {
            return Err(SdJwtError::Disclosures("a disclosure that no digest asks for".into()));
        }
        placed.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(placed)
    }
}

/// Walks a value, and the parts that its digests stand for.
fn place(
    value: &Value,
    path: &Path,
    by_digest: &BTreeMap<String, String>,
    placed: &mut Vec<Disclosure>,
) -> Result<(), SdJwtError> {
    if path.steps().len() > MAX_DEPTH {
        return Err(SdJwtError::TooDeep);
    }
    let part = |digest: &Value, at: Option<Path>, placed: &mut Vec<Disclosure>| {
        let Some(json) = digest.as_str().and_then(|digest| by_digest.get(digest)) else { return Ok(()) };
        let Value::Array(mut parts) = json::parse(json.as_bytes())? else {
            return Err(SdJwtError::Disclosure(0));
        };
        let inner = parts.pop().unwrap_or_default();
        let name = parts.get(1).and_then(Value::as_str);
        let at = at.or_else(|| name.map(|name| path.member(name))).ok_or(SdJwtError::Disclosure(0))?;
        placed.push(Disclosure { path: at.clone(), json: json.clone() });
        place(&inner, &at, by_digest, placed)
    };
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match (name.as_str(), member) {
                    ("_sd", Value::Array(digests)) => {
                        digests.iter().try_for_each(|digest| part(digest, None, placed))?;
                    }
                    _ => place(member, &path.member(name), by_digest, placed)?,
                }
            }
        }
        Value::Array(elements) => {
            let is_shown = |element: &&Value| {
                element
                    .get("...")
                    .is_none_or(|digest| digest.as_str().is_some_and(|d| by_digest.contains_key(d)))
            };
            for (index, element) in elements.iter().filter(is_shown).enumerate() {
                let at = path.element(index);
                match element.get("...") {
                    Some(digest) => part(digest, Some(at), placed)?,
                    None => place(element, &at, by_digest, placed)?,
                }
            }
        }
        _ => {}
    }
    Ok(())
}

/// The parts of a disclosure, after its form has been checked.
fn disclosure_parts(index: usize, encoded: &str) -> Result<Vec<Value>, SdJwtError> {
    let bytes = URL_SAFE_NO_PAD.decode(encoded).map_err(|_| SdJwtError::Disclosure(index))?;
    let Value::Array(parts) = json::parse(&bytes)? else { return Err(SdJwtError::Disclosure(index)) };
    match parts.as_slice() {
        [Value::String(_), Value::String(name), _] if matches!(name.as_str(), "_sd" | "..." | "_sd_alg") => {
            Err(SdJwtError::Reserved(name.clone()))
        }
        [Value::String(_), Value::String(_), _] | [Value::String(_), _] => Ok(parts),
        _ => Err(SdJwtError::Disclosure(index)),
    }
}

/// Every digest of a payload and its disclosures, each once.
#[derive(Default)]
struct Digests(BTreeSet<String>);

impl Digests {
    fn collect(&mut self, value: &Value) -> Result<(), SdJwtError> {
        match value {
            Value::Object(map) => {
                for (name, value) in map {
                    match (name.as_str(), value) {
                        ("_sd", Value::Array(digests)) => digests.iter().try_for_each(|d| self.once(d))?,
                        ("...", digest) if map.len() == 1 => self.once(digest)?,
                        ("_sd" | "...", _) => {
                            return Err(SdJwtError::OutOfPlace(name.clone()));
                        }
                        _ => self.collect(value)?,
                    }
                }
                Ok(())
            }
            Value::Array(values) => values.iter().try_for_each(|v| self.collect(v)),
            _ => Ok(()),
        }
    }

    fn once(&mut self, digest: &Value) -> Result<(), SdJwtError> {
        let digest = digest.as_str().ok_or_else(|| SdJwtError::OutOfPlace("_sd".to_owned()))?;
        if self.0.insert(digest.to_owned()) { Ok(()) } else { Err(SdJwtError::RepeatedDigest) }
    }
}
