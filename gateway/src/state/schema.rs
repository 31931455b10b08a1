//! What is where in the store.

use crate::error::Error;
use crate::oauth::client::StoredClient;
use crate::state::acks::StoredAck;
use crate::state::agents::StoredAgent;
use crate::state::approvals::StoredApproval;
use crate::state::commits::Chain;
use crate::state::confirmed::{ConfirmedKey, StoredConfirmed};
use crate::state::decided::Decided;
use crate::state::deletion_notices::StoredDeletionNotice;
use crate::state::devices::{StoredDevice, StoredRenewal};
use crate::state::edges::EdgePlace;
use crate::state::events::StoredEvent;
use crate::state::grant_book::{GrantKey, StoredGrant, Usage};
use crate::state::head_row::HeadRow;
use crate::state::heard::HeardLetter;
use crate::state::holds::Hold;
use crate::state::inbox::{Open, StoredAsk};
use crate::state::lies::StoredLie;
use crate::state::listening::{HeldEnd, StoredListening};
use crate::state::lockdown::StoredLockdown;
use crate::state::obligations::StoredBridge;
use crate::state::outbox::StoredLetter;
use crate::state::packed::{OfLinks, OfReceipts, Packed};
use crate::state::peers::{Copies, StoredPeer};
use crate::state::repeatable::Answered;
use crate::state::sources::{Said, Tag};
use crate::state::spent::Spent;
use crate::state::subscriptions::{StoredSubscription, SubscriptionKey};
use crate::state::tasks::{StoredIntent, StoredTask};
use crate::state::terms::Terms;
use crate::state::upgrade::Forward;
use crate::state::version_row::VersionRow;
use crate::state::wallet::{StoredAsked, StoredReceived};
use crate::state::witnessing::{Demand, Owed, StoredLog, StoredOrigin, StoredWitness, Stretch};
use oap_agents::namespaces::Sharing;
use oap_exchange::changes::Has;
use oap_federation::step::LocalState;
use oap_identity::ids::IncidentId;
use oap_identity::resolve::Tip;
use oap_identity::{
    AskId, BridgeId, DecisionId, DeletionId, Did, Hash, IntentId, ItemId, LetterId, ReceiptId, ScopeId,
    SubscriptionId, TaskId, Timestamp,
};
use oap_memory::commitment::{self, Committed};
use oap_memory::record::Head;
use oap_store::{AsKey, Counter, Raw, Single, Slot, Store, Table, Tx};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

/// A place in the receipt chains: the chain's number, and the receipt's number in it.
pub type ReceiptPlace = (u32, u64);
/// What the receipts and the account of an agent are found by: [`agent`].
pub type AgentKey = [u8; 16];

/// The principal's keys: one value, in the compact form of [`StoredKeys`](crate::state::keyring::StoredKeys).
pub const KEYS: Single<Zeroizing<Vec<u8>>, Raw> = Single::new(2);
/// Heads of items; sealed with the key of the version in force.
pub const HEADS: Table<ItemId, Head, HeadRow> = Table::new(3);
/// Versions of items, by item and link number; each sealed with its own key.
pub const VERSIONS: Table<(ItemId, u32), Committed, VersionRow> = Table::new(4);
/// Links of items, by item and number, in canonical form. They stay when an item is erased.
pub const LINKS: Table<(ItemId, u32), Vec<u8>, Packed<Raw, OfLinks>> = Table::new(5);
/// Every grant that was given or accepted, by its key.
pub const GRANTS: Table<GrantKey, StoredGrant> = Table::new(6);
/// When a grant was revoked. Apart from the grant, so that a commit can ask for it cheaply.
pub const REVOKED: Table<GrantKey, Timestamp> = Table::new(7);
/// The items disclosed under a grant and those made from it.
pub const DISCLOSED: Table<(GrantKey, ItemId), ()> = Table::new(8);
/// The state of a receipt chain, by name.
pub const CHAINS: Table<String, Chain> = Table::new(10);
/// How many receipt chains were begun.
pub const CHAIN_COUNT: Counter = Counter::new(10);
/// Receipts in canonical form.
pub const RECEIPTS: Table<ReceiptPlace, Vec<u8>, Packed<Raw, OfReceipts>> = Table::new(11);
/// Where a receipt is.
pub const RECEIPT_PLACES: Table<ReceiptId, ReceiptPlace, AsKey> = Table::new(12);
/// Where the receipts of an agent are: the agent, and the place.
pub const RECEIPTS_OF: Table<(AgentKey, ReceiptPlace), ()> = Table::new(13);
/// Proofs that were used, until when they are remembered.
pub const PROOFS: Table<[u8; 32], Timestamp> = Table::new(14);
/// Incident reports, in JSON.
pub const INCIDENTS: Table<IncidentId, Vec<u8>, Raw> = Table::new(15);
/// The last link of an erased item, and when it was erased.
pub const TOMBSTONES: Table<ItemId, (u32, Timestamp)> = Table::new(16);
/// What grantees spent, and who they are.
pub const BUDGETS: Table<AgentKey, (String, Spent)> = Table::new(17);
/// What was spent of a grant's own budget, by its hash; the text is empty.
pub const SPENT: Table<Hash, (String, Spent)> = Table::new(18);
/// The contexts of scopes (OAP-CORE 18.2), in canonical form.
pub const CONTEXTS: Table<ScopeId, Vec<u8>, Raw> = Table::new(19);
/// How often contexts, bridges and consent changed.
pub const OBLIGATIONS: Counter = Counter::new(19);
/// Bridges between scopes, and when each was taken back.
pub const BRIDGES: Table<BridgeId, StoredBridge> = Table::new(20);
/// When the owner consented to a grant in spite of a context.
pub const CONSENTS: Table<GrantKey, Timestamp> = Table::new(21);
/// What the gates decided.
pub const DECISIONS: Table<DecisionId, Decided> = Table::new(22);
/// The result of the last memorization audit, in canonical form: one value.
pub const MEMORIZATION: Single<Vec<u8>, Raw> = Single::new(23);
/// Capture receipts of items that came from another house, in canonical form.
pub const FOREIGN_RECEIPTS: Table<ReceiptId, Vec<u8>, Packed<Raw, OfReceipts>> = Table::new(24);
/// What was imported from elsewhere and erased since: its id, by the keyed hash of where it came from; never of what it
/// said.
pub const SOURCES: Table<Tag, ItemId, AsKey> = Table::new(25);
/// The same as an earlier version of the program wrote it, under the hash of a source: an item, and the hash of what it
/// said. Brought into the form of today when a gateway is opened.
pub const FORMER_SOURCES: Table<[u8; 20], (ItemId, Hash)> = Table::new(25);
/// DID documents of former houses, as the owner trusted them, in canonical form.
pub const FORMER: Table<Did, Vec<u8>, Raw> = Table::new(26);
/// Legal holds.
pub const HOLDS: Table<ItemId, Hold> = Table::new(27);
/// The last Conformance Receipt, in canonical form: one value.
pub const CONFORMANCE: Single<Vec<u8>, Raw> = Single::new(28);
/// How often the people of the owner's contacts changed.
pub const PEOPLE: Counter = Counter::new(29);
/// What was used of a grant.
pub const USAGE: Table<GrantKey, Usage> = Table::new(30);
/// The keys of the grants, by their places in the status list.
pub const PLACES: Table<u32, GrantKey, AsKey> = Table::new(31);
/// The items of a list whose records have no ids, such as a note's lines, in order, by the keyed hash of
/// what it is told apart by. Their ids alone: some may be erased.
pub const LISTS: Table<Tag, Vec<ItemId>> = Table::new(32);
/// When the owner took a consent back.
pub const WITHDRAWN: Table<GrantKey, Timestamp> = Table::new(40);
/// The latest time that a commit was made at: one value.
pub const CLOCK: Single<Timestamp> = Single::new(41);
/// What an imported item came from and what it said; sealed with the key of the version in force.
pub const SAID: Table<ItemId, Said> = Table::new(42);
/// What trust tokens and approvals are of: one value, drawn anew by a restore and by a lockdown; none where there was neither.
pub const EPOCH: Single<Hash> = Single::new(45);
/// What was brought forward when a gateway was opened, by the step's name: when, and how many rows it changed.
pub const FORWARD: Table<String, Forward> = Table::new(46);
/// Whether no grant answers, because the store came out of a backup that is older than what is known and the owner has not looked: one value.
pub const PAUSED: Single<bool> = Single::new(60);
/// The last lockdown, whether it lasts or was lifted: one value; none where there was none.
pub const LOCKDOWN: Single<StoredLockdown> = Single::new(61);
/// Who was told of a deletion, by its receipt's id and a number, from 0 on.
pub(crate) const TOLD: Table<(DeletionId, u32), StoredDeletionNotice> = Table::new(62);
/// Where the letter of it stands among them, until it was answered.
pub(crate) const TOLD_BY: Table<LetterId, (DeletionId, u32), AsKey> = Table::new(63);
/// What this gateway signed to notices of deletions, by granter and what they name.
pub(crate) const CONFIRMED: Table<ConfirmedKey, StoredConfirmed> = Table::new(68);
/// When its author last looked at an episodic entry, or changed it; none where never since it was written.
pub const ACCESSED: Table<ItemId, Timestamp> = Table::new(43);
/// The owner's own agents, by their DIDs, with those that were removed.
pub const AGENTS: Table<Did, StoredAgent> = Table::new(44);
/// What the owner says of an agent beside its permission; none where that is what every new one has.
pub const TERMS: Table<Did, Terms> = Table::new(50);
/// Intents of the owner's agents.
pub const INTENTS: Table<IntentId, StoredIntent> = Table::new(51);
/// The intents that an agent made, by [`agent`].
pub const INTENTS_OF: Table<(AgentKey, IntentId), ()> = Table::new(52);
/// Tasks of these intents.
pub const TASKS: Table<TaskId, StoredTask> = Table::new(53);
/// The open tasks that an agent coordinates or is assigned to, by [`agent`].
pub const TASKS_OF: Table<(AgentKey, TaskId), ()> = Table::new(54);
/// The tasks of an intent.
pub const TASKS_IN: Table<(IntentId, TaskId), ()> = Table::new(55);
/// What became of entries, by stream, an agent's ([`agent`]) or one of an intent's log, and number.
pub const EVENTS: Table<([u8; 16], u64), StoredEvent> = Table::new(56);
/// The number of the next event of a stream.
pub const STREAMS: Table<[u8; 16], u64> = Table::new(57);
/// Permissions of namespaces, among the owner's agents.
pub const NAMESPACES: Table<String, Sharing> = Table::new(58);
/// How often these changed.
pub const SHARED_TIMES: Counter = Counter::new(59);
/// What the owner said yes to for clients of OAuth, by what their tokens name.
pub const APPROVALS: Table<[u8; 16], StoredApproval> = Table::new(70);
/// The clients of OAuth that the owner added, by name.
pub const CLIENTS: Table<String, StoredClient> = Table::new(71);

/// What an agent was answered to a call that it may repeat, by the hash of agent and key; each sealed with a key of its own.
pub const ANSWERED: Table<Hash, Answered> = Table::new(80);
/// Which of them is of the call that wrote an item.
pub const ANSWERED_OF: Table<ItemId, Hash, AsKey> = Table::new(81);
/// Links, by the item that each is of and its receipt, in JSON; each sealed with a key of its own.
pub const EDGES: Table<EdgePlace, Vec<u8>, Raw> = Table::new(82);
/// The items whose links end at another, by that other and the link's receipt.
pub const EDGES_TO: Table<(ItemId, ReceiptId), ItemId, AsKey> = Table::new(83);
/// What the owner lets agents write, by sort, in JSON: one value; none where the owner never said.
pub const POLICY: Single<Vec<u8>, Raw> = Single::new(84);
/// Who wrote a version of an item that was replaced, by item and link number; gone with that version.
pub const AUTHORS: Table<(ItemId, u32), Did> = Table::new(85);
/// Why an agent took an item back, while that is taken back.
pub const REASONS: Table<ItemId, String> = Table::new(87);
/// When the owner deleted something, by its Deletion Receipt's id.
pub const DELETIONS: Table<DeletionId, Timestamp> = Table::new(86);
/// Peers, by their DIDs.
pub const PEERS: Table<Did, StoredPeer> = Table::new(120);
/// How far the log of a did:webvh was seen that is a peer's or a device's, or whose grant is in the wallet.
pub(crate) const TIPS: Table<Did, Tip> = Table::new(234);
/// What was last read of a peer.
pub const PEER_COPIES: Table<Did, Copies> = Table::new(121);

/// Letters to other gateways, those that are over included.
pub(crate) const LETTERS: Table<LetterId, StoredLetter> = Table::new(90);
/// The letters that wait, by when each is sent next, in milliseconds since 1970.
pub(crate) const LETTERS_DUE: Table<(u64, LetterId), ()> = Table::new(91);
/// How many letters wait to a receiver, by [`agent`], and in all.
pub(crate) const LETTERS_WAITING: Table<AgentKey, u32> = Table::new(92);
/// Letters of others that were taken, for as long as they could come again, by sender and id.
pub const HEARD: Table<Hash, HeardLetter> = Table::new(93);
/// What others ask the owner for.
pub(crate) const ASKS: Table<AskId, StoredAsk> = Table::new(94);
/// The same by who asks and the name that they gave it.
pub(crate) const ASKS_NAMED: Table<Hash, AskId, AsKey> = Table::new(95);
/// Those that the owner did not answer: one value.
pub(crate) const ASKS_OPEN: Single<Vec<Open>> = Single::new(96);
/// What the owner asked others for.
pub(crate) const ASKED: Table<AskId, StoredAsked> = Table::new(97);
/// Grants of others to the owner, by the hashes of their documents.
pub(crate) const WALLET: Table<Hash, StoredReceived> = Table::new(98);
/// Subscriptions of grantees, by the hash of the grant and their name.
pub const SUBSCRIPTIONS: Table<SubscriptionKey, StoredSubscription> = Table::new(200);
/// The owner's other devices, by their DIDs, with those that were removed.
pub(crate) const DEVICES: Table<Did, StoredDevice> = Table::new(220);
/// How what was given to each of them was renewed last.
pub(crate) const RENEWED: Table<Did, StoredRenewal> = Table::new(230);
/// When each part of an item was said and where, of items that changed since there are devices.
pub(crate) const STEPS: Table<ItemId, LocalState> = Table::new(221);
/// The items that changed since there are devices, each once, in the order of their last changes.
pub(crate) const JOURNAL: Table<u64, ItemId, AsKey> = Table::new(222);
/// The place of each in that order.
pub(crate) const JOURNALED: Table<ItemId, u64> = Table::new(223);
/// The place of the last of them: one value; none where there never was a device.
pub(crate) const JOURNAL_END: Single<u64> = Single::new(224);
/// Items that were erased on another device before they were known here.
pub(crate) const GONE: Table<ItemId, Timestamp> = Table::new(225);
/// How many these are: one value.
pub(crate) const GONE_COUNT: Single<u64> = Single::new(226);
/// What each subscriber has, by item.
pub(crate) const HOLDINGS: Table<(SubscriptionKey, ItemId), Has> = Table::new(201);
/// Subscriptions of the owner's own to the memory of others.
pub(crate) const LISTENING: Table<SubscriptionId, StoredListening> = Table::new(202);
/// Why those of them that are over are.
pub(crate) const LISTENING_ENDS: Table<SubscriptionId, HeldEnd> = Table::new(240);
/// Of those that were passed on, the grants that they were made from, first one first, in canonical form.
pub(crate) const WALLET_ABOVE: Table<Hash, Vec<String>> = Table::new(156);
/// What was acknowledged of answers, by the hashes of their receipts.
pub(crate) const ACKS: Table<Hash, StoredAck> = Table::new(150);
/// The same by who is at the other end ([`agent`]), and a number.
pub(crate) const ACKS_PLACES: Table<(AgentKey, u64), Hash, AsKey> = Table::new(151);
/// The number of the oldest of them, and of the next one; of all together nothing, and how many there are.
pub(crate) const ACKS_COUNT: Table<AgentKey, (u64, u64)> = Table::new(152);
/// Whether the gateway acknowledges by itself, by grant.
pub(crate) const ACK_AUTO: Table<Hash, bool> = Table::new(153);
/// What other gateways said that is not so.
pub(crate) const LIES: Table<IncidentId, StoredLie> = Table::new(110);
/// The own log: one value; none where it has no witnesses and never had any.
pub(crate) const LOG: Single<StoredLog> = Single::new(140);
/// The full subtrees of its tree, by how high each is and how many of that height stand before it.
pub(crate) const LOG_NODES: Table<(u32, u64), Hash> = Table::new(141);
/// The secret seed of each of its leaves.
pub(crate) const LOG_SEEDS: Table<u64, [u8; 32]> = Table::new(142);
/// The receipts below a leaf: their hashes, by leaf and place in it.
pub(crate) const LOG_ENTRIES: Table<(u64, u64), Hash> = Table::new(143);
/// The subtrees below a leaf that hold two receipts or more: by leaf, depth and first place.
pub(crate) const LOG_INNER: Table<(u64, u32, u64), Hash> = Table::new(154);
/// Which part of a chain is below which leaf, by the first receipt of the part.
pub(crate) const LOG_STRETCHES: Table<ReceiptPlace, Stretch> = Table::new(144);
/// How much of each chain the log has, by the chain's number.
pub(crate) const LOGGED: Table<u32, u64> = Table::new(145);
/// The checkpoint that is published, as a signed note: one value.
pub(crate) const CHECKPOINT: Single<Vec<u8>, Raw> = Single::new(146);
/// The witnesses of the own log.
pub(crate) const WITNESSES: Table<Did, StoredWitness> = Table::new(147);
/// The logs whose witness this gateway is, by their principals.
pub(crate) const WITNESSED: Table<Did, StoredOrigin> = Table::new(148);
/// What is asked of the logs of peers.
pub(crate) const DEMANDS: Table<Did, Demand> = Table::new(149);
/// What must be in the logs of peers, by the grant that it was given under.
pub(crate) const OWED: Table<Hash, Owed> = Table::new(155);

/// What the receipts of an agent are found by.
#[must_use]
pub fn agent(did: &str) -> AgentKey {
    let hash: [u8; 32] = Sha256::digest(did).into();
    let mut key = [0; 16];
    key.copy_from_slice(&hash[..16]);
    key
}

/// A version of an item, as last committed.
///
/// # Errors
/// [`Error::NotFound`] when it is not there any more.
pub fn version(store: &Store, item: ItemId, seq: u32) -> Result<Committed, Error> {
    VERSIONS.get(store, &(item, seq))?.ok_or(Error::NotFound)
}

/// A version with everything shown.
pub(crate) fn whole(committed: &Committed) -> Result<Map<String, Value>, Error> {
    Ok(commitment::wire(&committed.claims()?)?)
}

/// The head of an item, as it stands in a transaction, with the slot of its key.
///
/// # Errors
/// [`Error::NotFound`] when there is none.
pub fn head(tx: &Tx, item: ItemId) -> Result<(Slot, Head), Error> {
    HEADS.get_with_slot(tx, &item)?.ok_or(Error::NotFound)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::holds::HoldReason;
    use crate::state::sources::SourceTag;
    use oap_identity::random::Seeded;
    use std::collections::BTreeMap;
    use std::sync::Arc;

    /// Every number is that of one table. Three have a second type: a counter beside the rows, or rows of a former form.
    #[test]
    fn numbers_are_given_once() {
        let (text, _) = include_str!("schema.rs").split_once("#[cfg(test)]").unwrap();
        let mut times: BTreeMap<u8, usize> = BTreeMap::new();
        for table in text.split("::new(").skip(1) {
            let (number, _) = table.split_once(')').unwrap();
            *times.entry(number.parse().unwrap()).or_default() += 1;
        }
        let twice: Vec<u8> =
            times.iter().filter(|(_, times)| **times > 1).map(|(number, _)| *number).collect();
        assert_eq!(twice, [CHAINS.number(), CONTEXTS.number(), SOURCES.number()]);
        assert_eq!((CHAIN_COUNT.number(), OBLIGATIONS.number()), (CHAINS.number(), CONTEXTS.number()));
        assert_eq!(times.values().sum::<usize>(), times.len() + twice.len());
    }

    /// Rows as homes have them since before tables had types: keys and values spelled out, byte for byte.
    #[tokio::test]
    async fn a_home_of_before_is_read() {
        let store = Store::in_memory(Arc::new(Seeded::new(1))).unwrap();
        let item = ItemId::from_bytes([7; 16]);
        let at = Timestamp::from_millis(1_700_000_000_123);
        // A time is its milliseconds, a zigzag varint.
        let time = {
            let mut left = (at.millis() as u64) << 1;
            let mut bytes = Vec::new();
            while left >= 0x80 {
                bytes.push((left & 0x7f) as u8 | 0x80);
                left >>= 7;
            }
            bytes.push(left as u8);
            bytes
        };
        let said = Said {
            source: SourceTag { whole: [1; 32], identity: Some([2; 32]), is_exact: true },
            says: Hash::from_bytes([3; 32]),
        };
        let rows: Vec<(u8, Vec<u8>, Vec<u8>)> = vec![
            (27, vec![7; 16], [&[1], time.as_slice(), &[0]].concat()),
            (7, vec![8; 16], time.clone()),
            (8, [[8; 16], [7; 16]].concat(), Vec::new()),
            (10, b"@anonymous".to_vec(), [&[5, 9, 1], [4; 32].as_slice(), &time].concat()),
            (11, [&5_u32.to_be_bytes()[..], &9_u64.to_be_bytes()].concat(), b"{}".to_vec()),
            (12, vec![6; 16], [&5_u32.to_be_bytes()[..], &9_u64.to_be_bytes()].concat()),
            (13, [&agent("did:key:a")[..], &5_u32.to_be_bytes(), &9_u64.to_be_bytes()].concat(), Vec::new()),
            (14, vec![9; 32], time.clone()),
            (16, vec![7; 16], [&[2], time.as_slice()].concat()),
            (18, vec![4; 32], vec![0, 3, 0xac, 2]),
            (19, b"work".to_vec(), b"{}".to_vec()),
            (25, vec![1; 32], vec![7; 16]),
            (25, vec![1; 20], [[7; 16].as_slice(), &[3; 32]].concat()),
            (31, 300_u32.to_be_bytes().to_vec(), vec![8; 16]),
            (42, vec![7; 16], [&[1; 32][..], &[1], &[2; 32], &[1], &[3; 32]].concat()),
        ];
        // What stands without a key: counters and single values.
        let single: Vec<(u8, Vec<u8>)> =
            vec![(10, vec![6]), (19, vec![0xac, 2]), (29, vec![1]), (41, time.clone()), (28, b"{}".to_vec())];
        store
            .transact(move |tx| {
                for (number, key, value) in &rows {
                    Table::<Vec<u8>, Vec<u8>, Raw>::new(*number).put(tx, key, value)?;
                }
                for (number, value) in &single {
                    Single::<Vec<u8>, Raw>::new(*number).put(tx, value)?;
                }
                Ok::<_, oap_store::StoreError>(())
            })
            .await
            .unwrap();
        let grant = GrantKey::named(oap_identity::GrantId::from_bytes([8; 16]));
        let receipt = ReceiptId::from_bytes([6; 16]);
        let hold = Hold { reason: HoldReason::RegulatoryRetention, until: at, erase_after: false };
        let hash = Hash::from_bytes([4; 32]);
        assert_eq!(HOLDS.get(&store, &item), Ok(Some(hold)));
        assert_eq!(REVOKED.get(&store, &grant), Ok(Some(at)));
        assert_eq!(DISCLOSED.get(&store, &(grant, item)), Ok(Some(())));
        let chain = CHAINS.get(&store, &"@anonymous".to_owned()).unwrap().unwrap();
        assert_eq!((chain.index, chain.length, chain.tip, chain.at), (5, 9, Some(hash), at));
        assert_eq!(RECEIPTS.get(&store, &(5, 9)), Ok(Some(b"{}".to_vec())));
        assert_eq!(RECEIPT_PLACES.get(&store, &receipt), Ok(Some((5, 9))));
        assert_eq!(RECEIPTS_OF.get(&store, &(agent("did:key:a"), (5, 9))), Ok(Some(())));
        assert_eq!(PROOFS.get(&store, &[9; 32]), Ok(Some(at)));
        assert_eq!(TOMBSTONES.get(&store, &item), Ok(Some((2, at))));
        assert_eq!(SPENT.get(&store, &hash), Ok(Some((String::new(), Spent { queries: 3, micros: 300 }))));
        assert_eq!(CONTEXTS.get(&store, &"work".parse().unwrap()), Ok(Some(b"{}".to_vec())));
        assert_eq!(SOURCES.get(&store, &[1; 32]), Ok(Some(item)));
        assert_eq!(FORMER_SOURCES.get(&store, &[1; 20]), Ok(Some((item, Hash::from_bytes([3; 32])))));
        assert_eq!(PLACES.get(&store, &300), Ok(Some(grant)));
        assert_eq!(SAID.get(&store, &item), Ok(Some(said)));
        let counters = (CHAIN_COUNT.get(&store), OBLIGATIONS.get(&store), PEOPLE.get(&store));
        assert_eq!(counters, (Ok(6), Ok(300), Ok(1)));
        assert_eq!(CLOCK.get(&store), Ok(Some(at)));
        assert_eq!(CONFORMANCE.get(&store), Ok(Some(b"{}".to_vec())));
        // No reader of rows meets a counter.
        assert_eq!(CHAINS.scan(&store).count(), 1);
        assert_eq!(CONTEXTS.scan(&store).map(Result::unwrap).count(), 1);
    }
}
