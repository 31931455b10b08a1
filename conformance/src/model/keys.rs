//! The principal's signing keys as its DID document has them, and what a rotation makes of them (protocol section 2).

use super::check::Difference;
use super::item::time;
use super::rule::{Keys, Rule};
use super::{Expected, Model};
use oap_identity::Timestamp;
use oap_identity::time::MAX_SKEW;
use serde_json::Value;

/// A signing key.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Key {
    kid: String,
    /// As the document writes it.
    public: Value,
    expires: Option<Timestamp>,
    revoked: Option<Timestamp>,
}

impl Key {
    /// A verification method, where it is an Ed25519 key.
    fn read(method: &Value) -> Option<Self> {
        let jwk = &method["publicKeyJwk"];
        let public = if jwk.is_null() { &method["publicKeyMultibase"] } else { jwk };
        let signs = jwk["crv"] == "Ed25519" || (jwk.is_null() && public.is_string());
        let kid = method["id"].as_str().filter(|_| signs)?.to_owned();
        let (expires, revoked) = (time(&method["expires"]), time(&method["revoked"]));
        Some(Self { kid, public: public.clone(), expires, revoked })
    }

    const fn is_in_use(&self) -> bool {
        self.expires.is_none() && self.revoked.is_none()
    }

    /// The number in its name, where it has one.
    fn number(&self) -> Option<u64> {
        self.kid.rsplit_once("#key-")?.1.parse().ok()
    }
}

/// The keys as far as the document was read.
#[derive(Debug, Clone, Default)]
pub(super) struct Published {
    known: Vec<Key>,
    /// When the owner rotated them since.
    rotations: Vec<Timestamp>,
    /// Whether the owner rotated them since the document was read first.
    rotated: bool,
}

impl Published {
    /// The only one in use; `None` where the document was not read, or has several.
    fn in_use(&self) -> Option<&Key> {
        let mut keys = self.known.iter().filter(|key| key.is_in_use());
        keys.next().filter(|_| keys.next().is_none())
    }

    /// What a document must not have become.
    fn differences(&self, found: &[Key]) -> Vec<Difference> {
        let mut differences = Vec::new();
        let mut add = |kid: &str, why: String| {
            differences.push(Difference { at: format!("/verificationMethod/{kid}"), why });
        };
        let in_use = self.in_use().map(|key| &key.kid);
        let near = |at: Timestamp| {
            let first = self.rotations.first().copied();
            first.is_some_and(|first| at <= first.plus(MAX_SKEW) && first <= at.plus(MAX_SKEW))
        };
        for key in &self.known {
            let Some(now) = found.iter().find(|found| found.kid == key.kid) else {
                add(&key.kid, "is not there any more".to_owned());
                continue;
            };
            if now.public != key.public {
                add(&key.kid, format!("is {}, must be {}", now.public, key.public));
            }
            if now.revoked != key.revoked {
                add(&key.kid, "bears another revoked, and nobody revoked it".to_owned());
            }
            let retires = !self.rotations.is_empty() && in_use == Some(&key.kid);
            if retires && !now.expires.is_some_and(near) {
                add(&key.kid, "bears no expires of about the time of the rotation".to_owned());
            } else if !retires && now.expires != key.expires && in_use.is_some() {
                add(&key.kid, "bears another expires, and was not retired now".to_owned());
            }
        }
        let known = |key: &&Key| self.known.iter().any(|known| known.kid == key.kid);
        let new: Vec<&Key> = found.iter().filter(|key| !known(key)).collect();
        if new.len() != self.rotations.len() {
            let why =
                format!("{} new keys, must be {}: one for each rotation", new.len(), self.rotations.len());
            add("", why);
        }
        let last = self.known.iter().filter_map(Key::number).max().unwrap_or(0);
        for key in &new {
            if self.known.iter().any(|known| known.public == key.public) {
                add(&key.kid, "is a key that there was".to_owned());
            }
            let number = key.number().unwrap_or(0);
            if number <= last || number > last + self.rotations.len() as u64 {
                add(&key.kid, format!("must have the number that follows {last}"));
            }
        }
        if !new.is_empty() && new.iter().filter(|key| key.is_in_use()).count() != 1 {
            add("", "one of the new keys alone must be in use".to_owned());
        }
        differences
    }
}

impl Model {
    /// The owner put a new signing key into use.
    pub fn rotated(&mut self, at: Timestamp) {
        self.keys.rotations.push(at);
        self.keys.rotated = true;
    }

    /// Somebody read the principal's DID document: where it is another than it must be, by what was read before. The first reading
    /// tells the keys.
    pub fn documented(&mut self, document: &Value) -> Vec<Difference> {
        let methods = document["verificationMethod"].as_array().into_iter().flatten();
        let found: Vec<Key> = methods.filter_map(Key::read).collect();
        let differences = if self.keys.known.is_empty() { Vec::new() } else { self.keys.differences(&found) };
        if !self.keys.rotations.is_empty() && differences.is_empty() {
            [Keys::Next, Keys::Former].into_iter().for_each(|rule| self.decided.note(Rule::Keys(rule)));
        }
        self.keys.known = found;
        self.keys.rotations.clear();
        differences
    }

    /// The id of the key that signs; `None` where the document was not read, or has several in use.
    #[must_use]
    pub fn key_in_use(&self) -> Option<&str> {
        self.keys.in_use().map(|key| key.kid.as_str())
    }

    /// Whether the owner rotated the keys since the document was read first.
    #[must_use]
    pub const fn is_rotated(&self) -> bool {
        self.keys.rotated
    }

    /// The key that an answer must be signed with, where that is known.
    pub(super) fn signs(&self) -> Option<String> {
        let kid = self.key_in_use()?.to_owned();
        if self.is_rotated() {
            self.decided.note(Rule::Keys(Keys::Signs));
        }
        Some(kid)
    }

    /// What a grant that its grantee exchanges once more must be answered with: the refusal, or nothing.
    #[must_use]
    pub fn exchanged(&self, grant_id: &str, at: Timestamp) -> Option<Expected> {
        let refusal = self.out_of_force(&self.chain(grant_id), at);
        refusal.map(|refusal| self.refuse(refusal))
    }

    /// That something holds which a key of the principal's signed, maybe a former one.
    pub fn holds(&self, rule: Keys, kid: &str) {
        let of_former = [Keys::Proved, Keys::Exchanged, Keys::Held].contains(&rule);
        let own = of_former && kid.split('#').next() == Some(self.principal.as_str());
        if own && self.is_rotated() && self.key_in_use().is_some_and(|in_use| in_use != kid) {
            self.decided.note(Rule::Keys(rule));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const DID: &str = "did:web:user.example";

    fn method(number: u64, x: &str, expires: Option<&str>) -> Value {
        let mut method =
            json!({"id": format!("{DID}#key-{number}"), "publicKeyJwk": {"crv": "Ed25519", "x": x}});
        if let Some(expires) = expires {
            method["expires"] = json!(expires);
        }
        method
    }

    fn model() -> Model {
        let mut model = Model::new(DID.parse().unwrap(), &json!({}), Vec::new());
        assert_eq!(model.documented(&json!({"verificationMethod": [method(1, "a", None)]})), []);
        model
    }

    fn found(methods: &[Value]) -> usize {
        let mut model = model();
        model.rotated("2026-05-01T12:00:00Z".parse().unwrap());
        model.documented(&json!({"verificationMethod": methods})).len()
    }

    #[test]
    fn a_rotation_adds_a_key_and_retires_the_former() {
        let at = Some("2026-05-01T12:00:00.001Z");
        assert_eq!(found(&[method(2, "b", None), method(1, "a", at)]), 0);
        for wrong in [
            vec![method(2, "b", None)],
            vec![method(1, "a", None)],
            vec![method(2, "b", None), method(1, "a", None)],
            vec![method(2, "b", None), method(1, "a", Some("2026-05-01T13:00:00Z"))],
            vec![method(2, "a", None), method(1, "a", at)],
            vec![method(3, "b", None), method(1, "a", at)],
            vec![method(2, "b", at), method(1, "a", at)],
            vec![method(2, "b", None), method(1, "c", at)],
        ] {
            assert_ne!(found(&wrong), 0, "{wrong:?}");
        }
    }

    #[test]
    fn what_nobody_rotated_stays() {
        let mut model = model();
        assert_eq!(model.key_in_use(), Some("did:web:user.example#key-1"));
        assert_ne!(model.documented(&json!({"verificationMethod": [method(2, "b", None)]})), []);
        assert_eq!(model.key_in_use(), Some("did:web:user.example#key-2"));
    }
}
