//! The owner's doors: each endpoint is a type that says where it is, who may enter, what goes in and what comes out.
//!
//! One file a resource. `http/` serves these types, `client/` and `cli/` call them, and `openapi.json` is made of them.

pub mod access;
pub mod acks;
pub mod agents;
pub mod audit;
pub mod budgets;
pub mod deletion;
pub mod devices;
pub mod disclosures;
pub mod document;
pub mod gates;
pub mod grants;
pub mod health;
pub mod holds;
pub mod items;
pub mod jobs;
pub mod keys;
pub mod lock;
pub mod lockdown;
pub mod oauth;
pub mod openapi;
pub mod peers;
pub mod policy;
pub mod prefix;
pub mod recall;
pub mod routes;
pub mod selections;
pub mod standing;
pub mod subscriptions;
pub mod transfer;
pub mod witnesses;

pub use document::Document;
pub use oap_client::endpoint::{Endpoint, MEDIA_TYPE, parameters, path};
pub use oap_client::place::Place;
pub use oap_client::{Permission, permission, place};

use axum::http::Method;
use permission::mark::Mark;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use std::any::TypeId;

/// Nothing but that it is done: `{}`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Done {}

/// An endpoint as a row of the table of all.
#[derive(Clone)]
pub struct Row {
    /// [`Endpoint::NAME`].
    pub name: &'static str,
    /// [`Endpoint::ABOUT`].
    pub about: &'static str,
    /// [`Endpoint::METHOD`].
    pub method: Method,
    /// [`Endpoint::PATH`].
    pub path: &'static str,
    /// The permission that it needs.
    pub permission: Permission,
    /// [`Endpoint::MEDIA_TYPE`].
    pub media_type: &'static str,
    /// [`Endpoint::STATUS`].
    pub status: u16,
    pub(crate) shapes: fn(&mut SchemaGenerator) -> Shapes,
}

/// What goes into an endpoint and what comes out; `None` for what it does not have.
pub(crate) struct Shapes {
    pub(crate) place: Option<Schema>,
    /// With its members, not by reference: each is a parameter.
    pub(crate) query: Option<Schema>,
    pub(crate) body: Option<Schema>,
    pub(crate) answer: Schema,
}

impl Row {
    /// The row of an endpoint.
    #[must_use]
    pub fn of<E: Endpoint>() -> Self {
        fn is_unit<T: 'static>() -> bool {
            TypeId::of::<T>() == TypeId::of::<()>()
        }
        fn shapes<E: Endpoint>(generator: &mut SchemaGenerator) -> Shapes {
            Shapes {
                place: (!is_unit::<E::Place>()).then(|| generator.subschema_for::<E::Place>()),
                query: (!is_unit::<E::Query>()).then(|| E::Query::json_schema(generator)),
                body: (!is_unit::<E::Body>()).then(|| generator.subschema_for::<E::Body>()),
                answer: generator.subschema_for::<E::Answer>(),
            }
        }
        Self {
            name: E::NAME,
            about: E::ABOUT.trim_ascii(),
            method: E::METHOD,
            path: E::PATH,
            permission: <E::Needs as Mark>::PERMISSION,
            media_type: E::MEDIA_TYPE,
            status: E::STATUS,
            shapes: shapes::<E>,
        }
    }
}

/// Every endpoint of the owner's, by resource.
#[must_use]
pub fn all() -> Vec<Row> {
    let resources = [
        agents::rows(),
        oauth::rows(),
        items::rows(),
        selections::rows(),
        disclosures::rows(),
        grants::rows(),
        access::rows(),
        acks::rows(),
        recall::rows(),
        subscriptions::rows(),
        keys::rows(),
        budgets::rows(),
        gates::rows(),
        peers::rows(),
        witnesses::rows(),
        devices::rows(),
        holds::rows(),
        transfer::rows(),
        deletion::rows(),
        audit::rows(),
        health::rows(),
        lockdown::rows(),
        jobs::rows(),
        policy::rows(),
        standing::rows(),
    ];
    resources.into_iter().flatten().collect()
}

/// Endpoints, a type each: `Name: METHOD "path" at(Place) needs Permission query(Query) body(Body) answers(Answer);`. What an endpoint does
/// not have is left out.
macro_rules! endpoints {
    ($(
        $(#[doc = $doc:literal])+
        $name:ident: $method:ident $path:literal $(at($place:ty))? needs $permission:ident
            $(query($query:ty))? $(body($body:ty))? answers($answer:ty)
            $(as $media:literal)? $(status $status:literal)?;
    )+) => {
        $(
            $(#[doc = $doc])+
            #[derive(Debug, Clone, Copy)]
            pub struct $name;

            impl $crate::api::Endpoint for $name {
                const NAME: &'static str = stringify!($name);
                const ABOUT: &'static str = concat!($($doc),+);
                const METHOD: axum::http::Method = axum::http::Method::$method;
                const PATH: &'static str = $path;
                $(const MEDIA_TYPE: &'static str = $media;)?
                $(const STATUS: u16 = $status;)?
                type Needs = $crate::api::permission::mark::$permission;
                type Place = $crate::api::or_unit!($($place)?);
                type Query = $crate::api::or_unit!($($query)?);
                type Body = $crate::api::or_unit!($($body)?);
                type Answer = $answer;
            }
        )+

        /// The rows of these endpoints.
        #[must_use]
        pub fn rows() -> Vec<$crate::api::Row> {
            vec![$($crate::api::Row::of::<$name>()),+]
        }
    };
}

/// A type, or `()` where there is none.
macro_rules! or_unit {
    () => {
        ()
    };
    ($of:ty) => {
        $of
    };
}

use {endpoints, or_unit};

#[cfg(test)]
mod tests {
    use super::items::{ListItems, ListQuery, ShowItem};
    use super::*;
    use oap_identity::ItemId;

    #[test]
    fn a_place_stands_where_the_braces_are() {
        let id = ItemId::from_bytes([0; 16]);
        assert_eq!(path::<ShowItem>(&id), format!("/oap/owner/items/{id}"));
        assert_eq!(path::<items::CorrectItem>(&id), format!("/oap/owner/items/{id}/correct"));
        assert_eq!(path::<ListItems>(&()), "/oap/owner/items");
    }

    #[test]
    fn what_is_not_asked_for_is_not_in_the_address() {
        let query = ListQuery { limit: Some(3), label: Some("a b".to_owned()), ..ListQuery::default() };
        let pairs = [("label", "a b"), ("limit", "3")].map(|(n, v)| (n.to_owned(), v.to_owned()));
        assert_eq!(parameters(&query).unwrap(), pairs);
        assert_eq!(parameters(&()).unwrap(), []);
    }
}
