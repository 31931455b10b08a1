//! The grant as a document (RFC 0010 section 3.4 with the additions of protocol section 5).

use oap_identity::UnverifiedDocument;
use oap_identity::signed::{SignedError, sign_document};
use oap_identity::{
    Did, DidDocument, GrantId, Hash, Kid, ScopeId, ScopedDid, Signer, Timestamp, json::JsonError,
};
use oap_memory::closed_enum;
use oap_memory::{Filter, TrustLevel};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;

/// Longest purpose, in characters.
pub const MAX_PURPOSE: usize = 1000;

closed_enum! {
    /// The ground under which data is disclosed (OAP-CORE 17.1, RFC 0007 section 3.1).
    #[derive(Default)]
    LawfulBasis {
        /// The owner agreed.
        #[default]
        Consent = "consent",
        /// A contract asks for it.
        Contract = "contract",
        /// A law asks for it.
        LegalObligation = "legal_obligation",
        /// A life depends on it.
        VitalInterests = "vital_interests",
        /// A public task asks for it.
        PublicTask = "public_task",
        /// An interest that outweighs.
        LegitimateInterests = "legitimate_interests",
    }
}

/// What a grantee may do.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "the names say it")]
pub enum Operation {
    Query,
    /// Take a bundle along.
    Export,
    /// Be told of changes.
    Subscribe,
}

/// How far a grant may be passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Delegable {
    /// How many grants may hang below this one, 1 to 5.
    pub max_depth: u8,
}

/// How much may be asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Most queries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queries: Option<u64>,
    /// Privacy loss, as the gateway accounts for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epsilon: Option<f64>,
}

/// Where the grant's state is published (Token Status List).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StatusRef {
    /// The place in the list.
    pub status_list: StatusIndex,
}

/// A place in a status list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names say it")]
pub struct StatusIndex {
    pub idx: u32,
    pub uri: String,
}

fn one() -> u8 {
    1
}

fn yes() -> bool {
    true
}

fn query_only() -> BTreeSet<Operation> {
    BTreeSet::from([Operation::Query])
}

fn stranger() -> TrustLevel {
    TrustLevel::STRANGER
}

/// A grant, without its signature. Unknown members make it invalid.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Grant {
    /// 1.
    #[serde(default = "one")]
    pub version: u8,
    pub grant_id: GrantId,
    /// Whose memory, and the scope that is meant where the filter names none.
    pub granter: ScopedDid,
    /// Who may see it.
    pub grantee: Did,
    /// What for, in words.
    pub purpose: String,
    /// What for, in codes; a query may state one of them and no other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub purpose_codes: Vec<String>,
    /// What is selected.
    pub filter: Filter,
    /// Most distinct items ever disclosed under the grant.
    pub max_items: u32,
    /// When it was made.
    pub issued_at: Timestamp,
    /// From when on it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    /// Until when it holds.
    pub expires_at: Timestamp,
    /// Always true: a person may always take back what they gave (RFC 0016 section 3.1).
    #[serde(default = "yes")]
    pub revocable: bool,
    /// The projection profile.
    pub redaction_profile: String,
    /// The trust level at which the profile is applied.
    #[serde(default = "stranger")]
    pub trust_level: TrustLevel,
    #[serde(default)]
    pub lawful_basis: LawfulBasis,
    /// What the grantee may do.
    #[serde(default = "query_only")]
    pub operations: BTreeSet<Operation>,
    /// Whether embeddings may be seen.
    #[serde(default)]
    pub embedding_access: bool,
    /// Whether and how far it may be passed on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delegable: Option<Delegable>,
    /// The hash of the grant that this one was made from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Hash>,
    /// How much may be asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// Whether a plain bearer token is allowed.
    #[serde(default)]
    pub bearer: bool,
    /// Where its state is published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<StatusRef>,
}

impl Grant {
    /// The scopes that the filter admits: those that it names, else the granter's.
    #[must_use]
    pub fn scopes(&self) -> Vec<ScopeId> {
        self.filter.scopes.clone().unwrap_or_else(|| vec![self.granter.scope.clone()])
    }

    /// From when on it holds: `not_before`, else `issued_at`.
    #[must_use]
    pub fn begins(&self) -> Timestamp {
        self.not_before.unwrap_or(self.issued_at)
    }
}

/// Why a grant document was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the names say it")]
pub enum GrantError {
    /// A member that is missing, unknown or of the wrong shape; the text names it.
    #[error("the grant is malformed: {0}")]
    Malformed(String),
    /// A version other than 1.
    #[error("version: must be 1")]
    Version,
    /// None that the gateway issued, nor one that was made from such a one.
    #[error("the grant is not known here")]
    Unknown,
    #[error("the grant's signature: {0}")]
    Signature(#[from] SignedError),
    /// Signed by somebody who may not.
    #[error("the grant must be signed by its granter, or by the grantee of the grant that it was made from")]
    Signer {
        /// Who must sign.
        expected: Did,
        /// Who did.
        found: Did,
    },
    /// No canonical form.
    #[error(transparent)]
    Json(#[from] JsonError),
}

/// A grant document as received, not verified.
#[derive(Debug, Clone)]
pub struct UnverifiedGrant(UnverifiedDocument<Grant>);

impl UnverifiedGrant {
    /// Reads a signed grant.
    ///
    /// # Errors
    /// [`GrantError::Malformed`], [`GrantError::Version`].
    pub fn parse(document: Value) -> Result<Self, GrantError> {
        let parsed = UnverifiedDocument::<Grant>::parse(document);
        let parsed = parsed.map_err(|e| GrantError::Malformed(e.to_string()))?;
        if parsed.unverified().version != 1 {
            return Err(GrantError::Version);
        }
        Ok(Self(parsed))
    }

    /// The grant that is claimed.
    #[must_use]
    pub const fn unverified(&self) -> &Grant {
        self.0.unverified()
    }

    /// The key that the signature names.
    ///
    /// # Errors
    /// [`GrantError::Signature`] when it names none.
    pub fn kid(&self) -> Result<Kid, GrantError> {
        Ok(self.0.kid()?)
    }

    /// Checks the signature against its signer's document, as of a time of signing that the caller trusts: for a
    /// grant of the gateway's own principal `issued_at`, for a delegated one the gateway's own clock.
    ///
    /// # Errors
    /// [`GrantError::Signer`] when the document is not the signer's, [`GrantError::Signature`].
    pub fn verify(self, signer: &DidDocument, signed_at: Timestamp) -> Result<SignedGrant, GrantError> {
        let kid = self.0.kid()?;
        if kid.did() != signer.id() {
            return Err(GrantError::Signer { expected: signer.id().clone(), found: kid.did().clone() });
        }
        let key = signer.key(&kid).ok_or(SignedError::OtherKey)?;
        // A grant says itself when it was signed; under a compromised key that says nothing.
        if let Some(at) = key.revoked_at() {
            return Err(SignedError::Revoked(at).into());
        }
        let (document, grant) = self.0.verify(signer, signed_at)?;
        let hash = Hash::of_canonical(&document)?;
        Ok(SignedGrant { document, grant, kid, hash })
    }
}

/// A grant whose signature was checked. Only [`UnverifiedGrant::verify`] and [`SignedGrant::sign`] make one.
#[derive(Debug, Clone)]
pub struct SignedGrant {
    document: Value,
    grant: Grant,
    kid: Kid,
    hash: Hash,
}

#[allow(missing_docs, reason = "the names say it")]
impl SignedGrant {
    /// Signs a grant.
    ///
    /// # Errors
    /// [`GrantError`] when the grant has no canonical form.
    pub fn sign(grant: Grant, signer: &Signer) -> Result<Self, GrantError> {
        let mut document = serde_json::to_value(&grant).map_err(|e| GrantError::Malformed(e.to_string()))?;
        sign_document(&mut document, signer)?;
        let hash = Hash::of_canonical(&document)?;
        Ok(Self { document, grant, kid: signer.kid().clone(), hash })
    }

    #[must_use]
    pub const fn grant(&self) -> &Grant {
        &self.grant
    }

    /// The document as it was signed.
    #[must_use]
    pub const fn document(&self) -> &Value {
        &self.document
    }

    /// The key that signed it.
    #[must_use]
    pub const fn kid(&self) -> &Kid {
        &self.kid
    }

    /// The hash of the document, signature included: what tokens, receipts and children name.
    #[must_use]
    pub const fn hash(&self) -> Hash {
        self.hash
    }
}
