//! A whole view as a bundle, for grants that allow exports (protocol section 12).

use crate::allowance::Allowance;
use crate::lens::Lens;
use crate::member::{Member, Version};
use crate::respond::{RespondError, Shown, Unsent, sealed};
use crate::setting::ViewError;
use crate::view::View;
use oap_grants::VerifiedGrant;
use oap_identity::json::JsonError;
use oap_identity::{BundleId, Signer, Timestamp};
use oap_memory::bundle::{self, FORMAT, Header, ItemLine, Line, Projection, Tally, Trailer};
use oap_memory::receipt::Receipt;
use oap_memory::record::ItemRecord;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Header and items of a bundle, and the trailer that is signed once its receipt is there.
#[derive(Debug)]
pub struct Bundle {
    bytes: Vec<u8>,
    trailer: Trailer,
}

/// All that a view may still disclose, with nothing of it written out. [`select`] alone makes one; it does not hold on to
/// the view.
#[derive(Debug)]
pub struct Selected {
    grant: VerifiedGrant,
    lens: Arc<Lens>,
    members: Vec<Member>,
}

/// Selects all that a view may still disclose.
#[must_use]
pub fn select(view: &View, allowance: &Allowance) -> Selected {
    let mut room = allowance.room();
    let slice = view.slice();
    let members: Vec<Member> = slice.members().filter(|member| room.take(member.id())).cloned().collect();
    Selected { grant: view.grant().clone(), lens: slice.lens.clone(), members }
}

/// Writes what was selected out as a bundle. Of the DID documents that verify what the gateway holds, those come along that
/// verify something in it: of any other a grantee would learn that there are items which they do not see.
///
/// `None` when an item is not the version any more that was selected, or is gone.
///
/// # Errors
/// [`ViewError`].
pub fn bundle<E>(
    Selected { grant: verified, lens, members }: Selected,
    bundle_id: BundleId,
    mut documents: Vec<Value>,
    now: Timestamp,
    mut load: impl FnMut(Version) -> Result<Option<ItemRecord>, E>,
) -> Result<Option<Unsent<Bundle>>, ViewError<E>> {
    let grant = verified.grant();
    let mut proved = Vec::with_capacity(members.len());
    for member in &members {
        let Some(whole) = load(member.version).map_err(ViewError::Store)? else { return Ok(None) };
        let Some(item) = lens.write(member, &whole)? else { return Ok(None) };
        proved.push(item.proved()?);
    }
    let own = grant.granter.principal.as_str();
    let signers: BTreeSet<&str> = proved.iter().flat_map(signers).chain([own]).collect();
    documents.retain(|document| document["id"].as_str().is_some_and(|id| signers.contains(id)));
    let header = Header {
        format: FORMAT.to_owned(),
        bundle_id,
        principal: grant.granter.principal.clone(),
        scopes: grant.scopes(),
        created_at: now,
        items: members.len() as u64,
        projected: Some(Projection {
            grant_id: grant.grant_id,
            profile: lens.applied.name.clone(),
            trust_level: grant.trust_level,
            grantee: grant.grantee.clone(),
        }),
        documents,
    };
    let mut tally = Tally::default();
    let mut bytes = Vec::new();
    let mut put = |line: Line| -> Result<(), JsonError> {
        let text = bundle::write(&line)?;
        tally.add(&line, &text);
        bytes.extend(text);
        bytes.push(b'\n');
        Ok(())
    };
    put(Line::Header(header))?;
    for item in proved {
        put(Line::Item(Box::new(ItemLine { item, record: None, superseded: Vec::new() })))?;
    }
    let trailer = tally.trailer(bundle_id, now);
    Ok(Some(Unsent {
        shown: members.iter().map(Shown::of).collect(),
        output_hash: trailer.hash,
        body: Bundle { bytes, trailer },
    }))
}

impl sealed::Signed for Bundle {
    /// The receipt is in the grantee's log; the trailer's hash is what it names.
    fn signed(self, _: &Receipt, signer: &Signer) -> Result<Vec<u8>, RespondError> {
        let Self { mut bytes, trailer } = self;
        bytes.extend(bundle::write(&trailer.sign(signer)?)?);
        bytes.push(b'\n');
        Ok(bytes)
    }
}

/// The DIDs that signed something of an item: its links, and the receipt of its capture.
fn signers(item: &Value) -> impl Iterator<Item = &str> {
    let integrity = &item["integrity"];
    let links = integrity["chain"].as_array().into_iter().flatten();
    let actors = links.filter_map(|link| link["actor"].as_str());
    actors.chain(integrity["capture_receipt"]["principal_did"].as_str())
}
