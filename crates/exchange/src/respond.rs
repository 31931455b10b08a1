//! From an answer and its receipt to the bytes that leave (protocol section 6): nothing else can be answered with.

use crate::lens::Applied;
use crate::member::Member;
use crate::view::View;
use oap_grants::Grant;
use oap_identity::json::{JsonError, canonical_text};
use oap_identity::signed::SignedError;
use oap_identity::{DetachedSignature, Hash, ItemId, RequestId, Signer};
use oap_memory::TrustLevel;
use oap_memory::receipt::{Receipt, item_tag};
use serde_json::json;

/// A receipt that is durable in its chain. The gateway has one such type, `state::commits::Stored`, which its commits alone make.
pub trait Durable {
    /// What was appended to the chain.
    fn receipt(&self) -> &Receipt;
}

/// What is shown of an item: its version, and where that stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Shown {
    pub item: ItemId,
    /// The number of the last link of its chain: what is shown is in force until another follows.
    pub last_link: u32,
    /// The commitment of the version in force.
    pub commitment: Hash,
}

impl Shown {
    pub(crate) const fn of(member: &Member) -> Self {
        let version = member.version;
        Self { item: version.item, last_link: version.last_link, commitment: member.commitment }
    }
}

/// An answer that has no receipt yet: the items of a query, a bundle, or a vector. [`respond`] alone lets it out.
#[derive(Debug)]
pub struct Unsent<T> {
    pub(crate) body: T,
    pub(crate) shown: Vec<Shown>,
    pub(crate) output_hash: Hash,
}

impl<T> Unsent<T> {
    /// What it shows, in its order.
    #[must_use]
    pub fn shown(&self) -> &[Shown] {
        &self.shown
    }

    /// What its receipt says went out (protocol section 8).
    #[must_use]
    pub const fn output_hash(&self) -> Hash {
        self.output_hash
    }

    /// The items as its receipt names them.
    #[must_use]
    pub fn tags(&self) -> Vec<String> {
        self.shown.iter().map(|shown| item_tag(shown.item, shown.commitment)).collect()
    }
}

/// Why an answer cannot leave.
#[derive(Debug, thiserror::Error)]
pub enum RespondError {
    /// The receipt of something else.
    #[error("the receipt is not of this answer")]
    OtherReceipt,
    /// The receipt or the frame has no canonical form.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// The signature could not be made.
    #[error(transparent)]
    Signed(#[from] SignedError),
}

pub(crate) mod sealed {
    use super::{Receipt, RespondError, Signer};

    pub trait Signed {
        /// The bytes that leave.
        fn signed(self, receipt: &Receipt, signer: &Signer) -> Result<Vec<u8>, RespondError>;
    }
}

/// What an answer is made of: [`Items`], [`crate::bundle::Bundle`] or [`VectorBytes`], and nothing else.
pub trait Body: sealed::Signed {}

impl<T: sealed::Signed> Body for T {}

/// The whole answer: bytes, with the receipt and the signature that go with it. The receipt must be durable, and of this very
/// answer.
///
/// # Errors
/// [`RespondError`].
pub fn respond<T: Body>(
    unsent: Unsent<T>,
    receipt: &impl Durable,
    signer: &Signer,
) -> Result<Vec<u8>, RespondError> {
    let receipt = receipt.receipt();
    if receipt.output_hash != Some(unsent.output_hash) {
        return Err(RespondError::OtherReceipt);
    }
    unsent.body.signed(receipt, signer)
}

/// What the whole answer to a query says beside its items.
#[derive(Debug, Clone)]
pub struct Frame {
    /// The caller's name for the request, or the gateway's.
    pub request_id: RequestId,
    /// The gateway's name for the answer; fresh, so that it salts the output hash.
    pub response_id: RequestId,
    /// Where to go on, as the caller gets it.
    pub next_cursor: Option<String>,
}

/// What stands before the items of an answer.
pub(crate) const OPENING: &str = r#"{"items":"#;

/// The items of an answer to a query, written out, and what is said beside them.
#[derive(Debug)]
pub struct Items {
    /// The answer up to its items' end.
    begun: String,
    frame: Frame,
    level: TrustLevel,
    profile: String,
    redacted_field_count: usize,
    lawful_basis: &'static str,
}

impl Items {
    pub(crate) fn new(begun: String, frame: Frame, grant: &Grant, applied: &Applied) -> Self {
        Self {
            begun,
            frame,
            level: grant.trust_level,
            profile: applied.name.clone(),
            redacted_field_count: applied.redacted_field_count,
            lawful_basis: grant.lawful_basis.as_str(),
        }
    }
}

impl sealed::Signed for Items {
    fn signed(self, receipt: &Receipt, signer: &Signer) -> Result<Vec<u8>, RespondError> {
        let Self { mut begun, frame, .. } = self;
        let projection = json!({
            "trust_level": self.level, "profile": self.profile,
            "redacted_field_count": self.redacted_field_count, "lawful_basis": self.lawful_basis,
        });
        let mut frame_json = String::with_capacity(2048);
        frame_json.push_str(r#""next_cursor":"#);
        frame_json.push_str(&canonical_text(&frame.next_cursor)?);
        frame_json.push_str(r#","projection_applied":"#);
        frame_json.push_str(&canonical_text(&projection)?);
        frame_json.push_str(r#","receipt":"#);
        frame_json.push_str(&canonical_text(receipt)?);
        let (request, response) = (&frame.request_id, &frame.response_id);
        frame_json.push_str(&format!(r#","request_id":"{request}","response_id":"{response}""#));
        let signed = format!("{{{frame_json}}}");
        let signature = canonical_text(&DetachedSignature::sign(signed.as_bytes(), signer))?;
        begun.push(',');
        begun.push_str(&frame_json);
        begun.push_str(r#","signature":"#);
        begun.push_str(&signature);
        begun.push('}');
        Ok(begun.into_bytes())
    }
}

/// The vector of an item: 32-bit floats, little-endian.
#[derive(Debug)]
pub struct VectorBytes(Vec<u8>);

/// The vector of an item that the grantee got and whose vector they may see; `None` for any other.
#[must_use]
pub fn vector(view: &View, allowance: &crate::Allowance, item: ItemId) -> Option<Unsent<VectorBytes>> {
    let (shown, vector) = view.with_vector(item).filter(|_| allowance.contains(item))?;
    let bytes = vector.to_bytes();
    Some(Unsent { shown: vec![Shown::of(shown)], output_hash: Hash::of(&bytes), body: VectorBytes(bytes) })
}

impl sealed::Signed for VectorBytes {
    /// It stands alone: the receipt that names its hash is in the grantee's log.
    fn signed(self, _: &Receipt, _: &Signer) -> Result<Vec<u8>, RespondError> {
        Ok(self.0)
    }
}
