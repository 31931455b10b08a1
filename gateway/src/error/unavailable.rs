//! What is out of reach for a while.

/// What cannot be had now, and may be later; a message is what its caller reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "each variant says itself what its message says")]
pub enum Unavailable {
    #[error("the model of embeddings is out of reach")]
    Model,
    #[error("the granter publishes no list that says where the grant stands, or it cannot be reached")]
    StatusList,
    #[error("as many streams of events are read as may be at once")]
    Streams,
    #[error("the gateway that the grantee's own DID document names is out of reach")]
    NotReached,
    #[error("as many recalls ask other memories as may at once")]
    Recalls,
    #[error("the gateway is stopping")]
    Stopping,
    #[error("the gateway's clock is not believed; its owner can set it right")]
    Clock,
    #[error("the gateway was restored from a backup; its owner lets grants answer again")]
    Restored,
    #[error("the memory changes faster than this could be done")]
    Overtaken,
    #[error("permissions of namespaces were changed meanwhile; ask again")]
    Permissions,
    #[error("too many SPARQL queries and looks back are being evaluated")]
    Asking,
}
