//! What is brought for a condition: one thing at least, so that no condition can be left without.

use std::iter::{Chain, Once, once};
use std::vec::IntoIter;

/// One at least.
pub(super) struct OneOrMore<T> {
    first: T,
    rest: Vec<T>,
}

impl<T> OneOrMore<T> {
    pub(super) const fn one(first: T) -> Self {
        Self { first, rest: Vec::new() }
    }

    pub(super) fn and(mut self, next: T) -> Self {
        self.rest.push(next);
        self
    }

    pub(super) fn and_all(mut self, more: impl IntoIterator<Item = T>) -> Self {
        self.rest.extend(more);
        self
    }
}

impl<T> IntoIterator for OneOrMore<T> {
    type Item = T;
    type IntoIter = Chain<Once<T>, IntoIter<T>>;

    fn into_iter(self) -> Self::IntoIter {
        once(self.first).chain(self.rest)
    }
}

/// Something that breaks a condition alone, or is right at its boundary.
pub(super) struct Case<C> {
    pub(super) what: &'static str,
    /// Whether it must be let in.
    pub(super) holds: bool,
    pub(super) change: C,
}

/// The cases of a condition. The first one says what it is about: most are broken, some say what is permitted.
pub(super) type Cases<C> = OneOrMore<Case<C>>;

impl<C> Cases<C> {
    /// What breaks the condition.
    pub(super) const fn breaking(what: &'static str, change: C) -> Self {
        Self::one(Case { what, holds: false, change })
    }

    /// What a condition permits that says nothing else.
    pub(super) const fn keeping(what: &'static str, change: C) -> Self {
        Self::one(Case { what, holds: true, change })
    }

    /// Another one that breaks it.
    pub(super) fn broken(self, what: &'static str, change: C) -> Self {
        self.and(Case { what, holds: false, change })
    }

    /// What is right at its boundary.
    pub(super) fn right(self, what: &'static str, change: C) -> Self {
        self.and(Case { what, holds: true, change })
    }

    /// Whether what decides of the condition is let in: a condition counts where such a case was judged.
    pub(super) const fn decides(&self) -> bool {
        self.first.holds
    }
}
