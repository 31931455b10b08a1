//! The conditions on what a grantee sends, each with its source, and the doors that they stand at. Every one has its violations: a `match`
//! without an arm for a new one does not compile, and an arm has one thing at least that is brought, or names what is done instead
//! ([`super::cases`]).

use super::{asked, children, credentials, envelopes, made, owners};
use crate::model::rule::{Granting, Refusal, closed};
use crate::probe::probes::acknowledgements;
use std::fmt;

closed! {
    /// A condition on a token, at every endpoint that takes one (protocol section 5.1, RFC 7519, RFC 8725).
    TokenRule {
        Present = "there is one",
        Once = "there is one Authorization header",
        Scheme = "a bound token is sent as DPoP with its proof, another one as Bearer",
        Shape = "a JWS in compact form (RFC 7515 3.1)",
        Algorithm = "alg is EdDSA, whatever the token says (RFC 8725 3.1)",
        Signature = "the signature verifies",
        Scalar = "the signature has one text: its S is below L (RFC 8032 5.1.7)",
        Claims = "the claims are those that were signed",
        Key = "the key is the granter's, not one that the token brings along (RFC 8725 3.5)",
        Issuer = "the granter made it (RFC 8725 3.8)",
        Delegated = "a grantee made none for somebody else (RFC 0004 4)",
        Kind = "typ says that it is a token (RFC 8725 3.11)",
        Critical = "crit names nothing that is not understood (RFC 7515 4.1.11)",
        Compressed = "there is no zip (RFC 8725 3.6)",
        Members = "no member of its header or its claims stands twice",
        Lives = "it has not ended",
    }
}

closed! {
    /// What is particular of a token that is bound to no key, where a grant allows one (protocol sections 5.1 and 8).
    BearerRule {
        Issued = "a grant with bearer gives a token without cnf, of token_type Bearer",
        Log = "it reads the receipts of its own grant alone",
    }
}

closed! {
    /// A condition on an envelope, at every action (protocol section 12, bytes 8).
    EnvelopeRule {
        Action = "there is such an action",
        Members = "it has the members of its schema and no others",
        Version = "oap_version is 1.0",
        RequestId = "request_id has 26 characters of the alphabet",
        Headers = "OAP-Request-Id and OAP-Version, where they are there, say what it says",
        Time = "timestamp is within five minutes",
        Parties = "principal_did and agent_did are DIDs",
        Context = "the members of context have their forms",
        Texts = "texts have at most 1024 bytes",
        Assertions = "policy_assertions has at most 16384 bytes",
        Input = "input is that of the action",
        Signature = "a signature whose key can be found verifies",
    }
}

closed! {
    /// A condition on a DPoP proof, at every endpoint that takes a token: the checks of RFC 9449 4.3 by their numbers.
    ProofRule {
        Header = "1: exactly one DPoP header",
        Shape = "2: a single well-formed JWT",
        Claims = "3: all required claims are there",
        Kind = "4: typ is dpop+jwt",
        Algorithm = "5: alg is EdDSA",
        Signature = "6: the signature verifies with jwk",
        Scalar = "6: the signature has one text: its S is below L (RFC 8032 5.1.7)",
        Jwk = "7: jwk is there and has no private key",
        Weak = "7: jwk is no key of small order (RFC 8725 3.4)",
        Method = "8: htm is the method",
        Url = "9: htu is the address",
        Nonce = "10: no nonce, for none was given out",
        Time = "11: iat is within five minutes",
        Token = "12: ath is the hash of the token",
        Bound = "12: jwk is the key that the token is bound to",
        Name = "jti has 1 to 256 bytes",
        Once = "11.1: it is good once",
        Critical = "crit names nothing that is not understood (RFC 7515 4.1.11)",
        Compressed = "there is no zip (RFC 8725 3.6)",
        Encoded = "its header and its claims are UTF-8 (RFC 8725 3.7)",
        Members = "no member of its header or its claims stands twice",
    }
}

closed! {
    /// A condition on the proof of control of the grantee's DID (protocol section 5.1).
    GrantProofRule {
        Shape = "a JWS in compact form",
        Kind = "typ is oap-grant-proof+jwt",
        Algorithm = "alg is EdDSA",
        Signature = "the signature verifies with the grantee's key",
        Scalar = "the signature has one text: its S is below L (RFC 8032 5.1.7)",
        Key = "kid names a key of the grantee",
        Weak = "a key of small order is nobody's (RFC 8725 3.4)",
        Issuer = "iss is the grantee",
        Subject = "sub is the grantee",
        Audience = "aud is the address",
        Name = "jti has 1 to 256 bytes",
        Life = "exp is at most 60 seconds after iat, and after it",
        Time = "it is made now, give or take five minutes",
        Grant = "grant_hash, where it is there, is the grant's",
        Once = "it is good once",
        Critical = "crit names nothing that is not understood",
        Compressed = "there is no zip (RFC 8725 3.6)",
        Encoded = "its header and its claims are UTF-8 (RFC 8725 3.7)",
        Members = "no member of its header or its claims stands twice",
    }
}

closed! {
    /// A condition on a grant at its exchange (protocol sections 3 and 5).
    DocumentRule {
        Signature = "the granter signed it",
        Members = "it says what was signed",
        Unknown = "it has no unknown member",
        Shape = "each member has its form",
        Chain = "one without parent has no chain",
        Above = "one with a parent comes with the grants above it, all of them and no others",
        Known = "it was issued here",
        InForce = "it is in force",
    }
}

closed! {
    /// A condition on a child that is none of its members' (protocol section 5.2).
    ChildRule {
        Signature = "a child that is not signed by whom the grant above names",
        Name = "a child under the id of another one of the same grant",
        Number = "a child when 100 were made from the first grant",
    }
}

closed! {
    /// A condition on a countersignature (protocol section 8).
    AckRule {
        Shape = "receipt_id and signature, and nothing else",
        Receipt = "the receipt is one of this gateway",
        Signature = "the signature verifies over the receipt",
        Agent = "the agent that the receipt names signs",
    }
}

closed! {
    /// A condition on an acknowledgement in a letter (protocol section 8.1). Those from [`AckLetterRule::Turn`] on are of a chain that was begun.
    AckLetterRule {
        Receipt = "the receipt is one of this gateway",
        Words = "it is over what the receipt says",
        Agent = "the grantee that the receipt names gives it",
        Sender = "who signs it sends the letter",
        Signature = "the signature verifies",
        Scalar = "the signature has one text: its S is below L (RFC 8032 5.1.7)",
        Answer = "the receipt is of an answer",
        Begun = "a link follows a countersignature",
        Turn = "a link is given by whose turn it is",
        Next = "a link is the next one",
        InForce = "the grant is in force",
    }
}

closed! {
    /// A condition on a grantee's question of the log (protocol section 8).
    LogRule {
        Limit = "limit is 1 to 1000",
        Since = "since is a time",
        Owners = "chain and from are the owner's",
    }
}

closed! {
    /// Who may delete the owner's items: the owner (protocol sections 8 and 10).
    OwnerRule {
        Present = "there is a credential",
        Principal = "the principal's key made it",
        Grantee = "it is none of a grantee's",
    }
}

closed! {
    /// A condition on a receipt of which somebody asks whether it is this gateway's (protocol section 8).
    VerifyRule {
        Shape = "it is a receipt",
        Known = "it is one of this gateway's",
        Bytes = "it is that one to the byte",
    }
}

closed! {
    /// An endpoint that takes a grantee's token (protocol section 5.1).
    Door {
        Query = "query",
        Export = "export",
        Vector = "vector",
        Log = "log",
        Invoke = "memory.query",
        Subscribe = "subscribe",
        EndSubscription = "end of a subscription",
        Events = "events",
        Witnessed = "witnessed receipt",
        Changes = "changes",
        Changed = "changed items",
        Mcp = "mcp",
    }
}

closed! {
    /// Where a grantee shows its grant or a proof of its key, without a token (protocol sections 5.1 and 12).
    ShownAt {
        Exchange = "exchange",
        State = "state of a grant",
        Invoke = "memory.grant",
    }
}

/// An enum of closed lists: every list that it has is among all conditions, has a text, and something that brings what breaks them.
macro_rules! conditions {
    ($(#[doc = $doc:literal] $variant:ident($of:ty) = $text:literal by $brings:path),+ $(,)?) => {
        $(const _: () = { let _brings = $brings; };)+

        /// A condition.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Condition {
            $(#[doc = $doc] $variant($of)),+
        }

        impl Condition {
            /// Every one.
            #[must_use]
            pub fn all() -> Vec<Self> {
                let mut all = Vec::new();
                $(all.extend(<$of>::ALL.iter().copied().map(Self::$variant));)+
                // Nobody gets a token for a grant that is not known or has not begun: nothing can be asked under one.
                all.retain(|one| !matches!(one, Self::Refusal(Refusal::UnknownGrant | Refusal::Draft)));
                all
            }
        }

        impl fmt::Display for Condition {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$variant(rule) => write!(f, "{}: {rule}", $text)),+
                }
            }
        }
    };
}

conditions! {
    /// On a token.
    Token(TokenRule) = "token" by credentials::tokens,
    /// On a token that is bound to no key.
    Bearer(TokenRule) = "bearer token" by credentials::bearer_tokens,
    /// What is particular of such a token.
    OfBearer(BearerRule) = "bearer token" by credentials::bearer_tokens,
    /// On a DPoP proof.
    Proof(ProofRule) = "proof" by credentials::proofs_of_possession,
    /// On an envelope.
    Envelope(EnvelopeRule) = "envelope" by envelopes,
    /// On a grantee's proof.
    GrantProof(GrantProofRule) = "grantee's proof" by credentials::grant_proofs,
    /// On a grant that is exchanged.
    Document(DocumentRule) = "grant" by made::of_documents,
    /// On a grant that is issued, or that is made from another.
    Granting(Granting) = "granting" by made::drafts,
    /// On a grant that is made from another, its members aside.
    Child(ChildRule) = "granting" by children,
    /// On a query, its cursor, an export.
    Refusal(Refusal) = "query" by asked::of_queries,
    /// On a countersignature.
    Ack(AckRule) = "countersignature" by made::acknowledgements,
    /// On an acknowledgement in a letter.
    AckLetter(AckLetterRule) = "acknowledgement" by acknowledgements::acknowledgements,
    /// On a question of the log.
    Log(LogRule) = "log" by made::log,
    /// On who deletes.
    Owner(OwnerRule) = "deletion" by owners::deletion,
    /// On a receipt that is to be this gateway's.
    Verify(VerifyRule) = "receipt" by owners::receipts,
}
