//! What stands in the way of a change, as things are.

use oap_identity::ItemId;

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
    #[error("the item has version {0} and not the one that was named; look at it again")]
    NewerVersion(u32),
    #[error("the item has as many versions as one may have; write another and delete this one")]
    ManyVersions,
    #[error("the item does not wait for the owner; `item retract` takes any item back")]
    NotWaiting,
    #[error(
        "the item that is to stay is not in force; name another one with into, or take this one back without"
    )]
    NotStaying,
    #[error("the item is not current; restore it first")]
    NotCurrent,
    #[error(
        "the item is not in force any more, as it was taken back or its time is over: there is nothing left to change; memory_learn says it anew"
    )]
    NotInForce,
    #[error("the item is neither current nor retracted")]
    NeitherCurrentNorRetracted,
    #[error("the item is in force: there is nothing to put back")]
    InForce,
    #[error("the item was taken back before; `item restore` puts it back")]
    TakenBack,
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
    #[error(
        "{0} has this namespace and key by now: take that one back first (`oap-memory item retract {0}`), or leave this one (`oap-memory review reject`)"
    )]
    KeyTaken(ItemId),
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
    #[error("it is a peer already; `oap-memory peer check` looks at it anew")]
    PeerKnown,
    #[error("so many peers were added that no more can be: remove one")]
    ManyPeers,
    #[error("it does not show that now: look at it again with `oap-memory peer show`")]
    PeerShowsOther,
    #[error(
        "the other gateway has to acknowledge next, or the chain is as long as it may be: `oap-memory audit acks show` says how far it is"
    )]
    NotYourTurn,
    #[error("the grant of that answer was revoked or removed: nothing more is acknowledged under it")]
    AckOver,
    #[error("it is a witness already; `oap-memory witness list` says how it stands")]
    WitnessKnown,
    #[error("so many witnesses were added that no more can be: `oap-memory witness remove` ends one")]
    ManyWitnesses,
    #[error(
        "this gateway is a witness for so many that it can be for no more: `oap-memory witness end` ends one"
    )]
    ManyWitnessed,
    #[error("a legal hold keeps it until that ends")]
    Held,
    #[error("the gateway is locked down, and nothing is made that gives access; say `lockdown lift` first")]
    LockedDown,
    #[error("the gateway is not locked down")]
    NotLockedDown,
    #[error(
        "so many letters to other gateways wait that no more can; they go when their receivers answer, or after 30 days: `peer outbox` lists them"
    )]
    OutboxFull,
    #[error(
        "so many requests wait for their granters that no more can be made: `grant requests withdraw` ends one"
    )]
    ManyAsked,
    #[error("so many grants were received that no more are kept: remove some with `grant received remove`")]
    WalletFull,
    #[error(
        "so many subscriptions are there that no more can be: of a grant, or of all together; end one with `grant unsubscribe`"
    )]
    ManySubscriptions,
    #[error("there is or was a subscription of this name that says something else; choose a new name")]
    OtherSubscription,
    #[error(
        "the grant is not in force, or allows no subscription: its granter says `subscribe` and `query` in its operations"
    )]
    NoSubscription,
    #[error(
        "the granter's gateway refused the subscription; `query` under the grant says whether it still answers"
    )]
    SubscriptionRefused,
    #[error("the request was answered, withdrawn, or its time is over")]
    AskOver,
    #[error("it is a device already; `oap-memory device remove` ends that, to begin anew")]
    DeviceKnown,
    #[error("so many devices were added that no more can be: remove one with `oap-memory device remove`")]
    ManyDevices,
    #[error("nobody said yes in time; begin anew with `oap-memory device add` on both sides")]
    DeviceOver,
    #[error(
        "there is no code to compare yet: run `oap-memory device add` on the other side too, and keep both gateways running"
    )]
    NoCode,
    #[error("there are keys in this store already")]
    HasKeys,
    #[error("a did:key is its key and cannot rotate; use a did:web")]
    DidKeyRotation,
}
