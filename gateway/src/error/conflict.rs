//! What stands in the way of a change, as things are.

/// Why something cannot be done as things stand; a message is what its caller reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "each variant says itself what its message says")]
pub enum Conflict {
    #[error("nobody is a witness for themselves")]
    OwnReceipt,
    #[error("no bridge leads out of a privileged scope")]
    PrivilegedScope,
    #[error("the bridge was revoked before")]
    BridgeRevoked,
    #[error("the grant was revoked before")]
    GrantRevoked,
    #[error("several delegated grants have this id; revoke them and ask for others")]
    SeveralDelegated,
    #[error("the status list is full")]
    StatusListFull,
    #[error("the item has another version by now")]
    NewerVersion,
    #[error("the item has as many versions as one may have; write another and delete this one")]
    ManyVersions,
    #[error("the item is not current; restore it first")]
    NotCurrent,
    #[error("the item is neither current nor retracted")]
    NeitherCurrentNorRetracted,
    #[error("the item is not in a state for this")]
    ItemState,
    #[error("its deletion was asked for: it is erased when its hold ends")]
    ErasedAfterHold,
    #[error(
        "its chain holds, and the receipt of its capture does not count: a reseal vouches for links alone"
    )]
    CaptureReceipt,
    #[error("its chain does not hold, and a reseal cannot mend that; `oap-memory doctor` lists it")]
    BrokenChain,
    #[error("a compromised key signed part of its chain, and this gateway did not: nothing says whose it is")]
    UnrecordedLink,
    #[error("there is an agent of this name; remove it first, or choose another name")]
    AgentName,
    #[error("an agent has or had this key; a removed one keeps it with what it wrote")]
    AgentKey,
    #[error(
        "so many agents were made here that no more are; the names of removed ones are kept with what they wrote"
    )]
    ManyAgents,
    #[error("the agent was removed; `agent add` makes another")]
    AgentRemoved,
    #[error(
        "the agent has no API key, with which a yes would end; give it one (agent rotate), and say yes then"
    )]
    AgentKeyless,
    #[error("so many clients have the owner's yes that no more can: end one with `agent consent end`")]
    ManyApprovals,
    #[error(
        "no page waits under this code or id: it was answered, or ten minutes are over; begin anew in the program"
    )]
    ConsentOver,
    #[error(
        "the client asked for less than that, or the agent may do less: leave the permission out, or lower it"
    )]
    ConsentTooMuch,
    #[error("there is a client of this name; remove it first, or choose another name")]
    ClientName,
    #[error("so many clients were added that no more can be: remove one")]
    ManyClients,
    #[error("there is an entry of this namespace and key; change that one, by its version")]
    EntryKey,
    #[error("there is no entry of this namespace and key; leave the version out to make one")]
    EntryGone,
    #[error("the task is over; what was written for it is in the log of its intent")]
    TaskOver,
    #[error("the task has another version by now")]
    NewerTask,
    #[error(
        "so many intents of this agent's, or tasks of the intent's, are kept; the oldest go when they are over and the retention time has passed"
    )]
    ManyTasks,
    #[error("you coordinate as many open tasks as one agent may; end some")]
    ManyOpenTasks,
    #[error("the task was given to another agent; what is written for it is no more this one's")]
    TaskTaken,
    #[error(
        "the task bounds how much is written for it, and this is more than the entry has: say less, or change the entry by its version"
    )]
    TaskSize,
    #[error("so many namespaces have permissions; take those of others away")]
    ManyNamespaces,
    #[error("another call has this idempotency_key; give each call one of its own")]
    OtherCall,
    #[error("you made as many links at one of these items as one may; link another item")]
    ManyLinks,
    #[error("the memory has changed since that plan was made; ask for another, without plan")]
    OtherPlan,
    #[error("a legal hold keeps it until that ends")]
    Held,
    #[error("there are keys in this store already")]
    HasKeys,
    #[error("a did:key is its key and cannot rotate; use a did:web")]
    DidKeyRotation,
}
