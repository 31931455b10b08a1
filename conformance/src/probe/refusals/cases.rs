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

/// The cases of a condition: one at least breaks it, for nothing else makes them.
pub(super) struct Cases<C>(OneOrMore<Case<C>>);

impl<C> Cases<C> {
    /// What breaks the condition.
    pub(super) const fn breaking(what: &'static str, change: C) -> Self {
        Self(OneOrMore::one(Case { what, holds: false, change }))
    }

    /// Another one that breaks it.
    pub(super) fn broken(self, what: &'static str, change: C) -> Self {
        Self(self.0.and(Case { what, holds: false, change }))
    }

    /// What is right at its boundary.
    pub(super) fn right(self, what: &'static str, change: C) -> Self {
        Self(self.0.and(Case { what, holds: true, change }))
    }
}

impl<C> IntoIterator for Cases<C> {
    type Item = Case<C>;
    type IntoIter = <OneOrMore<Case<C>> as IntoIterator>::IntoIter;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}
