//! One list out of the own memory's and the others'.

use super::{Gathered, Source};
use crate::service::tools::MAX_HANDED;
use oap_agents::foreign::{AskedPeer, Foreign, FromPeers, Via};
use oap_federation::merge::{List, Merged, Most, Offer, Taken, merge};
use oap_identity::{Did, Hash};

/// An item of the list.
enum Item<O> {
    Own(O),
    Theirs(Foreign),
}

/// The own items of the list, each with who else showed it, and what is of others: fair by whose memory it is (see
/// [`oap_federation::merge`]), the own one first of each round. What others say has at most [`MAX_HANDED`] bytes, of each the same part.
pub(crate) fn merged<O>(
    own: Vec<(Hash, O)>,
    gathered: Gathered,
    limit: usize,
) -> (Vec<(O, Vec<Via>)>, FromPeers) {
    let Gathered { sources, not_asked } = gathered;
    let own = own.into_iter().map(|(is, item)| Offer { is, bytes: 0, item: Item::Own(item) }).collect();
    let mut lists: Vec<List<Option<Did>, Item<O>>> = vec![List { house: None, offers: own }];
    let (mut vias, mut peers) = (Vec::new(), Vec::new());
    for source in sources {
        let Source { via, verdict, found, items, stopped, .. } = source;
        let offers = found.into_iter().map(|(item, bytes)| Offer {
            is: item.commitment,
            bytes,
            item: Item::Theirs(item),
        });
        lists.push(List { house: Some(via.peer.clone()), offers: offers.collect() });
        peers.push(AskedPeer {
            peer: via.peer.clone(),
            grant: via.grant,
            verdict: verdict.standing(),
            reason: verdict.reason().map(str::to_owned),
            items,
            stopped,
            left: 0,
        });
        vias.push(via);
    }
    let Merged { taken, left } = merge(lists, Most { items: limit, bytes: MAX_HANDED });
    for (asked, left) in peers.iter_mut().zip(left.into_iter().skip(1)) {
        asked.left = left;
    }
    let (mut facts, mut items) = (Vec::new(), Vec::new());
    for (number, Taken { item, lists }) in taken.into_iter().enumerate() {
        // List 0 is the own one.
        let shown_by = lists.iter().filter_map(|list| vias.get(list.checked_sub(1)?).cloned()).collect();
        match item {
            Item::Own(item) => facts.push((item, shown_by)),
            Item::Theirs(item) => items.push(Foreign { place: number + 1, shown_by, ..item }),
        }
    }
    (facts, FromPeers { items, also_shown: Vec::new(), peers, not_asked })
}
