//! How a view follows the changes of items: what became of each is looked at beside the view, and taken over in one step.

use crate::lens::Lens;
use crate::member::Entering;
use crate::setting::{Embed, ViewError};
use crate::slice::{Reach, Slice, Withheld};
use oap_identity::{ItemId, Timestamp};
use oap_memory::commitment::Committed;
use oap_memory::record::Head;
use std::borrow::Borrow;
use std::sync::Arc;

/// What a view needs to know of changes. It does not hold on to the view, which can be answered from meanwhile.
#[derive(Debug)]
pub struct Renewal {
    lens: Arc<Lens>,
    embeds: bool,
}

/// What became of items, for the view that it was asked for. [`Renewal::step`] alone makes one.
#[derive(Debug)]
pub struct Step {
    lens: Arc<Lens>,
    changed: Vec<(ItemId, Becomes)>,
    reach: Reach,
}

#[derive(Debug)]
enum Becomes {
    Member(Box<Entering>),
    Withheld(Withheld),
    Nothing,
}

impl Renewal {
    pub(crate) fn of(slice: &Slice) -> Self {
        Self { lens: slice.lens.clone(), embeds: slice.is_embedded() }
    }

    /// Looks at items that changed, by the heads that they have now. Items are loaded only when they pass; one that `load`
    /// finds no more was erased meanwhile, and is in no view. The vectors of new members are asked of the model where the
    /// view has any.
    ///
    /// # Errors
    /// [`ViewError`]; then the view is as it was.
    pub fn step<E, W: Borrow<Committed>>(
        &self,
        changed: impl IntoIterator<Item = (ItemId, Option<Arc<Head>>)>,
        embed: Option<Embed<'_>>,
        now: Timestamp,
        mut load: impl FnMut(&Head) -> Result<Option<W>, E>,
    ) -> Result<Step, ViewError<E>> {
        let mut all = Vec::new();
        for (item, head) in changed {
            let becomes = match head.filter(|head| self.lens.selects(head, now)) {
                None => Becomes::Nothing,
                Some(head) => match self.lens.withholds(&head) {
                    Some(withheld) => Becomes::Withheld(withheld),
                    None => match load(&head).map_err(ViewError::Store)? {
                        Some(loaded) => Becomes::Member(Box::new(self.lens.enter(&head, loaded.borrow())?.0)),
                        None => Becomes::Nothing,
                    },
                },
            };
            all.push((item, becomes));
        }
        let mut entering: Vec<&mut Entering> = all
            .iter_mut()
            .filter_map(|(_, becomes)| match becomes {
                Becomes::Member(entering) => Some(&mut **entering),
                _ => None,
            })
            .collect();
        let embed = embed.filter(|_| self.embeds && !entering.is_empty());
        let reach = Reach::embed(&mut entering, embed, now);
        Ok(Step { lens: self.lens.clone(), changed: all, reach })
    }
}

impl Step {
    /// Leaves items out: the view keeps what it has of them.
    pub fn leave_out(&mut self, which: impl Fn(ItemId) -> bool) {
        self.changed.retain(|(item, _)| !which(*item));
    }

    /// Takes the step, where it is one of this very slice; says whether it is.
    pub(crate) fn take(self, slice: &mut Slice) -> bool {
        if !Arc::ptr_eq(&self.lens, &slice.lens) {
            return false;
        }
        slice.reached(self.reach);
        for (item, becomes) in self.changed {
            slice.remove(item);
            match becomes {
                Becomes::Member(entering) => slice.insert(*entering),
                Becomes::Withheld(withheld) => slice.withhold(item, withheld),
                Becomes::Nothing => {}
            }
        }
        true
    }
}
