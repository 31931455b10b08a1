//! Memory on its way out: pages of a bundle for the owner, a projected bundle for a grantee (protocol section 8).
//!
//! The owner's bundle is written page by page, so that neither side holds the whole: header, pages of lines, and at
//! last the trailer, which the gateway signs and leaves a receipt of.

pub use crate::api::transfer::{ExportSelection as Selection, PageHead, PageRequest, Part};
use crate::error::{Error, MemberError};
use crate::service::items::proved;
use crate::service::query::Caller;
use crate::service::{Exchange, Exports, Grants};
use crate::state::commits::{chain_of, until_it_holds};
use crate::state::endorsed::Endorsed;
use crate::state::gateway::blocking;
use crate::state::owner::Owner;
use crate::state::owner::mark::{Admin, Permits};
use crate::state::schema::{self, RECEIPTS, ReceiptPlace};
use crate::state::views::{self, why};
use crate::system::tasks::joined;
use data_encoding::HEXLOWER;
use oap_exchange::bundle::{bundle, select};
use oap_grants::grant::UnverifiedGrant;
use oap_grants::{Operation, VerifiedGrant};
use oap_identity::{BundleId, ItemId, ScopeId};
use oap_memory::bundle::{self, FORMAT, Header, ItemLine, Line, MAX_LINE, Trailer};
use oap_memory::receipt::Action;
use oap_memory::{Head, Status};
use oap_store::{Key, Range};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Most lines of a page.
const MAX_PAGE: usize = 500;
/// Bytes after which a page ends.
const MAX_PAGE_BYTES: usize = 16 << 20;
/// Most bytes of replaced versions in an item's line, the newest first: a reader refuses a line beyond [`MAX_LINE`].
const MAX_SUPERSEDED: usize = MAX_LINE / 2;

impl Selection {
    /// Whether an item is selected. Items that may not leave are not, whoever asks.
    fn admits(&self, head: &Head) -> bool {
        head.exportable
            && matches!(head.status, Status::Current | Status::Retracted)
            && head.meta.tier != oap_memory::record::Tier::Working
            && (self.scopes.is_empty() || self.scopes.contains(&head.scope_id))
            && (self.labels.is_empty() || self.labels.iter().any(|label| head.labels.contains(label)))
            && (self.kinds.is_empty() || self.kinds.contains(&head.kind))
            && self.captured_after.is_none_or(|after| head.captured_at >= after)
            && self.captured_before.is_none_or(|before| head.captured_at < before)
    }
}

/// Lines, and where they ended.
pub struct Page {
    /// Where the next page begins, and how many items were left out.
    pub head: PageHead,
    /// Lines in canonical form, each with its line feed.
    pub lines: Vec<u8>,
}

impl Exports<'_> {
    /// The header of a bundle that is about to be written.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub fn export_header(
        self,
        _: &Owner<impl Permits<Admin>>,
        selection: &Selection,
    ) -> Result<Header, Error> {
        let heads = self.0.heads.all();
        let endorsed = self.0.endorsed()?;
        let stands = |head: &Head| {
            endorsed.are_all() || views::load(&self.0.store, head).is_ok_and(|whole| endorsed.stands(&whole))
        };
        let selected: Vec<&Arc<Head>> =
            heads.iter().filter(|head| selection.admits(head) && stands(head)).collect();
        let scopes: BTreeSet<ScopeId> = selected.iter().map(|head| (*head.scope_id).clone()).collect();
        let now = self.0.clock.now();
        Ok(Header {
            format: FORMAT.to_owned(),
            bundle_id: BundleId::new(now, &*self.0.random),
            principal: self.0.principal.clone(),
            scopes: scopes.into_iter().collect(),
            created_at: now,
            items: selected.len() as u64,
            projected: None,
            documents: self.known_documents()?,
        })
    }

    /// The documents that verify what this gateway holds: its own, and those of former houses.
    fn known_documents(self) -> Result<Vec<Value>, Error> {
        let mut documents = vec![self.0.published().did.clone()];
        for pair in schema::FORMER.scan(&self.0.store) {
            documents.push(oap_identity::json::parse(&pair?.1)?);
        }
        Ok(documents)
    }

    /// A page of lines.
    ///
    /// # Errors
    /// [`Error::Member`] for a cursor that is none, [`Error::Store`], [`Error::Corrupt`].
    pub fn export_page(
        self,
        owner: &Owner<impl Permits<Admin>>,
        request: &PageRequest,
    ) -> Result<Page, Error> {
        let mut page = PageHead { held_back: 0, next: None };
        let mut lines = Vec::new();
        let mut put = |line: &Line| -> Result<usize, Error> {
            lines.extend(bundle::write(line)?);
            lines.push(b'\n');
            Ok(lines.len())
        };
        match request.part {
            Part::Items => {
                let after = request.after.as_ref().map(|after| after.parse::<ItemId>());
                let after = after.transpose().map_err(|_| cursor())?;
                let rest = self.0.heads.after(after);
                let mut rest = rest.filter(|head| request.selection.admits(head));
                let endorsed = self.0.endorsed()?;
                let mut last = None;
                let mut written = 0;
                // Not `take_while`, which would take the one behind the last as well.
                for _ in 0..MAX_PAGE {
                    let Some(head) = (written < MAX_PAGE_BYTES).then(|| rest.next()).flatten() else { break };
                    last = Some(head.item_id);
                    match self.item_line(&head, &endorsed) {
                        Ok(Some(line)) => written = put(&line)?,
                        // Its reader would refuse it; `doctor` lists it.
                        Ok(None) => page.held_back += 1,
                        // Erased meanwhile.
                        Err(Error::NotFound) => {}
                        Err(error) => return Err(error),
                    }
                }
                page.next = rest.next().and(last).map(|item| item.to_string());
            }
            Part::Grants => {
                let keys = self.0.keys();
                for info in Grants(self.0).grant_list(owner) {
                    // A grant that a compromised key signed is void, and no evidence of anything.
                    let kid =
                        UnverifiedGrant::parse(info.grant.whole().clone()).and_then(|grant| grant.kid());
                    let key = kid.ok().and_then(|kid| keys.document().key(&kid).cloned());
                    if key.is_some_and(|key| key.revoked_at().is_some()) {
                        continue;
                    }
                    put(&Line::Grant { grant: info.grant.into_whole() }).map(drop)?;
                }
            }
            Part::Receipts => {
                let from = request.after.as_ref().map(|after| place(after)).transpose()?;
                let range = from.map_or_else(Range::all, |from| Range::all().from(&from));
                let mut rest = RECEIPTS.range(&self.0.store, range);
                for pair in rest.by_ref().take(MAX_PAGE) {
                    put(&Line::Receipt { receipt: oap_identity::json::parse(&pair?.1)? }).map(drop)?;
                }
                if let Some(pair) = rest.next() {
                    page.next = Some(HEXLOWER.encode(&pair?.0.to_key()));
                }
            }
        }
        Ok(Page { head: page, lines })
    }

    fn item_line(self, head: &Head, endorsed: &Endorsed) -> Result<Option<Line>, Error> {
        let whole_item = views::load(&self.0.store, head)?;
        if !endorsed.stands(&whole_item) {
            return Ok(None);
        }
        let item = proved(&whole_item, head.status)?;
        let mut superseded = Vec::new();
        let mut room = MAX_SUPERSEDED;
        // Nobody vouches for a replaced version that a compromised key signed: its reader would refuse it.
        let doubtful = endorsed.doubtful(&whole_item.chain);
        let replaced = head.replaced.iter().rev();
        for (seq, _) in replaced.filter(|(seq, _)| !doubtful.iter().any(|l| l.seq == *seq)) {
            if let Ok(version) = schema::version(&self.0.store, head.item_id, *seq) {
                let text = version.whole()?;
                let Some(left) = room.checked_sub(text.len()) else { break };
                room = left;
                superseded.push(text);
            }
        }
        superseded.reverse();
        let record = Some(head.meta.clone());
        Ok(Some(Line::Item(Box::new(ItemLine { item: Value::Object(item), record, superseded }))))
    }

    /// Signs the trailer of a bundle, once its export has a receipt.
    ///
    /// # Errors
    /// [`Error::Signed`], [`Error::Store`].
    pub async fn export_seal(
        self,
        owner: &Owner<impl Permits<Admin>>,
        trailer: Trailer,
    ) -> Result<Line, Error> {
        let gateway = self.0.clone();
        let stored = self
            .0
            .commit_as(owner, move |w| {
                let agent = gateway.principal.as_str();
                let mut draft = gateway.draft(Action::Export, agent);
                draft.rules = vec!["principal".to_owned()];
                draft.more.insert("bundle_id".to_owned(), json!(trailer.bundle_id));
                draft.more.insert("counts".to_owned(), json!(trailer.counts));
                draft.output_hash = Some(trailer.hash);
                w.receipt(&chain_of(&gateway.config.default_scope), draft)?;
                Ok(trailer.sign(w.keys.current())?)
            })
            .await?;
        Ok(stored)
    }

    /// A grantee's bundle: their whole view, projected, for grants with `operations: ["export"]`. It discloses, so it
    /// counts, costs and leaves a receipt like an answer.
    ///
    /// # Errors
    /// [`Error::Refused`] with a receipt.
    pub async fn export_view(self, caller: &Caller) -> Result<Vec<u8>, Error> {
        let grant = Exchange(self.0).judge(caller, Operation::Export, Action::Export).await?;
        self.0.profile(&grant.grant().redaction_profile).ok_or(Error::NotFound)?;
        Exchange(self.0).not_spent(caller, &grant, Action::Export).await?;
        let disclosing = self.0.grant_book.disclosing(grant.hash());
        let one_by_one = disclosing.lock_owned().await;
        let (gateway, caller) = (self.0.clone(), caller.clone());
        // A task of its own, that a request which is given up does not end: the next one waits for it.
        let exported = tokio::spawn(async move {
            let _one_by_one = one_by_one;
            until_it_holds(|| Exports(&gateway).export_once(&caller, &grant)).await
        });
        joined(exported).await
    }

    async fn export_once(self, caller: &Caller, grant: &VerifiedGrant) -> Result<Vec<u8>, Error> {
        let before = self.0.grant_book.allowance(grant.hash());
        let built = self.0.view(grant, false, &before).await?;
        let (selected, basis) = built.find(|view| select(view, &before));
        let gateway = self.0.clone();
        let now = self.0.clock.now();
        let bundle_id = BundleId::new(now, &*self.0.random);
        let write = move || {
            let documents = Exports(&gateway).known_documents()?;
            bundle(selected, bundle_id, documents, now, |version| gateway.load(version)).map_err(why)
        };
        let unsent = match blocking(write).await? {
            Some(unsent) => unsent,
            None => return Exchange(self.0).overtaken().await,
        };
        let mut draft = Exchange(self.0).answer_draft(Action::Export, &basis, &unsent);
        draft.rules = ["grant.active", "grant.operation", "projection.profile"].map(str::to_owned).to_vec();
        draft.more.insert("bundle_id".to_owned(), json!(bundle_id));
        Exchange(self.0).send(caller, basis, Operation::Export, draft, unsent).await
    }
}

fn cursor() -> Error {
    Error::Member("after", MemberError::NotPageEnd)
}

fn place(after: &str) -> Result<ReceiptPlace, Error> {
    let bytes = HEXLOWER.decode(after.as_bytes()).map_err(|_| cursor())?;
    ReceiptPlace::from_key(&bytes).ok_or_else(cursor)
}
