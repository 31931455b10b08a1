//! JSON Schemas of the text forms: what `openapi.json` says of an identifier, a hash or a time.

use crate::ids::{AskId, DecisionId, DeletionId, IncidentId, LetterId, ReceiptId, SubscriptionId};
use crate::{
    BridgeId, BundleId, Did, GrantId, Hash, ItemId, JobId, Kid, RequestId, ScopeId, ScopedDid, Timestamp,
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;

/// The schema of a type that is a text of one form.
macro_rules! text {
    ($($name:ident: $description:literal, $pattern:literal $(, $format:literal)?;)+) => {$(
        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn schema_id() -> Cow<'static, str> {
                concat!(module_path!(), "::", stringify!($name)).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({
                    "type": "string", "description": $description, "pattern": $pattern, $("format": $format)?
                })
            }
        }
    )+};
}

text! {
    ItemId: "A memory item.", "^mem_[0-7][0-9A-HJKMNP-TV-Z]{25}$";
    BundleId: "A bundle.", "^bdl_[0-7][0-9A-HJKMNP-TV-Z]{25}$";
    BridgeId: "A Cross Scope Bridge.", "^brg_[0-7][0-9A-HJKMNP-TV-Z]{25}$";
    GrantId: "A memory grant.", "^mgr_[0-7][0-9A-HJKMNP-TV-Z]{25}$";
    AskId: "A request for access.", "^ask_[0-7][0-9A-HJKMNP-TV-Z]{25}$";
    LetterId: "A letter between gateways.", "^ltr_[0-7][0-9A-HJKMNP-TV-Z]{25}$";
    SubscriptionId: "A subscription.", "^sub_[0-7][0-9A-HJKMNP-TV-Z]{25}$";
    JobId: "A job of the owner's.", "^job_[0-7][0-9A-HJKMNP-TV-Z]{25}$";
    ReceiptId: "A receipt.", "^(urn:oap:receipt:|rec_)[0-7][0-9A-HJKMNP-TV-Z]{25}$";
    DeletionId: "A deletion receipt.", "^urn:oap:deletion:[0-7][0-9A-HJKMNP-TV-Z]{25}$";
    DecisionId: "A policy decision.", "^pol_[0-7][0-9A-HJKMNP-TV-Z]{25}$";
    IncidentId: "An incident report.", "^inc_[0-7][0-9A-HJKMNP-TV-Z]{25}$";
    RequestId: "A request or a response.", "^[0-9A-HJKMNP-TV-Z]{26}$";
    Did: "A decentralized identifier.", "^did:[a-z0-9]+:.+$";
    Kid: "A key: its DID and its name.", "^did:[a-z0-9]+:.+#[A-Za-z0-9._~-]{1,128}$";
    ScopeId: "A scope of the principal.", "^[A-Za-z0-9._~-]{1,64}$";
    ScopedDid: "A principal in one of its scopes.", "^did:[a-z0-9]+:.+#[A-Za-z0-9._~-]{1,64}$";
    Hash: "A SHA-256 digest.", "^sha256:[0-9a-f]{64}$";
    Timestamp: "A time in UTC, RFC 3339 with Z.", "Z$", "date-time";
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Seeded;

    /// What is written has the form that its schema states, as far as the form is a beginning and an alphabet.
    #[test]
    fn an_identifier_has_the_form_that_its_schema_states() {
        let schema = schemars::schema_for!(ItemId);
        assert_eq!(schema.get("type").and_then(|kind| kind.as_str()), Some("string"));
        let pattern = schema.get("pattern").and_then(|pattern| pattern.as_str()).unwrap_or_default();
        let id = ItemId::new(Timestamp::from_seconds(0), &Seeded::new(1)).to_string();
        let begins = pattern.trim_start_matches('^').split('[').next().unwrap_or_default();
        assert!(!begins.is_empty() && id.starts_with(begins), "{id} against {pattern}");
    }
}
