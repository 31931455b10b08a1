//! The rules of the model, each of which can decide something: what a run has to have exercised.

mod items;
mod requests;

pub use items::*;
pub use requests::*;

use super::profile::table::Cell;
use std::fmt;

/// An enum without values of its own, all of whose variants are listed and have a text.
macro_rules! closed {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, strum::Display, strum::IntoStaticStr,
            strum::VariantArray,
        )]
        pub enum $name {
            $(#[doc = $text] $(#[$vdoc])* #[strum(serialize = $text)] $variant),+
        }

        impl $name {
            /// Every one.
            pub const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;

            /// What it says.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                self.into()
            }
        }
    };
}
pub(crate) use closed;

/// A rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Rule {
    /// A list of the grant's filter, and its case.
    Filter(List, ListCase),
    /// A bound of the grant's filter, and its case.
    FilterBound(Bound, BoundCase),
    /// Two fields of the grant's filter, the lesser one first: one of them alone is against an item.
    FilterPair(Field, Field),
    /// Whether the grant reaches an item.
    Reach(Reach),
    /// What a gate says.
    Gate(Gate),
    /// Where an item stands.
    Standing(Standing),
    /// A member that was corrected.
    Corrected(Corrected),
    /// What the gateway wrote into an item.
    Written(Written),
    /// A cell of a profile's table.
    Cell(Cell),
    /// A condition of a profile.
    Condition(Condition),
    /// Where a span of a class stood that a level hides or shows.
    SpanPlace(SpanClass, SpanPlace),
    /// What is said of the attitude.
    Epistemic(Epistemic),
    /// A member of the query.
    Asked(Asked),
    Paged(Paged),
    Refusal(Refusal),
    /// A condition on a grant.
    Granting(Granting),
    /// What a grant may be.
    Permitted(Permitted),
    /// What stands beside the items.
    Beside(Beside),
    /// What a rotation of keys leaves.
    Keys(Keys),
    /// What a grant is exchanged for.
    Exchanged(Exchanged),
    /// What is told of a grant's state.
    GrantState(GrantState),
    /// Who gets which vector.
    Vectors(Vectors),
}

impl Rule {
    /// Whether it needs a context, a bridge or the owner's consent: not every owner's side can set them.
    #[must_use]
    pub const fn is_of_gates(self) -> bool {
        matches!(self, Self::Gate(_))
    }

    /// Every rule.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for list in List::ALL {
            all.extend(list.cases().into_iter().map(|case| Self::Filter(*list, case)));
        }
        for bound in Bound::ALL {
            all.extend(BoundCase::ALL.iter().map(|case| Self::FilterBound(*bound, *case)));
        }
        for one in Field::all() {
            let pairs = Field::all().filter(|other| one < *other);
            all.extend(pairs.map(|other| Self::FilterPair(one, other)));
        }
        all.extend(Reach::ALL.iter().copied().map(Self::Reach));
        all.extend(Gate::ALL.iter().copied().map(Self::Gate));
        all.extend(Standing::ALL.iter().copied().map(Self::Standing));
        all.extend(Corrected::ALL.iter().copied().map(Self::Corrected));
        all.extend(Written::ALL.iter().copied().map(Self::Written));
        all.extend(Cell::all().into_iter().map(Self::Cell));
        all.extend(Condition::ALL.iter().copied().map(Self::Condition));
        for class in SpanClass::ALL {
            all.extend(SpanPlace::of(*class).into_iter().map(|place| Self::SpanPlace(*class, place)));
        }
        all.extend(Epistemic::ALL.iter().copied().map(Self::Epistemic));
        all.extend(Asked::ALL.iter().copied().map(Self::Asked));
        all.extend(Paged::ALL.iter().copied().map(Self::Paged));
        all.extend(Refusal::ALL.iter().copied().map(Self::Refusal));
        all.extend(Granting::ALL.iter().copied().map(Self::Granting));
        all.extend(Permitted::ALL.iter().copied().map(Self::Permitted));
        all.extend(Beside::ALL.iter().copied().map(Self::Beside));
        all.extend(Keys::ALL.iter().copied().map(Self::Keys));
        all.extend(Exchanged::ALL.iter().copied().map(Self::Exchanged));
        all.extend(GrantState::ALL.iter().copied().map(Self::GrantState));
        all.extend(Vectors::ALL.iter().copied().map(Self::Vectors));
        all
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Filter(list, case) => write!(f, "filter.{list}: {case}"),
            Self::FilterBound(bound, case) => write!(f, "filter.{bound}: {case}"),
            Self::FilterPair(one, other) => {
                write!(f, "filter.{one} with {other}: one of them alone is against it")
            }
            Self::Reach(reach) => write!(f, "reach: {reach}"),
            Self::Gate(gate) => write!(f, "gate: {gate}"),
            Self::Standing(standing) => write!(f, "item: {standing}"),
            Self::Corrected(member) => write!(f, "item: a correction of {member} is seen"),
            Self::Written(written) => write!(f, "item: {written}"),
            Self::Cell(cell) => write!(f, "projection: {cell}"),
            Self::Condition(condition) => write!(f, "projection: {condition}"),
            Self::SpanPlace(class, place) => write!(f, "span: {class} {place}"),
            Self::Epistemic(epistemic) => write!(f, "epistemic: {epistemic}"),
            Self::Asked(asked) => write!(f, "query: {asked}"),
            Self::Paged(paged) => write!(f, "page: {paged}"),
            Self::Refusal(refusal) => write!(f, "refused: {refusal}"),
            Self::Granting(granting) => write!(f, "granting: {granting}"),
            Self::Permitted(permitted) => write!(f, "granted: {permitted}"),
            Self::Beside(beside) => write!(f, "answer: {beside}"),
            Self::Keys(keys) => write!(f, "keys: {keys}"),
            Self::Exchanged(exchanged) => write!(f, "exchanged: {exchanged}"),
            Self::GrantState(state) => write!(f, "state: {state}"),
            Self::Vectors(vectors) => write!(f, "vectors: {vectors}"),
        }
    }
}
