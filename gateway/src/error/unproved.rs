//! Why nobody is taken for the owner, or for one of the owner's agents.

/// Why a credential does not prove its bearer to be the owner; a message is what its caller reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "each variant says itself what its message says")]
pub enum Unproved {
    #[error("the owner's credential is needed: \"Authorization: DPoP <trust token>\"")]
    None,
    #[error("a trust token is sent as \"Authorization: DPoP\" with a proof")]
    Scheme,
    #[error(
        "the trust token is not one of this gateway's, or was ended by a key rotation, a lockdown or a restore"
    )]
    Ended,
    #[error("the proof is signed by another key than the token is bound to")]
    OtherKey,
    #[error("the DPoP proof was used before")]
    UsedProof,
    #[error("the DPoP proof was made before the agent's API key in force: make another")]
    OldProof,
    #[error("the envelope's signature does not verify with the key that it names")]
    Envelope,
    #[error("an agent's API key is needed: \"X-API-Key: oapk_…\" or \"Authorization: Bearer oapk_…\"")]
    NoKey,
    #[error("the API key is none of this gateway's agents', or was ended")]
    KeyEnded,
    #[error(
        "the token is bound to the agent's own key: send it as \"Authorization: DPoP\" with a proof by that key"
    )]
    BoundKey,
    #[error("the proof is by no key of this gateway's agents: `oap-memory agent add NAME --did did:key:…`")]
    NoOwnKey,
    #[error(
        "the access token is none of this gateway's for this resource, or is over: refresh it, or ask the owner again"
    )]
    TokenEnded,
    #[error(
        "the access token is bound to a key: send it as \"Authorization: DPoP\" with a proof of that key"
    )]
    TokenBound,
    #[error("the access token is bound to no key: send it as \"Authorization: Bearer\"")]
    TokenUnbound,
}
